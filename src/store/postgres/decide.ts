// One batch: the accounting's own deciders on the rows that the batch has locked. Nothing outside of it is changed, so that
// a batch may be decided again on other rows; its answers go out when it is committed.
import { Admission, type HoldRecord, type RecordedHold } from "../../account/money/admission.ts";
import type { AdmissionRequest } from "../../account/money/books.ts";
import type { EndUser } from "../../account/money/end-users.ts";
import type { Entry } from "../../account/money/entry.ts";
import { countIn, isOver, leftIn } from "../../account/money/flood.ts";
import type { AccountChange, Journal } from "../../account/journal.ts";
import { Ledger } from "../../account/money/ledger.ts";
import { LoadedAccount } from "../../account/money/loaded-account.ts";
import { LoadedKey } from "../../account/money/loaded-key.ts";
import { MinuteWindow, type WrittenSlots } from "../../account/money/minute-window.ts";
import { dayOf, firstDayOfMonth, type Period, type PeriodUse, type Quota } from "../../account/money/quota.ts";
import type { AccountRecords, TeamMember } from "../../account/records.ts";
import { type SearchHold, Searches } from "../../account/money/searches.ts";
import { type DayUse, SpendLimit, type SpendSpent } from "../../account/money/spend-limit.ts";
import { assert } from "../../core/assert.ts";
import { otherEndUsers } from "../../core/end-user.ts";
import { planOf, type Plans } from "../../core/plans.ts";
import type { Priority } from "../../core/priority.ts";
import type { RateLeft, RatesLeft } from "../../core/rates-left.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import {
  type AccountId,
  type Course,
  defaultKey,
  type KeyId,
  type ModelKind,
  type Ms,
  type Refusal,
  type Usage,
} from "../../core/types.ts";
import { keyUsedStaleMs } from "./limits.ts";
import type { AccountRow, KeyRow } from "./rows.ts";

/** A request that was admitted by this gateway, until its end. */
export type OpenHold = {
  readonly requestId: string;
  readonly account: AccountId;
  /** Under which its row in `holds` was made: that of an earlier life of this gateway is gone. */
  readonly lane: string;
  record: HoldRecord;
  /** Monotonic, of this gateway. */
  readonly since: Ms;
  readonly priority: Priority;
  readonly rates: RatesLeft | null;
};

/** A search of the day that this gateway took, until its end. */
export type OpenSearch = Readonly<{
  requestId: string;
  account: AccountId;
  lane: string;
  /** By the server's clock: it counts for that day. */
  takenAt: Ms;
}>;

export type LaneOperation =
  /** `keyHash`: by which the key was found. */
  | (Readonly<{ op: "admit"; keyHash: string | null }> & AdmissionRequest)
  | Readonly<{ op: "settle"; hold: OpenHold; usage: Usage; estimated: boolean; course?: Course | undefined }>
  | Readonly<{ op: "release"; hold: OpenHold }>
  | Readonly<{ op: "expect"; hold: OpenHold; spent: Usage; inputTokens: number }>
  | Readonly<{ op: "grow"; hold: OpenHold; written: number }>
  | Readonly<{ op: "count"; account: AccountId; kind: ModelKind }>
  | Readonly<{ op: "search"; account: AccountId }>
  | Readonly<{ op: "search call"; search: OpenSearch }>
  /** `kept`: it found something and counts. */
  | Readonly<{ op: "search end"; search: OpenSearch; kept: boolean }>
  /** Nothing is asked: whether those who wait may begin. */
  | Readonly<{ op: "look"; account: AccountId }>;

/** What was charged in the place of a usage. */
export type Charged = Readonly<{ charged: Usage }>;

/** `void`: the hold was given back meanwhile, and what it came to does not fit anymore; nothing was charged. */
export type LaneAnswer =
  OpenHold | OpenSearch | Refusal | Charged | "settled" | "void" | "released" | boolean | number | null;

export function accountOf(operation: LaneOperation): AccountId {
  if ("hold" in operation) return operation.hold.account;
  return "search" in operation ? operation.search.account : operation.account;
}

/** The first key and signed-in browsers have no row of their own. */
export function namedKeyOf(operation: LaneOperation): KeyId | null {
  const key = operation.op === "admit" ? operation.key : "hold" in operation ? operation.hold.record.key : defaultKey;
  return key > defaultKey ? key : null;
}

export type EndUserName = Readonly<{ account: AccountId; key: KeyId; name: string }>;

/** For whom a hold is, or would be: where too many names came new today, for all of those together. */
export function endUsersOf(operation: LaneOperation): readonly EndUserName[] {
  if (operation.op === "admit") {
    const { account, key, endUser = null } = operation;
    return endUser === null ? [] : [endUser, otherEndUsers].map((name) => ({ account, key, name }));
  }
  return "hold" in operation ? endUserOfHold(operation.hold) : [];
}

export function endUserOfHold({ account, record: { key, endUser } }: OpenHold): readonly EndUserName[] {
  return endUser === null ? [] : [{ account, key, name: endUser }];
}

/** What stays the same from batch to batch, or is changed by a reload. */
export type LaneRules = {
  readonly plans: Plans;
  readonly siteUrl: string;
  maxWaitMs: Ms;
  inputRequestsPerMinute: number;
};

export type Loaded = Readonly<{
  accounts: readonly AccountRow[];
  keys: readonly KeyRow[];
  keyUse: readonly Readonly<{ account: AccountId; key: KeyId; day: Period; used: number }>[];
  /** Since this day. */
  keyUseFrom: Period;
  use: readonly Readonly<{ account: AccountId; quota: Quota; period: Period; used: number }>[];
  searchCalls: readonly Readonly<{ account: AccountId; day: Period; calls: number }>[];
  endUsers: LoadedEndUsers;
  members: LoadedMembers;
  /** Begun requests by account and key, of accounts for which anything limits how many there are. */
  running: readonly Readonly<{ account: AccountId; key: KeyId; running: number }>[];
  now: Ms;
}>;

type MemberId = Readonly<{ account: AccountId; member: AccountId }>;
/** Of the members of teams whose keys a batch names: their caps, what they used, and what they hold. */
export type LoadedMembers = Readonly<{
  caps: readonly Readonly<MemberId & Pick<TeamMember, "tokensPerDay" | "tokensPerMonth">>[];
  use: readonly Readonly<MemberId & DayUse>[];
  holds: readonly Readonly<MemberId & { held: number; waiting_held: number; begun: number; expected: number }>[];
}>;

export const noMembers: LoadedMembers = { caps: [], use: [], holds: [] };

/** Of the end users that a batch names. */
export type LoadedEndUsers = Readonly<{
  known: readonly Readonly<EndUserName & { id: number; last_day: Period }>[];
  holds: readonly Readonly<
    EndUserName & { held: number; waiting_held: number; begun: number; expected: number; running: number }
  >[];
  minutes: readonly Readonly<EndUserName & { minute: string }>[];
  use: readonly Readonly<EndUserName & DayUse>[];
  /** Of their accounts. */
  counts: readonly Readonly<{ account: AccountId; since: number; last_id: number }>[];
}>;

export const noEndUsers: LoadedEndUsers = { known: [], holds: [], minutes: [], use: [], counts: [] };

export type BatchOf = Readonly<{
  lane: string;
  operations: readonly LaneOperation[];
  /** This gateway's requests that wait, of the batch's accounts, in the order in which they came. */
  waiting: readonly OpenHold[];
  loaded: Loaded;
  /** Monotonic, of this gateway. */
  monotonic: Ms;
}>;

/** A named key's budget of a period that is used up. */
export type SpentKey = Readonly<SpendSpent & { account: AccountId; key: KeyId; name: string }>;

export type LaneDecision = Readonly<{
  /** In the order of the operations; an Error is of that operation alone. */
  answers: readonly (LaneAnswer | Error)[];
  /** Outcomes of earlier holds, other than those that the operations ended. */
  changed: ReadonlyMap<OpenHold, HoldRecord | Refusal>;
  entries: readonly Entry[];
  /** Numbers of those for whom they are, by their places. */
  endUsersOfEntries: readonly (number | null)[];
  /** What of the limits of a minute is used by some. */
  endUserMinutes: readonly Readonly<EndUserName & { minute: string }>[];
  /** Those who are new, or were not here on that day. */
  endUsers: readonly Readonly<EndUserName & { id: number; day: Period }>[];
  made: readonly OpenHold[];
  searches: readonly OpenSearch[];
  searchCalls: readonly Readonly<{ account: AccountId; day: Period; calls: number }>[];
  /** Of rows in `holds`. */
  updated: readonly HoldRecord[];
  removed: readonly string[];
  accounts: readonly AccountRow[];
  keys: readonly KeyRow[];
  /** Budgets that are used up, or for which a request was refused. */
  spent: readonly SpentKey[];
  kept: readonly Readonly<{ account: AccountId; quota: Quota; period: Period; used: number }>[];
  now: Ms;
}>;

/** A decider that fails must not keep other charges from the books: they are decided without it. */
export function decide(batch: BatchOf, rules: LaneRules): LaneDecision {
  const failed = new Map<LaneOperation, Error>();
  for (;;) {
    const attempt = new Batch(batch, rules, failed);
    try {
      return attempt.decide();
    } catch (thrown) {
      if (attempt.current === null) throw thrown;
      failed.set(attempt.current, thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  }
}

/** Windows that are columns of an account. Where the server's clock steps back, they keep what has elapsed. */
class FloodColumns {
  readonly #rows: ReadonlyMap<AccountId, AccountRow>;
  readonly #now: Ms;
  readonly #opens: "flood_opens" | "inputs_opens";
  readonly #count: "flood_count" | "inputs_count";

  constructor(rows: ReadonlyMap<AccountId, AccountRow>, now: Ms, of: "flood" | "inputs") {
    this.#rows = rows;
    this.#now = now;
    this.#opens = `${of}_opens`;
    this.#count = `${of}_count`;
    const latest = `${of}_latest` as const;
    for (const row of rows.values()) {
      row[this.#opens] -= Math.max(0, row[latest] - now);
      row[latest] = now;
    }
  }

  count(account: AccountId, _now: Ms, max: number): number {
    const row = this.#rows.get(account)!;
    const window = { opensAt: row[this.#opens], requests: row[this.#count] };
    if (window.requests === 0 || isOver(window, this.#now)) {
      row[this.#opens] = this.#now;
      row[this.#count] = 1;
      return 0;
    }
    const seconds = countIn(window, this.#now, max);
    row[this.#count] = window.requests;
    return seconds;
  }

  left(account: AccountId, _now: Ms, limit: number): RateLeft {
    const row = this.#rows.get(account)!;
    return leftIn({ opensAt: row[this.#opens], requests: row[this.#count] }, this.#now, limit);
  }

  /** The caller has the row locked, and counts. */
  isFull(): boolean {
    return true;
  }
}

class Batch {
  current: LaneOperation | null = null;
  readonly #batch: BatchOf;
  readonly #failed: ReadonlyMap<LaneOperation, Error>;
  readonly #rows: ReadonlyMap<AccountId, AccountRow>;
  readonly #ledger: Ledger;
  readonly #admission: Admission;
  readonly #entries: Entry[] = [];
  readonly #holds = new Map<OpenHold, RecordedHold>();
  readonly #made: [OpenHold, RecordedHold][] = [];
  readonly #keyHashes = new Map<string, string | null>();
  readonly #keyRows: ReadonlyMap<AccountId, readonly KeyRow[]>;
  readonly #keyUses: ReadonlyMap<string, readonly DayUse[]>;
  readonly #searchesTaken: OpenSearch[] = [];
  readonly #searchesEnded: string[] = [];
  readonly #searches: Searches;
  readonly #searchCalls: Map<string, number>;
  readonly #searchCallsChanged = new Map<string, Readonly<{ account: AccountId; day: Period; calls: number }>>();

  constructor(batch: BatchOf, rules: LaneRules, failed: ReadonlyMap<LaneOperation, Error>) {
    this.#batch = batch;
    this.#failed = failed;
    const { loaded } = batch;
    this.#rows = new Map(loaded.accounts.map((row) => [row.id, { ...row }]));
    const use = new Map(loaded.use.map(({ account, quota, period, used }) => [`${account} ${quota} ${period}`, used]));
    const { searchCalls, endUsers, members } = loaded;
    this.#searchCalls = new Map(searchCalls.map(({ account, day, calls }) => [`${account} ${day}`, calls]));
    const records = {
      used: (account: AccountId, quota: Quota, period: Period) =>
        usedIn(this.#rows.get(account)!, quota, period) ?? use.get(`${account} ${quota} ${period}`) ?? 0,
      searchCalls: (account: AccountId, day: Period) => this.#searchCalls.get(`${account} ${day}`) ?? 0,
      member: (team: AccountId, member: AccountId) =>
        members.caps.find((each) => each.account === team && each.member === member) ?? null,
      memberUse: (team: AccountId, member: AccountId, from: Period, before: Period) =>
        members.use.filter(
          (each) => each.account === team && each.member === member && each.day >= from && each.day < before,
        ),
      hasEndUser: (account: AccountId, key: KeyId, name: string) =>
        endUsers.known.some(isNamed({ account, key, name })),
      endUsersSince: (account: AccountId) => endUsers.counts.find((each) => each.account === account)?.since ?? 0,
      endUserUse: (account: AccountId, key: KeyId, name: string, from: Period, before: Period) =>
        endUsers.use.filter(isNamed({ account, key, name })).filter(({ day }) => day >= from && day < before),
    };
    this.#keyRows = Map.groupBy(loaded.keys, ({ account }) => account);
    this.#keyUses = Map.groupBy(loaded.keyUse, ({ account, key }) => `${account} ${key}`);
    // All else was loaded.
    this.#ledger = new Ledger(records as unknown as AccountRecords, rules.plans);
    for (const row of this.#rows.values()) this.#ledger.add(this.#accountOf(row, rules.plans));
    const journal: Journal = {
      writable: true,
      append: (entry) => this.#entries.push(entry),
      change: (change) => this.#change(change),
      durable: () => committed,
    };
    const { now } = loaded;
    const flood = new FloodColumns(this.#rows, now, "flood");
    const ofInputs = new FloodColumns(this.#rows, now, "inputs");
    this.#admission = new Admission(this.#ledger, flood, journal, rules.siteUrl, ofInputs);
    this.#admission.windowClock = "wall";
    this.#admission.inputRequestsPerMinute = rules.inputRequestsPerMinute;
    this.#admission.line.maxWaitMs = rules.maxWaitMs;
    this.#searches = new Searches(this.#ledger, records, journal);
    for (const { account, member, ...sums } of members.holds) {
      holdIn(this.#ledger.memberLimit(this.#ledger.account(account), member), sums);
    }
    for (const { account, key, name, ...sums } of endUsers.holds) this.#seed({ account, key, name }, sums);
    for (const each of endUsers.minutes) {
      const endUser = this.#endUser(each);
      if (endUser !== null) endUser.minute = minuteOf(each.minute, now);
    }
  }

  decide(): LaneDecision {
    const { operations, waiting, loaded, monotonic } = this.#batch;
    const moment = { wall: loaded.now, monotonic };
    this.#admission.line.look(moment); // what ends without a time of its own ends now
    for (const hold of waiting) this.#resume(hold);
    const answers = operations.map((operation) => {
      const error = this.#failed.get(operation);
      if (error !== undefined) return error;
      this.current = operation;
      const answer = this.#answer(operation);
      this.current = null;
      return answer;
    });
    this.#admission.line.look(moment);
    return this.#decision(answers);
  }

  #answer(operation: LaneOperation): LaneAnswer {
    const { now } = this.#batch.loaded;
    switch (operation.op) {
      case "admit":
        return this.#admit(operation);
      case "settle": {
        const { hold, usage, estimated, course } = operation;
        const { record } = hold;
        if (!this.#isHeld(hold)) {
          const account = this.#ledger.ifLoaded(hold.account);
          if (account === null) return "void";
          return this.#admission.settleLate(account, record, usage, estimated, now, course) ? "settled" : "void";
        }
        const resumed = this.#resume(hold);
        const charged = resumed.believed(usage, now);
        void resumed.settle(charged, estimated || charged !== usage, now, course);
        return charged === usage ? "settled" : { charged };
      }
      case "release":
        if (this.#isHeld(operation.hold)) this.#resume(operation.hold)[Symbol.dispose]();
        return "released";
      case "expect": {
        const { hold, spent, inputTokens } = operation;
        return this.#isHeld(hold) ? (this.#resume(hold).expect?.(spent, inputTokens, now) ?? true) : true;
      }
      case "grow": {
        const { hold, written } = operation;
        return this.#isHeld(hold) ? this.#resume(hold).grow!(written, now) : hold.record.output!.held;
      }
      case "count":
        if (this.#ledger.ifLoaded(operation.account) === null) return refuse("invalid_api_key");
        return this.#admission.countRequest(operation.account, this.#batch.monotonic, operation.kind);
      case "search":
        return this.#takeSearch(operation.account);
      case "search call":
        return this.#resumeSearch(operation.search).call() as boolean;
      case "search end":
        return this.#endSearch(operation);
      case "look":
        return null;
      default:
        return operation satisfies never;
    }
  }

  #admit(operation: Extract<LaneOperation, { op: "admit" }>): LaneAnswer {
    const { account, key, keyHash, requestId } = operation;
    const { lane, loaded, monotonic } = this.#batch;
    const row = this.#rows.get(account);
    const known = key > defaultKey ? this.#keyHashes.get(`${account} ${key}`) : row?.key_hash;
    if (row === undefined || (keyHash !== null && known !== keyHash)) return refuse("invalid_api_key");
    const now = { wall: loaded.now, monotonic };
    const admitted = this.#admission.admit(operation, now);
    if (isRefusal(admitted)) return admitted;
    const { record, priority, rates } = admitted;
    const hold: OpenHold = { requestId, account, lane, record, since: monotonic, priority, rates };
    this.#made.push([hold, admitted]);
    return hold;
  }

  #takeSearch(account: AccountId): OpenSearch | null {
    const { lane, loaded } = this.#batch;
    if (this.#ledger.ifLoaded(account) === null || this.#searches.take(account, loaded.now) === null) return null;
    const search = { requestId: `search:${crypto.randomUUID()}`, account, lane, takenAt: loaded.now };
    this.#searchesTaken.push(search);
    return search;
  }

  #endSearch({ search, kept }: Extract<LaneOperation, { op: "search end" }>): "released" {
    const { lane, account, takenAt, requestId } = search;
    const isHeld = lane === this.#batch.lane;
    // One whose hold was given back meanwhile counts where one is left.
    if (!isHeld && !(kept && this.#ledger.holdSearch(this.#ledger.account(account), takenAt))) return "released";
    const resumed = this.#resumeSearch(search);
    if (kept) resumed.keep();
    else resumed[Symbol.dispose]();
    if (isHeld) this.#searchesEnded.push(requestId);
    return "released";
  }

  #resumeSearch({ account, takenAt }: OpenSearch): SearchHold {
    return this.#searches.resume(account, takenAt);
  }

  /** The only change of this kind that deciders of requests make, beside when keys were used. */
  #change(change: AccountChange): number {
    if (change.change !== "search_calls") return 0;
    const { account, day, calls } = change;
    this.#searchCalls.set(`${account} ${day}`, calls);
    this.#searchCallsChanged.set(`${account} ${day}`, { account, day, calls });
    return 0;
  }

  /** An end user's own limit knows what is held against it, by all gateways. */
  #seed(of: EndUserName, sums: Omit<LoadedEndUsers["holds"][number], keyof EndUserName>): void {
    const endUser = this.#endUser(of);
    if (endUser === null) return;
    endUser.running = sums.running;
    holdIn(endUser.limit, sums);
  }

  #endUser({ account, key, name }: EndUserName): EndUser | null {
    const loaded = this.#ledger.account(account);
    const named = this.#ledger.key(loaded, key);
    return named === null ? null : this.#ledger.endUsers.exactly(loaded, named, name);
  }

  /** Whether its row is there: the reaper takes those of lanes alone that are gone. */
  #isHeld(hold: OpenHold): boolean {
    return hold.lane === this.#batch.lane;
  }

  #resume(hold: OpenHold): RecordedHold {
    const known = this.#holds.get(hold);
    if (known !== undefined) return known;
    const resumed = this.#admission.resume(this.#ledger.account(hold.account), hold.record, hold.since);
    this.#holds.set(hold, resumed);
    return resumed;
  }

  #accountOf(row: AccountRow, plans: Plans): LoadedAccount {
    const account = new LoadedAccount(row.id, planOf(plans, row.plan), row.credit, row.key_hash, row.disabled);
    account.usedAt = row.key_used_at;
    account.costCenter = row.cost_center;
    account.running = this.#runningOf(row.id, null);
    account.minute = minuteOf(row.minute, this.#batch.loaded.now);
    account.held = row.held;
    account.holds = row.holds;
    account.begun = row.begun;
    account.expected = row.expected;
    account.waitingHeld = row.waiting_held;
    account.searchesHeld = row.searches_held;
    account.allowance = { quota: "allowance", period: row.allowance_day, used: row.allowance_used };
    account.coder_calls = { quota: "coder_calls", period: row.coder_window, used: row.coder_used };
    account.searches = { quota: "searches", period: row.searches_day, used: row.searches_used };
    const keys = this.#keyRows.get(row.id) ?? [];
    account.keys = new Map(keys.map((key) => [key.id, this.#keyOf(account, key)]));
    return account;
  }

  #keyOf(loaded: LoadedAccount, row: KeyRow): LoadedKey {
    const { account, id, name, limits } = row;
    this.#keyHashes.set(`${account} ${id}`, row.key_hash);
    const { tokensPerDay = null, tokensPerMonth = null, member = null } = limits ?? {};
    const isLimited = tokensPerDay !== null || tokensPerMonth !== null;
    const read = (from: Period, before: Period) => this.#keyUse(row, from, before);
    const limit = isLimited ? new SpendLimit(name, tokensPerDay, tokensPerMonth, read) : null;
    if (limit !== null) holdIn(limit, row);
    const ofMember = member === null ? null : this.#ledger.memberLimit(loaded, member);
    const key = new LoadedKey(id, name, row.key_hash ?? "", limits, limit, ofMember, row.revoked);
    key.usedAt = row.used_at;
    key.running = this.#runningOf(account, id);
    key.minute = minuteOf(row.minute, this.#batch.loaded.now);
    return key;
  }

  /** Of an account whose plan or key limits how many are under way, by all gateways; `key`: of that key alone. */
  #runningOf(account: AccountId, key: KeyId | null): number {
    return this.#batch.loaded.running
      .filter((each) => each.account === account && (key === null || each.key === key))
      .reduce((sum, { running }) => sum + running, 0);
  }

  #keyUse({ account, id }: KeyRow, from: Period, before: Period): readonly DayUse[] {
    assert(this.#batch.loaded.keyUseFrom <= from, "a key's use of the month was read");
    return (this.#keyUses.get(`${account} ${id}`) ?? []).filter(({ day }) => day >= from && day < before);
  }

  #decision(answers: readonly (LaneAnswer | Error)[]): LaneDecision {
    const { loaded } = this.#batch;
    const changed = new Map<OpenHold, HoldRecord | Refusal>();
    const updated: HoldRecord[] = [];
    const removed: string[] = [];
    for (const [hold, resumed] of this.#holds) {
      const { state, record } = resumed;
      if (state !== "waiting" && state !== "begun") {
        removed.push(hold.requestId);
        if (state !== "over") changed.set(hold, state);
      } else if (
        record.waits !== hold.record.waits ||
        record.cost !== hold.record.cost ||
        record.budget !== hold.record.budget ||
        record.output?.held !== hold.record.output?.held // more tokens may cost as much
      ) {
        updated.push(record);
        changed.set(hold, record);
      }
    }
    const made: OpenHold[] = [];
    const refused = new Map<OpenHold, Refusal>();
    for (const [hold, admitted] of this.#made) {
      const { state, record } = admitted;
      hold.record = record; // not published yet
      if (state === "waiting" || state === "begun") made.push(hold);
      else if (state !== "over") refused.set(hold, state); // it waited, and another of the batch's let it wait in vain
    }
    const isHold = (answer: LaneAnswer | Error): answer is OpenHold =>
      typeof answer === "object" && answer !== null && "record" in answer;
    return {
      answers: answers.map((answer) => (isHold(answer) ? (refused.get(answer) ?? answer) : answer)),
      changed,
      entries: this.#entries,
      ...this.#numbered(),
      endUserMinutes: this.#endUserMinutes(),
      made,
      searches: this.#searchesTaken.filter(({ requestId }) => !this.#searchesEnded.includes(requestId)),
      searchCalls: [...this.#searchCallsChanged.values()],
      updated,
      removed: [...removed, ...this.#searchesEnded],
      accounts: [...this.#rows.values()].map((row) => this.#rowOf(row)),
      keys: loaded.keys.flatMap((row) => this.#keyRowOf(row)),
      spent: loaded.keys.flatMap((row) => this.#spentOf(row)),
      kept: this.#kept(),
      now: loaded.now,
    };
  }

  /** Those for whom lines are have numbers within their accounts. */
  #numbered(): Pick<LaneDecision, "endUsers" | "endUsersOfEntries"> {
    const { known, counts } = this.#batch.loaded.endUsers;
    const ids = new Map(known.map((each) => [endUserKey(each), each]));
    const last = new Map(counts.map(({ account, last_id }) => [account, last_id]));
    const here = new Map<string, EndUserName & { id: number; day: Period }>();
    const endUsersOfEntries = this.#entries.map(({ account, key, endUser, at }) => {
      if (endUser == null) return null;
      const named = { account, key, name: endUser };
      const place = endUserKey(named);
      const day = dayOf(at);
      const before = here.get(place) ?? ids.get(place);
      const id = before?.id ?? (last.get(account) ?? 0) + 1;
      if (before === undefined) last.set(account, id);
      if (before === undefined || ("last_day" in before && before.last_day < day)) {
        here.set(place, { ...named, id, day });
      }
      return id;
    });
    return { endUsersOfEntries, endUsers: [...here.values()] };
  }

  #endUserMinutes(): LaneDecision["endUserMinutes"] {
    const before = new Set(this.#batch.loaded.endUsers.minutes.map((each) => `${endUserKey(each)} ${each.minute}`));
    return [...this.#ledger.endUsers.loaded()].flatMap(({ account, key, name, minute: window }) => {
      const minute = textOf(window);
      const each = { account, key, name, minute: minute ?? "" };
      return minute === null || before.has(`${endUserKey(each)} ${minute}`) ? [] : [each];
    });
  }

  #rowOf(row: AccountRow): AccountRow {
    const account = this.#ledger.account(row.id);
    return {
      ...row,
      credit: account.credit,
      minute: textOf(account.minute),
      key_used_at: account.usedAt,
      held: account.held,
      waiting_held: account.waitingHeld,
      begun: account.begun,
      expected: account.expected,
      holds: account.holds,
      searches_held: account.searchesHeld,
      allowance_day: account.allowance.period,
      allowance_used: account.allowance.used,
      coder_window: account.coder_calls.period,
      coder_used: account.coder_calls.used,
      searches_day: account.searches.period,
      searches_used: account.searches.used,
    };
  }

  /** None where nothing changed but a time that is known well enough. */
  #keyRowOf(row: KeyRow): readonly KeyRow[] {
    const key = this.#ledger.account(row.account).keys!.get(row.id)!;
    const limit = key.spendLimit;
    const next: KeyRow = {
      ...row,
      used_at: key.usedAt,
      held: limit?.held ?? row.held,
      waiting_held: limit?.waitingHeld ?? row.waiting_held,
      begun: limit?.begun ?? row.begun,
      expected: limit?.expected ?? row.expected,
      minute: textOf(key.minute),
    };
    const isStale = next.used_at !== null && next.used_at - (row.used_at ?? 0) >= keyUsedStaleMs;
    const isChanged =
      next.minute !== row.minute ||
      next.held !== row.held ||
      next.waiting_held !== row.waiting_held ||
      next.begun !== row.begun ||
      next.expected !== row.expected;
    return isStale || isChanged ? [next] : [];
  }

  #spentOf({ account, id: key, name }: KeyRow): readonly SpentKey[] {
    const spent = this.#ledger.account(account).keys!.get(key)!.spendLimit?.spent(this.#batch.loaded.now) ?? null;
    return spent === null ? [] : [{ ...spent, account, key, name }];
  }

  #kept(): LaneDecision["kept"] {
    return this.#batch.loaded.accounts.flatMap((row) => {
      const account = this.#ledger.account(row.id);
      const before: readonly PeriodUse[] = [
        { quota: "allowance", period: row.allowance_day, used: row.allowance_used },
        { quota: "coder_calls", period: row.coder_window, used: row.coder_used },
        { quota: "searches", period: row.searches_day, used: row.searches_used },
      ];
      // A search counts for the day on which it was taken, which may be over.
      const left = account.left ?? [];
      const isLeft = ({ quota, period }: PeriodUse) => left.some((use) => use.quota === quota && use.period === period);
      return [...left, ...before.filter((use) => !isLeft(use))]
        .filter(({ quota, period, used }) => period >= 0 && used > 0 && account[quota].period !== period)
        .map(({ quota, period, used }) => ({ account: row.id, quota, period, used }));
    });
  }
}

/** What is held against a limit, by all gateways. */
function holdIn(limit: SpendLimit, sums: Omit<LoadedMembers["holds"][number], keyof MemberId>): void {
  limit.held = sums.held;
  limit.waitingHeld = sums.waiting_held;
  limit.begun = sums.begun;
  limit.expected = sums.expected;
}

/** What an account's row knows of a period. */
function usedIn(row: AccountRow, quota: Quota, period: Period): number | null {
  switch (quota) {
    case "allowance":
      return row.allowance_day === period ? row.allowance_used : null;
    case "coder_calls":
      return row.coder_window === period ? row.coder_used : null;
    case "searches":
      return row.searches_day === period ? row.searches_used : null;
    default:
      return quota satisfies never;
  }
}

const endUserKey = ({ account, key, name }: EndUserName): string => `${account} ${key} ${name}`;
const isNamed =
  ({ account, key, name }: EndUserName) =>
  (other: EndUserName): boolean =>
    other.account === account && other.key === key && other.name === name;

/** Answers go out only when the batch is on disk. */
const committed = Promise.resolve();

/** From which day on the use of keys must be read for a batch of that moment. */
export const keyUseFromOf = (now: Ms): Period => firstDayOfMonth(now);

const minuteOf = (text: string | null, now: Ms): MinuteWindow | null =>
  text === null ? null : MinuteWindow.of(JSON.parse(text) as WrittenSlots, now);

const textOf = (minute: MinuteWindow | null): string | null =>
  minute === null || minute.slots.length === 0 ? null : JSON.stringify(minute.slots);
