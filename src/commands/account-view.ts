// Formats one account for people.
import type { AccountView } from "../account/accounts.ts";
import { formatPairs } from "./table.ts";

export function formatAccount(account: AccountView): string {
  const { allowance, coder_calls, searches } = account;
  const isLimited = account.spendable !== null;
  return formatPairs([
    ["id", String(account.id)],
    ["e-mail", account.email],
    ["plan", account.plan],
    ["disabled", account.disabled],
    ["spendable now", isLimited ? account.spendable : "anything: the plan is not limited"],
    ...(isLimited
      ? [[`allowance of ${allowance.day}`, `${whole(allowance.left)} of ${whole(allowance.granted)} left`] as const]
      : []),
    ["purchased credit", account.credit],
    ["reserved by open requests", account.reserved],
    ...used(`coder calls since ${coder_calls.window}`, coder_calls),
    ...used(`searches of ${searches.day}`, searches),
  ]);
}

/** What a plan does not have is not shown. */
const used = (what: string, { used, limit }: Readonly<{ used: number; limit: number | null }>) =>
  limit === 0 && used === 0 ? [] : [[what, `${whole(used)} of ${whole(limit)} used`] as const];

const whole = (value: number | null): string => (value === null ? "any number" : value.toLocaleString("en-US"));
