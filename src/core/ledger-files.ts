// Names of files that identify a data folder.

/** The ledger. */
export const databaseName = "tollgate.db";
/** Locked by the process that works on the folder. */
export const lockName = "tollgate.lock";
