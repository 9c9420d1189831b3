// What an account is told when it has used up its quota: the specification's message, together with what was available,
// what was requested, and when there will be more (in Unix seconds, because Codex reads no error whose `resets_at` is a
// string).
import { endUserInWords } from "../core/end-user.ts";
import { refuse } from "../core/refusals.ts";
import type { Ms, Refusal } from "../core/types.ts";
import { nextCoderWindowSeconds, nextDaySeconds, nextMonthSeconds } from "./quota.ts";
import type { SpendLimit } from "./spend-limit.ts";

/** `requested`: the output budget, which does not fit into `spendable`. */
export const quotaExceeded = (siteUrl: string, spendable: number, requested: number, now: Ms): Refusal =>
  refuse("quota_exceeded", {
    site_url: siteUrl,
    spendable,
    requested,
    resets_at: nextDaySeconds(now),
  });

/** The same of a key's own limit, which takes note of it, or of one of its end users, beside `waitingHeld`: what others of it hold who wait. */
export function keyQuotaExceeded(spendLimit: SpendLimit, requested: number, now: Ms, waitingHeld = 0): Refusal {
  const { left, limit, period } = spendLimit.tightest(now);
  if (requested > left) spendLimit.refusedAt = now; // else it is what others hold for the moment
  const { endUser } = spendLimit;
  return refuse(endUser === null ? "key_quota_exceeded" : "end_user_quota_exceeded", {
    ...(endUser === null ? {} : { end_user: endUserInWords(endUser) }),
    key: spendLimit.name,
    limit,
    period,
    spendable: left - spendLimit.held + waitingHeld,
    requested,
    resets_at: period === "day" ? nextDaySeconds(now) : nextMonthSeconds(now),
  });
}

export const coderQuotaReached = (siteUrl: string, model: string, used: number, limit: number, now: Ms): Refusal =>
  refuse("coder_quota_reached", {
    model,
    site_url: siteUrl,
    used,
    limit,
    resets_at: nextCoderWindowSeconds(now),
  });
