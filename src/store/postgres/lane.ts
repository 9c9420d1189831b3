// A gateway's lane: what its requests ask of the books is gathered while the batch before is under way, and one batch is one
// transaction in two round trips.
//
//   BEGIN, take the lane's row, lock the accounts, read      -> decide, with the accounting's own deciders
//   write, COMMIT                                            -> tell the answers
//
// The lane's row has the number of its latest batch: batch n is committed if and only if the row says n or more. So a try
// whose outcome is unknown is made again with the same number, and finds out:
//
//   the row says n        it was committed: the answers of the last attempt go out, after a write of our own
//                         was acknowledged (a row can be seen that the standby does not have yet)
//   the row says n - 1    it was not: decided again
//   the row is gone       this gateway was away for so long that another gave its holds back: a new lane, decided again
//   anything else         the server lost commits, after a failover: a new lane, decided again
//
// A batch waits only briefly for rows that others have locked. Then the accounts that are locked are set aside, with all that is
// asked of them (locked-accounts.ts), and it goes on without them.
//
// Operations that wait too long are given up: those in no attempt fail, and the outcome of the others is unknown
// (OutcomeUnknown). It is released instead of charged when the server is back, unless it had been committed.
import type { HoldRecord } from "../../account/money/admission.ts";
import { dayOf } from "../../account/money/quota.ts";
import type { Log } from "../../core/log.ts";
import { planOf } from "../../core/plans.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import {
  type AccountId,
  defaultKey,
  type Ms,
  OutcomeUnknown,
  type Refusal,
  StoreUnavailable,
} from "../../core/types.ts";
import {
  arrayOf,
  call,
  type Call,
  type Connection,
  isDefinite,
  isFailed,
  type Row,
  type Server,
  StatementError,
} from "./connection.ts";
import {
  accountOf,
  endUserOfHold,
  endUsersOf,
  noEndUsers,
  noMembers,
  type LaneAnswer,
  decide,
  type LaneDecision,
  keyUseFromOf,
  type Loaded,
  namedKeyOf,
  type OpenHold,
  type OpenSearch,
  type LaneOperation,
  type LaneRules,
} from "./decide.ts";
import {
  batchLockMs,
  batchLockQuickMs,
  batchLockTries,
  batchOperationsMax,
  giveUpLookMs,
  giveUpMs,
  guardIntervalMs,
  heartbeatMs,
  idleInTransactionMostMs,
  idleInTransactionMs,
  laneStillMs,
  lockTimeoutMs,
  retryFirstMs,
  retryMostMs,
} from "./limits.ts";
import { isLocked, type LockedAccount, LockedAccounts } from "./locked-accounts.ts";
import { type AccountRow, type KeyRow, keyRowOf, missingUse, nameHashOf, writesOf } from "./rows.ts";
import { limited, type Pace } from "./pace.ts";
import { type Meta, outdated } from "./tables-state.ts";
import { schemaVersion } from "./schema.ts";
import * as sql from "./statements.ts";

export type LaneOptions = Readonly<{
  server: Server;
  gateway: string;
  version: string;
  /** See `lanes.config_digest`. */
  configDigest(): string;
  rules: LaneRules;
  pace: Pace;
  log: Log;
  decide?: typeof decide;
  mint?: () => string;
  /** Called with the outcome: null, or why it failed. */
  decided(hold: OpenHold, refusal: Refusal | null): void;
  committed?(decision: LaneDecision, operations: number, durationMs: Ms): void;
  /** Operations wait this long for others, where nothing else is under way. */
  gatherMs?: Ms;
}>;

export type LaneCounts = {
  batches: number;
  operations: number;
  /** Repeated attempts: because others had the locks, and because the outcome of one was unknown. */
  conflicts: number;
  unknown: number;
  /** Batches that were found to be committed. */
  readBack: number;
  /** Lanes that others, or a failover, took from this gateway. */
  gone: number;
  /** Of those, where the server had lost commits. */
  lostCommits: number;
  /** Ends whose hold was given back and that did not fit anymore. */
  void: number;
  /** Clients that were cut off, because the outcome of their end was unknown. */
  cut: number;
  /** Holds that belonged to no open request. */
  orphans: number;
};

/** Somebody's operation, and whom to tell. */
type WaitingOperation = {
  readonly operation: LaneOperation;
  readonly resolve: (answer: LaneAnswer) => void;
  readonly reject: (error: Error) => void;
  readonly at: Ms;
  /** It was in a try that was sent whole, whose outcome may be unknown. */
  sent: boolean;
  /** The caller has left: what the answer would hold or charge is given back. */
  givenUp: boolean;
  answered: boolean;
};

type Tried =
  | Readonly<{ outcome: "committed"; decision: LaneDecision }>
  /** Taken back: others have the locks; `locked`: of its accounts' rows, and no try before it was committed. */
  | Readonly<{ outcome: "conflict" | "locked" | "unknown" | "new lane" }>
  /** Taken back, for something in it. */
  | Readonly<{ outcome: "refused"; error: StatementError }>;

export class Lane {
  readonly counts: LaneCounts = {
    batches: 0,
    operations: 0,
    conflicts: 0,
    unknown: 0,
    readBack: 0,
    gone: 0,
    lostCommits: 0,
    void: 0,
    cut: 0,
    orphans: 0,
  };
  readonly #options: LaneOptions;
  readonly #pace: Pace;
  /** Of this gateway, by request. */
  readonly #open = new Map<string, OpenHold | OpenSearch>();
  readonly #waiting = new Map<AccountId, OpenHold[]>();
  #id: string | null = null;
  /** The number of the latest committed batch. */
  #batch = 0;
  #connection: Connection | null = null;
  readonly #queue: WaitingOperation[] = [];
  readonly #locked: LockedAccounts<WaitingOperation>;
  /** Locked accounts that may be free. */
  readonly #trials: AccountId[] = [];
  #isRunning = false;
  /** The decision of the last try that was sent whole. */
  #sent: LaneDecision | null = null;
  #failing = false;
  /** How long the server lets it stand still in a transaction: longer where it was cut off for that. */
  #idleMs: Ms = idleInTransactionMs;
  /** How long a try takes that is committed, the latest counting most. */
  #usualMs: Ms = 0;
  /** Monotonic time of the latest commit. */
  #committedAt: Ms;
  #guardedAt: Ms;
  #begunAt: Ms = 0;
  #underWay: readonly WaitingOperation[] = [];
  #closed: PromiseWithResolvers<void> | null = null;
  #isOver = false;
  #stopHeart: () => void = () => {};
  #stopLooking: (() => void) | null = null;
  #reason = "";

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#pace = options.pace;
    this.#committedAt = this.#guardedAt = this.#pace.monotonic();
    this.#locked = new LockedAccounts<WaitingOperation>(options.server, options.pace, options.log, (account) => {
      this.#trials.push(account);
      this.#wake();
    });
  }

  /** Registers this life of the gateway. Throws what keeps it from that. */
  async open(): Promise<void> {
    await this.#connect();
    await this.#register();
    this.#beatLater();
  }

  /** False from the first failed try until a batch is committed: nothing new may be admitted. */
  get writable(): boolean {
    return !this.#failing;
  }

  /** Why nothing can be written for now, in words; null: it can. */
  get unwritable(): string | null {
    return this.#failing ? this.#reason : null;
  }

  get id(): string | null {
    return this.#id;
  }

  /** Why requests should go to another gateway: nothing was committed for long, whatever is in the way; null: nothing. */
  get still(): string | null {
    const stillMs = this.#pace.monotonic() - this.#committedAt;
    if (stillMs < laneStillMs) return null;
    const why = this.#isRunning && this.#reason !== "" ? `: ${this.#reason}` : "";
    return `no batch was committed for ${Math.floor(stillMs / 1000)} s${why}`;
  }

  /** Balance tokens that its open requests hold. */
  get heldTokens(): number {
    let held = 0;
    for (const open of this.#open.values()) if ("record" in open) held += open.record.budget;
    return held;
  }

  get openHolds(): number {
    return this.#open.size;
  }

  get waitingHolds(): number {
    let waiting = 0;
    for (const holds of this.#waiting.values()) waiting += holds.length;
    return waiting;
  }

  /** Among those that wait here for others of their account, or key, to end. */
  positionOf(hold: OpenHold, ofKey: boolean): number | null {
    const line = this.#waiting.get(hold.account) ?? [];
    const index = line.filter(({ record: { key } }) => !ofKey || key === hold.record.key).indexOf(hold);
    return index < 0 ? null : index + 1;
  }

  waitingAccounts(): Iterable<AccountId> {
    return this.#waiting.keys();
  }

  /** Accounts that others have locked in the database. */
  get locked(): readonly LockedAccount[] {
    return this.#locked.states;
  }

  /** Whether it has been locked for so long that nothing asked of it now is worth waiting for. */
  isStuck(account: AccountId): boolean {
    return this.#locked.lockedMs(account) >= giveUpMs;
  }

  get pending(): number {
    const locked = this.#locked.lines().reduce((sum, line) => sum + line.length, 0);
    return this.#queue.length + locked + this.#underWay.length;
  }

  /** Rejects with StoreUnavailable: nothing was done; or with OutcomeUnknown. */
  put(operation: LaneOperation): Promise<LaneAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<LaneAnswer>();
    this.#enqueue(operation, resolve, reject);
    return promise;
  }

  /** For operations without a waiting caller. */
  #release(hold: OpenHold): void {
    this.#enqueue({ op: "release", hold }, ignore, (error) =>
      this.#options.log("error", "a hold could not be released", { requestId: hold.requestId, error: String(error) }),
    );
  }

  #enqueue(operation: LaneOperation, resolve: WaitingOperation["resolve"], reject: WaitingOperation["reject"]): void {
    const at = this.#pace.monotonic();
    const line = this.#locked.lineOf(accountOf(operation));
    (line ?? this.#queue).push({ operation, resolve, reject, at, sent: false, givenUp: false, answered: false });
    if (line === null) this.#wake();
  }

  /** Commits what is pending and leaves the lanes; what the server does not take in time, others give back. */
  async close(): Promise<void> {
    this.#closed = Promise.withResolvers();
    this.#stopHeart();
    const stopWaiting = this.#pace.after(giveUpMs, () => this.#closed!.resolve());
    if (!this.#isRunning && this.pending === 0) this.#closed.resolve();
    await this.#closed.promise;
    stopWaiting();
    const isDone = !this.#isRunning && this.#open.size === 0;
    if (isDone && this.#connection !== null && this.#id !== null) {
      await this.#send([call(sql.leaveLane, this.#id)]).catch(ignore);
    }
    this.#isOver = true;
    this.#locked.close();
    for (const line of this.#locked.lines()) this.#drop(line.splice(0));
    this.#stopLooking?.();
    this.#disconnect();
  }

  // -------------------------------------------------------------- the batches

  #wake(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { gatherMs = 0 } = this.#options;
    const later = gatherMs === 0 ? this.#pace.soon : (run: () => void) => void this.#pace.after(gatherMs, run);
    later(() => {
      this.#run().catch((error: unknown) => {
        this.#options.log("error", "the lane failed", { error: String(error) });
        this.#isRunning = false;
        for (const asked of this.#underWay) asked.reject(new OutcomeUnknown(String(error)));
        this.#underWay = [];
        this.#disconnect();
      });
    });
  }

  async #run(): Promise<void> {
    do {
      // What is asked of an account that was locked is a batch of its own: it may still be.
      const trial = this.#trials.shift();
      const first = batchOperationsMax;
      const asked = trial === undefined ? this.#queue.splice(0, first) : this.#locked.take(trial, first);
      this.#underWay = asked;
      this.#begunAt = this.#pace.monotonic();
      await this.#commit(asked);
      this.#underWay = [];
      if (trial !== undefined) this.#queue.push(...this.#locked.tried(trial));
      await this.#guard();
      // Callers that were just answered, and operations of the same turn of the event loop, share the next batch.
      if (this.#hasMore) await new Promise<void>((resolve) => this.#pace.soon(resolve));
    } while (this.#hasMore);
    this.#isRunning = false;
    if (this.pending === 0) this.#closed?.resolve();
  }

  /** How long a batch waits for locks: longer where batches, and so those of other gateways, take long. */
  get #lockMs(): Ms {
    const leastMs = this.#locked.size === 0 ? batchLockMs : batchLockQuickMs;
    return Math.round(Math.min(lockTimeoutMs, Math.max(leastMs, batchLockTries * this.#usualMs)));
  }

  get #hasMore(): boolean {
    return this.#queue.length > 0 || this.#trials.length > 0;
  }

  /** Until it is committed, or each operation has failed alone. */
  async #commit(all: readonly WaitingOperation[]): Promise<void> {
    this.#sent = null;
    let asked = all;
    let waitMs = retryFirstMs;
    let wasLocked = false;
    for (;;) {
      if (this.#isOver) return this.#drop(asked);
      const beganAt = this.#pace.monotonic();
      const tried = await this.#try(asked);
      switch (tried.outcome) {
        case "committed":
          this.#usualMs += (this.#pace.monotonic() - beganAt - this.#usualMs) / 8;
          return this.#tell(asked, tried.decision);
        case "new lane":
          continue;
        case "refused":
          return this.#halve(asked, tried.error);
        case "locked": {
          this.counts.conflicts += 1;
          this.#lookForGivenUp();
          const rest = await this.#withoutLocked(asked);
          if (rest.length === 0) return;
          // No account's row is, and yet it is locked again: another row of one of them.
          if (rest.length === asked.length && wasLocked) return this.#halveAccounts(asked);
          wasLocked = rest.length === asked.length;
          asked = rest;
          if (!wasLocked) continue;
          break;
        }
        case "conflict":
          this.counts.conflicts += 1;
          this.#lookForGivenUp();
          break;
        case "unknown":
          this.counts.unknown += 1;
          this.#fail();
          this.#lookForGivenUp();
      }
      await this.#sleep(waitMs);
      waitMs = Math.min(retryMostMs, 2 * waitMs);
    }
  }

  /** It is closed, and the server took nothing in time. */
  #drop(asked: readonly WaitingOperation[]): void {
    for (const { sent, reject } of asked) {
      reject(sent ? new OutcomeUnknown(this.#reason) : new StoreUnavailable(this.#reason));
    }
  }

  /** One operation must not keep the others from the books. */
  async #halve(asked: readonly WaitingOperation[], error: StatementError): Promise<void> {
    const [only] = asked;
    if (asked.length > 1) {
      const half = asked.length >> 1;
      await this.#commit(asked.slice(0, half));
      await this.#commit(asked.slice(half));
    } else if (only !== undefined) this.#failed(only, new Error(`the books do not take it: ${error.message}`));
  }

  /** Sets those aside whose accounts others have locked, and gives the others. */
  async #withoutLocked(asked: readonly WaitingOperation[]): Promise<readonly WaitingOperation[]> {
    const accounts = accountsIn(asked);
    try {
      const outcomes = await this.#send(accounts.map((account) => call(sql.tryAccount, account)));
      const locked = new Set(accounts.filter((_, index) => isLocked(outcomes[index]!)));
      for (const account of locked) this.#setAside(account, asked);
      return asked.filter(({ operation }) => !locked.has(accountOf(operation)));
    } catch (thrown) {
      this.#disconnect();
      this.#reason = String(thrown);
      return asked;
    }
  }

  /** A lock on one account's row must not keep the others from the books. */
  async #halveAccounts(asked: readonly WaitingOperation[]): Promise<void> {
    const accounts = accountsIn(asked);
    if (accounts.length === 1) return this.#setAside(accounts[0]!, asked);
    const half = new Set(accounts.slice(0, accounts.length >> 1));
    await this.#commit(asked.filter(({ operation }) => half.has(accountOf(operation))));
    await this.#commit(asked.filter(({ operation }) => !half.has(accountOf(operation))));
  }

  /** All that is asked of it waits until it is free. */
  #setAside(account: AccountId, asked: readonly WaitingOperation[]): void {
    const isOfIt = ({ operation }: WaitingOperation): boolean => accountOf(operation) === account;
    this.#underWay = this.#underWay.filter((each) => !isOfIt(each));
    const queue = this.#queue.splice(0);
    this.#locked.add(account, [...asked.filter(isOfIt), ...queue.filter(isOfIt)]);
    this.#queue.push(...queue.filter((each) => !isOfIt(each)));
  }

  /** Never throws. */
  async #try(asked: readonly WaitingOperation[]): Promise<Tried> {
    try {
      if (this.#connection === null) await this.#connect();
      if (this.#id === null) await this.#register();
      return await this.#transaction(asked, this.#id!);
    } catch (thrown) {
      this.#disconnect();
      this.#reason = thrown instanceof StatementError ? thrown.message : String(thrown);
      if (thrown instanceof StatementError && thrown.state === "25P03") {
        this.#idleMs = Math.min(2 * this.#idleMs, idleInTransactionMostMs);
      }
      if (!(thrown instanceof StatementError)) this.#options.log("error", "a batch failed", { error: String(thrown) });
      return { outcome: "unknown" };
    }
  }

  async #transaction(asked: readonly WaitingOperation[], lane: string): Promise<Tried> {
    const number = this.#batch + 1;
    // Nothing is left to do of most that were given up: their accounts need no lock.
    const needed = asked.filter((each) => this.#live(each) !== null);
    const ids = accountsIn(needed);
    const waiting = ids.flatMap((id) => this.#waiting.get(id) ?? []).filter((hold) => hold.lane === lane);
    const read = await this.#read(number, lane, ids, [
      ...needed.flatMap(({ operation }) => namedKey(accountOf(operation), namedKeyOf(operation))),
      ...waiting.flatMap((hold) => namedKey(hold.account, hold.record.key > defaultKey ? hold.record.key : null)),
    ]);
    if ("outcome" in read && read.outcome !== "locked") return read;
    // The lane was taken under this number: whatever was sent before under it is taken back.
    this.#sent = null;
    for (const each of asked) each.sent = false;
    if ("outcome" in read) return read;
    const operations = needed.map(({ operation }) => operation);
    const loaded = await this.#complete(read, operations, waiting);
    // From here to the moment in which it is sent, nothing is given up.
    const live = asked.map((each) => this.#live(each));
    const left = live.filter((operation) => operation !== null);
    const decision = (this.#options.decide ?? decide)(
      { lane, operations: left, waiting, loaded, monotonic: this.#pace.monotonic() },
      this.#options.rules,
    );
    const calls = [...writesOf(decision, lane), call(sql.commit)];
    for (const each of asked) each.sent = true;
    this.#sent = { ...decision, answers: alignedWith(live, decision.answers) };
    const outcomes = await this.#send(calls);
    const error = outcomes.find(isFailed);
    if (error === undefined) return { outcome: "committed", decision: this.#sent };
    if (isDefinite(error)) for (const each of asked) each.sent = false;
    return this.#takenBack(error, true);
  }

  /** What is left of an operation to be done now; null: nothing. */
  #live({ operation, givenUp }: WaitingOperation): LaneOperation | null {
    // It waited, and the batch before refused it while its client left.
    if (operation.op === "release" && !this.#open.has(operation.hold.requestId)) return null;
    if (operation.op === "search end") return operation;
    return givenUp ? givenBack(operation) : operation;
  }

  /** The first round trip, in which the lane and the accounts are locked. */
  async #read(number: number, lane: string, ids: readonly AccountId[], keys: readonly KeyName[]) {
    const calls: Call[] = [call(sql.begin), sql.setUpFor(this.#lockMs, this.#idleMs), call(sql.takeLane, lane, number)];
    const accountsAt = ids.length === 0 ? -1 : calls.push(call(sql.lockAccounts, arrayOf(ids))) - 1;
    // A day before: the server's clock may be behind this one's, which only decides how much is read at first.
    const keyUseFrom = keyUseFromOf(this.#pace.wall() - 86_400_000);
    const names = [arrayOf(keys.map(({ account }) => account)), arrayOf(keys.map(({ key }) => key))] as const;
    const keysAt = keys.length === 0 ? -1 : calls.push(call(sql.readKeys, ...names)) - 1;
    const useAt = keys.length === 0 ? -1 : calls.push(call(sql.readKeyUse, ...names, keyUseFrom)) - 1;
    calls.push(call(sql.clock));
    const outcomes = await this.#send(calls);
    const error = outcomes.find(isFailed);
    const isTaken = rowsOf(outcomes[2]).length > 0;
    if (error !== undefined) {
      const tried = await this.#takenBack(error, isTaken);
      // What it waited for is not its own to wait for: the lane has another number, or is gone.
      if (isTaken || isFailed(outcomes[2]!) || this.#connection === null) return tried;
    }
    if (!isTaken) return this.#notTaken(number, lane);
    const rows = (at: number): readonly Row[] => (at < 0 ? [] : rowsOf(outcomes[at]));
    return {
      accounts: rows(accountsAt) as unknown as readonly AccountRow[],
      keys: rows(keysAt).map(keyRowOf),
      keyNames: names,
      keyUse: rows(useAt) as unknown as Loaded["keyUse"],
      keyUseFrom,
      now: rowsOf(outcomes.at(-1))[0]!["now"] as Ms,
    };
  }

  /** What few batches need: for whom keys ask, and searches. */
  #callsForFew(
    operations: readonly LaneOperation[],
    waiting: readonly OpenHold[],
    now: Ms,
  ): Readonly<{ endUsers: readonly Call[]; searches: readonly Call[] }> {
    const names = [...operations.flatMap(endUsersOf), ...waiting.flatMap(endUserOfHold)];
    const searching = operations.filter(({ op }) => op === "search" || op === "search call").map(accountOf);
    const yesterday = dayOf(now) - 1; // a search that was taken then may still make calls
    const searches = searching.length === 0 ? [] : [call(sql.readSearchCalls, arrayOf(searching), yesterday)];
    if (names.length === 0) return { endUsers: [], searches };
    const columns = (["account", "key", "name"] as const).map((column) => arrayOf(names.map((name) => name[column])));
    const accounts = arrayOf([...new Set(names.map(({ account }) => account))]);
    const endUsers = [
      call(sql.readEndUsers, ...columns),
      call(sql.readEndUserHolds, ...columns),
      call(sql.readEndUserUse, ...columns, keyUseFromOf(now)),
      call(sql.countEndUsers, accounts, dayOf(now)),
      call(sql.readEndUserMinutes, ...columns, arrayOf(names.map(({ name }) => nameHashOf(name)))),
    ];
    return { endUsers, searches };
  }

  /** Where an account comes to another period, which is nearly never, its use is read under the locks. */
  async #complete(
    read: Omit<Loaded, "use" | "searchCalls" | "endUsers" | "members" | "running"> & {
      keyNames: readonly [string, string];
    },
    operations: readonly LaneOperation[],
    waiting: readonly OpenHold[],
  ): Promise<Loaded> {
    const missing = missingUse(read.accounts, operations, read.now);
    const from = keyUseFromOf(read.now);
    const isShort = read.keys.length > 0 && from < read.keyUseFrom;
    const few = this.#callsForFew(operations, waiting, read.now);
    const counted = this.#countedAccounts(read);
    const calls: Call[] = [...few.endUsers, ...few.searches];
    const members = read.keys.flatMap(({ account, limits }) => {
      const member = limits?.member ?? null;
      return member === null ? [] : [{ account, member }];
    });
    const membersAt = calls.length;
    if (members.length > 0) {
      const who = [arrayOf(members.map(({ account }) => account)), arrayOf(members.map(({ member }) => member))];
      calls.push(
        call(sql.readMembers, ...who),
        call(sql.readMemberUse, ...who, from),
        call(sql.readMemberHolds, ...who),
      );
    }
    const runningAt = calls.length;
    if (counted.length > 0) calls.push(call(sql.readRunning, arrayOf(counted)));
    if (missing.length === 0 && !isShort && calls.length === 0) {
      return { ...read, use: [], searchCalls: [], endUsers: noEndUsers, members: noMembers, running: [] };
    }
    const missingAt = calls.length;
    if (missing.length > 0) {
      const column = (name: "account" | "quota" | "period") => arrayOf(missing.map((use) => use[name]));
      calls.push(call(sql.readUse, column("account"), column("quota"), column("period")));
    }
    if (isShort) calls.push(call(sql.readKeyUse, ...read.keyNames, from));
    const outcomes = await this.#send(calls);
    const error = outcomes.find(isFailed);
    if (error !== undefined) throw error;
    const rows = <Rows>(at: number, isAsked: boolean): Rows => (isAsked ? rowsOf(outcomes[at]) : []) as Rows;
    const hasNames = few.endUsers.length > 0;
    return {
      ...read,
      endUsers: {
        known: rows(0, hasNames),
        holds: rows(1, hasNames),
        use: rows(2, hasNames),
        counts: rows(3, hasNames),
        minutes: rows(4, hasNames),
      },
      members: {
        caps: rows(membersAt, members.length > 0),
        use: rows(membersAt + 1, members.length > 0),
        holds: rows(membersAt + 2, members.length > 0),
      },
      running: rows(runningAt, counted.length > 0),
      searchCalls: rows(few.endUsers.length, few.searches.length > 0),
      use: rows(missingAt, missing.length > 0),
      ...(isShort ? { keyUse: rowsOf(outcomes.at(-1)) as unknown as Loaded["keyUse"], keyUseFrom: from } : {}),
    };
  }

  /** Those whose plan or key says how many requests may be under way. */
  #countedAccounts({ accounts, keys }: Pick<Loaded, "accounts" | "keys">): readonly AccountId[] {
    const { plans } = this.#options.rules;
    const isKeyCounted = ({ limits }: KeyRow): boolean => limits !== null && limits.parallel !== null;
    const byKeys = new Set(keys.filter(isKeyCounted).map(({ account }) => account));
    return accounts
      .filter(({ id, plan }) => byKeys.has(id) || planOf(plans, plan).parallel !== undefined)
      .map(({ id }) => id);
  }

  /** The row has another number, or is gone. */
  async #notTaken(number: number, lane: string): Promise<Tried> {
    const [found] = await this.#send([call(sql.readLane, lane)]);
    if (found === undefined || isFailed(found)) throw found ?? new StatementError(null, "no answer");
    const [row] = found as readonly Readonly<{ batch: number; gone: boolean }>[];
    if (row?.batch === number && this.#sent !== null) {
      const [touched, ended] = await this.#send([call(sql.touchLane, lane), call(sql.commit)]);
      for (const outcome of [touched!, ended!]) if (isFailed(outcome)) throw outcome;
      this.counts.readBack += 1;
      return { outcome: "committed", decision: this.#sent };
    }
    await this.#rollBack();
    this.counts.gone += 1;
    if (row === undefined || row.batch < number - 1) {
      this.counts.lostCommits += 1;
      this.#options.log("error", "the database lost commits that it had acknowledged", { lane });
    } else this.#options.log("warn", "another gateway declared this one dead and released its holds", { lane });
    this.#loseLane();
    return { outcome: "new lane" };
  }

  /** What a failed statement says of its transaction, in which the lane was taken or not. */
  async #takenBack(error: StatementError, isTaken: boolean): Promise<Tried> {
    const { state } = error;
    if (state === null) throw error;
    if (state === "40003") throw error; // the outcome is unknown
    const isConflict = state === "40001" || state === "40P01" || state === "55P03";
    const isOfOperation = state.startsWith("22") || state.startsWith("23");
    if (!isConflict && !isOfOperation) throw error;
    await this.#rollBack();
    this.#reason = error.message;
    if (!isConflict) return { outcome: "refused", error };
    return { outcome: isTaken && state === "55P03" ? "locked" : "conflict" };
  }

  async #rollBack(): Promise<void> {
    const [outcome] = await this.#send([call(sql.rollback)]);
    if (outcome === undefined || isFailed(outcome)) this.#disconnect();
  }

  // -------------------------------------------------------------- telling

  #tell(asked: readonly WaitingOperation[], decision: LaneDecision): void {
    const { answers, changed } = decision;
    this.#batch += 1;
    this.#sent = null;
    this.counts.batches += 1;
    this.counts.operations += asked.length;
    this.#committedAt = this.#pace.monotonic();
    const tookMs = this.#committedAt - this.#begunAt;
    if (tookMs < idleInTransactionMs) this.#idleMs = idleInTransactionMs;
    this.#options.committed?.(decision, asked.length, tookMs);
    this.#recovered();
    for (const [hold, state] of changed) {
      if (isRefusal(state)) {
        this.#forget(hold);
        this.#options.decided(hold, state);
      } else this.#change(hold, state);
    }
    for (const [index, each] of asked.entries()) this.#answer(each, answers[index]!);
    // In a lane that was marked meanwhile nothing more is committed; the next batch finds out.
  }

  #answer(asked: WaitingOperation, answer: LaneAnswer | Error): void {
    const { operation, givenUp } = asked;
    asked.answered = true;
    if (answer instanceof Error) return this.#failed(asked, answer);
    if ("hold" in operation && (operation.op === "settle" || operation.op === "release")) this.#forget(operation.hold);
    if (operation.op === "release" || operation.op === "search end") {
      if (operation.op === "search end") this.#open.delete(operation.search.requestId);
      return asked.resolve("released");
    }
    if (operation.op === "search" && answer !== null) {
      const search = answer as OpenSearch;
      this.#open.set(search.requestId, search);
      if (givenUp) return this.#enqueue({ op: "search end", search, kept: false }, ignore, ignore);
    }
    if (answer === "void") this.counts.void += 1;
    if (operation.op === "admit" && typeof answer === "object" && answer !== null && "record" in answer) {
      this.#open.set(answer.requestId, answer);
      if (givenUp) return this.#release(answer); // no caller has it
      if (answer.record.waits) this.#stand(answer);
    }
    asked.resolve(answer);
  }

  /** The operation did nothing. An end's hold goes back. */
  #failed(asked: WaitingOperation, error: Error): void {
    const { operation } = asked;
    asked.answered = true;
    if (operation.op === "settle") this.#release(operation.hold);
    if (operation.op === "release") this.#forget(operation.hold);
    if (operation.op === "search end") this.#open.delete(operation.search.requestId);
    asked.reject(error);
  }

  #change(hold: OpenHold, record: HoldRecord): void {
    const begins = hold.record.waits && !record.waits;
    hold.record = record;
    if (!begins) return;
    this.#leaveLine(hold);
    this.#options.decided(hold, null);
  }

  #stand(hold: OpenHold): void {
    const line = this.#waiting.get(hold.account);
    if (line === undefined) this.#waiting.set(hold.account, [hold]);
    else line.push(hold);
  }

  #leaveLine(hold: OpenHold): void {
    const line = this.#waiting.get(hold.account)?.filter((other) => other !== hold);
    if (line === undefined) return;
    if (line.length === 0) this.#waiting.delete(hold.account);
    else this.#waiting.set(hold.account, line);
  }

  #forget(hold: OpenHold): void {
    this.#open.delete(hold.requestId);
    this.#leaveLine(hold);
  }

  // -------------------------------------------------------------- when it fails

  #fail(): void {
    if (this.#failing) return;
    this.#failing = true;
    this.#options.log("error", "the ledger cannot be written: requests are refused", { reason: this.#reason });
  }

  #recovered(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#options.log("info", "the ledger can be written again: requests are admitted");
  }

  #lookForGivenUp(): void {
    this.#stopLooking ??= this.#pace.after(giveUpLookMs, () => {
      this.#stopLooking = null;
      this.#giveUp(this.#pace.monotonic() - giveUpMs);
      if (this.#isRunning || this.#locked.size > 0) this.#lookForGivenUp();
    });
  }

  /** Of what has waited since before `before`. */
  #giveUp(before: Ms): void {
    for (const asked of this.#underWay) {
      if (asked.answered || asked.givenUp || asked.at > before || isForGood(asked.operation)) continue;
      asked.givenUp = true;
      const isUnknown = asked.sent && asked.operation.op === "settle";
      if (isUnknown) this.counts.cut += 1;
      asked.reject(isUnknown ? new OutcomeUnknown(this.#reason) : new StoreUnavailable(this.#reason));
    }
    for (const line of [this.#queue, ...this.#locked.lines()]) {
      for (const asked of line.splice(0)) {
        const { operation } = asked;
        if (asked.givenUp || asked.at > before || isForGood(operation)) line.push(asked);
        else {
          asked.reject(new StoreUnavailable(this.#reason));
          if (operation.op === "settle") this.#release(operation.hold);
        }
      }
    }
  }

  /** Its holds are gone; what runs goes on, and is charged if it fits then. What waits cannot begin anymore. */
  #loseLane(): void {
    const lane = this.#id;
    this.#id = null;
    this.#sent = null;
    for (const hold of [...this.#waiting.values()].flat()) {
      if (hold.lane !== lane) continue;
      this.#forget(hold);
      this.#options.decided(hold, refuse("quota_unverified"));
    }
  }

  // -------------------------------------------------------------- connection and lane

  async #connect(): Promise<void> {
    this.#connection = await limited(this.#pace, this.#options.server.connect(), (late) => late.close());
  }

  #disconnect(): void {
    this.#connection?.close();
    this.#connection = null;
  }

  async #register(): Promise<void> {
    const { gateway, version, configDigest, mint = () => crypto.randomUUID() } = this.#options;
    const id = `${gateway}/${mint()}`;
    const [outcome] = await this.#send([call(sql.registerLane, id, gateway, version, configDigest(), schemaVersion)]);
    if (outcome === undefined || isFailed(outcome)) throw outcome ?? new StatementError(null, "no answer");
    if (outcome.length === 0) throw new StatementError(null, await this.#whyNotRegistered());
    this.#id = id;
    this.#batch = 0;
  }

  async #whyNotRegistered(): Promise<string> {
    const [outcome] = await this.#send([call(sql.readMeta)]);
    const meta = rowsOf(outcome)[0] as Meta | undefined;
    return (meta && outdated(meta)) ?? "the books were moved elsewhere: they are closed";
  }

  #beatLater(): void {
    // By the latest commit, so that no two are further apart where nothing is in their way.
    const due = heartbeatMs - (this.#pace.monotonic() - this.#committedAt);
    this.#stopHeart = this.#pace.after(due > 0 ? Math.max(1, due) : heartbeatMs, () => {
      if (this.#pace.monotonic() - this.#committedAt >= heartbeatMs) this.#wake();
      this.#beatLater();
    });
  }

  /** Compares the rows in `holds` with the open requests: only the lane itself gives back a living lane's holds. */
  async #guard(): Promise<void> {
    const now = this.#pace.monotonic();
    if (now - this.#guardedAt < guardIntervalMs || this.#connection === null || this.#id === null) return;
    this.#guardedAt = now;
    try {
      const [found] = await this.#send([call(sql.readHolds, this.#id)]);
      if (found === undefined || isFailed(found)) return this.#disconnect();
      const ids = (found as readonly Readonly<{ request_id: string }>[]).map(({ request_id }) => request_id);
      const orphans = ids.filter((id) => !this.#open.has(id));
      if (orphans.length === 0) return;
      this.#options.log("warn", "holds without an open request are released", { holds: orphans.length });
      const given = [this.#id, arrayOf(orphans)] as const;
      const outcomes = await this.#send([
        ...[call(sql.begin), sql.setUpFor(batchLockMs)],
        ...[call(sql.lockHolders, ...given), call(sql.giveBack, ...given), call(sql.commit)],
      ]);
      const error = outcomes.find(isFailed);
      if (error !== undefined) throw error;
      this.counts.orphans += orphans.length;
    } catch (thrown) {
      this.#options.log("warn", "holds without an open request could not be released", { error: String(thrown) });
      this.#disconnect(); // the next batch connects, and the next guard finds them
    }
  }

  /** Sends calls within the time limit. Rejects with StatementError of no state when that is over. */
  #send(calls: readonly Call[]): Promise<readonly (readonly Row[] | StatementError)[]> {
    return limited(this.#pace, this.#connection!.send(calls), ignore);
  }

  #sleep(ms: Ms): Promise<void> {
    return new Promise((resolve) => void this.#pace.after(ms, resolve));
  }
}

/** In the order in which they are locked. */
const accountsIn = (asked: readonly WaitingOperation[]): readonly AccountId[] =>
  [...new Set(asked.map(({ operation }) => accountOf(operation)))].sort((a, b) => a - b);

type KeyName = Readonly<{ account: AccountId; key: number }>;

const namedKey = (account: AccountId, key: number | null): readonly KeyName[] =>
  key === null ? [] : [{ account, key }];

/** Done when possible; no caller waits for it. */
const isForGood = ({ op }: LaneOperation): boolean => op === "release" || op === "search end";

/** The rest of an operation without a waiting caller. */
function givenBack(operation: LaneOperation): LaneOperation | null {
  if (operation.op === "settle" || operation.op === "release") return { op: "release", hold: operation.hold };
  return null;
}

/** Answers of the operations that were asked, among those that were dropped. */
function alignedWith(
  live: readonly (LaneOperation | null)[],
  answers: LaneDecision["answers"],
): LaneDecision["answers"] {
  let next = 0;
  return live.map((operation) => (operation === null ? null : answers[next++]!));
}

const rowsOf = (outcome: readonly Row[] | StatementError | undefined): readonly Row[] =>
  outcome === undefined || isFailed(outcome) ? [] : outcome;

const ignore = (): void => {};
