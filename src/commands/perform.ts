// Performs an operation on a data folder, whether a server is running on it or not.
import { catalogOf, configuredCatalog, offeredPlans } from "../config/configured-catalog.ts";
import { dayMs } from "../core/limits.ts";
import { CommandError } from "../core/expected-error.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { byCommandOf, serverEntry, theServer } from "../account/audit.ts";
import { openAccounting } from "../accounting.ts";
import { systemClock } from "../core/clock.ts";
import { addressesOf, dataFolderOf, loadConfig } from "../config/config.ts";
import { standardErrorLog } from "../core/log.ts";
import { noteInLedger } from "../store/ledger/audit-note.ts";
import { type Backup, backUp } from "../store/backup/backup.ts";
import { databaseName, DataFolderInUse, lockDataFolder, missingLedger } from "../store/folder/data-folder.ts";
import { RequestLogFile } from "../store/requests/request-log-file.ts";
import { StoredResponsesFile } from "../store/responses/stored-responses.ts";
import { type Flags, type Invocation, textFlag } from "./command.ts";
import { askRunningServer, socketFile } from "../server/control-socket.ts";
import { checkFolderRights } from "../server/folder-rights.ts";
import {
  backupDetail,
  notNoted,
  type OperationArguments,
  type OperationName,
  type OperationResult,
  type Progress,
  runOperation,
} from "../server/operations.ts";
import { unixUser } from "../server/unix-user.ts";

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
  const dataFolder = dataFolderOf({ data: textFlag(invocation.flags, "data") }, invocation.environment);
  checkFolderRights(dataFolder, socketFile(dataFolder)); // a folder that may not be seen is not one that is not there
  if (!mayMake && !existsSync(dataFolder)) {
    throw new CommandError(`there is no data folder ${dataFolder}; name it with --data DIR`);
  }
  const progress = (line: string) => console.error(line);
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
  // Without models of the shop's own, what nodes list may be named too, and nobody here knows it.
  const catalog =
    config.models.length > 0
      ? configuredCatalog(config, await catalogOf(config))
      : { plans: offeredPlans(config.plans, await catalogOf(config)) };
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

const missingLedgerOf = (dataFolder: string): string =>
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
