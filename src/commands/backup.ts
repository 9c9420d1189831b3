// tollgate backup FILE
import { resolve } from "node:path";
import { type Command, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["FILE"],
  flags: folderFlags,
  async run(invocation) {
    const backup = await perform(invocation, "backup", { file: resolve(invocation.words[0]!) });
    if (invocation.flags["json"] === true) console.log(JSON.stringify(backup));
    else console.log(`${backup.file}: ${backup.bytes.toLocaleString("en-US")} bytes, integrity ${backup.integrity}`);
    return 0;
  },
};
export default command;
