// The version of the ledger's tables, in a file of its own: comparing it needs no drizzle.

/** What `PRAGMA user_version` says about a ledger with the tables of `schema.ts`. */
export const schemaVersion = 19;
