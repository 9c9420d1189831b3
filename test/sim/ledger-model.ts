// What accounts must have, written down a second time: BigInt amounts, no optimization, nothing shared with the
// program. It keeps every movement of money and calls, and which of them the disk has.

const planTable = {
  free: { tokens: 30_000n, calls: 3n, searches: 3n },
  plus: { tokens: 80_000n, calls: 20n, searches: 30n },
  standard: { tokens: 265_000n, calls: 40n, searches: 50n },
  pro: { tokens: 665_000n, calls: 60n, searches: 60n },
};
export type ModelPlan = keyof typeof planTable;

type Movement = {
  account: string;
  /** `tokens 2026-03-28`, `calls 2026-03-28 4h`, ...; empty for credit alone. */
  use: string;
  /** `key 2 2026-03-28`; empty where it is about no named key. */
  keyUse: string;
  /** `user 2 ada 2026-03-28`; empty where nobody was named. */
  userUse: string;
  used: bigint;
  credit: bigint;
  purchase: boolean;
};

class Money {
  credit = 0n;
  readonly used = new Map<string, bigint>();

  apply({ use, keyUse, userUse, used, credit }: Movement, sign: 1n | -1n): void {
    this.credit += sign * credit;
    if (userUse !== "") this.used.set(userUse, this.of(userUse) + sign * (used - credit));
    if (keyUse !== "") this.used.set(keyUse, this.of(keyUse) + sign * (used - credit));
    if (use !== "") this.used.set(use, this.of(use) + sign * used);
  }

  of(use: string): bigint {
    return this.used.get(use) ?? 0n;
  }

  /** Of all uses whose names begin so. */
  sum(beginning: string): bigint {
    return [...this.used].reduce((sum, [use, used]) => (use.startsWith(beginning) ? sum + used : sum), 0n);
  }
}

type ModelRequest = { key: number; user: string | null; budget: bigint; cost: bigint; begun: boolean; since: bigint };

/** Limits of a named key. */
export type ModelKey = Readonly<{
  perDay: bigint | null;
  perMonth: bigint | null;
  /** Of each of its end users, a day. */
  perUser: bigint | null;
}>;

class ModelAccount {
  plan: ModelPlan = "free";
  live = new Money();
  readonly disk = new Money();
  /** By their numbers; the first key has no limits and is not among them. */
  readonly keys = new Map<number, ModelKey>();
  /** Open requests in the order in which they came. */
  readonly holds = new Map<string, ModelRequest>();
  searching = 0n;
  flood: { opened: bigint; requests: number } | null = null;
}

const two = (value: number) => String(value).padStart(2, "0");

/** `2026-03-28`, spelled from the parts of the date. */
function dateName(now: number): string {
  const date = new Date(now);
  return `${date.getUTCFullYear()}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
}
const tokensOf = (now: number) => `tokens ${dateName(now)}`;
const searchesOf = (now: number) => `searches ${dateName(now)}`;
const keyOf = (key: number, now: number) => `key ${key} ${dateName(now)}`;
const userOf = (key: number, user: string, now: number) => `user ${key} ${user} ${dateName(now)}`;
const keyMonthOf = (key: number, now: number) => `key ${key} ${dateName(now).slice(0, 7)}`;
const callsOf = (now: number) => `calls ${dateName(now)} ${4 * Math.floor(new Date(now).getUTCHours() / 4)}h`;

export type Expected = Readonly<{
  plan: ModelPlan;
  left: number;
  credit: number;
  reserved: number;
  calls: number;
  searches: number;
  expected: number;
  waiting: number;
}>;

export type ExpectedOfKey = Readonly<{ day: number; month: number; held: number; expected: number }>;

type Who = Readonly<{ key: number; user: string | null }>;

const isStopped = (stopped: ReadonlySet<string>, { key, user }: Who): boolean =>
  stopped.has(`${key}`) || stopped.has(`${key} ${user}`);

const waiting = ({ holds }: ModelAccount) => [...holds].filter(([, { begun }]) => !begun);

/** `rates` in cents a million, with four decimals at most. */
function chargeOf(rates: readonly number[], tokens: readonly number[]): bigint {
  const sum = tokens.reduce((total, count, i) => total + BigInt(count) * BigInt(Math.round((rates[i] ?? 0) * 1e4)), 0n);
  return (2n * sum + 5_000_000n) / 10_000_000n;
}

type WhyNot = "busy" | "quota_exceeded" | "key_quota_exceeded" | "end_user_quota_exceeded";

export class LedgerModel {
  readonly #accounts = new Map<string, ModelAccount>();
  /** Movements in the order they were made, the disk's next ones first. */
  #pending: Movement[] = [];
  readonly #references = new Set<string>();
  /** Goes on as the wall clock does, and stands still where that steps back. */
  #elapsed = 0n;
  #latest = 0;
  /** Why requests that waited were refused. */
  readonly refused = new Map<string, WhyNot>();

  create(account: string, plan: ModelPlan): void {
    const made = new ModelAccount();
    made.plan = plan;
    this.#accounts.set(account, made);
  }

  addKey(account: string, id: number, key: ModelKey): void {
    this.#of(account).keys.set(id, key);
  }

  changePlan(account: string, plan: ModelPlan): void {
    this.#of(account).plan = plan;
  }

  /** The seconds to wait, or 0. */
  count(account: string, now: number): number {
    const of = this.#of(account);
    this.#pass(now);
    if (of.flood === null || this.#elapsed - of.flood.opened >= 60_000n) {
      of.flood = { opened: this.#elapsed, requests: 0 };
    }
    of.flood.requests += 1;
    if (of.flood.requests <= 120) return 0;
    return Number((of.flood.opened + 60_000n - this.#elapsed + 999n) / 1000n);
  }

  /** `reads`: input tokens that are expected; `writes`: output tokens; `rates` as of `settle`. */
  reserve(
    account: string,
    request: string,
    tokens: number,
    [reads, writes, rates]: readonly [number, number, readonly number[]],
    now: number,
    key = 1,
    user: string | null = null,
  ): "begins" | "waits" | WhyNot {
    const of = this.#of(account);
    const budget = BigInt(tokens);
    this.#pass(now);
    if (budget > this.#balance(of, now) - this.#held(of)) return "quota_exceeded";
    if (budget > this.#keyLeft(of, key, now) - this.#held(of, key)) return "key_quota_exceeded";
    const who = { key, user };
    if (budget > this.#userLeft(of, who, now) - this.#heldFor(of, who)) return "end_user_quota_exceeded";
    const isFree = rates.every((rate) => rate === 0);
    const exact = chargeOf(rates, [reads, 0, writes]);
    const cost = isFree ? 0n : exact > 1n ? exact : 1n;
    const line = waiting(of);
    const stopped = this.#stopped(of, now);
    const begun =
      isFree ||
      (stopped !== "all" &&
        !isStopped(stopped, who) &&
        this.#keyMayBegin(of, key, cost, now) &&
        this.#userMayBegin(of, who, cost, now) &&
        this.#mayBegin(of, cost, now));
    if (!begun && line.length >= 120) return "busy";
    of.holds.set(request, { key, user, budget, cost, begun, since: this.#elapsed });
    return begun ? "begins" : "waits";
  }

  release(account: string, request: string, now: number): void {
    const of = this.#of(account);
    if (of.holds.delete(request)) this.#decide(of, now);
  }

  /** Time has passed, or money came. */
  look(now: number): void {
    this.#pass(now);
    for (const of of this.#accounts.values()) {
      for (const [request, { since }] of waiting(of)) {
        if (since + 600_000n <= this.#elapsed) this.#refuse(of, request, "busy");
      }
      this.#decide(of, now);
    }
  }

  waits(account: string, request: string): boolean {
    return this.#of(account).holds.get(request)?.begun === false;
  }

  /** `rates` and `tokens` of fresh input, cached input and output. */
  settle(account: string, request: string, rates: readonly number[], tokens: readonly number[], now: number): void {
    const of = this.#of(account);
    const { key, user } = of.holds.get(request)!;
    of.holds.delete(request);
    const charge = chargeOf(rates, tokens);
    const left = this.#left(of, now);
    const used = charge < left ? charge : left;
    const keyUse = key > 1 ? keyOf(key, now) : "";
    const userUse = user === null ? "" : userOf(key, user, now);
    this.#move({ account, use: tokensOf(now), keyUse, userUse, used, credit: used - charge, purchase: false });
    this.#decide(of, now);
  }

  takeCall(account: string, now: number): boolean {
    const of = this.#of(account);
    if (of.live.of(callsOf(now)) >= planTable[of.plan].calls) return false;
    this.#move({ account, use: callsOf(now), keyUse: "", userUse: "", used: 1n, credit: 0n, purchase: false });
    return true;
  }

  takeSearch(account: string, now: number): boolean {
    const of = this.#of(account);
    if (of.live.of(searchesOf(now)) + of.searching >= planTable[of.plan].searches) return false;
    of.searching += 1n;
    return true;
  }

  endSearch(account: string, takenAt: number, found: boolean): void {
    this.#of(account).searching -= 1n;
    if (found)
      this.#move({ account, use: searchesOf(takenAt), keyUse: "", userUse: "", used: 1n, credit: 0n, purchase: false });
  }

  /** A line that moves nothing (the tokens of a coder call). */
  note(account: string): void {
    this.#move({ account, use: "", keyUse: "", userUse: "", used: 0n, credit: 0n, purchase: false });
  }

  /** Says whether the reference is new. */
  buy(account: string, tokens: number, reference: string): boolean {
    if (this.#references.has(reference)) return false;
    this.#references.add(reference);
    this.#move({ account, use: "", keyUse: "", userUse: "", used: 0n, credit: BigInt(tokens), purchase: true });
    return true;
  }

  /** A purchase that failed may be tried again with the same reference. */
  forget(reference: string): void {
    this.#references.delete(reference);
  }

  get pending(): number {
    return this.#pending.length;
  }

  /** The next `count` movements are on disk, and the program knows. */
  committed(count: number): void {
    for (const movement of this.#pending.splice(0, count)) {
      const of = this.#of(movement.account);
      of.disk.apply(movement, 1n);
      if (movement.purchase) of.live.apply(movement, 1n);
    }
  }

  lost(count: number): void {
    for (const movement of this.#pending.splice(0, count)) {
      if (!movement.purchase) this.#of(movement.account).live.apply(movement, -1n);
    }
  }

  /** The process dies; the first `written` pending movements had reached the disk. */
  crash(written: number): void {
    for (const movement of this.#pending.splice(0, written)) this.#of(movement.account).disk.apply(movement, 1n);
    this.#pending = [];
    for (const of of this.#accounts.values()) {
      of.live = new Money();
      of.live.credit = of.disk.credit;
      for (const [use, used] of of.disk.used) of.live.used.set(use, used);
      of.holds.clear();
      of.searching = 0n;
      of.flood = null;
    }
    this.#latest = 0;
    this.refused.clear();
  }

  expected(account: string, now: number): Expected {
    const of = this.#of(account);
    return {
      plan: of.plan,
      left: Number(this.#left(of, now)),
      credit: Number(of.live.credit),
      reserved: Number(this.#held(of)),
      calls: Number(of.live.of(callsOf(now))),
      searches: Number(of.live.of(searchesOf(now))),
      expected: Number(this.#expected(of)),
      waiting: waiting(of).length,
    };
  }

  expectedOfKey(account: string, key: number, now: number): ExpectedOfKey {
    const of = this.#of(account);
    let expected = 0n;
    for (const one of of.holds.values()) if (one.key === key && one.begun) expected += one.cost;
    return {
      day: Number(of.live.of(keyOf(key, now))),
      month: Number(of.live.sum(keyMonthOf(key, now))),
      held: Number(this.#held(of, key)),
      expected: Number(expected),
    };
  }

  expectedOfUser(account: string, key: number, user: string, now: number): Omit<ExpectedOfKey, "month"> {
    const of = this.#of(account);
    let expected = 0n;
    for (const one of of.holds.values()) if (one.key === key && one.user === user && one.begun) expected += one.cost;
    return {
      day: Number(of.live.of(userOf(key, user, now))),
      held: Number(this.#heldFor(of, { key, user })),
      expected: Number(expected),
    };
  }

  /** Sums over what the disk must have of an account. */
  onDisk(account: string): Record<"credit" | "tokens" | "calls" | "searches" | "keys" | "users", number> {
    const { disk } = this.#of(account);
    const sum = (kind: string) => Number(disk.sum(kind));
    const [tokens, calls, searches, keys] = [sum("tokens"), sum("calls"), sum("searches"), sum("key ")];
    return { credit: Number(disk.credit), tokens, calls, searches, keys, users: sum("user ") };
  }

  #move(movement: Movement): void {
    this.#pending.push(movement);
    if (!movement.purchase) this.#of(movement.account).live.apply(movement, 1n);
  }

  #left(of: ModelAccount, now: number): bigint {
    const left = planTable[of.plan].tokens - of.live.of(tokensOf(now));
    return left > 0n ? left : 0n;
  }

  /** Of one key, or of all. */
  #held(of: ModelAccount, by: number | null = null): bigint {
    let held = 0n;
    for (const { key, budget } of of.holds.values()) if (by === null || key === by) held += budget;
    return held;
  }

  #keyLeft(of: ModelAccount, key: number, now: number): bigint {
    const { perDay, perMonth } = of.keys.get(key) ?? { perDay: null, perMonth: null };
    const unlimited = 10n ** 18n;
    const day = perDay === null ? unlimited : perDay - of.live.of(keyOf(key, now));
    const month = perMonth === null ? unlimited : perMonth - of.live.sum(keyMonthOf(key, now));
    return day < month ? day : month;
  }

  #heldFor(of: ModelAccount, { key, user }: Who): bigint {
    let held = 0n;
    for (const one of of.holds.values()) if (one.key === key && one.user === user) held += one.budget;
    return held;
  }

  /** Without a limit, and where nobody was named, more than anybody has. */
  #userLeft(of: ModelAccount, { key, user }: Who, now: number): bigint {
    const limit = of.keys.get(key)?.perUser ?? null;
    return limit === null || user === null ? 10n ** 18n : limit - of.live.of(userOf(key, user, now));
  }

  #userMayBegin(of: ModelAccount, who: Who, cost: bigint, now: number): boolean {
    const begun = [...of.holds.values()].filter(
      (one) => one.key === who.key && one.user === who.user && one.begun && one.cost > 0n,
    );
    if (begun.length === 0) return true;
    return begun.reduce((sum, one) => sum + one.cost, 0n) + cost <= this.#userLeft(of, who, now);
  }

  /** Beside what the key's others that have begun are expected to cost. */
  #keyMayBegin(of: ModelAccount, key: number, cost: bigint, now: number): boolean {
    const begun = [...of.holds.values()].filter((one) => one.key === key && one.begun && one.cost > 0n);
    if (begun.length === 0) return true;
    return begun.reduce((sum, one) => sum + one.cost, 0n) + cost <= this.#keyLeft(of, key, now);
  }

  /** Keys whose next requests wait for their own, or all, where one waits for the whole account. */
  #stopped(of: ModelAccount, now: number): Set<string> | "all" {
    const stopped = new Set<string>();
    for (const [, one] of waiting(of)) if (!this.#stops(of, stopped, one, now)) return "all";
    return stopped;
  }

  /** Whether one waits for its key's others or its end user's, and not for the whole account; who waits with it then. */
  #stops(of: ModelAccount, stopped: Set<string>, { key, user, cost }: ModelRequest, now: number): boolean {
    const before = isStopped(stopped, { key, user });
    const [ofKey, ofUser] = [this.#keyMayBegin(of, key, cost, now), this.#userMayBegin(of, { key, user }, cost, now)];
    if (!ofKey) stopped.add(`${key}`);
    if (!ofUser) stopped.add(`${key} ${user}`);
    return before || !ofKey || !ofUser;
  }

  #balance(of: ModelAccount, now: number): bigint {
    return this.#left(of, now) + of.live.credit;
  }

  #expected(of: ModelAccount): bigint {
    let expected = 0n;
    for (const { begun, cost } of of.holds.values()) if (begun) expected += cost;
    return expected;
  }

  #mayBegin(of: ModelAccount, cost: bigint, now: number): boolean {
    const isAlone = ![...of.holds.values()].some(({ begun, cost }) => begun && cost > 0n);
    return isAlone || this.#expected(of) + cost <= this.#balance(of, now);
  }

  #decide(of: ModelAccount, now: number): void {
    const stopped = new Set<string>();
    for (const [request, one] of waiting(of)) {
      const { key, user, budget, cost } = one;
      const beside = (isOf: (other: ModelRequest) => boolean) =>
        [...of.holds.values()]
          .filter((other) => other.begun && isOf(other))
          .reduce((sum, other) => sum + other.budget, 0n);
      const ofKey = (other: ModelRequest) => other.key === key;
      const ofUser = (other: ModelRequest) => other.key === key && other.user === user;
      if (budget > this.#balance(of, now) - beside(() => true)) this.#refuse(of, request, "quota_exceeded");
      else if (budget > this.#keyLeft(of, key, now) - beside(ofKey)) this.#refuse(of, request, "key_quota_exceeded");
      else if (budget > this.#userLeft(of, one, now) - beside(ofUser))
        this.#refuse(of, request, "end_user_quota_exceeded");
      else if (this.#stops(of, stopped, one, now)) continue;
      else if (this.#mayBegin(of, cost, now)) one.begun = true;
      else return;
    }
  }

  #refuse(of: ModelAccount, request: string, why: WhyNot): void {
    of.holds.delete(request);
    this.refused.set(request, why);
  }

  #pass(now: number): void {
    if (now > this.#latest) this.#elapsed += BigInt(now - this.#latest);
    this.#latest = now;
  }

  #of(account: string): ModelAccount {
    const of = this.#accounts.get(account);
    if (of === undefined) throw new Error(`no account ${account}`);
    return of;
  }
}
