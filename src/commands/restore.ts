// tollgate restore FILE: puts a backup in the place of the ledger of a stopped server.
import { CommandError } from "../core/expected-error.ts";
import { resolve } from "node:path";
import { byCommandOf } from "../account/audit.ts";
import { systemClock } from "../core/clock.ts";
import { dataFolderOf } from "../config/config.ts";
import { DataFolderInUse } from "../store/folder/folder-faults.ts";
import { type Restored, restore } from "../store/backup/restore.ts";
import { socketFile } from "../server/control-socket.ts";
import { checkFolderRights } from "../server/process/folder-rights.ts";
import { type Invocation, textFlag } from "./command.ts";
import { databaseUrlOf } from "./perform.ts";
import { unixUser } from "../server/process/unix-user.ts";

export default async function restoreBackup(invocation: Invocation): Promise<number> {
  const { words, flags, environment } = invocation;
  // Gateways would not read what it restores into a data folder.
  if ((await databaseUrlOf(invocation)) !== null) {
    throw new CommandError("the ledger is in PostgreSQL: restore it there with pg_restore (see More than one machine)");
  }
  const dataFolder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
  const file = resolve(words[0]!);
  checkFolderRights(dataFolder, socketFile(dataFolder));
  try {
    const restored = restore({
      file,
      dataFolder,
      now: systemClock.wall(),
      by: byCommandOf(unixUser(environment)),
      acceptViolations: flags["accept-violations"] === true,
      progress: (line) => console.error(line),
    });
    if (flags["json"] === true) console.log(JSON.stringify(answerOf(file, restored)));
    else for (const line of linesOf(file, restored)) console.log(line);
    return 0;
  } catch (error) {
    if (!(error instanceof DataFolderInUse)) throw error;
    throw new CommandError(`a server runs on the data folder ${dataFolder}: stop it first, then restore`);
  }
}

const answerOf = (file: string, { lastChargeAt, kept, keptResponses, ...rest }: Restored) => ({
  file,
  ...rest,
  last_charge: timeOf(lastChargeAt),
  kept,
  kept_responses: keptResponses,
});

function* linesOf(file: string, { bytes, accounts, violations, lastChargeAt, kept, keptResponses }: Restored) {
  const counted = (count: number, one: string) => `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`;
  const last = lastChargeAt === null ? "no charge" : `the last charge is of ${timeOf(lastChargeAt)}`;
  yield `restored  ${file}, ${counted(bytes, "byte")}: ${counted(accounts, "account")}, ${last}`;
  yield violations === 0
    ? "checked   every page, and the books of every account"
    : `checked   every page; the books contradict themselves in ${counted(violations, "place")}, as the server's log will say`;
  if (kept !== null) yield `kept      the ledger of before: ${kept}; restore that to undo this`;
  if (keptResponses !== null) yield `kept      the stored responses of before: ${keptResponses}`;
  yield "note      keys, passwords, sessions and deletions are also as they were then: repeat what was done since";
}

const timeOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());
