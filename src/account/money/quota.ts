// The three amounts that renew by the UTC wall clock, and their periods. What is left is the plan's amount less what
// was used in the period. So a renewal is not an event: it cannot be missed, and it cannot happen twice when the clock
// steps back, because the earlier period's use is found again.
import { coderWindowMs } from "../../core/limits.ts";
import { dayMs } from "../../core/units.ts";
import type { Ms } from "../../core/types.ts";

export type Quota = "allowance" | "coder_calls" | "searches";

/** Number of a UTC day or of a 4-hour window since 1970. Days have 24 h: Unix time has no leap seconds. */
export type Period = number;

/** What an account used of a quota in one period: tokens, calls or searches. */
export type PeriodUse = { readonly quota: Quota; readonly period: Period; used: number };

export const dayOf = (now: Ms): Period => Math.floor(now / dayMs);
/** 4 h divide a day, so windows counted from 1970 open at 00:00, 04:00, ... UTC. */
export const coderWindowOf = (now: Ms): Period => Math.floor(now / coderWindowMs);

/** The first UTC day of a moment's month, and of the month after it. */
export const firstDayOfMonth = (now: Ms): Period => monthDay(now, 0);
export const firstDayOfNextMonth = (now: Ms): Period => monthDay(now, 1);

function monthDay(now: Ms, later: number): Period {
  const date = new Date(now);
  return Math.floor(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later) / dayMs);
}

/** `2026-03-28` */
export const dayName = (day: Period): string => new Date(day * dayMs).toISOString().slice(0, 10);
/** `2026-03-28T04:00:00.000Z`, when the window opened. */
export const coderWindowName = (window: Period): string => new Date(window * coderWindowMs).toISOString();

/** Unix seconds at which the next one begins. */
export const nextDaySeconds = (now: Ms): number => ((dayOf(now) + 1) * dayMs) / 1_000;
export const nextMonthSeconds = (now: Ms): number => (firstDayOfNextMonth(now) * dayMs) / 1_000;
export const nextCoderWindowSeconds = (now: Ms): number => ((coderWindowOf(now) + 1) * coderWindowMs) / 1_000;
