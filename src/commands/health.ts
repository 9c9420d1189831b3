// tollgate health: whether the server of a data folder runs and takes requests, for supervisors and containers. It
// needs neither the address nor another program. Unlike GET /readyz it does not fail when no node can serve: a
// supervisor would restart the server for as long as the nodes are down, and end the console with it.
import { CommandError } from "../core/expected-error.ts";
import { dataFolderOf } from "../config/config.ts";
import { type Command, folderFlags, textFlag } from "./command.ts";
import { askRunningServer } from "../server/control-socket.ts";
import type { Health } from "../server/fleet/node-lines.ts";

const command: Command = {
  words: [],
  flags: folderFlags,
  async run({ flags, environment }) {
    const folder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
    const answered = await askRunningServer(folder, "health", {}, () => {});
    if (answered === null) throw new CommandError(`no server runs on the data folder ${folder}`);
    const { unready, nodes } = answered.result as Health;
    if (unready !== null) throw new CommandError(`the server takes no requests: ${unready}`);
    const warned = nodes === null ? {} : { warning: nodes };
    if (flags["json"] === true) console.log(JSON.stringify({ ready: true, ...warned }));
    else console.log(nodes === null ? "ready" : `ready, but ${nodes}`);
    return 0;
  },
};
export default command;
