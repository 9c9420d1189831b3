// An account's live numbers.
import { coderWindowOf, dayOf } from "../account/money/quota.ts";
import { coderWindowMs } from "../core/limits.ts";
import { dayMs } from "../core/units.ts";
import type { AccountId } from "../core/types.ts";
import type { AccountNumbers } from "./api/live.ts";
import type { ConsoleParts } from "./parts.ts";

/** Rejects with StoreUnavailable if the account is not in memory and the disk cannot be read. */
export async function numbersOf(
  { office, clock }: Pick<ConsoleParts, "office" | "clock">,
  id: AccountId,
  requestsInFlight: number,
): Promise<AccountNumbers> {
  const numbers = await office.read(({ accounts }) => accounts.numbers(id));
  const { allowance, credit, reserved, openReservations, spendable, coder_calls, searches } = numbers;
  const now = clock.wall();
  const tomorrow = timeOf((dayOf(now) + 1) * dayMs);
  return {
    spendable,
    allowance: { granted: allowance.granted, left: allowance.left, renews_at: tomorrow },
    credit,
    reserved: { tokens: reserved, requests: openReservations },
    requests_in_flight: requestsInFlight,
    coder_calls: {
      left: leftOf(coder_calls),
      limit: coder_calls.limit,
      renews_at: timeOf((coderWindowOf(now) + 1) * coderWindowMs),
    },
    searches: {
      left: leftOf(searches),
      limit: searches.limit,
      renews_at: tomorrow,
    },
  };
}

const leftOf = ({ used, limit }: Readonly<{ used: number; limit: number | null }>): number | null =>
  limit === null ? null : Math.max(0, limit - used);

export const timeOf = (at: number): string => new Date(at).toISOString();
