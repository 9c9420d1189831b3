// Does an operation on a data folder, whether a server runs on it or not.
import { existsSync } from "node:fs";
import { openAccounting } from "../accounting.ts";
import { type Catalog, embeddedCatalog, loadCatalog } from "../catalog.ts";
import { systemClock } from "../clock.ts";
import { addressesOf, dataFolderOf, loadConfig } from "../config.ts";
import { standardErrorLog } from "../log.ts";
import { DataFolderInUse } from "../store/data-folder.ts";
import { StoredResponsesFile } from "../store/stored-responses.ts";
import { CommandError, type Flags, type Invocation, textFlag } from "./command.ts";
import { askRunningServer } from "./control-socket.ts";
import { type OperationArguments, type OperationName, type OperationResult, runOperation } from "./operations.ts";

/** A folder that is neither free nor answered for belongs to another command, or to a server that is starting. */
const patienceMs = 5_000;
const retryMs = 50;

/**
 * Takes the data folder and works on it; where a running server has it, asks that server. `mayMake`: the folder is
 * made where there is none.
 */
export async function perform<Name extends OperationName>(
  { flags, environment }: Invocation,
  name: Name,
  given: OperationArguments<Name>,
  mayMake = false,
): Promise<OperationResult<Name>> {
  const dataFolder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
  if (!mayMake && !existsSync(dataFolder)) {
    throw new CommandError(`there is no data folder ${dataFolder}; name it with --data DIR`);
  }
  const config = await loadConfig(configFlags(flags), environment);
  const catalog = await catalogOf(config.catalogFile);
  const progress = (line: string) => console.error(line);
  const giveUpAt = systemClock.monotonic() + patienceMs;
  for (;;) {
    try {
      const accounting = await openAccounting({
        dataFolder,
        catalog,
        siteUrl: addressesOf(config, config.port).siteUrl,
        clock: systemClock,
        onFatal: endAtOnce,
      });
      try {
        const log = standardErrorLog(() => systemClock.wall());
        const eraseResponses = (account: number) => StoredResponsesFile.eraseIn(dataFolder, account, log);
        return await runOperation(name, { ...accounting, eraseResponses }, given, progress);
      } finally {
        await accounting.close();
      }
    } catch (error) {
      if (!(error instanceof DataFolderInUse)) throw error;
      const answered = await askRunningServer(dataFolder, name, given, progress);
      if (answered !== null) return answered.result as OperationResult<Name>;
      if (systemClock.monotonic() > giveUpAt) throw error;
      await Bun.sleep(retryMs);
    }
  }
}

/** The flags that the configuration reads. */
export function configFlags(flags: Flags): { config?: string; data?: string } {
  return { config: textFlag(flags, "config"), data: textFlag(flags, "data") };
}

export const catalogOf = (file: string | null): Promise<Catalog> =>
  file === null ? Promise.resolve(embeddedCatalog()) : loadCatalog(file);

/** The disk failed: nothing may be written or acknowledged after that. */
function endAtOnce(error: Error): void {
  console.error(`tollgate: ${error.message}`);
  process.exit(1);
}
