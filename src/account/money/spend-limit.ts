// What a key, or each end user of it, may spend: balance tokens of a UTC day and of a month. Requests hold their budgets against it as they do
// against the account's balance, so that it holds however many of them run at once.
import type { Ms } from "../../core/types.ts";
import { dayOf, firstDayOfMonth, firstDayOfNextMonth, type Period } from "./quota.ts";

export type DayUse = Readonly<{ day: Period; used: number }>;

/** What was used in a month, by day. */
type MonthUse = { readonly first: Period; readonly next: Period; readonly days: Map<Period, number>; used: number };

/** Where a limit stands. */
export type SpendLeft = Readonly<{ left: number; limit: number; period: "day" | "month" }>;

/** `since`: the first day of the period. */
export type SpendSpent = Readonly<{ period: "day" | "month"; since: Period; used: number; limit: number }>;

export class SpendLimit {
  held = 0;
  /** Requests that have begun and cost something, and what they are expected to cost. */
  begun = 0;
  expected = 0;
  /** Of `held`: for requests that wait for others to settle. */
  waitingHeld = 0;
  /** When a request was last refused because of it; wall clock. */
  refusedAt: Ms | null = null;
  /** Nearly always one; more while lines of an earlier month may not be on disk. */
  #months: MonthUse[] = [];
  readonly #read: (from: Period, before: Period) => readonly DayUse[];

  /** `read` gives what the disk knows of some days; it throws StoreUnavailable. */
  constructor(
    public name: string,
    public perDay: number | null,
    public perMonth: number | null,
    read: (from: Period, before: Period) => readonly DayUse[],
    /** The key's end user; null: the key itself. */
    readonly endUser: string | null = null,
    /** A member's of a team, of all keys that the person has there. */
    readonly isMember = false,
  ) {
    this.#read = read;
  }

  /** From now on; what runs keeps what it holds. */
  limit(perDay: number | null, perMonth: number | null): void {
    if (perDay === this.perDay && perMonth === this.perMonth) return;
    this.perDay = perDay;
    this.perMonth = perMonth;
    this.refusedAt = null; // that was by another limit
  }

  /** What is not used, including what is held; below 0 after a charge above its hold. Throws StoreUnavailable. */
  left(now: Ms): number {
    return this.perDay === null && this.perMonth === null ? Infinity : this.tightest(now).left;
  }

  /** Of day and month, what has less left; at least one of them is limited. */
  tightest(now: Ms): SpendLeft {
    const month = this.#month(now);
    const ofMonth = this.perMonth === null ? null : left(this.perMonth, month.used, "month");
    if (this.perDay === null) return ofMonth!;
    const ofDay = left(this.perDay, month.days.get(dayOf(now)) ?? 0, "day");
    return ofMonth === null || ofDay.left <= ofMonth.left ? ofDay : ofMonth;
  }

  /**
   * Where it is used up, or a request was refused for it in the same period: the period, and how much of it. Null where it
   * is not, or that is not known without the disk.
   */
  spent(now: Ms): SpendSpent | null {
    const day = dayOf(now);
    const month = this.#months.find(({ first, next }) => day >= first && day < next);
    if (month === undefined || (this.perDay === null && this.perMonth === null)) return null;
    const { left, limit, period } = this.tightest(now);
    const wasRefused = this.refusedAt !== null && dayOf(this.refusedAt) >= (period === "day" ? day : month.first);
    if (left > 0 && !wasRefused) return null;
    return { period, since: period === "day" ? day : month.first, used: limit - left, limit };
  }

  used(now: Ms): Readonly<{ day: number; month: number }> {
    const month = this.#month(now);
    return { day: month.days.get(dayOf(now)) ?? 0, month: month.used };
  }

  /** Must be called before anything is changed that `add` completes: it may have to read the disk, and throw. */
  load(now: Ms): void {
    this.#month(now);
  }

  /** A charge of that day, or with a minus one that was lost; its month is loaded. */
  add(day: Period, tokens: number): void {
    const month = this.#months.find(({ first, next }) => day >= first && day < next)!;
    month.days.set(day, (month.days.get(day) ?? 0) + tokens);
    month.used += tokens;
  }

  /** Every line is on disk: months other than this one are read again where they are needed. */
  forgetOthers(now: Ms): void {
    if (this.#months.length > 1) this.#months = [this.#month(now)];
  }

  /** Days in memory, for a comparison with the disk. */
  *days(): Iterable<DayUse> {
    for (const { days } of this.#months) for (const [day, used] of days) yield { day, used };
  }

  #month(now: Ms): MonthUse {
    const day = dayOf(now);
    for (const month of this.#months) if (day >= month.first && day < month.next) return month;
    const [first, next] = [firstDayOfMonth(now), firstDayOfNextMonth(now)];
    const days = new Map(this.#read(first, next).map(({ day, used }) => [day, used]));
    const month = { first, next, days, used: [...days.values()].reduce((sum, used) => sum + used, 0) };
    this.#months.push(month);
    return month;
  }
}

const left = (limit: number, used: number, period: "day" | "month"): SpendLeft => ({
  left: limit - used,
  limit,
  period,
});

export const noSpendLimits: readonly SpendLimit[] = [];
