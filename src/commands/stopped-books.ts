// Opens the books of a stopped server, or of a shared database, for one verb.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { byCommandOf, serverEntry, theServer } from "../account/audit.ts";
import { openAccounting } from "../books/accounting.ts";
import { addressesOf, type Config, type ConfigEdit } from "../config/config.ts";
import { catalogOf, configuredCatalog, offeredPlans } from "../config/configured-catalog.ts";
import { systemClock } from "../core/clock.ts";
import { sealingKeyBytes } from "../core/limits.ts";
import { sealingKeyOf } from "../store/folder/sealing-key.ts";
import { sharedSealingKey } from "../store/postgres/sealing-key.ts";
import { CommandError } from "../core/expected-error.ts";
import { standardErrorLog } from "../core/log.ts";
import { dayMs } from "../core/units.ts";
import { notNoted } from "../office/verb.ts";
import { backupDetail } from "../office/verbs/server.ts";
import { deskOf } from "../server/mailing.ts";
import type { BackupMade, Progress, Work } from "../office/work.ts";
import { eraseFilesIn } from "../books/open-files.ts";
import { openPostgresOffice } from "../books/postgres-accounting.ts";
import type { SimulateParts } from "../server/fleet/simulate.ts";
import { erasedInWords } from "../store/changes/erasure.ts";
import { backUp } from "../store/backup/backup.ts";
import { databaseName, lockDataFolder, missingLedger } from "../store/folder/data-folder.ts";
import { DataFolderInUse } from "../store/folder/folder-faults.ts";
import { fileRowsIn } from "../store/files/files-file.ts";
import { noteInLedger } from "../store/ledger/audit-note.ts";
import { noBackup } from "../store/postgres/no-backup.ts";
import { FileTables } from "../store/files/file-tables.ts";
import { requestLogIn } from "../store/postgres/served-lines.ts";
import { eraseResponsesIn } from "../store/postgres/response-tables.ts";
import { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import { PostgresUsage } from "../store/postgres/usage.ts";
import { usageInFile } from "../store/usage/usage-file.ts";
import { StoredResponsesFile } from "../store/responses/stored-responses.ts";

/** For a database: gateways may run beside it. */
export async function inDatabase<Result>(
  load: Load,
  url: string,
  act: (work: Work) => Promise<Result>,
): Promise<Result> {
  const clock = systemClock;
  const config = await load();
  const { baseUrl } = addressesOf(config, config.port);
  await using opened = await openPostgresOffice({ url, catalog: await catalogFor(config), clock });
  const { office, passwords, database } = opened;
  const keepMs = config.failedKeepDays * dayMs;
  const log = standardErrorLog(() => clock.wall());
  const usage = new PostgresUsage(database);
  const requestLog = new KeptRequestLog({ keeper: requestLogIn(database, keepMs), keepMs, clock, log });
  try {
    return await act({
      office,
      passwords,
      usage,
      requestLog,
      consoleUrl: baseUrl,
      async eraseResponses(account, forEver) {
        await eraseResponsesIn(database, account, forEver);
        if (forEver) await usage.erase(account);
        await eraseFilesIn(config, new FileTables(database), account, clock, log);
      },
      backup: () => Promise.reject(new CommandError(noBackup)),
      erasedInWords,
      simulate: simulateWith({ requestLog, office, clock, load, pool: null }),
      fleet: null,
      mail:
        config.mail === null ? null : deskOf(config.mail, baseUrl, await sharedSealingKey(database, sealingKeyBytes)),
    });
  } finally {
    await requestLog.close();
  }
}

/** Throws DataFolderInUse. */
export async function inFolder<Result>(
  load: Load,
  dataFolder: string,
  act: (work: Work) => Promise<Result>,
): Promise<Result> {
  const clock = systemClock;
  const config = await load();
  const { baseUrl, siteUrl } = addressesOf(config, config.port);
  const accounting = await openAccounting({
    dataFolder,
    catalog: await catalogFor(config),
    siteUrl,
    clock,
    onFatal: endAtOnce,
  });
  const log = standardErrorLog(() => clock.wall());
  const { databaseFile: journalFile } = accounting;
  const keepMs = config.failedKeepDays * dayMs;
  const requestLog = KeptRequestLog.inFile({ dataFolder, journalFile, keepMs, clock, log });
  const usage = usageInFile(dataFolder, journalFile, log, false);
  try {
    return await act({
      ...accounting,
      usage,
      requestLog,
      consoleUrl: baseUrl,
      async eraseResponses(account, forEver) {
        await StoredResponsesFile.eraseIn(dataFolder, account, log);
        if (forEver) await usage.erase(account);
        await eraseFilesIn({ ...config, dataFolder }, fileRowsIn(dataFolder), account, clock, log);
      },
      erasedInWords,
      simulate: simulateWith({ requestLog, office: accounting.office, clock, load, pool: null }),
      fleet: null,
      mail: config.mail === null ? null : deskOf(config.mail, baseUrl, sealingKeyOf(dataFolder, sealingKeyBytes)),
    });
  } finally {
    await requestLog.close();
    await usage.close();
    await accounting.close();
  }
}

type Load = (edit?: ConfigEdit) => Promise<Config>;

const simulateWith =
  (parts: SimulateParts): Work["simulate"] =>
  async (asked, progress) =>
    (await import("../server/fleet/simulate.ts")).simulate(parts, asked, progress);

export const isInUse = (error: unknown): boolean => error instanceof DataFolderInUse;

/** Without [[models]], any model that nodes list is valid, and no node is asked here. */
const catalogFor = async (config: Config) =>
  config.models.length > 0
    ? configuredCatalog(config, await catalogOf(config))
    : { plans: offeredPlans(config.plans, await catalogOf(config)) };

/** Does not migrate the database: the copy is the way back from an upgrade. Throws DataFolderInUse. */
export async function copyAsItIs(
  dataFolder: string,
  file: string,
  user: string,
  progress: Progress,
): Promise<BackupMade> {
  const folder = lockDataFolder(dataFolder);
  try {
    const made = await backUp(folder.databaseFile, file, progress);
    const entry = serverEntry(systemClock.wall(), byCommandOf(user), "server.backup", theServer, backupDetail(made));
    try {
      noteInLedger(folder.databaseFile, entry);
    } catch (error) {
      progress(notNoted("backup", (error as Error).message)); // a full or read-only disk is a reason for a backup
    }
    return made;
  } finally {
    folder.release();
  }
}

export function checkLedger(dataFolder: string): void {
  if (existsSync(join(dataFolder, databaseName))) return;
  throw new CommandError(
    missingLedger(dataFolder) ?? `there is no ledger in ${dataFolder}; name its folder with --data DIR`,
  );
}

/** The disk failed: nothing may be written or acknowledged anymore. */
function endAtOnce(error: Error): void {
  console.error(`tollgate: ${error.message}`);
  process.exit(1);
}
