// Decides which errors are printed in one line: those that the operator can fix. All others are bugs of the program.

/** By name, so that telling them apart loads none of the parts that throw them. */
const expectedNames: ReadonlySet<string> = new Set([
  "AccountError",
  "BackupFailed",
  "CatalogError",
  "CommandError",
  "ConfigError",
  "DataFolderInUse",
  "DataFolderUnusable",
  "RestoreFailed",
  "SearchFailed",
  "SearchFolderUnusable",
  "StorageFailed",
  "StoreUnavailable",
  "WorkerFailed",
]);

export function isExpected(error: unknown): boolean {
  return error instanceof Error && expectedNames.has(error.name);
}

/** The command cannot be carried out; the message is one line for the operator. Exit code 1. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
