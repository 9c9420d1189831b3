// Reads facts about the ledger's file, beside a running server or without one.
import { statSync } from "node:fs";
import type { PlanCount } from "../account/records.ts";
import type { Ms } from "../core/types.ts";
import { schemaVersion } from "./ledger/schema-version.ts";
import { openForReading } from "./open.ts";
import { type RecentInput, recentInputSql } from "./recent-input.ts";

export type DatabaseFacts = Readonly<{
  sqliteVersion: string;
  journalMode: string;
  version: number;
  programVersion: number;
  bytes: number;
  /** Of the log beside it, which a checkpoint moves into the file. */
  logBytes: number;
  /** Wall-clock time of the newest line of the journal; null while there is none. */
  newestLineAt: Ms | null;
  /** Accounts of each plan; of an older file none are counted. */
  byPlan: readonly PlanCount[];
  /** By model; of an older file none. */
  recentInput: readonly RecentInput[];
}>;

export function databaseFacts(file: string): DatabaseFacts {
  const database = openForReading(file);
  try {
    const value = <Value>(sql: string): Value | null =>
      database.query<Record<string, Value>, []>(sql).get()?.["value"] ?? null;
    const version = value<number>("SELECT user_version AS value FROM pragma_user_version") ?? 0;
    return {
      sqliteVersion: value<string>("SELECT sqlite_version() AS value") ?? "",
      journalMode: value<string>("SELECT journal_mode AS value FROM pragma_journal_mode") ?? "",
      version,
      programVersion: schemaVersion,
      bytes: sizeOf(file),
      logBytes: sizeOf(`${file}-wal`),
      newestLineAt:
        version === 0 ? null : value<number>("SELECT at AS value FROM journal ORDER BY sequence DESC LIMIT 1"),
      byPlan:
        version === schemaVersion
          ? database
              .query<PlanCount, []>(
                "SELECT plan, count(*) AS accounts FROM accounts WHERE disabled_at IS NULL GROUP BY plan",
              )
              .all()
          : [],
      recentInput: version === schemaVersion ? database.query<RecentInput, []>(recentInputSql("sequence")).all() : [],
    };
  } finally {
    database.close();
  }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
