// Opens what a server keeps where the ledger is in a PostgreSQL database: loaded there alone, since that takes a third of a second.
import { version } from "../../package.json" with { type: "json" };
import { addressesOf } from "../config/config.ts";
import { dayMs } from "../core/units.ts";
import { sealingKeyBytes } from "../core/limits.ts";
import { openPostgresAccounting } from "./postgres-accounting.ts";
import { KeptActivity } from "../store/activity/kept-activity.ts";
import { takeFolderBeside } from "../store/folder/data-folder.ts";
import { booksOf, setServedMark } from "../store/folder/served-folder.ts";
import { writePieces } from "../store/backup/exported.ts";
import { exportOfDatabase } from "../store/postgres/account-export.ts";
import { ActivityTables } from "../store/activity/activity-tables.ts";
import { FileTables } from "../store/files/file-tables.ts";
import { requestLogIn } from "../store/postgres/served-lines.ts";
import { eraseResponsesIn } from "../store/postgres/response-tables.ts";
import { databaseName } from "../store/postgres/place-of-url.ts";
import { PostgresResponses } from "../store/postgres/responses.ts";
import { sharedSealingKey } from "../store/postgres/sealing-key.ts";
import { PostgresUsage } from "../store/postgres/usage.ts";
import { hasHold } from "../store/postgres/gone-lanes.ts";
import { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import { configDigest } from "./config-digest.ts";
import { eraseFilesIn, openFiles } from "./open-files.ts";
import type { BooksParts, OpenedBooks } from "./opened-books.ts";

/** The folder has what is of this gateway alone: its socket, which nodes are drained, the index of a searched folder. */
export async function inPostgres(url: string, parts: BooksParts, opened: AsyncDisposableStack): Promise<OpenedBooks> {
  const { config, catalog, clock, log, port, onCommit } = parts;
  const folder = takeFolderBeside(config.dataFolder, databaseName(url));
  opened.defer(() => folder.release());
  const accounting = await openPostgresAccounting({
    url,
    version,
    catalog,
    clock,
    log,
    gateway: config.gateway,
    gatherMs: config.gatherMs,
    siteUrl: addressesOf(config, port).siteUrl,
    maxWaitMs: config.queueMaxWaitMs,
    inputRequestsPerMinute: config.inputRequestsPerMinute,
    configDigest: configDigest(config, catalog),
    usageKeepDays: config.usageKeepDays,
    onCommit,
  });
  opened.defer(() => accounting.close());
  const { database } = accounting;
  const storedResponses =
    config.storedResponses === null ? null : new PostgresResponses(url, config.storedResponses, log);
  opened.defer(() => storedResponses?.close());
  const files = config.files === null ? null : await openFiles(config, new FileTables(database), clock, log);
  opened.defer(() => files?.close());
  const activity = new KeptActivity({ keeper: new ActivityTables(database), clock, log });
  opened.defer(() => activity.close());
  const keepMs = config.failedKeepDays * dayMs;
  const usage = new PostgresUsage(database);
  const requestLog = new KeptRequestLog({ keeper: requestLogIn(database, keepMs), keepMs, clock, log });
  opened.defer(() => requestLog.close());
  const sealingKey = await sharedSealingKey(database, sealingKeyBytes);
  const mark = { books: booksOf(sealingKey), from: databaseName(url), at: clock.wall() };
  const before = setServedMark(config.dataFolder, mark);
  if (before !== null && before.books !== null && before.books !== mark.books) {
    log("warn", "this gateway now serves from other books than before", {
      now: mark.from,
      before: before.from,
    });
  }
  return {
    accounting,
    usage,
    activity,
    requestLog,
    async writeExport(email, descriptor, withConversations) {
      await writePieces(await exportOfDatabase(database).account(email, withConversations), descriptor);
    },
    databaseBytes: () => 0,
    watch: accounting.watch(),
    storedResponses,
    files,
    async eraseResponses(account, forEver) {
      await (storedResponses?.erase(account, forEver) ?? eraseResponsesIn(database, account, forEver));
      if (forEver) await usage.erase(account);
      await (files?.eraseAccount(account) ?? eraseFilesIn(config, new FileTables(database), account, clock, log));
    },
    isOpenElsewhere: (requestId) => hasHold(database, requestId),
    sealingKey,
    shareNodes: accounting.shareNodes,
    laneState: accounting.laneState,
    adopt: (next) => accounting.adopt(configDigest(next, catalog)),
  };
}
