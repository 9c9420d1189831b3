// The books of a gateway in PostgreSQL, as the spine asks them: keys, admission and holds, which answer later. What a request
// may do is decided on the locked rows; what is remembered here are hints that spare a question.
import { refusedModel } from "../../account/money/admission.ts";
import { askedOf } from "../../account/money/asked.ts";
import type { AdmissionRequest, Asker, Books } from "../../account/money/books.ts";
import { keyHashOf } from "../../account/people/keys.ts";
import { LoadedKey } from "../../account/money/loaded-key.ts";
import { dayOf } from "../../account/money/quota.ts";
import type { SearchHold } from "../../account/money/searches.ts";
import type { Log } from "../../core/log.ts";
import { balanceLookMs, keyCacheEntriesMax } from "../../core/limits.ts";
import { firstPlan, planOf } from "../../core/plans.ts";
import type { Priority } from "../../core/priority.ts";
import type { RatesLeft } from "../../core/rates-left.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import type { Soon } from "../../core/soon.ts";
import {
  type AccountId,
  type Course,
  defaultKey,
  type Hold,
  type KeyId,
  type Model,
  type ModelKind,
  type Ms,
  type OutputHeld,
  type Plan,
  type PlanId,
  type Principal,
  type Refusal,
  StoreUnavailable,
  type Usage,
} from "../../core/types.ts";
import { type Call, call, type Connection, isFailed, type Row, type Server } from "./connection.ts";
import type { LaneDecision, OpenHold, OpenSearch, LaneRules, SpentKey } from "./decide.ts";
import { GoneLanes } from "./gone-lanes.ts";
import { Lane } from "./lane.ts";
import { keyHintMs } from "./limits.ts";
import { limited, type Pace, systemPace } from "./pace.ts";
import { keyLimitsOf } from "../changes/record.ts";
import * as sql from "./statements.ts";

export type BooksOptions = Readonly<{
  server: Server;
  gateway: string;
  version: string;
  /** Of what all gateways should have alike. */
  configDigest: string;
  rules: LaneRules;
  log: Log;
  pace?: Pace;
  /** Operations wait this long for others. */
  gatherMs?: Ms;
  onCommit?: (lines: number, durationMs: Ms) => void;
}>;

export type Fall = Readonly<{ account: AccountId; before: number; credit: number; balance: number }>;

type Hint = Readonly<{ principal: Principal; name: string | null; at: Ms }>;

export class PostgresBooks implements Books {
  readonly lane: Lane;
  readonly gone: GoneLanes;
  readonly rules: LaneRules;
  readonly #server: Server;
  readonly #pace: Pace;
  readonly #holds = new Map<OpenHold, LaneHold>();
  /** By their hashes; only keys that exist are remembered. */
  readonly #hints = new Map<string, Hint>();
  /** As they were when an account was last seen here. */
  readonly #plans = new Map<AccountId, PlanId>();
  readonly #asked = new Map<string, Promise<Principal | null>>();
  /** When an account's full window opens again, as last reported; by account and kind. */
  readonly #floods = new Map<string, Ms>();
  readonly #log: Log;
  #configDigest: string;
  #reader: Connection | null = null;
  #connecting: Promise<Connection> | null = null;
  #stopLooking: () => void = () => {};

  /** Called for credit that fell, only by the gateway that committed it, so once in all. */
  onFall: ((fall: Fall) => void) | null = null;
  /** Called for used-up budgets with each batch that finds one, by any gateway. */
  onSpent: ((spent: SpentKey) => void) | null = null;

  /** Limits are the rules', which a reload changes. */
  readonly line: Books["line"];
  readonly searches = { take: (account: AccountId): Promise<SearchHold | null> => this.#takeSearch(account) };

  private constructor(options: BooksOptions) {
    const { server, gateway, version, configDigest, rules, log, pace = systemPace, gatherMs = 0, onCommit } = options;
    this.#server = server;
    this.#log = log;
    this.#configDigest = configDigest;
    this.#pace = pace;
    this.rules = rules;
    const decided = (hold: OpenHold, refusal: Refusal | null) => this.#holds.get(hold)?.decided(refusal);
    const committed = (decision: LaneDecision, _operations: number, durationMs: Ms): void => {
      const { accounts, entries } = decision;
      for (const { id, plan } of accounts) this.#notePlan(id, plan);
      if (this.onFall !== null) this.#tellFalls(decision, this.onFall);
      if (this.onSpent !== null) for (const spent of decision.spent) this.onSpent(spent);
      onCommit?.(entries.length, durationMs);
    };
    const digest = { configDigest: () => this.#configDigest };
    this.lane = new Lane({ server, gateway, version, ...digest, rules, pace, log, decided, committed, gatherMs });
    this.gone = new GoneLanes(server, pace, log);
    const { lane } = this;
    this.line = {
      get maxWaitMs() {
        return rules.maxWaitMs;
      },
      set maxWaitMs(ms) {
        rules.maxWaitMs = ms;
      },
      get length() {
        return lane.waitingHolds;
      },
    };
  }

  /** Registers this life of the gateway in a database whose tables are there. Throws StatementError. */
  static async open(options: BooksOptions): Promise<PostgresBooks> {
    const books = new PostgresBooks(options);
    await books.lane.open();
    books.gone.begin();
    books.#lookLater();
    return books;
  }

  get inputRequestsPerMinute(): number {
    return this.rules.inputRequestsPerMinute;
  }

  set inputRequestsPerMinute(requests: number) {
    this.rules.inputRequestsPerMinute = requests;
  }

  async close(): Promise<void> {
    this.#stopLooking();
    this.gone.close();
    await this.lane.close();
    this.#reader?.close();
  }

  /** Why nothing can be written for now, in words; null while it can. */
  get unwritable(): string | null {
    return this.lane.unwritable;
  }

  /** Why requests should go to another gateway, in words; null: they need not. */
  get unready(): string | null {
    return this.gone.outdated ?? this.lane.still;
  }

  /** Another configuration is in effect, which other gateways compare with theirs. */
  async adopt(configDigest: string): Promise<void> {
    this.#configDigest = configDigest;
    try {
      await this.#read(call(sql.writeConfigDigest, this.lane.id, configDigest));
    } catch (error) {
      this.#log("warn", "this gateway's configuration could not be published to the others", { error: String(error) }); // the next life tells
    }
  }

  /** Who asks by a key, or null. Rejects with StoreUnavailable. */
  principal(key: string): Principal | null | Promise<Principal | null> {
    const keyHash = keyHashOf(key);
    return keyHash === null ? null : this.ofHash(keyHash);
  }

  /** As the database has it now: for what is decided on no locked row. Rejects with StoreUnavailable. */
  principalNow(key: string): Promise<Principal | null> | null {
    const keyHash = keyHashOf(key);
    return keyHash === null ? null : this.#find(keyHash);
  }

  ofHash(keyHash: string): Soon<Principal | null> {
    const hint = this.#hints.get(keyHash);
    if (hint !== undefined && this.#pace.monotonic() - hint.at < keyHintMs) return hint.principal;
    const asked = this.#asked.get(keyHash);
    if (asked !== undefined) return asked;
    const asking = this.#find(keyHash)
      .catch((thrown: unknown) => {
        // While the database is away, who was known is known: admission refuses, as the dialect says it of the model.
        if (hint === undefined || !(thrown instanceof StoreUnavailable)) throw thrown;
        return hint.principal;
      })
      .finally(() => this.#asked.delete(keyHash));
    this.#asked.set(keyHash, asking);
    return asking;
  }

  /** Counts a malformed request for flood protection; its refusal goes out even while nothing can be counted. */
  async countRequest(account: AccountId, now: Ms, kind: ModelKind = "chat"): Promise<Refusal | null> {
    if (!this.#mayAsk(account)) return null;
    const answer = (await this.lane.put({ op: "count", account, kind })) as Refusal | null;
    this.#noteFlood(account, kind, now, answer);
    return answer;
  }

  /** Refuses, and counts, a request whose window was full when it was last looked at. */
  refuseFlooded(account: AccountId, now: Ms, kind: ModelKind = "chat"): Promise<Refusal | null> | null {
    const until = this.#floods.get(`${account} ${kind}`);
    return until === undefined || until <= now ? null : this.countRequest(account, now, kind);
  }

  /** What the account was on when it was last seen here; of one that never was, the first plan. */
  planOf(account: AccountId): Plan {
    const { plans } = this.rules;
    const known = this.#plans.get(account);
    return known === undefined ? firstPlan(plans) : planOf(plans, known);
  }

  /** By what is known of the key and the account; what a request may do is decided on the locked rows. */
  async refuseModel({ account, key, keyHash }: Asker, model: Model): Promise<Refusal | null> {
    try {
      const hint = keyHash === undefined ? undefined : this.#hints.get(keyHash);
      const limits = hint?.principal.limits ?? null;
      const named = limits === null ? null : new LoadedKey(key, hint?.name ?? "", "", limits, null);
      if (!this.#plans.has(account)) await this.#readPlan(account);
      return refusedModel({ plan: this.planOf(account) }, named, model);
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable) return refuse("quota_unverified");
      throw thrown;
    }
  }

  async admit({ ask, ...request }: AdmissionRequest): Promise<Hold | Refusal> {
    const { account, key } = request;
    if (!this.#mayAsk(account) || this.gone.outdated !== null) return refuse("quota_unverified");
    const keyHash = key >= defaultKey ? (request.keyHash ?? "") : null;
    const asked = askedOf(ask, ask.model);
    const operation = { op: "admit", ...request, keyHash, ask: asked } as const;
    const answer = (await this.lane.put(operation)) as OpenHold | Refusal;
    if (isRefusal(answer)) {
      if (keyHash !== null && answer.refusal === "invalid_api_key") this.#hints.delete(keyHash);
      this.#noteFlood(account, ask.model.kind, this.#pace.monotonic(), answer);
      return answer;
    }
    const { lane } = this;
    const position = () => lane.positionOf(answer, this.planOf(account).parallel === undefined);
    const hold = new LaneHold(lane, answer, () => this.#holds.delete(answer), position);
    if (answer.record.waits) this.#holds.set(answer, hold);
    return hold;
  }

  /** False where it would wait in vain. */
  #mayAsk(account: AccountId): boolean {
    return this.lane.writable && !this.lane.isStuck(account);
  }

  #noteFlood(account: AccountId, kind: ModelKind, now: Ms, answer: Refusal | null): void {
    if (answer === null || answer.refusal !== "too_many_requests") return;
    if (this.#floods.size > keyCacheEntriesMax) this.#floods.clear();
    const { seconds } = answer.detail as Readonly<{ seconds: number }>;
    this.#floods.set(`${account} ${kind}`, now + seconds * 1_000);
  }

  async #takeSearch(account: AccountId): Promise<SearchHold | null> {
    const search = (await this.lane.put({ op: "search", account })) as OpenSearch | null;
    return search === null ? null : new LaneSearch(this.lane, search);
  }

  #tellFalls({ accounts, entries, now }: LaneDecision, tell: (fall: Fall) => void): void {
    const changes = new Map<AccountId, number>();
    for (const { account, creditDelta } of entries) changes.set(account, (changes.get(account) ?? 0) + creditDelta);
    for (const { id, plan: name, credit, allowance_day: day, allowance_used: used } of accounts) {
      const change = changes.get(id) ?? 0;
      if (change >= 0) continue;
      const { unlimited, tokensPerDay } = planOf(this.rules.plans, name);
      if (unlimited) continue;
      const allowance = Math.max(0, tokensPerDay - (day === dayOf(now) ? used : 0));
      tell({ account: id, before: credit - change, credit, balance: allowance + credit });
    }
  }

  #notePlan(account: AccountId, plan: PlanId): void {
    if (this.#plans.size >= keyCacheEntriesMax && !this.#plans.has(account)) this.#plans.clear();
    this.#plans.set(account, plan);
  }

  async #readPlan(account: AccountId): Promise<void> {
    const [found] = await this.#read(call(sql.findPlan, account));
    if (found !== undefined) this.#notePlan(account, found["plan"] as PlanId);
  }

  async #find(keyHash: string): Promise<Principal | null> {
    const [found] = await this.#read(call(sql.findKey, keyHash));
    if (found === undefined) {
      this.#hints.delete(keyHash);
      return null;
    }
    const { account, key, name, plan } = found as Readonly<{
      account: AccountId;
      key: KeyId;
      name: string | null;
      plan: PlanId;
    }>;
    const principal: Principal = { account, key, limits: keyLimitsOf(found), keyHash };
    this.#notePlan(account, plan);
    if (this.#hints.size >= keyCacheEntriesMax) this.#hints.clear();
    this.#hints.set(keyHash, { principal, name, at: this.#pace.monotonic() });
    return principal;
  }

  /** A connection that was there may have broken long since, so that another one is tried. */
  async #read(asked: Call): Promise<readonly Row[]> {
    const before = this.#reader;
    try {
      return await this.#readOn(before ?? (await this.#connectReader()), asked);
    } catch (thrown) {
      if (before === null) throw unavailable(thrown);
    }
    try {
      return await this.#readOn(await this.#connectReader(), asked);
    } catch (thrown) {
      throw unavailable(thrown);
    }
  }

  async #readOn(reader: Connection, asked: Call): Promise<readonly Row[]> {
    try {
      const [outcome] = await limited(this.#pace, reader.send([asked]), () => {});
      if (outcome === undefined || isFailed(outcome)) throw outcome ?? new Error("no answer");
      return outcome;
    } catch (thrown) {
      reader.close();
      if (this.#reader === reader) this.#reader = null;
      throw thrown;
    }
  }

  /** One for all who ask in the meantime. */
  async #connectReader(): Promise<Connection> {
    if (this.#reader !== null) return this.#reader;
    this.#connecting ??= limited(this.#pace, this.#server.connect(), (late) => late.close()).finally(() => {
      this.#connecting = null;
    });
    return (this.#reader = await this.#connecting);
  }

  /** Midnight, other plans and purchases are no events of those who wait. */
  #lookLater(): void {
    this.#stopLooking = this.#pace.after(balanceLookMs, () => {
      for (const account of this.lane.waitingAccounts()) {
        this.lane.put({ op: "look", account }).catch(() => {}); // the next look is as good
      }
      this.#lookLater();
    });
  }
}

const unavailable = (thrown: unknown): StoreUnavailable =>
  new StoreUnavailable(`the database cannot be asked: ${(thrown as Error).message}`, { cause: thrown });

/** A search of the day; no request waits for its end. */
class LaneSearch implements SearchHold {
  readonly #lane: Lane;
  readonly #search: OpenSearch;
  #isOpen = true;

  constructor(lane: Lane, search: OpenSearch) {
    this.#lane = lane;
    this.#search = search;
  }

  async call(): Promise<boolean> {
    return (await this.#lane.put({ op: "search call", search: this.#search })) as boolean;
  }

  keep(): void {
    this.#end(true);
  }

  [Symbol.dispose](): void {
    if (this.#isOpen) this.#end(false);
  }

  #end(kept: boolean): void {
    this.#isOpen = false;
    this.#lane.put({ op: "search end", search: this.#search, kept }).catch(() => {}); // the lane's guard gives it back
  }
}

class LaneHold implements Hold {
  readonly ready: Promise<Refusal | null> | null;
  readonly priority: Priority;
  readonly rates: RatesLeft | null;
  readonly #lane: Lane;
  readonly #hold: OpenHold;
  readonly #resolved: () => void;
  readonly #decided: PromiseWithResolvers<Refusal | null> | null;
  #isOpen = true;

  /** `resolved` is called when it is decided, or over. */
  constructor(
    lane: Lane,
    hold: OpenHold,
    resolved: () => void,
    readonly position: () => number | null,
  ) {
    this.priority = hold.priority;
    this.rates = hold.rates;
    this.#lane = lane;
    this.#hold = hold;
    this.#resolved = resolved;
    this.#decided = hold.record.waits ? Promise.withResolvers() : null;
    this.ready = this.#decided?.promise ?? null;
  }

  decided(refusal: Refusal | null): void {
    this.#resolved();
    if (refusal !== null) this.#isOpen = false;
    this.#decided?.resolve(refusal);
  }

  get outputHeld(): OutputHeld | null {
    return this.#hold.record.output;
  }

  async grow(written: number): Promise<number> {
    return (await this.#lane.put({ op: "grow", hold: this.#hold, written })) as number;
  }

  async expect(spent: Usage, inputTokens: number): Promise<boolean> {
    return (await this.#lane.put({ op: "expect", hold: this.#hold, spent, inputTokens })) as boolean;
  }

  async settle(usage: Usage, estimated: boolean, _now: Ms, course?: Course): Promise<Usage> {
    this.#isOpen = false; // from here on the lane charges it or gives it back
    const answer = await this.#lane.put({ op: "settle", hold: this.#hold, usage, estimated, course });
    if (answer === "void") throw new StoreUnavailable("the hold was given back meanwhile, and it does not fit anymore");
    return typeof answer === "object" && answer !== null && "charged" in answer ? answer.charged : usage;
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#resolved();
    this.#lane.put({ op: "release", hold: this.#hold }).catch(() => {}); // the lane's guard gives it back
    this.#decided?.resolve(refuse("quota_unverified")); // the client has left
  }
}
