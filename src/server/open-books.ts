// Opens what a server keeps: the ledger and what stands beside it, in the data folder's files or in a PostgreSQL database that
// several gateways have in common.
import { statSync } from "node:fs";
import type { UsageQueries } from "../account/usage-queries.ts";
import { type Accounting, openAccounting } from "../accounting.ts";
import { addressesOf, type Config } from "../config/config.ts";
import type { LiveCatalog } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { dayMs } from "../core/units.ts";
import type { Log } from "../core/log.ts";
import type { AccountId } from "../core/types.ts";
import { sealingKeyBytes } from "../dialects/request/sealed-content.ts";
import type { Metrics } from "../http/metrics/metrics.ts";
import type { PostgresAccounting } from "../postgres-accounting.ts";
import { ActivityFile } from "../store/activity/activity-file.ts";
import { KeptActivity } from "../store/activity/kept-activity.ts";
import { sealingKeyOf } from "../store/folder/sealing-key.ts";
import { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import { RequestLogFile } from "../store/requests/request-log-file.ts";
import type { KeptResponses } from "../store/responses/kept-responses.ts";
import { StoredResponsesFile } from "../store/responses/stored-responses.ts";
import { UsageFile } from "../store/usage/usage-file.ts";
import type { LedgerWatch } from "../store/verify/verify-watch.ts";
import { AccountExports } from "./kept/account-exports.ts";

export type BooksParts = Readonly<{
  config: Config;
  catalog: LiveCatalog;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  port: number;
  onFatal(error: Error): void;
}>;

export type Books = Readonly<{
  accounting: Accounting;
  usage: UsageQueries;
  activity: KeptActivity;
  requestLog: KeptRequestLog;
  exports: Pick<AccountExports, "open">;
  /** Of the ledger; 0 where that is not a file. */
  databaseBytes(): number;
  /** Checks the ledger, once it began. */
  watch: Pick<LedgerWatch, "state" | "begin" | "plansChanged">;
  storedResponses: KeptResponses | null;
  /** Removes the stored responses of an account, wherever they are; `forEver`: none of it are kept anymore. */
  eraseResponses(account: AccountId, forEver: boolean): Promise<void>;
  sealingKey: Uint8Array;
  /** Shares the nodes' slots with other gateways from its `exchange` on; null: there are none. */
  shareNodes: PostgresAccounting["shareNodes"] | null;
  /** How this gateway does among others; null: there are none. */
  laneState: PostgresAccounting["laneState"] | null;
  /** Another configuration is in force. */
  adopt(config: Config): Promise<void>;
}>;

export async function openBooks(parts: BooksParts, opened: AsyncDisposableStack): Promise<Books> {
  const { databaseUrl } = parts.config;
  if (databaseUrl === null) return inFolder(parts, opened);
  const { inPostgres } = await import("./postgres-books.ts");
  return inPostgres(databaseUrl, parts, opened);
}

async function inFolder(parts: BooksParts, opened: AsyncDisposableStack): Promise<Books> {
  const { config, catalog, clock, log, metrics, port, onFatal } = parts;
  const { dataFolder } = config;
  const accounting = await openAccounting({
    dataFolder,
    catalog,
    siteUrl: addressesOf(config, port).siteUrl,
    clock,
    onFatal,
    onWritable: (unwritable) =>
      unwritable === null
        ? log("info", "the ledger can be written again: requests are admitted")
        : log("error", "the ledger cannot be written: requests are refused", { reason: unwritable }),
    onCommit: metrics.countCommit,
    usageKeepDays: config.usageKeepDays,
  });
  opened.defer(() => accounting.close());
  accounting.admission.line.maxWaitMs = config.queueMaxWaitMs;
  accounting.admission.inputRequestsPerMinute = config.inputRequestsPerMinute;
  const { databaseFile } = accounting;
  const storedResponses =
    config.storedResponses === null
      ? null
      : await StoredResponsesFile.open({ dataFolder, log, ...config.storedResponses });
  opened.defer(() => storedResponses?.close());
  const activity = new ActivityFile(dataFolder, clock, log);
  opened.defer(() => activity.close());
  const keepMs = config.failedKeepDays * dayMs;
  const requestLog = new RequestLogFile({ dataFolder, journalFile: databaseFile, keepMs, clock, log });
  opened.defer(() => requestLog.close());
  const usage = new UsageFile(dataFolder, databaseFile, log);
  opened.defer(() => usage.close());
  return {
    accounting,
    usage,
    activity,
    requestLog,
    exports: new AccountExports(
      dataFolder,
      async (email, descriptor) => {
        const { writeExport } = await import("../store/backup/account-export.ts");
        await writeExport(databaseFile, email, descriptor);
      },
      clock,
    ),
    databaseBytes: () => statSync(databaseFile).size,
    watch: accounting.watch(log),
    storedResponses,
    eraseResponses: (account, forEver) =>
      storedResponses?.erase(account, forEver) ?? StoredResponsesFile.eraseIn(dataFolder, account, log),
    sealingKey: sealingKeyOf(dataFolder, sealingKeyBytes),
    shareNodes: null,
    laneState: null,
    adopt: async () => {},
  };
}
