// The refusal of a request that does not fit into its quota: what was available, what was requested, and when
// there will be more (in Unix seconds, because Codex reads no error whose `resets_at` is a string). Of the
// specification's models the message is the specification's. Else one that is used up and one into which only this
// request does not fit have messages of their own, the latter with a budget that does.
import { answersOf } from "../../core/answer-budget.ts";
import { endUserInWords } from "../../core/end-user.ts";
import { outputTokensMax } from "../../core/limits.ts";
import { refuse } from "../../core/refusals.ts";
import type { Ms, Refusal } from "../../core/types.ts";
import type { Asked } from "./asked.ts";
import { outputWithin, ratesOf } from "./price.ts";
import { nextCoderWindowSeconds, nextDaySeconds, nextMonthSeconds } from "./quota.ts";
import type { SpendLimit } from "./spend-limit.ts";

/** `requested`: the balance tokens of the output budget, which do not fit into `spendable`. */
export function quotaExceeded(siteUrl: string, spendable: number, ask: Asked, requested: number, now: Ms): Refusal {
  const amounts = { site_url: siteUrl, spendable, requested, resets_at: nextDaySeconds(now) };
  const fitting = outputFitting(ask, spendable);
  return fitting === 0
    ? refuse("quota_exceeded", amounts)
    : refuse("budget_over_quota", { ...amounts, max_tokens: fitting });
}

/** The longest answer of a shop's own model, or each of several, that costs no more; 0: none, or the request is for no answer. */
function outputFitting(ask: Asked, spendable: number): number {
  const { model } = ask;
  if (model.kind !== "chat" || model.tier !== "own") return 0;
  const answers = answersOf(ask);
  const most = answers * Math.min(outputTokensMax, model.contextTokens);
  return Math.floor(outputWithin(ratesOf(model.price), spendable, most) / answers);
}

/** The same of a key's own limit, which takes note of it, or of one of its end users, beside `waitingHeld`: what others of it hold who wait. */
export function keyQuotaExceeded(
  spendLimit: SpendLimit,
  ask: Asked,
  requested: number,
  now: Ms,
  waitingHeld = 0,
): Refusal {
  const { left, limit, period } = spendLimit.tightest(now);
  if (requested > left) spendLimit.refusedAt = now; // else it is what others hold for the moment
  const { endUser, isMember } = spendLimit;
  const whose = isMember ? "member" : endUser === null ? "key" : "end_user";
  const spendable = left - spendLimit.held + waitingHeld;
  const amounts = {
    ...(endUser === null ? {} : { end_user: endUserInWords(endUser) }),
    ...(isMember ? {} : { key: spendLimit.name }),
    limit,
    period,
    spendable,
    requested,
    resets_at: period === "day" ? nextDaySeconds(now) : nextMonthSeconds(now),
  };
  if (left <= 0 || ask.model.tier !== "own") {
    return refuse(`${whose}_quota_exceeded`, amounts);
  }
  const fitting = outputFitting(ask, spendable);
  return refuse(`budget_over_${whose}_quota`, {
    ...amounts,
    ...(fitting === 0 ? {} : { max_tokens: fitting }),
    advice: adviceOf(ask, fitting, spendable),
  });
}

function adviceOf({ model }: Asked, fitting: number, spendable: number): string {
  if (fitting > 0) return `Send max_tokens of at most ${fitting}.`;
  if (spendable > 0) return model.kind === "chat" ? "That is too little for an answer." : "Send less input.";
  return "Requests that are running hold the rest.";
}

export const coderQuotaReached = (siteUrl: string, model: string, used: number, limit: number, now: Ms): Refusal =>
  refuse("coder_quota_reached", {
    model,
    site_url: siteUrl,
    used,
    limit,
    resets_at: nextCoderWindowSeconds(now),
  });
