// Decides which of an account's requests may begin and which wait until others have settled. The output budget alone
// decides whether a request is refused. But input is paid for too, and the inputs of all of an account's requests may
// come to more than it has. So for each account:
//
//   balance  = today's allowance left + credit
//   expected = what its begun requests are expected to cost, inputs and budgets at their models' prices
//
// A request whose budget was reserved:
//   (1) costs nothing, whatever it reads, and nothing limits how many -> begins, and is no part of this
//       run at once
//       whose budget is open, and of it too little is free of holds   -> waits, behind the account's others
//   (2) none waits, none runs or expected and its cost fit in, and    -> begins
//       its plan and key allow one more at once
//   (3) the line is full                                              -> refused as busy
//   (4) else                                                          -> waits, behind the account's others
// After each event that may have changed that, the first in line:
//   (5) waited too long                                               -> refused as busy
//   (6) its account was disabled, or its key is void by now           -> refused, as a request with that key
//   (7) its budget does not fit beside those of the begun             -> refused, quota exceeded
//       its open budget has too little that is free                   -> waits, and those behind it do not for it
//   (8) its plan allows no more at once                               -> waits
//       its key or end user may have no more at once                  -> waits, and those of others do not for it
//   (9) none runs, or expected and its cost fit in                    -> begins
//
// An open budget reserves what it finds when it begins, and more while its answer grows: beside others what they are not
// expected to cost, alone all there is.
//
// So at any time at most one request goes beyond the balance: one that began or grew while none ran beside it, or one that came
// to more than was expected. Of a second one no more is charged than was expected (`believed` in admission.ts): the sum of what
// all others are expected to cost is within the balance when one goes beyond, and nothing adds to that sum until it is again.
//
// A key with a limit of its own has the same rules a second time, with what it has left in the place of the balance and its
// own requests in the place of the account's. One that waits for its key's others alone keeps no other key's requests up.
// Where a key limits its end users, each of them has the rules a third time.
import { assert } from "../../core/assert.ts";
import { busyRetrySeconds, queueMaxWaitMs, queuePlacesMax } from "../../core/limits.ts";
import { refuse } from "../../core/refusals.ts";
import { type Moment, type Ms, type Refusal, StoreUnavailable } from "../../core/types.ts";
import type { Asked } from "./asked.ts";
import type { Journal } from "../journal.ts";
import type { Ledger } from "./ledger.ts";
import { type EndUser, perEndUser } from "./end-users.ts";
import type { LoadedAccount } from "./loaded-account.ts";
import type { LoadedKey } from "./loaded-key.ts";
import { keyQuotaExceeded, quotaExceeded } from "./quota-refusals.ts";
import type { SpendLimit } from "./spend-limit.ts";

/** Requests of an account that wait for its others to settle: as many as flood protection admits in a minute. */
export const balanceWaitingAccountMax = 120;

/** A request in line, whose budget is reserved. The effects are called once in all, from within an event. */
export interface BalanceWaiter {
  readonly ask: Asked;
  readonly budget: number;
  /** Balance tokens without which an open budget does not begin, of which nothing is reserved before. Null: it is not open. */
  readonly least: number | null;
  /** Of its key, and of the key's end user. */
  readonly spendLimits: readonly SpendLimit[];
  /** Its key, if that has a name. */
  readonly named: LoadedKey | null;
  /** For whom its key asks, if it may say so. */
  readonly endUser: EndUser | null;
  /** Balance tokens that it is expected to cost. */
  readonly cost: number;
  /** Whether its key was revoked or replaced, or has expired: what waits begins no more. */
  isVoidAt(now: Ms): boolean;
  /** It is about to begin: reserves of its open budget what it finds. */
  reserves(now: Ms): void;
  begun(): void;
  /** It gives its reservation back. */
  refused(refusal: Refusal): void;
}

type Begun = Pick<BalanceWaiter, "spendLimits" | "named" | "endUser" | "cost">;

export type BalancePlace = Readonly<{ waiter: BalanceWaiter; since: Ms }>;

export class BalanceLine {
  /** Longest wait; a change also holds for those who wait. */
  maxWaitMs: Ms = queueMaxWaitMs;
  /** Called when one waits, and none did: from then on `look` is called again and again, until none waits. */
  onWaiting = (): void => {};
  readonly #ledger: Ledger;
  readonly #journal: Pick<Journal, "writable">;
  readonly #siteUrl: string;
  readonly #accounts = new Set<LoadedAccount>();
  #length = 0;
  /** Wall clock of the latest event that gave it, for those that do not. */
  #wall: Ms = 0;

  constructor(ledger: Ledger, journal: Pick<Journal, "writable">, siteUrl: string) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#siteUrl = siteUrl;
  }

  get length(): number {
    return this.#length;
  }

  /** Whether the request begins (true), waits (false) or is refused: see (1) to (4). */
  enter(account: LoadedAccount, waiter: BalanceWaiter, now: Moment): boolean | Refusal {
    this.#wall = now.wall;
    const { waiting } = account;
    if (waiter.cost === 0 && !isCounted(account, waiter)) {
      begin(account, waiter, now.wall);
      return true;
    }
    if (waiting === null ? this.#fits(account, waiter, now.wall) : this.#passes(account, waiter, now.wall)) {
      begin(account, waiter, now.wall);
      return true;
    }
    const [length, most] = [
      waiting?.length ?? 0,
      isCounted(account, waiter) ? queuePlacesMax : balanceWaitingAccountMax,
    ];
    if (length >= most || this.#length >= queuePlacesMax) return busy("too_many_waiting", length + 1);
    const place: BalancePlace = { waiter, since: now.monotonic };
    if (waiting === null) account.waiting = [place];
    else waiting.push(place);
    this.#accounts.add(account);
    account.waitingHeld += waiter.budget;
    for (const limit of waiter.spendLimits) limit.waitingHeld += waiter.budget;
    if (waiter.named !== null) waiter.named.waiting += 1;
    this.#length += 1;
    if (this.#length === 1) this.onWaiting();
    return false;
  }

  /** One that was written down as waiting stands in line again, behind those that do; what it holds is part of the account. */
  resume(account: LoadedAccount, waiter: BalanceWaiter, since: Ms): void {
    const place: BalancePlace = { waiter, since };
    if (account.waiting === null) account.waiting = [place];
    else account.waiting.push(place);
    this.#accounts.add(account);
    if (waiter.named !== null) waiter.named.waiting += 1;
    this.#length += 1;
  }

  /** The client of one that waits left; it gives its reservation back. */
  leave(account: LoadedAccount, waiter: BalanceWaiter): void {
    const index = account.waiting?.findIndex((place) => place.waiter === waiter) ?? -1;
    assert(index >= 0, "who leaves the line stands in it");
    this.#remove(account, index);
    this.#decide(account);
  }

  /** Its place among those who wait for the same requests to end, from 1; null: it does not wait. */
  positionOf(account: LoadedAccount, waiter: BalanceWaiter): number | null {
    const full = account.isFull ? null : fullOf(account, waiter);
    let position = 1;
    for (const { waiter: other } of account.waiting ?? []) {
      if (other === waiter) return position;
      if (full === null || full === other.named || full === other.endUser) position += 1;
    }
    return null;
  }

  /** What a begun request is expected to cost is another amount now. */
  change(account: LoadedAccount, spendLimits: readonly SpendLimit[], before: number, after: number, wall: Ms): void {
    account.expected += after - before;
    for (const limit of spendLimits) limit.expected += after - before;
    this.#wall = wall;
    this.#decide(account);
  }

  /** A begun request has settled, or ended without a charge. */
  end(account: LoadedAccount, begun: Begun, wall: Ms = this.#wall): void {
    const { spendLimits, named, endUser, cost } = begun;
    account.running -= 1;
    if (named !== null) named.running -= 1;
    if (endUser !== null) endUser.running -= 1;
    if (cost === 0 && !isCounted(account, begun)) return;
    if (cost > 0) {
      account.begun -= 1;
      account.expected -= cost;
      for (const limit of spendLimits) {
        limit.begun -= 1;
        limit.expected -= cost;
      }
    }
    this.#wall = wall;
    this.#decide(account);
  }

  /** Decides anew for all who wait; says whether somebody still does. */
  look(now: Moment): boolean {
    this.#wall = now.wall;
    for (const account of this.#accounts) {
      for (let first = account.waiting?.[0]; first !== undefined; first = account.waiting?.[0]) {
        if (first.since + this.maxWaitMs > now.monotonic) break;
        this.#remove(account, 0);
        first.waiter.refused(busy("waited_too_long", 1));
      }
      this.#decide(account);
    }
    return this.#length > 0;
  }

  /** Whether the account and its key have room beside what has begun. Throws StoreUnavailable. */
  #fits(account: LoadedAccount, waiter: BalanceWaiter, wall: Ms): boolean {
    const { cost, spendLimits } = waiter;
    if (account.isFull || fullOf(account, waiter) !== null || !this.#leastIsFree(account, waiter, wall)) return false;
    return this.#accountFits(account, cost, wall) && limitsFit(spendLimits, cost, wall);
  }

  /** Whether the tokens that an open budget needs to begin are free. */
  #leastIsFree(account: LoadedAccount, { least, spendLimits }: BalanceWaiter, wall: Ms): boolean {
    if (least === null) return true;
    if (least > this.#ledger.spendable(account, wall)) return false;
    return spendLimits.every((limit) => least <= limit.left(wall) - limit.held);
  }

  /** Why an open budget will not begin, whatever others give back; null: it may. Throws StoreUnavailable. */
  refuseLeast(
    account: LoadedAccount,
    { ask, spendLimits, least }: Pick<BalanceWaiter, "ask" | "spendLimits"> & Readonly<{ least: number }>,
    wall: Ms,
  ): Refusal | null {
    const balance = this.#ledger.balance(account, wall);
    if (least > balance) return quotaExceeded(this.#siteUrl, balance, ask, least, wall);
    const tight = spendLimits.find((limit) => least > limit.left(wall));
    return tight === undefined ? null : keyQuotaExceeded(tight, ask, least, wall, tight.held);
  }

  #accountFits(account: LoadedAccount, cost: number, wall: Ms): boolean {
    return cost === 0 || account.begun === 0 || account.expected + cost <= this.#ledger.balance(account, wall);
  }

  /** Whether it begins though others wait: each of them waits for its key's others, and it has another key. */
  #passes(account: LoadedAccount, waiter: BalanceWaiter, wall: Ms): boolean {
    if (account.isFull || fullOf(account, waiter) !== null) return false;
    try {
      const blocked = new Set<Blocked>();
      for (const { waiter: other } of account.waiting!) {
        if (other.endUser?.isFull(account, other.named) === true || !this.#leastIsFree(account, other, wall)) continue;
        if (!waitsForKey(account, other, blocked, wall)) return false;
        block(account, other, blocked, wall);
      }
      return !waitsForKey(account, waiter, blocked, wall) && this.#fits(account, waiter, wall);
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable) return false; // the next look decides
      throw thrown;
    }
  }

  #decide(account: LoadedAccount): void {
    /** Those at the front who are passed over, because they wait for their keys' others; nearly always none. */
    let passed = 0;
    let blocked: Set<Blocked> | null = null;
    /** Requests of keys at their limit of parallel requests: none of them can begin. */
    let ofFull = 0;
    for (let next = account.waiting?.[0]; next !== undefined; next = account.waiting?.[passed]) {
      const { waiter } = next;
      const decision = this.#decisionFor(account, waiter, blocked ?? noneBlocked);
      if (decision === "waits") return;
      if (decision === "waits for what others hold" || decision === "waits for its end user") {
        passed += 1;
        continue;
      }
      if (decision === "waits for its key") {
        passed += 1;
        blocked ??= new Set();
        const { named } = waiter;
        if (named?.isFull === true && !blocked.has(named)) ofFull += named.waiting;
        block(account, waiter, blocked, this.#wall);
        if (ofFull === account.waiting!.length) return;
        continue;
      }
      this.#remove(account, passed);
      if (decision === "begins") {
        begin(account, waiter, this.#wall);
        waiter.begun();
      } else waiter.refused(decision);
    }
  }

  #decisionFor(
    account: LoadedAccount,
    waiter: BalanceWaiter,
    blocked: ReadonlySet<Blocked>,
  ): "begins" | "waits" | "waits for its key" | "waits for its end user" | "waits for what others hold" | Refusal {
    const { ask, budget, cost, least, spendLimits } = waiter;
    if (account.disabled || waiter.isVoidAt(this.#wall)) return refuse("invalid_api_key"); // (6)
    if (waiter.endUser?.isFull(account, waiter.named) === true) return "waits for its end user"; // (8), for thousands
    if (!this.#journal.writable) return "waits"; // nothing could be charged
    try {
      const wall = this.#wall;
      const balance = this.#ledger.balance(account, wall);
      const left = balance - (account.held - account.waitingHeld);
      const refused = least === null ? null : this.refuseLeast(account, { ask, spendLimits, least }, wall);
      if (refused !== null) return refused; // (7)
      if (!this.#leastIsFree(account, waiter, wall)) return "waits for what others hold";
      if (budget > left) return quotaExceeded(this.#siteUrl, left, ask, budget, wall);
      for (const limit of spendLimits) {
        if (budget > limit.left(wall) - (limit.held - limit.waitingHeld)) {
          return keyQuotaExceeded(limit, ask, budget, wall, limit.waitingHeld);
        }
      }
      if (account.isFull) return "waits"; // (8)
      if (waitsForKey(account, waiter, blocked, wall)) return "waits for its key";
      return this.#accountFits(account, cost, wall) ? "begins" : "waits"; // (9)
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable) return "waits"; // for the next look
      throw thrown;
    }
  }

  #remove(account: LoadedAccount, index: number): void {
    const [place] = account.waiting!.splice(index, 1);
    const { budget, spendLimits, named } = place!.waiter;
    if (named !== null) named.waiting -= 1;
    account.waitingHeld -= budget;
    for (const limit of spendLimits) limit.waitingHeld -= budget;
    this.#length -= 1;
    if (account.waiting!.length > 0) return;
    account.waiting = null;
    this.#accounts.delete(account);
  }
}

/** Whether its plan or key says how many may be under way. */
const isCounted = (account: LoadedAccount, { named, endUser }: Begun): boolean =>
  account.plan.parallel !== undefined ||
  (named !== null && named.limits !== null && named.limits.parallel !== null) ||
  (endUser !== null && perEndUser("endUserParallel", account, named) !== null);

/** Its key or end user, whichever has as many under way as it may. */
const fullOf = (account: LoadedAccount, { named, endUser }: Begun): LoadedKey | EndUser | null =>
  named?.isFull === true ? named : endUser?.isFull(account, named) === true ? endUser : null;

function begin(account: LoadedAccount, waiter: BalanceWaiter, wall: Ms): void {
  account.running += 1;
  if (waiter.named !== null) waiter.named.running += 1;
  if (waiter.endUser !== null) waiter.endUser.running += 1;
  if (waiter.least !== null) waiter.reserves(wall);
  const { cost, spendLimits } = waiter;
  if (cost === 0) return;
  account.begun += 1;
  account.expected += cost;
  for (const limit of spendLimits) {
    limit.begun += 1;
    limit.expected += cost;
  }
}

/** Throws StoreUnavailable. */
const fits = (limit: SpendLimit, cost: number, wall: Ms): boolean =>
  cost === 0 || limit.begun === 0 || limit.expected + cost <= limit.left(wall);

/** Throws StoreUnavailable. */
function limitsFit(spendLimits: readonly SpendLimit[], cost: number, wall: Ms): boolean {
  for (const limit of spendLimits) if (!fits(limit, cost, wall)) return false;
  return true;
}

/** What one waits for keeps up those behind it: its end user's limit only that end user's. Throws StoreUnavailable. */
function block(account: LoadedAccount, waiter: BalanceWaiter, blocked: Set<Blocked>, wall: Ms): void {
  const { spendLimits, cost } = waiter;
  const full = fullOf(account, waiter);
  if (full !== null) blocked.add(full);
  for (const limit of spendLimits) if (!fits(limit, cost, wall)) blocked.add(limit);
}

/** Also where one before it waits for the same. Throws StoreUnavailable. */
function waitsForKey(account: LoadedAccount, waiter: BalanceWaiter, blocked: ReadonlySet<Blocked>, wall: Ms): boolean {
  const { spendLimits, named, endUser, cost } = waiter;
  if (fullOf(account, waiter) !== null || blocked.has(named) || blocked.has(endUser)) return true;
  return (cost > 0 && spendLimits.some((limit) => blocked.has(limit))) || !limitsFit(spendLimits, cost, wall);
}

/** What requests in line wait for. */
type Blocked = SpendLimit | LoadedKey | EndUser | null;
const noneBlocked: ReadonlySet<Blocked> = new Set();

const busy = (reason: string, position: number): Refusal =>
  refuse("busy", { seconds: busyRetrySeconds, reason, position });
