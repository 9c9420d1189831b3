// The books of a gateway in PostgreSQL, as the spine asks them: keys, admission and holds, which answer later. What a request
// may do is decided on the locked rows; what is remembered here are hints that spare a question.
import type { Asked, Asker } from "../../account/admission.ts";
import { keyHashOf } from "../../account/keys.ts";
import type { Log } from "../../core/log.ts";
import { balanceLookMs, keyCacheEntriesMax } from "../../core/limits.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import {
  type AccountId,
  type Course,
  defaultKey,
  type Hold,
  type ModelKind,
  type Ms,
  type Principal,
  type Refusal,
  StoreUnavailable,
  type Usage,
} from "../../core/types.ts";
import { type Call, call, type Connection, isFailed, type Server } from "./connection.ts";
import type { OpenHold, Rules } from "./decide.ts";
import { GoneLanes } from "./gone-lanes.ts";
import { Lane } from "./lane.ts";
import { keyHintMs } from "./limits.ts";
import { migrate } from "./migrations.ts";
import { limited, type Pace, systemPace } from "./pace.ts";
import { keyLimitsOf } from "./rows.ts";
import * as sql from "./statements.ts";

export type BooksOptions = Readonly<{
  server: Server;
  /** Its name among the gateways. */
  gateway: string;
  version: string;
  /** Of what all gateways should have alike. */
  configDigest: string;
  rules: Rules;
  log: Log;
  pace?: Pace;
}>;

type Hint = Readonly<{ principal: Principal; keyHash: string; at: Ms }>;

export class PostgresBooks {
  readonly lane: Lane;
  readonly gone: GoneLanes;
  readonly rules: Rules;
  readonly #server: Server;
  readonly #pace: Pace;
  readonly #holds = new Map<OpenHold, LaneHold>();
  /** By their hashes; only keys that exist are remembered. */
  readonly #hints = new Map<string, Hint>();
  readonly #hashes = new WeakMap<Principal, string>();
  readonly #asked = new Map<string, Promise<Principal | null>>();
  /** Until when an account's window is full, as it was last told; by account and kind. */
  readonly #floods = new Map<string, Ms>();
  readonly #log: Log;
  #configDigest: string;
  #reader: Connection | null = null;
  #connecting: Promise<Connection> | null = null;
  #stopLooking: () => void = () => {};

  private constructor({ server, gateway, version, configDigest, rules, log, pace = systemPace }: BooksOptions) {
    this.#server = server;
    this.#log = log;
    this.#configDigest = configDigest;
    this.#pace = pace;
    this.rules = rules;
    const decided = (hold: OpenHold, refusal: Refusal | null) => this.#holds.get(hold)?.decided(refusal);
    const lane = { server, gateway, version, configDigest: () => this.#configDigest, rules, pace, log, decided };
    this.lane = new Lane(lane);
    this.gone = new GoneLanes(server, pace, log);
  }

  /** Makes or extends the tables, and registers this life of the gateway. Throws CommandError or StatementError. */
  static async open(options: BooksOptions): Promise<PostgresBooks> {
    const { server, pace = systemPace } = options;
    const connection = await limited(pace, server.connect(), (late) => late.close());
    try {
      await migrate(connection);
    } finally {
      connection.close();
    }
    const books = new PostgresBooks(options);
    await books.lane.open();
    books.gone.begin();
    books.#lookLater();
    return books;
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

  /** Another configuration is in effect, which other gateways compare with theirs. */
  async adopt(configDigest: string): Promise<void> {
    this.#configDigest = configDigest;
    try {
      await this.#read(call(sql.writeConfigDigest, this.lane.id, configDigest));
    } catch (error) {
      this.#log("warn", "other gateways cannot be told of the configuration", { error: String(error) }); // the next life tells
    }
  }

  /** Who asks by a key, or null. Rejects with StoreUnavailable. */
  principal(key: string): Principal | null | Promise<Principal | null> {
    const keyHash = keyHashOf(key);
    if (keyHash === null) return null;
    const hint = this.#hints.get(keyHash);
    if (hint !== undefined && this.#pace.monotonic() - hint.at < keyHintMs) return hint.principal;
    const asked = this.#asked.get(keyHash);
    if (asked !== undefined) return asked;
    const asking = this.#find(keyHash).finally(() => this.#asked.delete(keyHash));
    this.#asked.set(keyHash, asking);
    return asking;
  }

  /** Counts a malformed request for flood protection. */
  async countRequest(account: AccountId, now: Ms, kind: ModelKind = "chat"): Promise<Refusal | null> {
    const answer = (await this.lane.put({ op: "count", account, kind })) as Refusal | null;
    this.#noteFlood(account, kind, now, answer);
    return answer;
  }

  /** Refuses, and counts, a request whose window was full when it was last looked at. */
  refuseFlooded(account: AccountId, now: Ms, kind: ModelKind = "chat"): Promise<Refusal | null> | null {
    const until = this.#floods.get(`${account} ${kind}`);
    return until === undefined || until <= now ? null : this.countRequest(account, now, kind);
  }

  async admit(principal: Asker, ask: Asked, inputTokens: number, requestId: string): Promise<Hold | Refusal> {
    if (!this.lane.writable) return refuse("quota_unverified");
    const { account, key } = principal;
    const keyHash = key >= defaultKey ? (this.#hashes.get(principal as Principal) ?? "") : null;
    // A whole Ask may hold a conversation of megabytes; this is what is read of it.
    const { endpoint, coderBilling, model, outputTokensMax } = ask;
    const asked = { endpoint, coderBilling, model, outputTokensMax };
    const admit = { op: "admit", account, key, keyHash, ask: asked, inputTokens, requestId } as const;
    const answer = (await this.lane.put(admit)) as OpenHold | Refusal;
    if (isRefusal(answer)) {
      if (keyHash !== null && answer.refusal === "invalid_api_key") this.#hints.delete(keyHash);
      this.#noteFlood(account, model.kind, this.#pace.monotonic(), answer);
      return answer;
    }
    const hold = new LaneHold(this.lane, answer, () => this.#holds.delete(answer));
    if (answer.record.waits) this.#holds.set(answer, hold);
    return hold;
  }

  #noteFlood(account: AccountId, kind: ModelKind, now: Ms, answer: Refusal | null): void {
    if (answer === null || answer.refusal !== "too_many_requests") return;
    if (this.#floods.size > keyCacheEntriesMax) this.#floods.clear();
    const { seconds } = answer.detail as Readonly<{ seconds: number }>;
    this.#floods.set(`${account} ${kind}`, now + seconds * 1_000);
  }

  async #find(keyHash: string): Promise<Principal | null> {
    const [found] = await this.#read(call(sql.findKey, keyHash));
    if (found === undefined) {
      this.#hints.delete(keyHash);
      return null;
    }
    const { account, key } = found as Readonly<{ account: AccountId; key: number }>;
    const principal: Principal = { account, key, limits: keyLimitsOf(found) };
    if (this.#hints.size >= keyCacheEntriesMax) this.#hints.clear();
    this.#hints.set(keyHash, { principal, keyHash, at: this.#pace.monotonic() });
    this.#hashes.set(principal, keyHash);
    return principal;
  }

  async #read(question: Call) {
    try {
      this.#connecting ??= limited(this.#pace, this.#server.connect(), (late) => late.close());
      this.#reader = await this.#connecting;
      const [outcome] = await limited(this.#pace, this.#reader.send([question]), () => {});
      if (outcome === undefined || isFailed(outcome)) throw outcome ?? new Error("no answer");
      return outcome;
    } catch (thrown) {
      this.#reader?.close();
      this.#reader = this.#connecting = null;
      throw new StoreUnavailable(`the database cannot be asked: ${(thrown as Error).message}`, { cause: thrown });
    }
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

class LaneHold implements Hold {
  readonly ready: Promise<Refusal | null> | null;
  readonly #lane: Lane;
  readonly #hold: OpenHold;
  readonly #resolved: () => void;
  readonly #decided: PromiseWithResolvers<Refusal | null> | null;
  #isOpen = true;

  /** `resolved` is called when it is decided, or over. */
  constructor(lane: Lane, hold: OpenHold, resolved: () => void) {
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

  async expect(spent: Usage, inputTokens: number): Promise<boolean> {
    return (await this.#lane.put({ op: "expect", hold: this.#hold, spent, inputTokens })) as boolean;
  }

  async settle(usage: Usage, estimated: boolean, _now: Ms, course?: Course): Promise<void> {
    this.#isOpen = false; // from here on the lane charges it or gives it back
    const answer = await this.#lane.put({ op: "settle", hold: this.#hold, usage, estimated, course });
    if (answer === "void") throw new StoreUnavailable("the hold was given back meanwhile, and it does not fit anymore");
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#resolved();
    this.#lane.put({ op: "release", hold: this.#hold }).catch(() => {}); // the lane's guard gives it back
    this.#decided?.resolve(refuse("quota_unverified")); // nobody reads it: the client left
  }
}
