// What operators see of the whole server, and the backups that they make. `tollgate serve` implements it.
import type { ConsoleWebhook } from "./api/server.ts";
import type { Ms } from "../core/types.ts";

export interface Configuration {
  /** The name of this gateway among those that share a database; null: it is the only one. */
  readonly gateway: string | null;
  /** Null: there is none. */
  readonly file: string | null;
  /** When the configuration in force was read. */
  readonly loadedAt: Ms;
}

export interface Backups {
  /** Null: the ledger is in PostgreSQL, which is backed up by its own means. */
  readonly folder: string | null;
  /** On the disk of the ledger; null: unknown. */
  freeBytes(): number | null;
  /** Null: there are no automatic backups. */
  readonly schedule: Readonly<{ everyMs: Ms; keep: number }> | null;
  /** The files of the folder, newest first, at most `max`. */
  list(max: number): readonly BackupFile[];
  /** Copies the ledger to the new file `name` in the folder, and checks the copy. */
  make(name: string): Promise<BackupOutcome>;
}

/** The webhooks that receive notices for operators, and their deliveries. */
export type Webhooks = Readonly<{ list(): readonly ConsoleWebhook[] }>;

export type BackupFile = Readonly<{ name: string; bytes: number; madeAt: Ms }>;
export type BackupOutcome = Readonly<{ bytes: number }> | Readonly<{ failed: string }>;
