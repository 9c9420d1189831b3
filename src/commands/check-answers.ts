// tollgate check-answers: checks answers against JSON Schemas in a process of its own. A server starts it and talks to it
// over the IPC channel.
import { CommandError } from "../core/expected-error.ts";
import { checkUntilDisconnected } from "../tools/format/checking-process.ts";
import type { Invocation } from "./command.ts";

export default async function checkAnswers({ flags }: Invocation): Promise<number> {
  if (process.send === undefined) throw new CommandError("check-answers is started by a server, not by hand");
  await checkUntilDisconnected(flags["quick"] === true ? "quick" : "thorough");
  return 0;
}
