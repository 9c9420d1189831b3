// Performs an operation on a data folder, whether a server is running on it or not.
import { catalogOf, configuredCatalog, offeredPlans } from "../config/configured-catalog.ts";
import { dayMs } from "../core/units.ts";
import { CommandError } from "../core/expected-error.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { byCommandOf, serverEntry, theServer } from "../account/audit.ts";
import { openAccounting } from "../accounting.ts";
import { systemClock } from "../core/clock.ts";
import { addressesOf, type Config, dataFolderOf, loadConfig } from "../config/config.ts";
import { databaseUrlVariable } from "../config/database-url.ts";
import { ConfigError } from "../config/faults.ts";
import { standardErrorLog } from "../core/log.ts";
import { noteInLedger } from "../store/ledger/audit-note.ts";
import { type Backup, backUp } from "../store/backup/backup.ts";
import { databaseName, lockDataFolder, missingLedger } from "../store/folder/data-folder.ts";
import { DataFolderInUse } from "../store/folder/folder-faults.ts";
import { RequestLogFile } from "../store/requests/request-log-file.ts";
import { openPostgresOffice } from "../postgres-accounting.ts";
import { noBackup } from "../store/postgres/no-backup.ts";
import { PostgresRequestLog } from "../store/postgres/request-log.ts";
import { eraseResponsesIn } from "../store/postgres/response-tables.ts";
import { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import { StoredResponsesFile } from "../store/responses/stored-responses.ts";
import { type Flags, type Invocation, textFlag } from "./command.ts";
import { askRunningServer, socketFile } from "../server/control-socket.ts";
import { checkFolderRights } from "../server/process/folder-rights.ts";
import {
  backupDetail,
  notNoted,
  type OperationArguments,
  type OperationName,
  type OperationResult,
  type Progress,
  runOperation,
} from "../server/operations.ts";
import { unixUser } from "../server/process/unix-user.ts";

/** A folder that is neither free nor answered for belongs to another command, or to a server that is starting. */
const patienceMs = 5_000;
const retryMs = 50;

/**
 * Asks the server that runs on the data folder, which needs no configuration; if there is none, takes the folder and
 * works on it. `mayMake`: the folder is made if there is none.
 */
export async function perform<Name extends OperationName>(
  invocation: Invocation,
  name: Name,
  given: OperationArguments<Name>,
  mayMake = false,
): Promise<OperationResult<Name>> {
  const progress = (line: string) => console.error(line);
  const url = await databaseUrlOf(invocation);
  if (url !== null) return performInDatabase(invocation, url, name, given, progress);
  const dataFolder = dataFolderOf({ data: textFlag(invocation.flags, "data") }, invocation.environment);
  checkFolderRights(dataFolder, socketFile(dataFolder)); // a folder that may not be seen is not one that is not there
  if (!mayMake && !existsSync(dataFolder)) {
    throw new CommandError(`there is no data folder ${dataFolder}; name it with --data DIR`);
  }
  const giveUpAt = systemClock.monotonic() + patienceMs;
  for (;;) {
    const answered = await askRunningServer(dataFolder, name, given, progress);
    if (answered !== null) return answered.result as OperationResult<Name>;
    try {
      return await performHere(invocation, dataFolder, name, given, mayMake, progress);
    } catch (error) {
      if (!(error instanceof DataFolderInUse) || systemClock.monotonic() > giveUpAt) throw error;
      await Bun.sleep(retryMs);
    }
  }
}

/**
 * The database that the configuration names; null: the ledger is in the data folder. A configuration that is wrong is told
 * by whoever needs it: a running server does not.
 */
export async function databaseUrlOf({ flags, environment }: Invocation): Promise<string | null> {
  try {
    return (await loadConfig(configFlags(flags), environment)).databaseUrl;
  } catch (error) {
    // Not where a database may be named: nobody should be sent to a data folder that has another ledger.
    if (!(error instanceof ConfigError) || (environment[databaseUrlVariable] ?? "") !== "") throw error;
    const file = configFlags(flags).config ?? environment["TOLLGATE_CONFIG"] ?? "";
    const text = file === "" ? "" : await Bun.file(file).text().catch(nothing);
    if (text.includes("ledger")) throw error;
    return null;
  }
}

/** A configuration that cannot be read names nothing. */
const nothing = (): string => "";

/** As a gateway does it, on whatever machine: gateways run beside it, or none. */
async function performInDatabase<Name extends OperationName>(
  { flags, environment }: Invocation,
  url: string,
  name: Name,
  given: OperationArguments<Name>,
  progress: Progress,
): Promise<OperationResult<Name>> {
  const config = await loadConfig(configFlags(flags), environment);
  await using opened = await openPostgresOffice({ url, catalog: await catalogFor(config), clock: systemClock });
  const { office, passwords, database } = opened;
  const log = standardErrorLog(() => systemClock.wall());
  const keepMs = config.failedKeepDays * dayMs;
  const requestLog = new KeptRequestLog(new PostgresRequestLog(database, keepMs), keepMs, systemClock, log);
  try {
    const work = {
      office,
      passwords,
      requestLog,
      backup: () => Promise.reject(new CommandError(noBackup)),
      consoleUrl: addressesOf(config, config.port).baseUrl,
      eraseResponses: (account: number, forEver: boolean) => eraseResponsesIn(database, account, forEver),
      user: unixUser(environment),
    };
    return await runOperation(name, work, given, progress);
  } finally {
    await requestLog.close();
  }
}

/** Without models of the shop's own, what nodes list may be named too, and nobody here knows it. */
const catalogFor = async (config: Config) =>
  config.models.length > 0
    ? configuredCatalog(config, await catalogOf(config))
    : { plans: offeredPlans(config.plans, await catalogOf(config)) };

/** On a folder that no server has. Throws DataFolderInUse. */
async function performHere<Name extends OperationName>(
  { flags, environment }: Invocation,
  dataFolder: string,
  name: Name,
  given: OperationArguments<Name>,
  mayMake: boolean,
  progress: Progress,
): Promise<OperationResult<Name>> {
  if (!mayMake && !existsSync(join(dataFolder, databaseName))) {
    throw new CommandError(missingLedgerOf(dataFolder));
  }
  if (name === "backup") {
    const { file } = given as OperationArguments<"backup">;
    return (await copyAsItIs(dataFolder, file, unixUser(environment), progress)) as OperationResult<Name>;
  }
  const config = await loadConfig(configFlags(flags), environment);
  const catalog = await catalogFor(config);
  const accounting = await openAccounting({
    dataFolder,
    catalog,
    siteUrl: addressesOf(config, config.port).siteUrl,
    clock: systemClock,
    onFatal: endAtOnce,
  });
  const log = standardErrorLog(() => systemClock.wall());
  const { databaseFile: journalFile } = accounting;
  const keepMs = config.failedKeepDays * dayMs;
  const requestLog = new RequestLogFile({ dataFolder, journalFile, keepMs, clock: systemClock, log });
  try {
    const eraseResponses = (account: number) => StoredResponsesFile.eraseIn(dataFolder, account, log);
    const consoleUrl = addressesOf(config, config.port).baseUrl;
    const work = { ...accounting, requestLog, consoleUrl, eraseResponses, user: unixUser(environment) };
    return await runOperation(name, work, given, progress);
  } finally {
    await requestLog.close();
    await accounting.close();
  }
}

/** Without bringing the database to this program's version: the copy is the way back from an upgrade. */
async function copyAsItIs(dataFolder: string, file: string, user: string, progress: Progress): Promise<Backup> {
  const folder = lockDataFolder(dataFolder);
  try {
    const made = await backUp(folder.databaseFile, file, progress);
    const entry = serverEntry(systemClock.wall(), byCommandOf(user), "server.backup", theServer, backupDetail(made));
    try {
      noteInLedger(folder.databaseFile, entry);
    } catch (error) {
      progress(notNoted(error as Error)); // a disk that is full or read-only is a reason to make one
    }
    return made;
  } finally {
    folder.release();
  }
}

export const missingLedgerOf = (dataFolder: string): string =>
  missingLedger(dataFolder) ?? `there is no ledger in ${dataFolder}; name its folder with --data DIR`;

/** The flags that the configuration reads. */
export function configFlags(flags: Flags): { config?: string; data?: string } {
  return { config: textFlag(flags, "config"), data: textFlag(flags, "data") };
}

/** The disk failed: nothing may be written or acknowledged after that. */
function endAtOnce(error: Error): void {
  console.error(`tollgate: ${error.message}`);
  process.exit(1);
}
