// Names of files that identify a data folder.

export const databaseName = "tollgate.db";
/** Locked by the process that works on the folder. */
export const lockName = "tollgate.lock";
