// Names of files in a data folder that show that it is one.

/** The ledger. */
export const databaseName = "tollgate.db";
/** It is locked by who works on the folder. */
export const lockName = "tollgate.lock";
