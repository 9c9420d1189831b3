// Opens what a server keeps: the ledger and what stands beside it, in the data folder's files or in a PostgreSQL database that
// several gateways have in common.
import { statSync } from "node:fs";
import { addressesOf } from "../config/config.ts";
import { dayMs } from "../core/units.ts";
import { sealingKeyBytes } from "../core/limits.ts";
import { KeptActivity } from "../store/activity/kept-activity.ts";
import { sealingKeyOf } from "../store/folder/sealing-key.ts";
import { fileRowsIn } from "../store/files/files-file.ts";
import { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import { StoredResponsesFile } from "../store/responses/stored-responses.ts";
import { usageInFile } from "../store/usage/usage-file.ts";
import { openAccounting } from "./accounting.ts";
import { eraseFilesIn, openFiles } from "./open-files.ts";
import type { BooksParts, OpenedBooks } from "./opened-books.ts";

export async function openBooks(parts: BooksParts, opened: AsyncDisposableStack): Promise<OpenedBooks> {
  const { databaseUrl } = parts.config;
  if (databaseUrl === null) return inFolder(parts, opened);
  const { inPostgres } = await import("./postgres-books.ts");
  return inPostgres(databaseUrl, parts, opened);
}

async function inFolder(parts: BooksParts, opened: AsyncDisposableStack): Promise<OpenedBooks> {
  const { config, catalog, clock, log, port, onFatal, onCommit } = parts;
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
    onCommit,
    usageKeepDays: config.usageKeepDays,
  });
  opened.defer(() => accounting.close());
  accounting.admission.line.maxWaitMs = config.queueMaxWaitMs;
  accounting.admission.inputRequestsPerMinute = config.inputRequestsPerMinute;
  accounting.recall();
  const { databaseFile } = accounting;
  const storedResponses =
    config.storedResponses === null
      ? null
      : await StoredResponsesFile.open({ dataFolder, log, ...config.storedResponses });
  opened.defer(() => storedResponses?.close());
  const files = config.files === null ? null : await openFiles(config, fileRowsIn(dataFolder), clock, log);
  opened.defer(() => files?.close());
  const activity = KeptActivity.inFile(dataFolder, clock, log);
  opened.defer(() => activity.close());
  const keepMs = config.failedKeepDays * dayMs;
  const requestLog = KeptRequestLog.inFile({ dataFolder, journalFile: databaseFile, keepMs, clock, log });
  opened.defer(() => requestLog.close());
  const usage = usageInFile(dataFolder, databaseFile, log);
  opened.defer(() => usage.close());
  return {
    accounting,
    usage,
    activity,
    requestLog,
    async writeExport(email, descriptor, withConversations) {
      const { writeExport } = await import("../store/backup/account-export.ts");
      await writeExport(databaseFile, email, descriptor, withConversations);
    },
    databaseBytes: () => statSync(databaseFile).size,
    watch: accounting.watch(log),
    storedResponses,
    files,
    async eraseResponses(account, forEver) {
      await (storedResponses?.erase(account, forEver) ?? StoredResponsesFile.eraseIn(dataFolder, account, log));
      if (forEver) await usage.erase(account);
      await (files?.eraseAccount(account) ?? eraseFilesIn(config, fileRowsIn(dataFolder), account, clock, log));
    },
    isOpenElsewhere: null,
    sealingKey: sealingKeyOf(dataFolder, sealingKeyBytes),
    shareNodes: null,
    laneState: null,
    adopt: async () => {},
  };
}
