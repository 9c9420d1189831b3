// tollgate check-answers PACE: a process that checks answers against JSON Schemas. A server starts it and speaks to it over
// a channel that it opens; without one there is nobody to answer.
import { checkUntilDisconnected } from "../tools/checking-process.ts";
import { type Command, CommandError } from "./command.ts";

const command: Command = {
  words: ["PACE"],
  flags: {},
  async run({ words: [pace] }) {
    if (process.send === undefined) throw new CommandError("check-answers is started by a server, not by hand");
    await checkUntilDisconnected(pace === "quick" ? "quick" : "thorough");
    return 0;
  },
};
export default command;
