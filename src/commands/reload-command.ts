// tollgate reload: makes the running server apply its changed configuration, and prints the result.
import { CommandError } from "../core/expected-error.ts";
import { dataFolderOf } from "../config/config.ts";
import { type Command, folderFlags, textFlag } from "./command.ts";
import { askRunningServer } from "../server/control-socket.ts";
import type { ReloadReport } from "../server/reload.ts";

const command: Command = {
  words: [],
  flags: folderFlags,
  async run({ flags, environment }) {
    const folder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
    const answered = await askRunningServer(folder, "reload", {}, () => {});
    if (answered === null) throw new CommandError(`no server runs on the data folder ${folder}`);
    const report = answered.result as ReloadReport;
    if (flags["json"] === true) console.log(JSON.stringify(report));
    else {
      console.log(`applied        ${report.applied.join(", ") || "nothing has changed"}`);
      if (report.needsRestart.length > 0) console.log(`needs restart  ${report.needsRestart.join(", ")}`);
      for (const node of report.found ?? []) console.log(`found          ${node}`);
    }
    return 0;
  },
};
export default command;
