// The whole gateway but its sockets, in one thread and without a clock: the real spine, dialects, admission, ledger,
// journal, writer and slot queue, between simulated clients, nodes and a disk that all obey one seed. The books are kept
// twice (LedgerModel) and the clients keep their own: who saw a whole reply is charged once for what he was told.
import { expect } from "bun:test";
import { assert } from "../../src/core/assert.ts";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { chatCompletions } from "../../src/dialects/chat/chat-completions.ts";
import type { Dialect } from "../../src/dialects/dialect.ts";
import { messages } from "../../src/dialects/messages/messages.ts";
import { responsesDialect } from "../../src/dialects/responses/responses.ts";
import { admit, type Body, isRefused, type GatewayParts, serve } from "../../src/gateway.ts";
import type { AdmissionRequest } from "../../src/account/money/books.ts";
import { ratesOf } from "../../src/account/money/price.ts";
import { isRefusal, refuse } from "../../src/core/refusals.ts";
import type { Ask, Ending, Hold, Piece, Refusal, Usage } from "../../src/core/types.ts";
import { billedTokens, bodyOf, budgetField, viewOf } from "../fixtures/client-view.ts";
import { LedgerWorld, type SimulatedAccount } from "./ledger-world.ts";
import { isPaid, SimulatedClient } from "./simulated-client.ts";
import { type Generation, SimulatedNodes } from "./simulated-nodes.ts";
import { headOf } from "../fixtures/reading.ts";
import { endpointOf } from "../fixtures/endpoints.ts";
import { ModelHabits } from "../../src/tools/model-habits.ts";

const catalog = embeddedCatalog();
const models = [
  "core-3",
  "core-1.6-pro",
  "core-coder-1",
  "open-01-3BIT-REAP",
  "open-03-3BIT-REAP",
  "open-05-3BIT-REAP",
] as const;

/** What is known about a request after its end, whatever became of the process. */
/** "misfit": what was delivered was not what was asked for, and is charged. "unheard": its client left before the first byte and before the charge was written, and pays nothing. */
type Fate = "refused" | "whole" | "misfit" | "failed" | "left" | "unheard" | "killed";

/** A line of the journal for a reply. */
type Charge = { kind: string; input: number; cached_input: number; output: number; billed: number };

type Request = {
  readonly id: string;
  readonly account: SimulatedAccount;
  readonly dialect: Dialect;
  readonly model: string;
  readonly stream: boolean;
  /** Sends the rest of the body. */
  readonly upload: PromiseWithResolvers<Body | Refusal>;
  uploaded: boolean;
  client: SimulatedClient | null;
  /** Holds tokens from its admission until its charge or its end. */
  holds: boolean;
  unheard: boolean;
};

export class Spine extends LedgerWorld {
  readonly #dialects: readonly Dialect[] = [
    chatCompletions,
    messages,
    responsesDialect({
      sealingKey: new Uint8Array(32),
      clock: { wall: () => this.office.now, monotonic: () => this.office.monotonic },
      storesResponses: false,
    }) as unknown as Dialect,
  ];
  nodes = this.#nodesOf();
  open: Request[] = [];
  readonly fates = new Map<string, Fate>();
  /** What went wrong in the life of a request. */
  readonly #broken: unknown[] = [];
  #requests = 0;
  readonly #habits = new ModelHabits();
  /** Counts of input that a charge waits for. */
  #counts: PromiseWithResolvers<number | null>[] = [];
  /** A process that was killed goes on in the heap of this one: what it does there no longer counts. */
  #process = 0;

  expectedHolds() {
    return { holds: this.open.filter(({ holds }) => holds).length, searches: 0 };
  }

  /** One random event; returns the account it was about. */
  async step(): Promise<SimulatedAccount> {
    const account = this.pickAccount();
    const roll = this.random();
    const table: readonly [number, string, () => void | Promise<void>][] = [
      [0.15, "request", () => this.ask(account)],
      [0.03, "upload", () => this.upload()],
      [0.28, "read of a node", () => this.nodeSays()],
      [0.13, "end of a node", () => this.nodeEnds()],
      [0.04, "fault of a node", () => this.nodeFails()],
      [0.02, "health of a node", () => this.health()],
      [0.03, "client leaves", () => this.leave()],
      [0.04, "client reads", () => this.read()],
      [0.01, "cut", () => this.cut()],
      [0.04, "count", () => this.countInput()],
      [0.02, "purchase", () => this.buy(account)],
      [0.005, "plan", () => this.changePlan(account)],
      [0.005, "reload of plans", () => this.reloadPlans()],
      [0.005, "rotation", () => this.rotate(account)],
      [0.02, "key", () => this.changeKeys(account)],
      [0.02, "time", () => this.pass()],
      [0.145, "commit", () => this.commit()],
      [0.01, "fault of the disk", () => this.fault()],
    ];
    let below = 0;
    for (const [share, name, run] of table) {
      below += share;
      if (roll >= below) continue;
      this.count(name);
      await run();
      break;
    }
    await this.continuations(40);
    this.look();
    await this.continuations(40);
    this.expectNothingLeaks();
    return account;
  }

  override async continuations(turns?: number): Promise<void> {
    await super.continuations(turns);
    if (this.#broken.length > 0) throw this.#broken[0];
  }

  // ------------------------------------------------------------------------------------------------ clients

  ask(account: SimulatedAccount): void {
    const dialect = this.pick(this.#dialects);
    const model = this.pick(models);
    const stream = this.random() < 0.6;
    const request: Request = {
      id: `req_${this.seed}x${(this.#requests += 1)}`,
      account,
      dialect,
      model,
      stream,
      upload: Promise.withResolvers(),
      uploaded: false,
      client: null,
      holds: false,
      unheard: false,
    };
    this.open.push(request);
    const named = account.keys.flatMap(({ key }) => key ?? []);
    const usual = named.length > 0 && this.random() < 0.5 ? this.pick(named) : account.key;
    const key = this.random() < 0.98 ? usual : this.pick(["sk-tg-none", "", ...account.firstKeys.values()]);
    if (this.random() < 0.9) this.#upload(request);
    this.#live(request, key).catch((thrown) => this.#broken.push(thrown));
  }

  upload(): void {
    const waiting = this.open.filter(({ uploaded }) => !uploaded);
    if (waiting.length > 0) this.#upload(this.pick(waiting));
  }

  #upload(request: Request): void {
    request.uploaded = true;
    request.upload.resolve(this.#body(request));
  }

  #body({ dialect, model, stream }: Request): Body | Refusal {
    const chance = this.random();
    if (chance < 0.01) return refuse("unreadable", { reason: "half a body" });
    if (chance < 0.02) return refuse("body_too_large");
    const budget = this.pick([1, 100, 4_096, 4_096, 65_536, this.below(65_536)]);
    const named = chance < 0.04 ? "no-such-model" : model;
    const more = chance < 0.06 ? { tools: "none" } : {};
    const json = bodyOf(endpointOf(dialect), named, "x".repeat(this.below(400)), {
      stream,
      [budgetField[endpointOf(dialect)]]: budget,
      ...more,
    });
    return { json, bytes: JSON.stringify(json).length };
  }

  /** What the HTTP side does with a request. */
  async #live(request: Request, key: string): Promise<void> {
    const { dialect, id, upload, account } = request;
    const process = this.#process;
    const parts = this.#parts(request);
    const admitted = await admit(
      { requestId: id, head: headOf(dialect), key, body: () => upload.promise },
      dialect,
      parts,
    );
    if (process !== this.#process) return;
    assert(admitted !== "for others", "nothing is passed on");
    if (isRefused(admitted)) {
      const status = dialect.statusOf(admitted.refused, admitted.ask as Ask);
      expect(status).toBeGreaterThanOrEqual(400);
      return this.#close(request, "refused");
    }
    expect(admitted.principal.account).toBe(account.id);
    const client = new SimulatedClient(admitted, id, Math.floor(this.office.now / 1000), dialect);
    request.client = client;
    client.slow = this.random() < 0.2;
    client.onEnd = () => this.#expectCharged(request, process);
    await serve(admitted, client, parts);
    if (process !== this.#process) return;
    expect(request.holds).toBe(false);
    const { failed } = client;
    const ended = failed === null ? "whole" : isPaid(failed) && client.delivered ? "misfit" : "failed";
    this.#close(request, request.unheard ? "unheard" : client.left ? "left" : ended);
    const view = viewOf(endpointOf(dialect), request.stream && client.status === 200, client.received);
    if (client.left) return;
    expect(view.faults).toEqual([]);
    expect([view.complete, view.error === null]).toEqual(client.failed === null ? [true, true] : [false, false]);
    if (client.failed === null) this.#expectToldIsWritten(request, client.received);
  }

  #close(request: Request, fate: Fate): void {
    this.open.splice(this.open.indexOf(request), 1);
    this.fates.set(request.id, fate);
    this.count(`fate: ${fate}`);
  }

  leave(): void {
    const open = this.open.filter(({ client }) => client !== null);
    if (open.length === 0) return;
    const request = this.pick(open);
    const client = request.client!;
    // A reply that the gateway cut before, it has failed.
    if (client.received === "" && request.holds && !client.cancelSignal.aborted) request.unheard = true;
    client.depart();
  }

  /** The gateway is told to stop: it cuts a reply. */
  cut(): void {
    const open = this.open.filter(({ client }) => client !== null);
    if (open.length > 0) this.pick(open).client!.cut();
  }

  read(): void {
    for (const { client } of this.open) if (this.random() < 0.5) client?.read();
  }

  // ------------------------------------------------------------------------------------------------ parts

  /** The parts as one request meets them; the model hears of everything that admission and the hold are asked. */
  #parts(request: Request): GatewayParts {
    const { office, model } = this;
    const { admission, keys } = office;
    return {
      keys,
      catalog,
      habits: this.#habits,
      admission: {
        countRequest: (account, now) => {
          const refused = admission.countRequest(account, now);
          this.#expectFlood(request, model.count(request.account.name, this.office.now), refused);
          return refused;
        },
        refuseModel: (asker, asked) => admission.refuseModel(asker, asked),
        refuseFlooded: (account, now) => admission.refuseFlooded(account, now),
        admit: (asked, now) => {
          const admitted = admission.admit({ ...asked, endUser: null }, now); // the books here are of accounts and keys
          return this.#shadow(request, asked, admitted, now.wall);
        },
      },
      pool: this.nodes.pool,
      countInput: () => {
        const count = Promise.withResolvers<number | null>();
        this.#counts.push(count);
        return count.promise;
      },
      storedResponses: null,
      clock: { wall: () => this.office.now, monotonic: () => this.office.monotonic },
      log: (level, event, fields) => {
        throw new Error(`${level} ${event} ${JSON.stringify(fields)}`);
      },
    };
  }

  #expectFlood(request: Request, seconds: number, refused: Refusal | null): void {
    expect([request.id, refused]).toEqual([
      request.id,
      seconds === 0 ? null : refuse("too_many_requests", { seconds }),
    ]);
  }

  /** Asks the model the same and expects the same. */
  #shadow(
    request: Request,
    { account, key, ask, inputTokens, expected = { input: inputTokens, output: 0 } }: AdmissionRequest,
    admitted: Hold | Refusal,
    now: number,
  ): Hold | Refusal {
    const { model, office } = this;
    const { name } = request.account;
    expect(account).toBe(request.account.id);
    const forbidden = model.forbids(name, key, ask.model.id, now);
    if (forbidden !== null) {
      this.count(`refused: ${forbidden}`);
      expect(admitted).toMatchObject({ refusal: forbidden });
      return admitted;
    }
    if (key > 1) this.count("request by a named key");
    const coder = ask.model.coder && ask.endpoint !== "/v1/responses";
    if (!coder) {
      const seconds = model.count(name, now);
      if (seconds > 0) {
        this.#expectFlood(request, seconds, isRefusal(admitted) ? admitted : null);
        return admitted;
      }
    }
    if (!office.storage.writable) {
      expect(admitted).toEqual(refuse("quota_unverified"));
      return admitted;
    }
    const { inputCents, cachedInputCents, outputCents } = ratesOf(ask.model.price);
    const cents = [inputCents, cachedInputCents, outputCents];
    const { outputTokensMax } = ask;
    const writes = ask.model.budgetLimitsAnswer ? outputTokensMax : Math.max(outputTokensMax, 4_096, expected.output);
    const taken = coder
      ? model.takeCall(name, now)
        ? "begins"
        : "coder_quota_reached"
      : model.reserve(
          name,
          request.id,
          { budget: outputTokensMax, reads: expected.input, writes, rates: cents },
          now,
          key,
        );
    if (taken !== "begins" && taken !== "waits") {
      expect(admitted).toMatchObject({ refusal: taken });
      return admitted;
    }
    if (isRefusal(admitted)) throw new Error(`${request.id} was refused: ${admitted.refusal}`);
    if (!coder) expect([request.id, admitted.ready === null]).toEqual([request.id, taken === "begins"]);
    this.count(taken);
    request.holds = true;
    return {
      ready:
        admitted.ready?.then((refusal) => {
          if (refusal !== null) request.holds = false;
          return refusal;
        }) ?? null,
      settle: (usage, estimated, settledAt) => {
        const settled = admitted.settle(usage, estimated, settledAt);
        if (coder) model.note(name);
        else {
          const tokens = [usage.inputFresh, usage.inputCached, usage.output];
          model.settle(name, request.id, cents, tokens, settledAt);
        }
        request.holds = false;
        return settled;
      },
      [Symbol.dispose]: () => {
        admitted[Symbol.dispose]();
        model.release(name, request.id, this.office.now);
        request.holds = false;
      },
    };
  }

  countInput(): void {
    const count = this.#counts.shift();
    count?.resolve(this.random() < 0.3 ? null : this.below(5_000));
  }

  // ------------------------------------------------------------------------------------------------ nodes

  #nodesOf(): SimulatedNodes {
    return new SimulatedNodes(
      [
        { name: "a", slots: 3, serves: () => true },
        { name: "b", slots: 2, serves: (model) => model.startsWith("core-") },
        { name: "c", slots: 2, serves: (model) => model.startsWith("open-") },
      ],
      () => this.office.now,
      ({ pieces }) => ({ usage: this.#usage(pieces), estimated: this.random() < 0.5 }),
    );
  }

  #usage(output = this.below(this.pick([10, 1_000, 20_000]))): Usage {
    return {
      inputFresh: this.below(3_000),
      inputCached: this.below(2_000),
      output,
      reasoning: this.below(output + 1),
    };
  }

  #generation(): Generation | null {
    const reading = this.nodes.running.filter(({ paused }) => !paused);
    return reading.length === 0 ? null : this.pick(reading);
  }

  nodeSays(): void {
    const generation = this.#generation();
    if (generation === null) return;
    const text: Piece = { kind: "text", literal: this.pick(['"word "', '"\\n"', '"é\\u2028"', '""']), logprobs: null };
    const thought: Piece = { kind: "reasoning", literal: '"hm "' };
    if (generation.pieces === 0 && this.random() < 0.3) return generation.say([thought, thought]);
    if (generation.calls > 0 || this.random() < 0.1) {
      const index = generation.calls++;
      const call: Piece = { kind: "call", index, id: `call_${index}`, name: "tool" };
      return generation.say([call, { kind: "call-arguments", index, literal: '"{}"' }]);
    }
    generation.say(Array<Piece>(1 + this.below(4)).fill(text));
  }

  nodeEnds(): void {
    const reason = this.pick(["stop", "stop", "length"] as const);
    const ending: Ending = {
      kind: "end",
      reason,
      stopSequence: null,
      usage: this.#usage(),
      estimated: this.random() < 0.2,
    };
    this.#generation()?.end(ending);
  }

  /** Before a byte of the reply, another node may be asked; after one, the client hears of it. */
  nodeFails(): void {
    const generation = this.#generation();
    if (generation === null) return;
    if (this.random() < 0.3) {
      // As the checks of structured output end it.
      const delivered = { usage: this.#usage(), estimated: false };
      return generation.end({ kind: "failed", refusal: refuse("answer_misfit"), elsewhere: false, delivered });
    }
    const elsewhere = generation.pieces === 0 && this.random() < 0.7;
    generation.end({ kind: "failed", refusal: refuse(this.pick(["busy", "node_failed"])), elsewhere });
  }

  health(): void {
    this.nodes.setHealth(this.pick(this.nodes.names), this.pick(["well", "well", "cooling", "down"]));
  }

  // ------------------------------------------------------------------------------------------------ time, money, disk

  pass(): void {
    this.time();
    this.nodes.queue.expire(this.office.now);
  }

  buy({ name }: SimulatedAccount): void {
    const tokens = 1_000 + this.below(200_000);
    const reference = `${(this.#requests += 1)}`;
    // A crash or a disk that gave up is no purchase; the model hears of it from the disk.
    const bought = this.office.accounts.addCredit(name, tokens, undefined, () =>
      this.model.buy(name, tokens, reference),
    );
    bought.catch((thrown: Error) => {
      if (thrown.name !== "StoreUnavailable") throw thrown;
    });
  }

  async busy(): Promise<void> {
    this.office.storage.writable = false;
    for (let asked = 0; asked < 3; asked += 1) this.ask(this.pickAccount());
    await this.continuations(40);
    this.office.storage.writable = true;
  }

  forgetOpen(): void {
    this.#process += 1;
    for (const { id } of this.open) this.fates.set(id, "killed");
    this.open = [];
    this.#counts = [];
    this.nodes = this.#nodesOf();
    this.expectBooksFitClients();
  }

  // ------------------------------------------------------------------------------------------------ what must hold

  /** I4, after every event: no more is held, busy or in line than is open. */
  expectNothingLeaks(): void {
    const { holds } = this.office.ledger.totals();
    const expected = this.expectedHolds().holds;
    if (holds !== expected) throw new Error(`${holds} reservations, ${expected} requests that hold one`);
    if (this.nodes.busy !== this.nodes.running.length) {
      throw new Error(`${this.nodes.busy} busy places, ${this.nodes.running.length} generations`);
    }
    if (this.nodes.busy + this.nodes.queue.length > this.open.length) throw new Error("more places than requests");
    this.nodes.queue.check();
  }

  /** The promise: in the moment in which the end goes out, its charge is on disk. */
  #expectCharged({ id }: Request, process: number): void {
    if (process !== this.#process) throw new Error(`${id}: a dead process sends an end`);
    if (this.#rows(id).length !== 1) throw new Error(`${id}: the end goes out before its charge is on disk`);
  }

  /** I5: the charge is of the usage that the client was told. */
  #expectToldIsWritten(request: Request, received: string): void {
    const { usage } = viewOf(endpointOf(request.dialect), request.stream, received);
    const [row] = this.#rows(request.id);
    if (usage === null || row === undefined) throw new Error(`${request.id}: told ${usage}, written ${row}`);
    const cached = usage.cached ?? row.cached_input;
    const written = [row.input, row.cached_input, row.output];
    expect([request.id, usage.input, cached, usage.output]).toEqual([request.id, ...written]);
    expect(row.billed).toBe(row.kind === "charge" ? billedTokens({ ...row, model: request.model }) : 0);
  }

  #rows(id: string): Charge[] {
    return this.office.database
      .query(
        `SELECT kind, input_fresh + input_cached AS input, input_cached AS cached_input, output, billed_tokens AS billed
         FROM journal WHERE billing_key = ?`,
      )
      .all(id) as Charge[];
  }

  /** I3, I6: who saw a whole reply is charged once, nobody twice, nobody for what failed or was refused. */
  expectBooksFitClients(): void {
    const rows = this.office.database
      .query(
        "SELECT billing_key AS id, count(*) AS times FROM journal WHERE kind IN ('charge', 'coder_usage') GROUP BY 1",
      )
      .all() as { id: string; times: number }[];
    const charged = new Set<string>();
    for (const { id, times } of rows) {
      charged.add(id);
      const fate = this.fates.get(id) ?? (this.open.some((request) => request.id === id) ? "left" : undefined);
      if (times !== 1) throw new Error(`${id} is charged ${times} times`);
      if (fate === undefined) throw new Error(`${id} is charged and was never made`);
      if (fate === "failed" || fate === "refused" || fate === "unheard")
        throw new Error(`${id} was ${fate} and is charged`);
    }
    for (const [id, fate] of this.fates) {
      const isOwed = fate === "whole" || fate === "misfit";
      if (isOwed && !charged.has(id)) throw new Error(`${id} was seen (${fate}) and is not charged`);
    }
  }

  /** Lets everything that is open come to its end. */
  async finish(): Promise<void> {
    for (const name of this.nodes.names) this.nodes.setHealth(name, "well");
    for (let round = 0; this.open.length > 0; round += 1) {
      if (round > 10_000) throw new Error(`${this.open.length} requests never end`);
      for (const request of this.open) if (!request.uploaded) this.#upload(request);
      this.read();
      this.nodeEnds();
      this.countInput();
      await this.commit();
      await this.continuations(40);
    }
    this.expectNothingLeaks();
    await this.drain();
    await this.continuations(40);
    this.expectBooksFitClients();
    await this.expectQuiet();
    expect([this.nodes.busy, this.nodes.queue.length, this.nodes.running.length]).toEqual([0, 0, 0]);
  }
}
