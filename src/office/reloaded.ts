// The outcome of a reload.

/** `found`: nodes that turned out to be different from before, in words. */
export type ReloadReport = Readonly<{
  applied: readonly string[];
  /** They differ from those the server was started with, and are not in force. */
  needsRestart: readonly string[];
  found?: readonly string[];
}>;

/** `refused` says what is wrong with the configuration; then nothing has changed. */
export type ReloadOutcome = ReloadReport | Readonly<{ refused: string }>;

/** A sentence for the audit log. */
export function reloadDetail(outcome: ReloadOutcome): string {
  if ("refused" in outcome) return `refused: ${outcome.refused}`;
  const { applied, needsRestart } = outcome;
  const waiting = needsRestart.length === 0 ? "" : `; needs a restart: ${needsRestart.join(", ")}`;
  return `applied: ${applied.join(", ") || "nothing has changed"}${waiting}`;
}
