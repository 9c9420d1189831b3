// What accounts must have, written down a second time: BigInt amounts, no optimization, nothing shared with the
// program. It keeps every movement of money and calls, and which of them the disk has.

/** What a plan gives; of an unlimited one, `tokens` has no end. */
export type ModelPlan = Readonly<{
  tokens: bigint;
  calls: bigint;
  searches: bigint;
  perMinute: number;
  models: readonly string[] | null;
  unlimited: boolean;
}>;
/** By id, in the order in which they are offered: an account of any other has what the first one gives. */
export type ModelPlans = ReadonlyMap<string, ModelPlan>;

type Movement = {
  account: string;
  /** `tokens 2026-03-28`, `calls 2026-03-28 4h`, ...; empty for credit alone. */
  use: string;
  /** Its key and day; null where it is about no named key. */
  keyUse: Readonly<{ key: number; day: string }> | null;
  /** `user 2 ada 2026-03-28`; empty where nobody was named. */
  userUse: string;
  used: bigint;
  credit: bigint;
  purchase: boolean;
  reference?: string;
};

/** What moves no money: `written` is done where the disk has it, `inForce` where the program knows, `lost` where it never will. */
type Change = Readonly<{ account: string; written: () => void; inForce: () => void; lost: () => void }>;

class Money {
  credit = 0n;
  readonly used = new Map<string, bigint>();
  /** By key and month, then by day. */
  readonly keys = new Map<string, Map<string, bigint>>();

  apply({ use, keyUse, userUse, used, credit }: Movement, sign: 1n | -1n): void {
    this.credit += sign * credit;
    if (keyUse !== null) {
      const { key, day } = keyUse;
      const name = monthOf(key, day);
      const days = this.keys.get(name) ?? new Map<string, bigint>();
      this.keys.set(name, days.set(day, (days.get(day) ?? 0n) + sign * (used - credit)));
    }
    if (userUse !== "") this.used.set(userUse, this.of(userUse) + sign * (used - credit));
    if (use !== "") this.used.set(use, this.of(use) + sign * used);
  }

  of(use: string): bigint {
    return this.used.get(use) ?? 0n;
  }

  /** Of a key in a month, or on one day of it. */
  ofKey(key: number, date: string, only: "day" | "month"): bigint {
    const days = this.keys.get(monthOf(key, date));
    if (days === undefined) return 0n;
    if (only === "day") return days.get(date) ?? 0n;
    return [...days.values()].reduce((sum, used) => sum + used, 0n);
  }

  copy(): Money {
    const copy = new Money();
    copy.credit = this.credit;
    for (const [use, used] of this.used) copy.used.set(use, used);
    for (const [name, days] of this.keys) copy.keys.set(name, new Map(days));
    return copy;
  }
}

/** `2 2026-03` */
const monthOf = (key: number, date: string): string => `${key} ${date.slice(0, 7)}`;

/** An open budget: output tokens with which it begins at least and may have at most, and what those are held and cost. */
type ModelOpen = {
  readonly rates: readonly number[];
  readonly least: bigint;
  readonly fewest: number;
  readonly max: number;
  /** 0 until it begins. */
  held: number;
  most: number;
};

type ModelRequest = {
  key: number;
  user: string | null;
  /** Of the first key, which it is then. */
  version: number;
  budget: bigint;
  cost: bigint;
  begun: boolean;
  /** In which it waits, if it does. */
  line: string;
  since: bigint;
  unlimited: boolean;
  open: ModelOpen | null;
};

/** Limits of a named key. */
export type ModelKey = Readonly<{
  perDay: bigint | null;
  perMonth: bigint | null;
  expiresAt: number | null;
  models: readonly string[] | null;
  /** It is believed for whom it asks. */
  namesUsers: boolean;
  /** Of each of its end users, a day. */
  perUser: bigint | null;
}>;
type KnownKey = Readonly<{ limits: ModelKey; isVoid: boolean }>;

/** What of an account is not money, once as it is and once as the disk has it. */
class Standing {
  /** Which of the keys that took each other's place is the first one. */
  version = 0;
  /** Named ones by their numbers, those that were revoked too. */
  readonly keys = new Map<number, KnownKey>();

  constructor(public plan: string) {}

  copy(): Standing {
    const copy = new Standing(this.plan);
    copy.version = this.version;
    for (const [id, key] of this.keys) copy.keys.set(id, key);
    return copy;
  }

  limit(id: number, limits: Partial<ModelKey>): void {
    const key = this.keys.get(id)!;
    this.keys.set(id, { ...key, limits: { ...key.limits, ...limits } });
  }

  void(id: number, isVoid: boolean): void {
    this.keys.set(id, { ...this.keys.get(id)!, isVoid });
  }
}

class ModelAccount {
  live = new Money();
  readonly disk = new Money();
  standing: Standing;
  readonly standingOnDisk: Standing;
  versions = 0;
  /** Open requests in the order in which they came. */
  readonly holds = new Map<string, ModelRequest>();
  searching = 0n;
  flood: { opened: bigint; requests: number } | null = null;

  constructor(plan: string) {
    this.standing = new Standing(plan);
    this.standingOnDisk = new Standing(plan);
  }
}

const numberOrNull = (value: bigint | null): number | null => (value === null ? null : Number(value));
const two = (value: number) => String(value).padStart(2, "0");

/** `2026-03-28`, spelled from the parts of the date. */
function dateName(now: number): string {
  if (now === named.now) return named.date;
  const date = new Date(now);
  named = { now, date: `${date.getUTCFullYear()}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}` };
  return named.date;
}
/** It is asked for again and again. */
let named = { now: Number.NaN, date: "" };
const tokensOf = (now: number) => `tokens ${dateName(now)}`;
const searchesOf = (now: number) => `searches ${dateName(now)}`;
const userOf = (key: number, user: string, now: number) => `user ${key} ${user} ${dateName(now)}`;
const callsOf = (now: number) => `calls ${dateName(now)} ${4 * Math.floor(new Date(now).getUTCHours() / 4)}h`;

export type Expected = Readonly<{
  plan: string;
  left: number;
  credit: number;
  reserved: number;
  calls: number;
  searches: number;
  expected: number;
  waiting: number;
}>;

export type ExpectedOfKey = Readonly<{
  isVoid: boolean;
  limits: ModelKey;
  day: number;
  month: number;
  held: number;
  expected: number;
}>;

/** What a request is about: input tokens that are expected, output tokens, and `rates` as of `settle`. */
export type ModelAsk = Readonly<{
  /** Tokens that it holds; null: what `writes` costs, of a shop's own model. */
  budget: number | null;
  reads: number;
  writes: number;
  rates: readonly number[];
  /** No budget was named: `writes` is the most that it may have. */
  isOpen?: boolean;
}>;

/** What does not suffice: of a shop's own model a refusal also says whether it is used up, or too little for this request. */
export const shortOf = (refusal: string): string => refusal.replace(/^budget_over_(.*)quota$/, "$1quota_exceeded");

type Refused = "busy" | "quota_exceeded" | "key_quota_exceeded" | "end_user_quota_exceeded" | "invalid_api_key";

type Who = Readonly<{ key: number; user: string | null }>;

const isStopped = (stopped: ReadonlySet<string>, { key, user }: Who): boolean =>
  stopped.has(`${key}`) || stopped.has(`${key} ${user}`);

function hasWaiting({ holds }: ModelAccount): boolean {
  for (const { begun } of holds.values()) if (!begun) return true;
  return false;
}

/** `rates` in cents a million, with four decimals at most. */
function chargeOf(rates: readonly number[], tokens: readonly number[]): bigint {
  const sum = tokens.reduce((total, count, i) => total + BigInt(count) * BigInt(Math.round((rates[i] ?? 0) * 1e4)), 0n);
  return (2n * sum + 5_000_000n) / 10_000_000n;
}

/** As many of the tokens, those of the last kinds first, as cost no more than that. */
function within(rates: readonly number[], tokens: readonly number[], cost: bigint): readonly number[] {
  const kept = [...tokens];
  for (let kind = 0; kind < kept.length && chargeOf(rates, kept) > cost; kind += 1) {
    const all = kept[kind]!;
    let step = 1;
    while (step < all) step *= 2;
    kept[kind] = 0;
    for (; step >= 1; step /= 2) {
      if (kept[kind]! + step > all) continue;
      kept[kind]! += step;
      if (chargeOf(rates, kept) > cost) kept[kind]! -= step;
    }
  }
  return kept;
}

const atLeastOne = (rates: readonly number[], tokens: readonly number[]): bigint =>
  chargeOf(rates, tokens) > 1n ? chargeOf(rates, tokens) : 1n;

/** The most output tokens, up to `most`, that cost no more than that. */
function outputFor(rates: readonly number[], cost: bigint, most: number): number {
  return cost < 1n ? 0 : within(rates, [0, 0, most], cost)[2]!;
}

export class LedgerModel {
  readonly #accounts = new Map<string, ModelAccount>();
  /** What was done, in its order, the disk's next first. */
  #pending: (Movement | Change)[] = [];
  readonly #references = new Set<string>();
  /** Goes on as the wall clock does, and stands still where that steps back. */
  #elapsed = 0n;
  #latest = 0;
  #plans: ModelPlans;
  /** Why requests that waited were refused. */
  readonly refused = new Map<string, Refused>();
  /** Gateways that share the accounts have a line each, and decide for those in their own alone: which of them does now. */
  line = "";

  constructor(plans: ModelPlans) {
    this.#plans = plans;
  }

  create(account: string, plan: string): void {
    this.#accounts.set(account, new ModelAccount(plan));
  }

  /** Other plans are configured; whatever an account used stays used. */
  offer(plans: ModelPlans): void {
    this.#plans = plans;
  }

  /** A key is of use when the disk has it. */
  addKey(account: string, id: number, limits: ModelKey): void {
    this.#change(account, (standing) => void standing.keys.set(id, { limits, isVoid: false }));
  }

  /** So are other limits, for requests that come then. */
  limitKey(account: string, id: number, limits: Partial<ModelKey>): void {
    this.#change(account, (standing) => standing.limit(id, limits));
  }

  /** A key that is revoked is void at once. */
  revokeKey(account: string, id: number): void {
    const of = this.#of(account);
    of.standing.void(id, true);
    this.#pending.push({
      account,
      written: () => of.standingOnDisk.void(id, true),
      inForce: () => {},
      lost: () => of.standing.void(id, of.standingOnDisk.keys.get(id)!.isVoid),
    });
  }

  /** So is a first key that another one takes the place of. */
  rotate(account: string): number {
    const of = this.#of(account);
    const version = (of.standing.version = of.versions += 1);
    this.#pending.push({
      account,
      written: () => void (of.standingOnDisk.version = version),
      inForce: () => {},
      lost: () => {
        if (of.standing.version === version) of.standing.version = of.standingOnDisk.version;
      },
    });
    return version;
  }

  changePlan(account: string, plan: string): void {
    this.#change(account, (standing) => void (standing.plan = plan));
  }

  #change(account: string, make: (standing: Standing) => void): void {
    const of = this.#of(account);
    this.#pending.push({
      account,
      written: () => make(of.standingOnDisk),
      inForce: () => make(of.standing),
      lost: () => {},
    });
  }

  versionOf(account: string): number {
    return this.#of(account).standing.version;
  }

  /** Numbers of the named keys that are not void. */
  keysOf(account: string): readonly number[] {
    return [...this.#of(account).standing.keys].filter(([, { isVoid }]) => !isVoid).map(([id]) => id);
  }

  isVoid(account: string, key: number, now: number): boolean {
    const known = this.#of(account).standing.keys.get(key)!;
    return known.isVoid || (known.limits.expiresAt !== null && known.limits.expiresAt <= now);
  }

  namesUsers(account: string, key: number): boolean {
    return this.#of(account).standing.keys.get(key)!.limits.namesUsers;
  }

  /** Why a request is refused before it is counted, or null. */
  forbids(
    account: string,
    key: number,
    model: string,
    now: number,
  ): "invalid_api_key" | "model_not_in_plan" | "model_not_for_key" | null {
    const of = this.#of(account);
    if (key > 1 && this.isVoid(account, key, now)) return "invalid_api_key";
    if (this.#plan(of).models?.includes(model) === false) return "model_not_in_plan";
    return of.standing.keys.get(key)?.limits.models?.includes(model) === false ? "model_not_for_key" : null;
  }

  /** The seconds to wait, or 0. */
  count(account: string, now: number): number {
    const of = this.#of(account);
    this.#pass(now);
    if (of.flood === null || this.#elapsed - of.flood.opened >= 60_000n) {
      of.flood = { opened: this.#elapsed, requests: 0 };
    }
    of.flood.requests += 1;
    if (of.flood.requests <= this.#plan(of).perMinute) return 0;
    return Number((of.flood.opened + 60_000n - this.#elapsed + 999n) / 1000n);
  }

  reserve(
    account: string,
    request: string,
    { budget: named, reads, writes, rates, isOpen = false }: ModelAsk,
    now: number,
    key = 1,
    user: string | null = null,
  ): "begins" | "waits" | Refused {
    const of = this.#of(account);
    const isFree = rates.every((rate) => rate === 0);
    const fewest = Math.min(256, writes);
    const open =
      isOpen && !isFree
        ? { rates, least: atLeastOne(rates, [0, 0, fewest]), fewest, max: writes, held: 0, most: 0 }
        : null;
    const ofNamed = named !== null ? BigInt(named) : isFree ? 0n : atLeastOne(rates, [0, 0, writes]);
    const budget = open === null ? ofNamed : 0n;
    this.#pass(now);
    // What can cost nothing and holds nothing, an account in debt may ask for too.
    const asksNothing = named === null && isFree;
    const who = { key, user };
    const refused = open === null ? this.#shortOf(of, who, budget, now, true) : this.#shortOf(of, who, open.least, now);
    if (!asksNothing && refused !== null) return refused;
    const cost = isFree ? 0n : atLeastOne(rates, [reads, 0, open === null ? writes : fewest]);
    const line = this.#waiting(of);
    const stopped = this.#stopped(of, now);
    const { version } = of.standing;
    const { unlimited } = this.#plan(of);
    const since = this.#elapsed;
    const one: ModelRequest = {
      key,
      user,
      version,
      budget,
      cost,
      begun: false,
      line: this.line,
      since,
      unlimited,
      open,
    };
    const begins =
      isFree ||
      (stopped !== "all" &&
        this.#leastIsFree(of, one, now) &&
        !isStopped(stopped, who) &&
        this.#keyMayBegin(of, key, cost, now) &&
        this.#userMayBegin(of, who, cost, now) &&
        this.#mayBegin(of, cost, now));
    if (!begins && line.length >= 120) return "busy";
    of.holds.set(request, one);
    if (begins) this.#begin(of, one, now);
    return begins ? "begins" : "waits";
  }

  /** What has not so much left, of it or beside what is held of it. */
  #shortOf(of: ModelAccount, who: Who, tokens: bigint, now: number, besideHeld = false): Refused | null {
    const held = (tokens: bigint): bigint => (besideHeld ? tokens : 0n);
    if (tokens > this.#balance(of, now) - held(this.#held(of))) return "quota_exceeded";
    if (tokens > this.#keyLeft(of, who.key, now) - held(this.#held(of, who.key))) return "key_quota_exceeded";
    return tokens > this.#userLeft(of, who, now) - held(this.#heldFor(of, who)) ? "end_user_quota_exceeded" : null;
  }

  #leastIsFree(of: ModelAccount, { open, key, user }: ModelRequest, now: number): boolean {
    return open === null || this.#shortOf(of, { key, user }, open.least, now, true) === null;
  }

  #begin(of: ModelAccount, one: ModelRequest, now: number): void {
    const { open } = one;
    if (open !== null) {
      const first = Math.min(4_096, open.max);
      const free = outputFor(open.rates, this.#room(of, one, one.cost - open.least, now), 2 * first);
      const half = Math.floor(free / 2);
      const begins = half < open.fewest ? open.fewest : half;
      const all = this.#room(of, one, 0n, now, true);
      one.cost -= open.least;
      this.#hold(one, Math.min(first, begins));
      open.most = Math.max(open.held, outputFor(open.rates, all, open.max));
    }
    one.begun = true;
  }

  #hold(one: ModelRequest, tokens: number): void {
    const open = one.open!;
    const cost = atLeastOne(open.rates, [0, 0, tokens]);
    one.cost += cost - one.budget;
    one.budget = cost;
    open.held = tokens;
  }

  /**
   * What is there for one of an account's requests: what others do not hold, and are not expected to cost beside the input
   * of this one. `alone`: as if there were no others.
   */
  #room(of: ModelAccount, one: ModelRequest, input: bigint, now: number, alone = false): bigint {
    const others = alone ? [] : [...of.holds.values()].filter((other) => other !== one);
    const sums: [bigint, (other: ModelRequest) => boolean][] = [
      [this.#balance(of, now), () => true],
      [this.#keyLeft(of, one.key, now), (other) => other.key === one.key],
      [this.#userLeft(of, one, now), (other) => other.key === one.key && other.user === one.user],
    ];
    let room: bigint | null = null;
    for (const [left, isOf] of sums) {
      let free = left;
      let unexpected = left - input;
      let isBeside = false;
      for (const other of others.filter(isOf)) {
        free -= other.budget;
        if (!other.begun || other.cost === 0n) continue;
        isBeside = true;
        unexpected -= other.cost;
      }
      const least = isBeside && unexpected < free ? unexpected : free;
      if (room === null || least < room) room = least;
    }
    return room!;
  }

  /** The answer of an open budget has so many tokens; says how many are held then. */
  grow(account: string, request: string, written: number, now: number): number {
    const of = this.#of(account);
    const one = of.holds.get(request)!;
    const open = one.open!;
    const wanted = Math.min(written + 4_096, open.most);
    if (wanted <= open.held) return open.held;
    const found = outputFor(open.rates, this.#room(of, one, one.cost - one.budget, now), wanted);
    if (found <= open.held) return open.held;
    this.#hold(one, found);
    this.#decide(of, now);
    return found;
  }

  /** What is held of an open budget, and may be; null: it is not open, or has not begun. */
  outputOf(account: string, request: string): Readonly<{ held: number; most: number }> | null {
    const one = this.#of(account).holds.get(request);
    if (one === undefined || one.open === null || !one.begun) return null;
    return { held: one.open.held, most: one.open.most };
  }

  release(account: string, request: string, now: number): void {
    const of = this.#of(account);
    if (of.holds.delete(request)) this.#decide(of, now);
  }

  /** Time has passed, or money came. */
  look(now: number): void {
    this.#pass(now);
    for (const of of this.#accounts.values()) {
      if (!hasWaiting(of)) continue;
      for (const [request, { since }] of this.#waiting(of)) {
        if (since + 600_000n <= this.#elapsed) this.#refuse(of, request, "busy");
      }
      this.#decide(of, now);
    }
  }

  waits(account: string, request: string): boolean {
    return this.#of(account).holds.get(request)?.begun === false;
  }

  /** `rates` and `tokens` of fresh input, cached input and output; returns those that are charged. */
  settle(
    account: string,
    request: string,
    rates: readonly number[],
    tokens: readonly number[],
    now: number,
  ): readonly number[] {
    const of = this.#of(account);
    const { key, user, unlimited, cost } = of.holds.get(request)!;
    of.holds.delete(request);
    // What is beyond the expectation is believed where all others have what they were expected to cost.
    const isBelieved = chargeOf(rates, tokens) <= cost || this.othersFit(account, { key, user }, now, unlimited);
    const charged = isBelieved ? tokens : within(rates, tokens, cost);
    const charge = chargeOf(rates, charged);
    const left = this.#left(of, now);
    const used = unlimited || charge < left ? charge : left;
    const keyUse = key > 1 ? { key, day: dateName(now) } : null;
    const userUse = user === null ? "" : userOf(key, user, now);
    this.#move({ account, use: tokensOf(now), keyUse, userUse, used, credit: used - charge, purchase: false });
    this.#decide(of, now);
    return charged;
  }

  /** Whether the begun requests of an account, a key and an end user cost no more than each of those has. */
  othersFit(account: string, who: Who, now: number, unlimited = false): boolean {
    const of = this.#of(account);
    const begun = [...of.holds.values()].filter((one) => one.begun);
    const cost = (isOf: (one: ModelRequest) => boolean) => begun.filter(isOf).reduce((sum, one) => sum + one.cost, 0n);
    const ofKey = (one: ModelRequest) => one.key === who.key;
    return (
      (unlimited || cost(() => true) <= this.#balance(of, now)) &&
      cost(ofKey) <= this.#keyLeft(of, who.key, now) &&
      cost((one) => ofKey(one) && one.user === who.user) <= this.#userLeft(of, who, now)
    );
  }

  takeCall(account: string, now: number): boolean {
    const of = this.#of(account);
    if (of.live.of(callsOf(now)) >= this.#plan(of).calls) return false;
    this.#move({ account, use: callsOf(now), keyUse: null, userUse: "", used: 1n, credit: 0n, purchase: false });
    return true;
  }

  takeSearch(account: string, now: number): boolean {
    const of = this.#of(account);
    if (of.live.of(searchesOf(now)) + of.searching >= this.#plan(of).searches) return false;
    of.searching += 1n;
    return true;
  }

  endSearch(account: string, takenAt: number, found: boolean): void {
    this.#of(account).searching -= 1n;
    if (found)
      this.#move({
        account,
        use: searchesOf(takenAt),
        keyUse: null,
        userUse: "",
        used: 1n,
        credit: 0n,
        purchase: false,
      });
  }

  /** A line that moves nothing (the tokens of a coder call). */
  note(account: string): void {
    this.#move({ account, use: "", keyUse: null, userUse: "", used: 0n, credit: 0n, purchase: false });
  }

  /** Says whether the reference is new. */
  buy(account: string, tokens: number, reference: string): boolean {
    if (this.#references.has(reference)) return false;
    this.#references.add(reference);
    this.#move({
      account,
      use: "",
      keyUse: null,
      userUse: "",
      used: 0n,
      credit: BigInt(tokens),
      purchase: true,
      reference,
    });
    return true;
  }

  get pending(): number {
    return this.#pending.length;
  }

  get pendingLines(): number {
    return this.#pending.filter((each) => !("written" in each)).length;
  }

  /** The next `count` are on disk, and the program knows. */
  committed(count: number): void {
    for (const each of this.#pending.splice(0, count)) {
      this.#write(each);
      if ("written" in each) each.inForce();
      else if (each.purchase) this.#of(each.account).live.apply(each, 1n);
    }
  }

  /** Lines first, as the program hears of them. */
  lost(count: number): void {
    for (const each of this.#pending.splice(0, count)) {
      if ("written" in each) each.lost();
      else if (each.purchase) this.#references.delete(each.reference!);
      else this.#of(each.account).live.apply(each, -1n);
    }
  }

  /** The process dies; the first `written` that were pending had reached the disk. */
  crash(written: number): void {
    for (const each of this.#pending.splice(0, written)) this.#write(each);
    for (const each of this.#pending.splice(0)) if ("reference" in each) this.#references.delete(each.reference!);
    for (const of of this.#accounts.values()) {
      of.live = of.disk.copy();
      of.standing = of.standingOnDisk.copy();
      of.holds.clear();
      of.searching = 0n;
      of.flood = null;
    }
    this.#latest = 0;
    this.refused.clear();
  }

  #write(each: Movement | Change): void {
    if ("written" in each) each.written();
    else this.#of(each.account).disk.apply(each, 1n);
  }

  expected(account: string, now: number): Expected {
    const of = this.#of(account);
    return {
      plan: of.standing.plan,
      left: Number(this.#left(of, now)),
      credit: Number(of.live.credit),
      reserved: Number(this.#held(of)),
      calls: Number(of.live.of(callsOf(now))),
      searches: Number(of.live.of(searchesOf(now))),
      expected: Number(this.#expected(of)),
      waiting: this.#waiting(of).length,
    };
  }

  expectedOfKey(account: string, key: number, now: number): ExpectedOfKey {
    const of = this.#of(account);
    let expected = 0n;
    for (const one of of.holds.values()) if (one.key === key && one.begun) expected += one.cost;
    return {
      isVoid: this.isVoid(account, key, now),
      limits: of.standing.keys.get(key)!.limits,
      day: Number(of.live.ofKey(key, dateName(now), "day")),
      month: Number(of.live.ofKey(key, dateName(now), "month")),
      held: Number(this.#held(of, key)),
      expected: Number(expected),
    };
  }

  expectedOfUser(
    account: string,
    key: number,
    user: string,
    now: number,
  ): Pick<ExpectedOfKey, "day" | "held" | "expected"> & Readonly<{ perDay: number | null }> {
    const of = this.#of(account);
    let expected = 0n;
    for (const one of of.holds.values()) if (one.key === key && one.user === user && one.begun) expected += one.cost;
    return {
      day: Number(of.live.of(userOf(key, user, now))),
      held: Number(this.#heldFor(of, { key, user })),
      expected: Number(expected),
      perDay: numberOrNull(of.standing.keys.get(key)!.limits.perUser),
    };
  }

  /** Sums over what the disk must have of an account. */
  onDisk(account: string): Record<"credit" | "tokens" | "calls" | "searches" | "keys" | "users", number> {
    const { disk } = this.#of(account);
    const sums = { tokens: 0n, calls: 0n, searches: 0n, user: 0n };
    for (const [use, used] of disk.used) sums[use.split(" ")[0] as keyof typeof sums] += used;
    let keys = 0n;
    for (const days of disk.keys.values()) for (const used of days.values()) keys += used;
    const { tokens, calls, searches, user } = sums;
    return {
      credit: Number(disk.credit),
      tokens: Number(tokens),
      calls: Number(calls),
      searches: Number(searches),
      keys: Number(keys),
      users: Number(user),
    };
  }

  #waiting({ holds }: ModelAccount): [string, ModelRequest][] {
    return [...holds].filter(([, { begun, line }]) => !begun && line === this.line);
  }

  #move(movement: Movement): void {
    this.#pending.push(movement);
    if (!movement.purchase) this.#of(movement.account).live.apply(movement, 1n);
  }

  #plan({ standing }: ModelAccount): ModelPlan {
    const plan = this.#plans.get(standing.plan);
    if (plan !== undefined) return plan;
    const [first] = this.#plans.values();
    return first!;
  }

  #left(of: ModelAccount, now: number): bigint {
    const left = this.#plan(of).tokens - of.live.of(tokensOf(now));
    return left > 0n ? left : 0n;
  }

  /** Of one key, or of all. */
  #held(of: ModelAccount, by: number | null = null): bigint {
    let held = 0n;
    for (const { key, budget } of of.holds.values()) if (by === null || key === by) held += budget;
    return held;
  }

  #keyLeft(of: ModelAccount, key: number, now: number): bigint {
    const { perDay, perMonth } = of.standing.keys.get(key)?.limits ?? { perDay: null, perMonth: null };
    const unlimited = 10n ** 18n;
    const day = perDay === null ? unlimited : perDay - of.live.ofKey(key, dateName(now), "day");
    const month = perMonth === null ? unlimited : perMonth - of.live.ofKey(key, dateName(now), "month");
    return day < month ? day : month;
  }

  #heldFor(of: ModelAccount, { key, user }: Who): bigint {
    let held = 0n;
    for (const one of of.holds.values()) if (one.key === key && one.user === user) held += one.budget;
    return held;
  }

  /** Without a limit, and where nobody was named, more than anybody has. */
  #userLeft(of: ModelAccount, { key, user }: Who, now: number): bigint {
    const limit = of.standing.keys.get(key)?.limits.perUser ?? null;
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
    for (const [, one] of this.#waiting(of)) {
      if (this.#leastIsFree(of, one, now) && !this.#stops(of, stopped, one, now)) return "all";
    }
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
    for (const [request, one] of this.#waiting(of)) {
      const { key, user, budget, cost } = one;
      const beside = (isOf: (other: ModelRequest) => boolean) =>
        [...of.holds.values()]
          .filter((other) => other.begun && isOf(other))
          .reduce((sum, other) => sum + other.budget, 0n);
      const ofKey = (other: ModelRequest) => other.key === key;
      const ofUser = (other: ModelRequest) => other.key === key && other.user === user;
      const short = one.open === null ? null : this.#shortOf(of, one, one.open.least, now);
      if (this.#isVoidNow(of, one, now)) this.#refuse(of, request, "invalid_api_key");
      else if (short !== null) this.#refuse(of, request, short);
      else if (!this.#leastIsFree(of, one, now)) continue;
      else if (budget > this.#balance(of, now) - beside(() => true)) this.#refuse(of, request, "quota_exceeded");
      else if (budget > this.#keyLeft(of, key, now) - beside(ofKey)) this.#refuse(of, request, "key_quota_exceeded");
      else if (budget > this.#userLeft(of, one, now) - beside(ofUser))
        this.#refuse(of, request, "end_user_quota_exceeded");
      else if (this.#stops(of, stopped, one, now)) continue;
      else if (this.#mayBegin(of, cost, now)) this.#begin(of, one, now);
      else return;
    }
  }

  /** Whether its key is void by now. */
  #isVoidNow({ standing }: ModelAccount, { key, version }: ModelRequest, now: number): boolean {
    if (key <= 1) return key === 1 && version !== standing.version;
    const { isVoid, limits } = standing.keys.get(key)!;
    return isVoid || (limits.expiresAt !== null && limits.expiresAt <= now);
  }

  #refuse(of: ModelAccount, request: string, why: Refused): void {
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
