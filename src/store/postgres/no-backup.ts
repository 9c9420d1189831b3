// What is said to who wants a backup: in a file of its own, so that saying it loads nothing else of the room.
export const noBackup =
  "the ledger is in PostgreSQL: back it up with pg_dump, or with the archive of its log (see More than one machine)";
