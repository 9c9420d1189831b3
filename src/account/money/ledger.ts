// Who has how much left. The ledger is the authority for every account it has loaded; the disk follows through the
// journal. It decides synchronously, takes the time as an argument and knows neither HTTP nor disk. For each account:
//
//   spendable = max(0, plan's tokens of the day - used today) + credit - held
//
// A key with a limit of its own has the same once more: what it may spend, less what it used and what it holds.
//
// reserve adds to held; settle turns a reservation into a charge, and release gives it back: each exactly once, which
// the Hold sees to. A charge is booked in full, also above the reservation: allowance first, then credit, below 0.
import { assert } from "../../core/assert.ts";
import type { Catalog } from "../../core/catalog.ts";
import { planOf } from "../../core/plans.ts";
import { type AccountId, defaultKey, type KeyId, type Ms } from "../../core/types.ts";
import { type EndUser, EndUsers } from "./end-users.ts";
import { quotaOf, type Entry } from "./entry.ts";
import type { JournalListener } from "../journal.ts";
import { LoadedAccount } from "./loaded-account.ts";
import { LoadedKey } from "./loaded-key.ts";
import { coderWindowOf, dayOf, type Period, type PeriodUse, type Quota } from "./quota.ts";
import type { AccountRecords, KeyRecord } from "../records.ts";
import { noSpendLimits, SpendLimit } from "./spend-limit.ts";

/** What all accounts in memory hold together; all 0 when no request is open. */
export type LedgerTotals = Readonly<{
  accounts: number;
  holds: number;
  heldTokens: number;
  /** Of begun requests. */
  expectedTokens: number;
  waiting: number;
  searchesHeld: number;
  uncommitted: number;
}>;

export class Ledger implements JournalListener {
  /** Of all accounts together. */
  heldTokens = 0;
  readonly #accounts = new Map<AccountId, LoadedAccount>();
  readonly #records: AccountRecords;
  readonly #plans: Catalog["plans"];
  readonly endUsers: EndUsers;

  constructor(records: AccountRecords, plans: Catalog["plans"], endUsers = new EndUsers(records)) {
    this.#records = records;
    this.#plans = plans;
    this.endUsers = endUsers;
  }

  /** The account, from disk at its first use. Throws StoreUnavailable when the disk cannot be read. */
  account(id: AccountId): LoadedAccount {
    return this.#accounts.get(id) ?? this.#load(id);
  }

  ifLoaded(id: AccountId): LoadedAccount | null {
    return this.#accounts.get(id) ?? null;
  }

  /** The accounts in memory, also those that are loaded while it runs. */
  loaded(): Iterator<LoadedAccount> {
    return this.#accounts.values();
  }

  /** A named key, or null where the account has none of that number, or it is void. Throws StoreUnavailable. */
  key(account: LoadedAccount, id: KeyId): LoadedKey | null {
    return this.keysOf(account).get(id) ?? null;
  }

  /** The account's named keys that are not void, from disk at their first use. Throws StoreUnavailable. */
  keysOf(account: LoadedAccount): Map<KeyId, LoadedKey> {
    if (account.keys !== null) return account.keys;
    const records = this.#records.keysOf(account.id).filter(({ revokedAt }) => revokedAt === null);
    return (account.keys = new Map(records.map((record) => [record.id, this.#keyOf(account, record)])));
  }

  addKey(account: LoadedAccount, record: KeyRecord): void {
    if (account.keys === null || account.keys.has(record.id)) return;
    account.keys.set(record.id, this.#keyOf(account, record));
  }

  /** What a member of a team may spend, by all keys that the person has there. Throws StoreUnavailable. */
  memberLimit(team: LoadedAccount, member: AccountId): SpendLimit {
    const known = team.members?.get(member);
    if (known !== undefined) return known;
    const { tokensPerDay = null, tokensPerMonth = null } = this.#records.member(team.id, member) ?? {};
    const read = (from: Period, before: Period) => this.#records.memberUse(team.id, member, from, before);
    const limit = new SpendLimit("", tokensPerDay, tokensPerMonth, read, null, true);
    (team.members ??= new Map()).set(member, limit);
    return limit;
  }

  /** Takes in an account whose creation is on its way to disk. */
  add(account: LoadedAccount): void {
    assert(!this.#accounts.has(account.id), "an account is created once");
    this.#accounts.set(account.id, account);
  }

  /** Drops an account whose creation did not reach the disk. */
  remove(id: AccountId): void {
    this.#accounts.delete(id);
  }

  spendable(account: LoadedAccount, now: Ms): number {
    return this.balance(account, now) - account.held;
  }

  /** All of it, including what is held. */
  balance(account: LoadedAccount, now: Ms): number {
    return this.allowanceLeft(account, now) + account.credit;
  }

  allowanceLeft(account: LoadedAccount, now: Ms): number {
    return Math.max(0, account.plan.tokensPerDay - this.use(account, "allowance", dayOf(now)).used);
  }

  /** The balance where it is known without the disk, as of every account that used something of its allowance today. */
  knownBalance({ plan, credit, allowance }: LoadedAccount, now: Ms): number | null {
    if (allowance.period !== dayOf(now)) return null;
    return Math.max(0, plan.tokensPerDay - allowance.used) + credit;
  }

  /** Reserves tokens if they fit into all there is; else says into what they do not. Throws StoreUnavailable. */
  reserve(
    account: LoadedAccount,
    spendLimits: readonly SpendLimit[],
    tokens: number,
    now: Ms,
  ): LoadedAccount | SpendLimit | null {
    if (tokens > this.spendable(account, now)) return account;
    for (const limit of spendLimits) if (tokens > limit.left(now) - limit.held) return limit;
    account.holds += 1;
    this.reserveMore(account, spendLimits, tokens);
    return null;
  }

  /** For a request that can cost nothing, which an account below zero may make as well. */
  reserveNothing(account: LoadedAccount): void {
    account.holds += 1;
  }

  /** Adds to a reservation what was found to be free. */
  reserveMore(account: LoadedAccount, spendLimits: readonly SpendLimit[], tokens: number): void {
    account.held += tokens;
    this.heldTokens += tokens;
    for (const limit of spendLimits) limit.held += tokens;
  }

  release(account: LoadedAccount, spendLimits: readonly SpendLimit[], tokens: number): void {
    assert(account.holds > 0 && account.held >= tokens, "only what is held can be given back");
    account.held -= tokens;
    account.holds -= 1;
    this.heldTokens -= tokens;
    for (const limit of spendLimits) {
      assert(limit.held >= tokens, "only what is held can be given back");
      limit.held -= tokens;
    }
  }

  /**
   * Replaces a reservation of `held` tokens by a charge of `billed` and returns how much of it the allowance of
   * `now`'s day paid; the credit paid the rest. `unlimited`: the allowance
   * pays all, whatever the plan is now. When it throws (StoreUnavailable), nothing was changed.
   */
  settle(
    account: LoadedAccount,
    spendLimits: readonly SpendLimit[],
    held: number,
    billed: number,
    now: Ms,
    unlimited = false,
  ): number {
    const use = this.use(account, "allowance", dayOf(now));
    for (const limit of spendLimits) limit.load(now);
    this.release(account, spendLimits, held);
    const fromAllowance = unlimited ? billed : Math.min(billed, Math.max(0, account.plan.tokensPerDay - use.used));
    use.used += fromAllowance;
    account.credit -= billed - fromAllowance;
    for (const limit of spendLimits) {
      if (account.uncommitted === 0) limit.forgetOthers(now);
      limit.add(dayOf(now), billed);
    }
    return fromAllowance;
  }

  /** Counts a coder call if the window has one left, and holds nothing for it until its release; says whether it had. */
  takeCoderCall(account: LoadedAccount, now: Ms): boolean {
    const use = this.use(account, "coder_calls", coderWindowOf(now));
    if (use.used >= account.plan.coderCallsPerWindow) return false;
    use.used += 1;
    account.holds += 1;
    return true;
  }

  /** Holds a search of the day if one is left; says whether one was. */
  holdSearch(account: LoadedAccount, now: Ms): boolean {
    const use = this.use(account, "searches", dayOf(now));
    if (use.used + account.searchesHeld >= account.plan.searchesPerDay) return false;
    account.searchesHeld += 1;
    return true;
  }

  releaseSearch(account: LoadedAccount): void {
    assert(account.searchesHeld > 0, "only a held search can be given back");
    account.searchesHeld -= 1;
  }

  countSearch(account: LoadedAccount, takenAt: Ms): void {
    const use = this.use(account, "searches", dayOf(takenAt));
    this.releaseSearch(account);
    use.used += 1;
  }

  /** What the account used of a quota in a period. Throws StoreUnavailable when that must be read and cannot be. */
  use(account: LoadedAccount, quota: Quota, period: Period): PeriodUse {
    const current = account[quota];
    return current.period === period ? current : this.#turn(account, quota, period);
  }

  /** A line was appended for the account, for that end user; `committed` or `lost` reports its outcome. */
  appended(account: LoadedAccount, endUser: EndUser | null = null, now: Ms = 0): void {
    account.uncommitted += 1;
    if (endUser !== null) this.endUsers.appended(account, endUser, now);
  }

  /** Credit counts once it is on disk: a crash must not take back what an account has spent. */
  committed(entry: Entry): void {
    const account = this.#known(entry);
    if (entry.kind === "credit") {
      account.credit += entry.creditDelta;
      account.mostCredit = Math.max(account.mostCredit, account.credit);
    }
    account.uncommitted -= 1;
    if (entry.endUser != null) this.endUsers.ended(this.#endUserOf(entry, entry.endUser));
  }

  lost(entry: Entry): void {
    const account = this.#known(entry);
    if (entry.kind !== "credit") {
      account.credit -= entry.creditDelta;
      const quota = quotaOf(entry.kind);
      if (quota !== null) this.use(account, quota, entry.period).used -= entry.used;
      if (entry.kind === "charge" && entry.key > defaultKey) {
        // One that was revoked meanwhile is not asked for anymore.
        const limits = account.keys?.get(entry.key)?.spendLimits ?? noSpendLimits;
        for (const limit of limits) limit.add(entry.period, entry.creditDelta - entry.used);
      }
    }
    account.uncommitted -= 1;
    if (entry.endUser == null) return;
    const endUser = this.#endUserOf(entry, entry.endUser);
    if (entry.kind === "charge") endUser.limit.add(entry.period, entry.creditDelta - entry.used);
    this.endUsers.ended(endUser);
  }

  totals(): LedgerTotals {
    let holds = 0;
    let heldTokens = 0;
    let expectedTokens = 0;
    let waiting = 0;
    let searchesHeld = 0;
    let uncommitted = 0;
    for (const account of this.#accounts.values()) {
      holds += account.holds;
      heldTokens += account.held;
      expectedTokens += account.expected;
      waiting += account.waiting?.length ?? 0;
      searchesHeld += account.searchesHeld;
      uncommitted += account.uncommitted;
    }
    return { accounts: this.#accounts.size, holds, heldTokens, expectedTokens, waiting, searchesHeld, uncommitted };
  }

  #load(id: AccountId): LoadedAccount {
    const record = this.#records.byId(id);
    assert(record !== null, `account ${id} exists`);
    const account = new LoadedAccount(
      id,
      planOf(this.#plans, record.plan),
      record.credit,
      record.keyHash,
      record.disabledAt !== null,
    );
    account.usedAt = record.keyUsedAt;
    account.costCenter = record.costCenter;
    this.#accounts.set(id, account);
    return account;
  }

  #keyOf(account: LoadedAccount, { id, name, keyHash, limits, usedAt }: KeyRecord): LoadedKey {
    const { tokensPerDay = null, tokensPerMonth = null, member = null } = limits ?? {};
    const read = (from: Period, before: Period) => this.#records.keyUse(account.id, id, from, before);
    const limit = new SpendLimit(name, tokensPerDay, tokensPerMonth, read);
    const ofMember = member === null ? null : this.memberLimit(account, member);
    const key = new LoadedKey(id, name, keyHash!, limits, limit, ofMember);
    key.usedAt = usedAt;
    return key;
  }

  #endUserOf({ account, key }: Entry, name: string): EndUser {
    const endUser = this.endUsers.find(account, key, name);
    assert(endUser !== null && endUser.uses > 0, "whose line is not on disk is in memory");
    return endUser;
  }

  #known(entry: Entry): LoadedAccount {
    const account = this.#accounts.get(entry.account);
    assert(account !== undefined && account.uncommitted > 0, "a line's outcome is reported once, for a loaded account");
    return account;
  }

  /**
   * Moves the account to another period of a quota. The disk knows that period's use, unless the period was left
   * while lines were uncommitted (midnight under load, then a clock that steps back): those are kept in `left`.
   */
  #turn(account: LoadedAccount, quota: Quota, period: Period): PeriodUse {
    const isTarget = (use: PeriodUse) => use.quota === quota && use.period === period;
    const left = account.uncommitted === 0 ? [] : (account.left ?? []);
    const use = left.find(isTarget) ?? { quota, period, used: this.#records.used(account.id, quota, period) };
    const staying = left.filter((other) => other !== use);
    if (account.uncommitted > 0 && account[quota].period >= 0) staying.push(account[quota]);
    account.left = staying.length === 0 ? null : staying;
    account[quota] = use;
    return use;
  }
}
