// What an account is told when it has used up its quota: the specification's message, together with what was available,
// what was requested, and when there will be more (in Unix seconds, because Codex reads no error whose `resets_at` is a
// string).
import { refuse } from "../core/refusals.ts";
import type { Ms, Refusal } from "../core/types.ts";
import { nextCoderWindowSeconds, nextDaySeconds } from "./quota.ts";

/** `requested`: the output budget, which does not fit into `spendable`. */
export const quotaExceeded = (siteUrl: string, spendable: number, requested: number, now: Ms): Refusal =>
  refuse("quota_exceeded", {
    site_url: siteUrl,
    spendable,
    requested,
    resets_at: nextDaySeconds(now),
  });

export const coderQuotaReached = (siteUrl: string, model: string, used: number, limit: number, now: Ms): Refusal =>
  refuse("coder_quota_reached", {
    model,
    site_url: siteUrl,
    used,
    limit,
    resets_at: nextCoderWindowSeconds(now),
  });
