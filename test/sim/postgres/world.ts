// Gateways, clients and a database with all that may go wrong between them. What is committed is compared, batch by batch,
// with the second set of books (../ledger-model.ts); at the end each client's reply is compared with the journal.
import { expect } from "bun:test";
import type { HoldRecord } from "../../../src/account/money/admission.ts";
import type { Asked } from "../../../src/account/money/asked.ts";
import { coderWindowOf } from "../../../src/account/money/quota.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import {
  defaultKey,
  OutcomeUnknown,
  type Price,
  type Refusal,
  StoreUnavailable,
  type Usage,
} from "../../../src/core/types.ts";
import {
  accountOf,
  type BatchOf,
  type Charged,
  decide,
  type LaneDecision,
  type OpenHold,
  type LaneRules,
} from "../../../src/store/postgres/decide.ts";
import { GoneLanes } from "../../../src/store/postgres/gone-lanes.ts";
import { Lane } from "../../../src/store/postgres/lane.ts";
import { ask, coderAsk, model, plans } from "../../account/office.ts";
import { randomOf } from "../../fixtures/random.ts";
import { LedgerModel, shortOf } from "../ledger-model.ts";
import { modelPlans, noLimits } from "../ledger-world.ts";
import { type NetworkFault, SimulatedPostgres } from "./simulated-postgres.ts";
import { SimulatedProcess, Timeline } from "./timeline.ts";

const prices: readonly (readonly [Price, readonly number[]])[] = [
  [{ kind: "flat", cents: 335 }, [335, 335, 335]],
  [{ kind: "split", inputCents: 195, cachedInputCents: 20, outputCents: 390 }, [195, 20, 390]],
  // So many tokens cost one of balance that what is held may grow and cost no more.
  [
    {
      kind: "split",
      inputCents: 0,
      cachedInputCents: 0,
      outputCents: 0,
      parts: { input: 0, cachedInput: 0, output: 500 },
    },
    [0, 0, 0.05],
  ],
];
const dear: readonly [Price, readonly number[]] = [{ kind: "flat", cents: 780 }, [780, 780, 780]];
const dayMs = 86_400_000;

export type WorldOptions = Readonly<{
  seed: number;
  gateways: number;
  requests: number;
  faults: boolean;
  /** Many requests have to wait for others of their account, those of each gateway in a line of its own; else few. */
  lines: boolean;
  /** What shall go wrong, beside chance. Called once, when the gateways are there. */
  script?: (world: World) => void;
}>;

type Told = "settled" | "void" | "unavailable" | "cut" | "refused" | "released" | "admission unavailable" | "nothing";
type Request = {
  readonly id: string;
  readonly account: number;
  readonly rates: readonly number[];
  readonly reads: number;
  readonly asked: Asked;
  told: Told;
  wasSettling: boolean;
};
type Gateway = { readonly process: SimulatedProcess; readonly lane: Lane; readonly gone: GoneLanes };
type Row = Readonly<Record<string, unknown>>;

export class World {
  readonly timeline = new Timeline();
  readonly random: () => number;
  readonly postgres: SimulatedPostgres;
  readonly counts = new Map<string, number>();
  readonly gateways: Gateway[] = [];
  readonly #models = new Map<number, LedgerModel>();
  readonly #requests = new Map<string, Request>();
  readonly #begins = new Map<OpenHold, (refusal: Refusal | null) => void>();
  /** By lane, what it decided last. */
  readonly #decided = new Map<string, Readonly<{ batch: BatchOf; decision: LaneDecision }>>();
  #committedNumbers = new Map<string, number>();
  /** What can be seen and is not safe yet. */
  #unsafe: (() => void)[] = [];
  #isCalm = true;
  #made = 0;
  #lanes = 0;
  #purchases = 0;
  #error: unknown = null;
  readonly #rules: LaneRules = { plans, siteUrl: "http://site", maxWaitMs: 600_000, inputRequestsPerMinute: 3_000 };

  constructor(readonly options: WorldOptions) {
    this.random = randomOf(options.seed);
    // A minute before a day and a window of coder calls begin.
    this.postgres = new SimulatedPostgres(this.timeline, Date.UTC(2026, 2, 28, 23, 59), {
      random: this.random,
      fault: () => this.#fault(),
      breaksCommit: () => this.breaksNext() || (!this.#isCalm && this.random() < 0.004),
      committed: (rows, acknowledged, given) => this.#committed(rows, acknowledged, given),
      failedOver: () => this.#failedOver(),
    });
  }

  /** For scripts: whether the wait for the standby is broken off now. */
  breaksNext = (): boolean => false;

  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }

  count(what: string, by = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + by);
  }

  /** Until every request has its answer; then everything must be as the model says. */
  async run(): Promise<void> {
    const { gateways, requests, faults } = this.options;
    for (let id = 1; id <= 6; id += 1) this.#addAccount(id);
    for (let index = 0; index < gateways; index += 1) await this.#start(index);
    this.#isCalm = !faults;
    this.options.script?.(this);
    this.#comeLater();
    if (faults) this.#disturbLater();
    while (this.#made < requests) this.#step();
    this.#isCalm = true;
    this.postgres.isUp = true;
    // Long enough for whatever was lost to be found gone.
    const until = this.timeline.now + 60_000;
    while (this.timeline.now < until) this.#step();
    for (const { lane } of this.gateways) this.#countLane(lane);
    this.#checkEnd();
  }

  #step(): void {
    this.timeline.step();
    if (this.#error !== null) throw this.#error;
  }

  #addAccount(id: number): void {
    const plan = this.pick(["free", "plus", "standard"] as const);
    const sums = { held: 0, waiting_held: 0, begun: 0, expected: 0 };
    this.postgres.rows.set(`accounts:${id}`, {
      id,
      key_hash: `hash ${id}`,
      plan,
      credit: 0,
      disabled: false,
      key_used_at: null,
      ...sums,
      holds: 0,
      searches_held: 0,
      allowance_day: -1,
      allowance_used: 0,
      coder_window: -1,
      coder_used: 0,
      searches_day: -1,
      searches_used: 0,
      flood_opens: 0,
      flood_latest: 0,
      flood_count: 0,
      minute: null,
      inputs_opens: 0,
      inputs_latest: 0,
      inputs_count: 0,
    });
    const books = new LedgerModel(modelPlans(Object.values(plans)));
    books.create("a", plan);
    this.#models.set(id, books);
    for (const key of [2, 3]) {
      const perDay = key === 2 ? this.pick([5_000, 20_000]) : null;
      const perMonth = key === 2 ? this.pick([null, 30_000]) : null;
      this.postgres.rows.set(`api_keys:${id} ${key}`, {
        account: id,
        id: key,
        name: `k${key}`,
        key_hash: `hash ${id} ${key}`,
        used_at: null,
        revoked: false,
        expires_at: null,
        tokens_per_day: perDay,
        tokens_per_month: perMonth,
        models: null,
        addresses: null,
        forwards_users: null,
        end_user_tokens_per_day: null,
        weight: null,
        priority: null,
        priority_max: null,
        parallel: null,
        requests_per_minute: null,
        tokens_per_minute: null,
        minute: null,
        ...sums,
      });
      const big = (limit: number | null) => (limit === null ? null : BigInt(limit));
      books.addKey("a", key, { ...noLimits, perDay: big(perDay), perMonth: big(perMonth) });
    }
    this.#buy(id, this.options.lines ? 1_000_000 : 100_000);
  }

  // -------------------------------------------------------------- gateways

  async #start(index: number): Promise<void> {
    const process = new SimulatedProcess(this.timeline, this.postgres.startedAt, this.below(4_000) - 2_000);
    const log = () => {};
    const server = this.postgres.serverFor(process);
    const lane = new Lane({
      server,
      gateway: `g${index}`,
      version: "1",
      rules: this.#rules,
      pace: process.pace,
      log,
      configDigest: () => "",
      mint: () => String((this.#lanes += 1)),
      decide: (batch, rules) => {
        const decision = decide(batch, rules);
        this.#decided.set(batch.lane, { batch, decision });
        return decision;
      },
      decided: (hold, refusal) => {
        this.#begins.get(hold)?.(refusal);
        this.#begins.delete(hold);
      },
    });
    const opened = lane.open();
    let isOpen = false;
    opened.then(
      () => (isOpen = true),
      () => this.timeline.after(500, () => void this.#start(index)),
    );
    if (this.gateways.length < this.options.gateways) while (!isOpen) this.#step();
    else await opened.catch(() => {});
    if (!isOpen) return;
    const gone = new GoneLanes(server, process.pace, log);
    gone.begin();
    this.gateways[index] = { process, lane, gone };
    this.#lookLater(this.gateways[index]);
  }

  /** What the books do for those who wait. */
  #lookLater({ process, lane }: Gateway): void {
    process.pace.after(1_000, () => {
      for (const account of lane.waitingAccounts()) void lane.put({ op: "look", account }).catch(() => {});
      this.#lookLater({ process, lane } as Gateway);
    });
  }

  #kill(index: number): void {
    const { process, lane } = this.gateways[index]!;
    if (process.isDead) return;
    this.count("killed");
    this.#countLane(lane);
    process.kill();
    this.timeline.after(500 + this.below(20_000), () => void this.#start(index));
  }

  #countLane({ counts }: Lane): void {
    for (const [what, count] of Object.entries(counts)) this.count(what, count);
  }

  // -------------------------------------------------------------- clients

  #comeLater(): void {
    this.timeline.after(this.random() * 200, () => {
      if (this.#made >= this.options.requests) return;
      const alive = this.gateways.filter(({ process }) => !process.isDead);
      if (alive.length > 0) void this.#request(this.pick(alive));
      if (this.random() < 0.01) this.#buy(1 + this.below(6), this.options.lines ? 1_000_000 : 20_000);
      this.#comeLater();
    });
  }

  async #request({ lane, process }: Gateway): Promise<void> {
    const id = `r${(this.#made += 1)}`;
    const account = 1 + Math.floor(this.random() ** 2 * 6);
    const key = this.pick([0, 1, 1, 2, 2, 3]);
    const keyHash = key === 0 ? null : key === 1 ? `hash ${account}` : `hash ${account} ${key}`;
    const isCall = this.random() < 0.1;
    const [price, rates] = isCall
      ? ([{ kind: "flat", cents: 800 }, [0, 0, 0]] as const)
      : this.options.lines && this.random() < 0.3
        ? dear
        : this.pick(prices);
    const budget = this.pick([0, 100, 4_096, 4_096, this.below(65_536)]);
    const reads = this.options.lines ? this.pick([0, 100, this.below(20_000), 196_608]) : 0;
    const isOpen = !isCall && price.kind === "split" && budget > 0;
    const opened = { model: { ...model("own", price), tier: "own" as const }, openBudget: true as const };
    const asked = isCall ? coderAsk() : ask(budget, isOpen ? opened : { model: model("core-3", price) });
    const request: Request = { id, account, rates, reads, asked, told: "nothing", wasSettling: false };
    this.#requests.set(id, request);
    if (!lane.writable) return void (request.told = "refused");
    if (this.random() < 0.03) {
      void lane.put({ op: "count", account, kind: "chat" }).catch(() => {});
    }
    let hold: OpenHold;
    try {
      const admit = {
        op: "admit",
        account,
        key,
        keyHash,
        ask: asked,
        inputTokens: reads,
        requestId: id,
        endUser: null,
      } as const;
      const answer = (await lane.put(admit)) as OpenHold | Refusal;
      if (isRefusal(answer)) return void (request.told = "refused");
      hold = answer;
    } catch {
      return void (request.told = "admission unavailable");
    }
    if (hold.record.waits) {
      this.count("waited");
      // Some do not wait for so long; it may be decided in the moment in which they leave.
      if (this.random() < 0.4) {
        process.pace.after(this.below(1_500), () => {
          if (!this.#begins.delete(hold)) return;
          this.count("left the line");
          request.told = "released";
          lane.put({ op: "release", hold }).catch((thrown: unknown) => (this.#error ??= thrown));
        });
      }
      const refusal = await new Promise<Refusal | null>((resolve) => this.#begins.set(hold, resolve));
      if (refusal !== null) return void (request.told = "refused");
    }
    const runMs = this.pick([10, 300, 2_000, this.below(8_000)]);
    for (let growth = isOpen ? this.below(4) : 0; growth > 0; growth -= 1) {
      process.pace.after(this.below(runMs), () => void this.#grow(lane, hold, request));
    }
    process.pace.after(runMs, () => void this.#finish(lane, hold, request));
  }

  /** The answer came so far. */
  async #grow(lane: Lane, hold: OpenHold, request: Request): Promise<void> {
    if (request.told !== "nothing" || request.wasSettling) return;
    const { held } = hold.record.output!;
    const written = this.pick([held, held, this.below(held + 1)]);
    try {
      const found = (await lane.put({ op: "grow", hold, written })) as number;
      this.count(found > held ? "grew" : "found no more");
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable) && !(thrown instanceof OutcomeUnknown)) this.#error ??= thrown;
    }
  }

  async #finish(lane: Lane, hold: OpenHold, request: Request): Promise<void> {
    if (this.random() < 0.15) {
      request.told = "released";
      return void lane.put({ op: "release", hold }).catch((thrown: unknown) => (this.#error = thrown));
    }
    const most = request.asked.model.coder ? 500 : (hold.record.output?.held ?? request.asked.outputTokensMax);
    const reads = this.random() < 0.2 ? 3 * request.reads : request.reads; // what a node adds is not expected
    const inputFresh = this.below(this.options.lines ? reads + 1 : 2_000);
    const usage: Usage = { inputFresh, inputCached: this.below(50), output: this.below(most + 1), reasoning: 0 };
    request.wasSettling = true;
    try {
      const told = await lane.put({ op: "settle", hold, usage, estimated: false });
      request.told = typeof told === "object" && told !== null && "charged" in told ? "settled" : (told as Told);
      if (request.told === "settled" && !this.postgres.rows.has(`journal:${request.id}`)) {
        throw new Error(`${request.id} heard its end before its charge was there`);
      }
    } catch (thrown) {
      if (thrown instanceof OutcomeUnknown) request.told = "cut";
      else if (thrown instanceof StoreUnavailable) request.told = "unavailable";
      else this.#error ??= thrown;
    }
  }

  /** What a command does on a connection of its own. */
  #buy(account: number, tokens: number): void {
    const key = `accounts:${account}`;
    const session = this.postgres.open();
    if (this.postgres.holdsLock(session, key)) {
      const row = this.postgres.rows.get(key)!;
      const billingKey = `credit:${(this.#purchases += 1)}`;
      const line = { billing_key: billingKey, kind: "credit", account_id: String(account), used: "0", period: "0" };
      const rows = new Map<string, Row>([
        [key, { ...row, credit: (row["credit"] as number) + tokens }],
        [`journal:${billingKey}`, { ...line, credit_delta: String(tokens) }],
      ]);
      this.#apply(() => {
        const books = this.#models.get(account)!;
        books.buy("a", tokens, billingKey);
        books.committed(books.pending);
      });
      this.postgres.commit({ rows, failed: false, begun: true }, []);
    }
    this.postgres.end(session, "08006");
  }

  // -------------------------------------------------------------- faults

  #fault(): NetworkFault {
    if (this.#isCalm || this.random() > 0.012) return null;
    const fault = this.pick(["request lost", "answer lost", "reset before", "reset after", "late"] as const);
    this.count(fault);
    return fault;
  }

  #disturbLater(): void {
    this.timeline.after(500 + this.random() * 6_000, () => {
      if (this.#made >= this.options.requests) return;
      const index = this.below(this.gateways.length);
      const { process } = this.gateways[index]!;
      const roll = this.random();
      if (roll < 0.3) {
        this.count("paused");
        process.pause(this.pick([300, 1_500, 6_000, 20_000, 20_000]));
      } else if (roll < 0.45) {
        this.#kill(index);
      } else if (roll < 0.6 && this.postgres.isUp) {
        this.count("crashed");
        this.postgres.crash(this.pick([200, 3_000, 5_000, 14_000]));
      } else if (roll < 0.75 && this.postgres.isUp) {
        this.count("failed over");
        this.postgres.failOver(this.pick([200, 3_000]));
      } else if (roll < 0.9) this.#stepClock();
      else this.operatorLocks(`accounts:${1 + this.below(6)}`, this.pick([100, 3_000, 20_000]));
      this.#disturbLater();
    });
  }

  /** In a transaction of somebody's, which is left open for a while. */
  operatorLocks(row: string, ms: number): void {
    const session = this.postgres.open();
    if (!this.postgres.holdsLock(session, row)) this.timeline.after(0.01, () => this.operatorLocks(row, ms));
    else {
      this.count("locked by an operator");
      this.timeline.after(ms, () => this.postgres.end(session, "08006"));
    }
  }

  #stepClock(): void {
    this.count("clock stepped");
    const isWaited = this.gateways.some(({ lane }) => lane.waitingHolds > 0 || lane.pending > 0);
    // A day that passes ends every wait by the model, whose time is the database's.
    this.postgres.clockOffset += isWaited
      ? this.below(2_000) - 1_000
      : this.pick([dayMs, -dayMs, 4 * 3_600_000, -5_000]);
  }

  // -------------------------------------------------------------- the second books

  /** At once, or when what can be seen is safe. */
  #apply(thunk: () => void): void {
    this.#unsafe.push(thunk);
  }

  #committed(rows: ReadonlyMap<string, Row | null>, acknowledged: boolean, given: readonly Row[]): void {
    for (const [key, row] of rows) {
      const lane = row?.["id"] as string;
      if (!key.startsWith("lanes:") || row === null) continue;
      const number = row["batch"] as number;
      if (number <= (this.#committedNumbers.get(lane) ?? 0)) continue;
      this.#committedNumbers.set(lane, number);
      const decided = this.#decided.get(lane)!;
      // As they are now: what is seen may be safe only after later batches.
      const { batch, decision } = decided;
      const states = [...batch.waiting, ...decision.made].map(
        (hold) => [hold, decision.changed.get(hold) ?? hold.record] as const,
      );
      this.#apply(() => this.#follow(batch, decision, rows, states));
    }
    if (given.length > 0) {
      this.count("given back", given.length);
      const { now } = this.postgres;
      this.#apply(() => {
        for (const hold of given) {
          const books = this.#models.get(hold["account_id"] as number)!;
          books.line = ""; // nobody's: those who wait for it are decided at their gateways
          books.release("a", hold["request_id"] as string, now);
        }
      });
    }
    if (!acknowledged) return this.count("broken off");
    const safe = this.#unsafe;
    this.#unsafe = [];
    try {
      for (const thunk of safe) thunk();
    } catch (thrown) {
      this.#error ??= thrown;
    }
  }

  #failedOver(): void {
    if (this.#unsafe.length > 0) this.count("seen and lost", this.#unsafe.length);
    this.#unsafe = [];
    this.#committedNumbers = new Map(
      [...this.postgres.rows]
        .filter(([key]) => key.startsWith("lanes:"))
        .map(([, row]) => [row["id"] as string, row["batch"] as number]),
    );
  }

  /** Does what a committed batch did, and compares. */
  #follow(
    batch: BatchOf,
    decision: LaneDecision,
    rows: ReadonlyMap<string, Row | null>,
    states: readonly (readonly [OpenHold, HoldRecord | Refusal])[],
  ): void {
    const { now } = decision;
    for (const books of this.#models.values()) books.line = batch.lane;
    // Also those whose operations were given up before they were decided: whoever waits there may begin.
    const accounts = new Set(batch.loaded.accounts.map(({ id }) => id));
    for (const [index, operation] of batch.operations.entries()) {
      const answer = decision.answers[index];
      if (answer instanceof Error) throw answer;
      const account = accountOf(operation);
      const books = this.#models.get(account)!;
      const at = (expected: unknown) => [operation.op, "hold" in operation ? operation.hold.requestId : "", expected];
      switch (operation.op) {
        case "count": {
          const seconds = books.count("a", now);
          const expected = seconds === 0 ? null : { refusal: "too_many_requests", detail: { seconds } };
          expect(at(answer)).toEqual(at(expected));
          break;
        }
        case "admit": {
          const expected = this.#admit(books, operation.requestId, operation.key, now);
          if (expected === null) break;
          const isShort = isRefusal(answer as Refusal) && shortOf((answer as Refusal).refusal) === expected.refusal;
          if (!isShort) expect(answer).toMatchObject(expected);
          break;
        }
        case "grow": {
          const { hold, written } = operation;
          const isHeld = hold.lane === batch.lane;
          const before = isHeld ? books.outputOf("a", hold.requestId)!.held : 0;
          const expected = isHeld ? books.grow("a", hold.requestId, written, now) : hold.record.output!.held;
          expect(at(answer)).toEqual(at(expected));
          const { reserved, left, credit } = books.expected("a", now);
          if (isHeld && expected > before && reserved > left + credit)
            throw new Error(`${hold.requestId} holds too much`);
          break;
        }
        case "release":
          if (operation.hold.lane === batch.lane) books.release("a", operation.hold.requestId, now);
          break;
        case "settle": {
          const { hold, usage } = operation;
          const expected = this.#settle(books, hold, usage, hold.lane === batch.lane, now);
          expect(at(answer)).toEqual(at(expected));
          break;
        }
        default: // the model knows no searches, and asks for nothing between
      }
      books.committed(books.pending);
    }
    for (const account of accounts) this.#compare(account, rows.get(`accounts:${account}`)!, now);
    for (const [hold, state] of states) {
      const books = this.#models.get(hold.account)!;
      if (!isRefusal(state) && decision.removed.includes(hold.requestId)) continue;
      const heard = isRefusal(state) ? shortOf(state.refusal) : state.waits ? "waits" : "begins";
      const id = hold.requestId;
      const expected = books.refused.get(id) ?? (books.waits("a", id) ? "waits" : "begins");
      // One that was told to begin before the batch is not asked again.
      expect([id, heard]).toEqual([id, expected]);
      if (!isRefusal(state)) expect([id, state.output]).toEqual([id, books.outputOf("a", id)]);
    }
  }

  /** Null where it may begin or wait, else the refusal. */
  #admit(books: LedgerModel, id: string, key: number, now: number): Partial<Refusal> | null {
    const { asked, rates, reads } = this.#requests.get(id)!;
    if (asked.model.coder) return books.takeCall("a", now) ? null : { refusal: "coder_quota_reached" as never };
    const seconds = books.count("a", now);
    if (seconds > 0) return { refusal: "too_many_requests", detail: { seconds } } as never;
    const writes = asked.outputTokensMax;
    const isOpen = asked.openBudget === true;
    const wanted = { budget: isOpen ? null : writes, reads, writes, rates, isOpen };
    const expected = books.reserve("a", id, wanted, now, key);
    return expected === "begins" || expected === "waits" ? null : ({ refusal: expected } as never);
  }

  #settle(
    books: LedgerModel,
    { requestId, record }: OpenHold,
    usage: Usage,
    isHeld: boolean,
    now: number,
  ): "settled" | "void" | Charged {
    const { rates } = this.#requests.get(requestId)!;
    if (record.kind === "call") {
      books.note("a");
      return "settled";
    }
    const tokens = [usage.inputFresh, usage.inputCached, usage.output];
    // Its row may be there still, where its account was locked when others of the lane were given back.
    const name = isHeld ? requestId : `${requestId} again`;
    if (!isHeld) {
      const cost = tokens.reduce((sum, count, index) => sum + count * rates[index]!, 0);
      const billed = Math.floor((2 * cost + 500) / 1_000);
      if (billed > 0) {
        if (!books.othersFit("a", { key: record.key, user: null }, now)) return "void";
        const fits = books.reserve(
          "a",
          name,
          { budget: billed, reads: 0, writes: 0, rates: [0, 0, 0] },
          now,
          record.key,
        );
        if (fits !== "begins") return "void";
      } else return "settled";
    }
    const [inputFresh = 0, inputCached = 0, output = 0] = books.settle("a", name, rates, tokens, now);
    const isWhole = inputFresh === usage.inputFresh && inputCached === usage.inputCached && output === usage.output;
    return isWhole ? "settled" : { charged: { inputFresh, inputCached, output, reasoning: 0 } };
  }

  #compare(account: number, row: Row, now: number): void {
    const books = this.#models.get(account)!;
    books.look(now);
    const expected = books.expected("a", now);
    expect({
      account,
      credit: row["credit"],
      reserved: row["held"],
      expected: row["expected"],
      calls: row["coder_window"] === coderWindowOf(now) ? row["coder_used"] : expected.calls,
    }).toEqual({
      account,
      credit: expected.credit,
      reserved: expected.reserved,
      expected: expected.expected,
      calls: expected.calls,
    });
  }

  // -------------------------------------------------------------- the end

  #checkEnd(): void {
    const of = (table: string) =>
      [...this.postgres.rows].filter(([key]) => key.startsWith(`${table}:`)).map(([, row]) => row);
    for (const { lane } of this.gateways) expect([lane.pending, lane.openHolds]).toEqual([0, 0]);
    expect(of("holds")).toEqual([]);
    for (const row of [...of("accounts"), ...of("api_keys")]) {
      const { held, waiting_held, begun, expected, holds = 0 } = row as Record<string, number>;
      expect({ held, waiting_held, begun, expected, holds }).toEqual({
        held: 0,
        waiting_held: 0,
        begun: 0,
        expected: 0,
        holds: 0,
      });
    }
    const lines = of("journal");
    const paid = new Set(lines.map((line) => line["billing_key"] as string));
    for (const { id, account, told, wasSettling } of this.#requests.values()) {
      this.count(told);
      const isPaid = paid.has(id);
      this.count(`${told} of ${account}`);
      if (told === "settled" && !isPaid) throw new Error(`${id} heard its end and was not charged`);
      const mayBePaid = told === "settled" || told === "cut" || (told === "nothing" && wasSettling);
      if (isPaid && !mayBePaid) throw new Error(`${id} was charged, and told ${told}`);
    }
    this.#checkSums(lines);
  }

  /** What an account's rows say are the sums of its lines. */
  #checkSums(lines: readonly Row[]): void {
    const sums = new Map<string, number>();
    const add = (name: string, by: number) => sums.set(name, (sums.get(name) ?? 0) + by);
    for (const line of lines as readonly Record<string, string>[]) {
      const { kind, account_id, key_id, period, used, credit_delta } = line;
      add(`credit ${account_id}`, Number(credit_delta));
      const quota = kind === "charge" ? "allowance" : kind === "coder_call" ? "coder_calls" : null;
      if (quota !== null) add(`${quota} ${account_id} ${period}`, Number(used));
      if (kind === "charge" && Number(key_id) > defaultKey) {
        add(`key ${account_id} ${key_id} ${period}`, Number(used) - Number(credit_delta));
      }
    }
    const found = new Map<string, number>();
    for (const [name, row] of this.postgres.rows) {
      const of = row as Record<string, number>;
      if (name.startsWith("accounts:")) {
        found.set(`credit ${of["id"]}`, of["credit"]!);
        found.set(`allowance ${of["id"]} ${of["allowance_day"]}`, of["allowance_used"]!);
        found.set(`coder_calls ${of["id"]} ${of["coder_window"]}`, of["coder_used"]!);
      }
      if (name.startsWith("key_use:")) found.set(`key ${of["account_id"]} ${of["key_id"]} ${of["day"]}`, of["used"]!);
    }
    for (const [name, row] of this.postgres.rows) {
      if (!name.startsWith("quota_use:")) continue;
      const key = `${row["quota"] as string} ${row["account_id"] as number} ${row["period"] as number}`;
      if (!found.has(key)) found.set(key, row["used"] as number); // the account's row has the period that it is in
    }
    const positive = (map: Map<string, number>) => Object.fromEntries([...map].filter(([, sum]) => sum !== 0).sort());
    expect(positive(found)).toEqual(positive(sums));
  }
}
