// tollgate backup FILE
import { CommandError } from "../core/expected-error.ts";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["FILE"],
  flags: folderFlags,
  async run(invocation) {
    const backup = await perform(invocation, "backup", { file: resolve(invocation.words[0]!) });
    // A server under systemd has a /tmp of its own, which goes with it.
    if (sizeOf(backup.file) !== backup.bytes) {
      throw new CommandError(
        `the server wrote ${backup.file} where this command cannot see it (a private /tmp?); name a file in the data folder`,
      );
    }
    if (invocation.flags["json"] === true) console.log(JSON.stringify(backup));
    else console.log(`${backup.file}: ${backup.bytes.toLocaleString("en-US")} bytes, integrity ${backup.integrity}`);
    return 0;
  },
};
export default command;

/** Null where it is not there, or may not be looked at. */
function sizeOf(file: string): number | null {
  try {
    return statSync(file).size;
  } catch {
    return null;
  }
}
