// tollgate health: whether the server of a data folder runs and takes requests, for supervisors and containers. It needs
// neither the address nor another program, and says the same as GET /readyz.
import { dataFolderOf } from "../config.ts";
import { type Command, CommandError, folderFlags, textFlag } from "./command.ts";
import { askRunningServer } from "./control-socket.ts";

/** What a running server answers: why requests should go elsewhere, or null. */
export type Health = Readonly<{ unready: string | null }>;

const command: Command = {
  words: [],
  flags: folderFlags,
  async run({ flags, environment }) {
    const folder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
    const answered = await askRunningServer(folder, "health", {}, () => {});
    if (answered === null) throw new CommandError(`no server runs on the data folder ${folder}`);
    const { unready } = answered.result as Health;
    if (unready !== null) throw new CommandError(`the server takes no requests: ${unready}`);
    console.log(flags["json"] === true ? JSON.stringify({ ready: true }) : "ready");
    return 0;
  },
};
export default command;
