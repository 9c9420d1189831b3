// What an account is told that has used up what it has: the message of the specification, and beside it what was there,
// what was wanted, and when there will be more.
import { refuse } from "../core/refusals.ts";
import type { Ms, Refusal } from "../core/types.ts";
import { coderWindowName, coderWindowOf, dayName, dayOf } from "./quota.ts";

/** `requested`: the output budget, which does not fit into `spendable`. */
export const quotaExceeded = (siteUrl: string, spendable: number, requested: number, now: Ms): Refusal =>
  refuse("quota_exceeded", {
    site_url: siteUrl,
    spendable,
    requested,
    resets_at: `${dayName(dayOf(now) + 1)}T00:00:00.000Z`,
  });

export const coderQuotaReached = (siteUrl: string, model: string, used: number, limit: number, now: Ms): Refusal =>
  refuse("coder_quota_reached", {
    model,
    site_url: siteUrl,
    used,
    limit,
    resets_at: coderWindowName(coderWindowOf(now) + 1),
  });
