// Performs a verb on a data folder, with or without a running server.
import { existsSync } from "node:fs";
import { type ConfigEdit, dataFolderOf, loadConfig } from "../config/config.ts";
import { databaseUrlVariable } from "../config/database-url.ts";
import { ConfigError } from "../config/faults.ts";
import { systemClock } from "../core/clock.ts";
import { CommandError } from "../core/expected-error.ts";
import type { Verb } from "../office/verb.ts";
import type { Progress, Work } from "../office/work.ts";
import { askRunningServer, socketFile } from "../server/control-socket.ts";
import { checkFolderRights } from "../server/process/folder-rights.ts";
import { unixUser } from "../server/process/unix-user.ts";
import { type Flags, type Invocation, textFlag } from "./command.ts";

/** A locked folder that does not answer belongs to another command, or to a starting server. */
const patienceMs = 5_000;
const retryMs = 50;

const progress = (line: string): void => console.error(line);

/** Asks the server that runs on the data folder; without one, works on the books directly, or calls `onStopped`. */
export async function perform<Input, Result>(
  invocation: Invocation,
  verb: Verb<Input, Result>,
  input: Input,
  onStopped?: (dataFolder: string, user: string, progress: Progress) => Promise<Result>,
): Promise<Result> {
  if (verb.needsServer) return (await askServer(invocation, verb.name, input)) as Result;
  const { flags, environment } = invocation;
  const user = unixUser(environment);
  const act = (work: Work) => verb.run(work, { actor: { kind: "shell", user }, input, progress });
  const load = (edit?: ConfigEdit) => loadConfig(configFlags(flags), environment, edit);
  const url = await databaseUrlOf(invocation);
  if (url !== null) {
    const { inDatabase } = await import("./stopped-books.ts");
    return inDatabase(load, url, act);
  }
  const dataFolder = folderOf(invocation);
  checkFolderRights(dataFolder, socketFile(dataFolder)); // an unreadable folder is not a missing one
  if (!verb.makesFolder && !existsSync(dataFolder)) {
    throw new CommandError(`there is no data folder ${dataFolder}; name it with --data DIR`);
  }
  const giveUpAt = systemClock.monotonic() + patienceMs;
  for (;;) {
    const answered = await askRunningServer(dataFolder, verb.name, input, progress);
    if (answered !== null) return answered.result as Result;
    const books = await import("./stopped-books.ts");
    try {
      if (!verb.makesFolder) books.checkLedger(dataFolder);
      if (onStopped !== undefined) return await onStopped(dataFolder, user, progress);
      return await books.inFolder(load, dataFolder, act);
    } catch (error) {
      if (!books.isInUse(error) || systemClock.monotonic() > giveUpAt) throw error;
      await Bun.sleep(retryMs);
    }
  }
}

export async function askServer(invocation: Invocation, name: string, input: unknown): Promise<unknown> {
  const dataFolder = folderOf(invocation);
  const answered = await askRunningServer(dataFolder, name, input, progress);
  if (answered === null) throw new CommandError(`no server runs on the data folder ${dataFolder}`);
  return answered.result;
}

/** Null where no server runs. */
export const askedServer = (invocation: Invocation, name: string, input: unknown = {}) =>
  askRunningServer(folderOf(invocation), name, input, progress);

export const folderOf = ({ flags, environment }: Pick<Invocation, "flags" | "environment">): string =>
  dataFolderOf({ data: textFlag(flags, "data") }, environment);

/** Null: the ledger is in the data folder. Does not report a wrong configuration, which a running server does not need. */
export async function databaseUrlOf({
  flags,
  environment,
}: Pick<Invocation, "flags" | "environment">): Promise<string | null> {
  try {
    return (await loadConfig(configFlags(flags), environment)).databaseUrl;
  } catch (error) {
    // With a database in the configuration, the hint at --data would be misleading.
    if (!(error instanceof ConfigError) || (environment[databaseUrlVariable] ?? "") !== "") throw error;
    const file = configFlags(flags).config ?? environment["TOLLGATE_CONFIG"] ?? "";
    const text = file === "" ? "" : await Bun.file(file).text().catch(nothing);
    if (text.includes("ledger")) throw error;
    return null;
  }
}

/** An unreadable configuration names no database. */
const nothing = (): string => "";

/** The flags that the configuration reads. */
export function configFlags(flags: Flags): { config?: string; data?: string } {
  return { config: textFlag(flags, "config"), data: textFlag(flags, "data") };
}
