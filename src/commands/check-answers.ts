// tollgate check-answers: a process that checks answers against JSON Schemas. A server starts it and speaks to it over
// a channel that it opens; without one there is nobody to answer.
import { CommandError } from "../core/expected-error.ts";
import { checkUntilDisconnected } from "../tools/format/checking-process.ts";
import { type Command } from "./command.ts";

const command: Command = {
  words: [],
  flags: { quick: { type: "boolean" } },
  async run({ flags }) {
    if (process.send === undefined) throw new CommandError("check-answers is started by a server, not by hand");
    await checkUntilDisconnected(flags["quick"] === true ? "quick" : "thorough");
    return 0;
  },
};
export default command;
