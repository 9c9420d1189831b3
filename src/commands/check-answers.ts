// tollgate check-answers: a process that checks answers against JSON Schemas. A server starts it and speaks to it over
// a channel that it opens; without one there is nobody to answer.
import { CommandError } from "../core/expected-error.ts";
import { checkUntilDisconnected } from "../tools/format/checking-process.ts";
import type { Invocation } from "./command.ts";

export default async function checkAnswers({ flags }: Invocation): Promise<number> {
  if (process.send === undefined) throw new CommandError("check-answers is started by a server, not by hand");
  await checkUntilDisconnected(flags["quick"] === true ? "quick" : "thorough");
  return 0;
}
