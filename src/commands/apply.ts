// tollgate apply: the command reads the file, not the server.
import { extname } from "node:path";
import { CommandError } from "../core/expected-error.ts";
import { parseOutsideJson } from "../core/outside-json.ts";
import { formatPath } from "../core/schema-errors.ts";
import { apply } from "../office/verbs/api.ts";
import { problemWith } from "../office/verb.ts";
import { type Invocation, textFlag, UsageError } from "./command.ts";
import { perform } from "./perform.ts";
import { inputOf, tell } from "./verb-input.ts";

export default async function applyFile(invocation: Invocation): Promise<number> {
  const file = textFlag(invocation.flags, "file");
  if (file === undefined) throw new UsageError("apply: --file is missing");
  const wanted = { ...(await contentOf(file)), ...inputOf(apply, invocation) };
  const wrong = problemWith(apply, wanted);
  if (wrong !== null) throw new CommandError(`${file}: ${formatPath(wrong.path)} ${wrong.problem}`);
  return tell(invocation, apply, wanted, await perform(invocation, apply, wanted));
}

async function contentOf(file: string): Promise<object> {
  const text = await Bun.file(file)
    .text()
    .catch((error: Error) => {
      throw new CommandError(`${file} cannot be read: ${error.message}`);
    });
  try {
    return extname(file) === ".json" ? (parseOutsideJson(text) as object) : Bun.TOML.parse(text);
  } catch (error) {
    throw new CommandError(
      `${file} is not ${extname(file) === ".json" ? "JSON" : "TOML"}: ${(error as Error).message}`,
    );
  }
}
