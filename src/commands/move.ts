// tollgate move --to URL --data DIR, or --from URL --to-data DIR: moves the books of a data folder to a database that
// several gateways share, and back. The URL `env` stands for the variable, so that process lists show no password.
import { systemClock } from "../core/clock.ts";
import { dataFolderOf, type Environment } from "../config/config.ts";
import { databaseUrlVariable, problemOfDatabaseUrl } from "../config/database-url.ts";
import { moveIn } from "../store/postgres/move-in.ts";
import { moveOut } from "../store/postgres/move-out.ts";
import { checkFolderRights } from "../server/process/folder-rights.ts";
import { socketFile } from "../server/control-socket.ts";
import { type Invocation, textFlag, UsageError } from "./command.ts";

export default async function move({ flags, environment }: Invocation): Promise<number> {
  const toData = textFlag(flags, "to-data");
  const [to, from] = ["to", "from"].map((flag) => urlOf(textFlag(flags, flag), environment));
  const progress = (line: string) => console.error(line);
  const now = systemClock.wall();
  if ((to === undefined) === (from === undefined)) {
    throw new UsageError("move: name where to with --to URL, or where from with --from URL and --to-data DIR");
  }
  const problem = problemOfDatabaseUrl(to ?? from!);
  if (problem !== null) throw new UsageError(`move: the URL ${problem}`);
  const counted = (count: number, one: string) => `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`;
  if (to !== undefined) {
    if (toData !== undefined) throw new UsageError("move: --to-data goes with --from");
    const dataFolder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
    checkFolderRights(dataFolder, socketFile(dataFolder));
    const moved = await moveIn({ dataFolder, url: to, now, progress });
    if (flags["json"] === true) console.log(JSON.stringify(moved));
    else {
      console.log(
        `moved     ${counted(moved.accounts, "account")}, ${counted(moved.lines, "line")} of the journal and ` +
          `${counted(moved.responses, "stored response")} to ${moved.to}; their sums are the same`,
      );
      console.log(`closed    ${dataFolder}: no server starts on its books anymore`);
      console.log("next      start gateways with the URL in [ledger] url or TOLLGATE_DATABASE_URL");
    }
    return 0;
  }
  if (toData === undefined) throw new UsageError("move: --from URL needs --to-data DIR");
  const moved = await moveOut({ dataFolder: toData, url: from!, now, progress });
  if (flags["json"] === true) console.log(JSON.stringify(moved));
  else {
    console.log(
      `moved     ${counted(moved.accounts, "account")}, ${counted(moved.lines, "line")} of the journal and ` +
        `${counted(moved.responses, "stored response")} to ${toData}; their sums are the same`,
    );
    console.log(`closed    ${moved.from}: no gateway starts on its books anymore`);
  }
  return 0;
}

function urlOf(given: string | undefined, environment: Environment): string | undefined {
  if (given !== "env") return given;
  const url = environment[databaseUrlVariable] ?? "";
  if (url === "") throw new UsageError(`move: ${databaseUrlVariable} is not set, which \`env\` means`);
  return url;
}
