// Which limits of a minute a request meets, and what it counts there.
import type { RateLeft, RatesLeft } from "../../core/rates-left.ts";
import { refuse } from "../../core/refusals.ts";
import type { AccountId, KeyId, Ms, Refusal } from "../../core/types.ts";
import type { AdmissionRequest } from "./books.ts";
import { type EndUser, perEndUser } from "./end-users.ts";
import type { LoadedAccount } from "./loaded-account.ts";
import type { LoadedKey } from "./loaded-key.ts";
import { MinuteWindow } from "./minute-window.ts";

/** Output tokens that a request counts without a budget, until its end says how many there were. */
const openBudgetTokens = 256;

/** A request that was charged; `at`: wall clock. */
export type MinuteLine = Readonly<{ account: AccountId; key: KeyId; endUser: string | null; at: Ms; tokens: number }>;

/** What a request counted, by the windows' clock and by the wall clock. */
export type CountedTokens = Readonly<{ tokens: number; at: Ms; wall: Ms }>;

/** Of a plan's account, a key and its end user: nearly always none. */
export function windowsOf(
  account: LoadedAccount,
  key: LoadedKey | null,
  endUser: EndUser | null,
): readonly MinuteWindow[] {
  let windows: MinuteWindow[] | null = null;
  const add = (of: { minute: MinuteWindow | null }, requests: number | null, tokens: number | null): void => {
    if (requests === null && tokens === null) return;
    const window = (of.minute ??= new MinuteWindow());
    window.requestsMax = requests;
    window.tokensMax = tokens;
    (windows ??= []).push(window);
  };
  add(account, null, account.plan.tokensPerMinute ?? null);
  const limits = key?.limits ?? null;
  if (limits !== null) add(key!, limits.requestsPerMinute, limits.tokensPerMinute);
  if (endUser !== null) {
    const of = (limit: Parameters<typeof perEndUser>[0]) => perEndUser(limit, account, key);
    add(endUser, of("endUserRequestsPerMinute"), of("endUserTokensPerMinute"));
  }
  return windows ?? noWindows;
}

export const noWindows: readonly MinuteWindow[] = [];

/** What a request counts when it is admitted. */
export function tokensOf({ ask, inputTokens, expected }: AdmissionRequest): number {
  const { model, openBudget, outputTokensMax } = ask;
  // What the engine puts around a prompt is not known before its first answer.
  const input = Math.min(inputTokens, expected?.input ?? inputTokens);
  if (model.kind !== "chat") return input;
  return input + (openBudget === true ? Math.min(openBudgetTokens, outputTokensMax) : outputTokensMax);
}

/** Why a request of that many tokens is not admitted; null: it may be. */
export function refusedByMinute(
  windows: readonly MinuteWindow[],
  tokens: number,
  now: Ms,
  wall: Ms,
  ofFlood: RateLeft | null,
): Refusal | null {
  let waitMs = 0;
  let full: MinuteWindow | null = null;
  for (const window of windows) {
    const ms = window.waitMs(tokens, now);
    if (ms <= waitMs) continue;
    waitMs = ms;
    full = window;
  }
  if (full === null) return null;
  const unit = full.rates(now).requests?.remaining === 0 ? "requests" : "tokens";
  const limit = unit === "requests" ? full.requestsMax! : full.tokensMax!;
  const rates = tightest(windows, now, wall, ofFlood);
  return { ...refuse("rate_limited", { limit, unit, seconds: Math.ceil(waitMs / 1000) }), rates };
}

/** Of each limit, what has less left; `ofFlood`: of a plan's requests. */
export function tightest(
  windows: readonly MinuteWindow[],
  now: Ms,
  wall: Ms,
  ofFlood: RateLeft | null = null,
): RatesLeft {
  const all = windows.map((window) => window.rates(now));
  return {
    at: wall,
    requests: all.map(({ requests }) => requests).reduce(less, ofFlood),
    tokens: all.map(({ tokens }) => tokens).reduce(less, null),
  };
}

const less = (one: RateLeft | null, other: RateLeft | null): RateLeft | null =>
  one === null || (other !== null && other.remaining < one.remaining) ? other : one;
