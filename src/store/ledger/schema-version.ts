// The version of the ledger's tables; in a file of its own, since whoever only compares it need not load drizzle with them.

/** What `PRAGMA user_version` says about a ledger with the tables of `schema.ts`. */
export const schemaVersion = 13;
