// What checks of the ledger found, and the log of it.
import type { Violation } from "../../account/people/accounts.ts";
import type { Log } from "../../core/log.ts";
import type { Ms } from "../../core/types.ts";

/** New violations written to the log in one check; all are counted. */
const logLinesMax = 20;

/** What the latest checks found. Times are wall-clock; null before the first. */
export type LedgerState = Readonly<{
  violations: readonly Violation[];
  checkedAt: Ms | null;
  /** How long the latest check took, its rests included. */
  durationMs: Ms | null;
  /** When a walk over all accounts on disk was last completed. */
  wholePassAt: Ms | null;
}>;

export const notChecked: LedgerState = { violations: [], checkedAt: null, durationMs: null, wholePassAt: null };

/** Logs what the check before did not find. */
export function report(log: Log, before: LedgerState, violations: readonly Violation[]): void {
  const known = new Set(before.violations.map(textOf));
  const fresh = violations.filter((violation) => !known.has(textOf(violation)));
  for (const { invariant, account, detail } of fresh.slice(0, logLinesMax)) {
    log("error", "the ledger breaks an invariant", { invariant, account, detail });
  }
  const more = fresh.length - logLinesMax;
  if (more > 0) log("error", "the ledger breaks more invariants", { more });
  if (violations.length === 0 && known.size > 0) log("info", "the ledger keeps its invariants again");
}

const textOf = ({ invariant, account, detail }: Violation): string => `${invariant} ${account} ${detail}`;
