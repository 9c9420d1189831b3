// What operators do to the whole server: apply a changed configuration and make backups. `tollgate serve` implements it
// with the functions behind SIGHUP and `tollgate backup`.
import type { ConsoleWebhook } from "./api/server.ts";
import type { Ms } from "../core/types.ts";
import type { ReloadOutcome } from "../office/reloaded.ts";

export interface Configuration {
  /** What this gateway is called among those of one database; null: it is the only one. */
  readonly gateway: string | null;
  /** Null if there is none. */
  readonly file: string | null;
  /** When the configuration in force was read. */
  readonly loadedAt: Ms;
  /** Reads it again and applies what can change in a running server. */
  reload(): Promise<ReloadOutcome>;
}

export interface Backups {
  /** Null: the ledger is in a database, which has its own. */
  readonly folder: string | null;
  /** Null: none are made but those that are asked for. */
  /** On the disk of the ledger; null where nobody knows. */
  freeBytes(): number | null;
  readonly schedule: Readonly<{ everyMs: Ms; keep: number }> | null;
  /** The files of the folder, the newest first; of more than `max` those. */
  list(max: number): readonly BackupFile[];
  /** Copies the ledger to a new file of the folder, which `name` names, and checks the copy. */
  make(name: string): Promise<BackupOutcome>;
}

/** What operators are told of by webhooks, and how that goes. */
export type Webhooks = Readonly<{
  list(): readonly ConsoleWebhook[];
  /** Posts a notice to it: why it was not taken, or null. */
  test(name: string): Promise<Readonly<{ problem: string | null }> | Readonly<{ refused: string }>>;
}>;

export type BackupFile = Readonly<{ name: string; bytes: number; madeAt: Ms }>;
export type BackupOutcome = Readonly<{ bytes: number }> | Readonly<{ failed: string }>;
