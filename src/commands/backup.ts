// tollgate backup: without a server it copies the database as it is.
import { statSync } from "node:fs";
import { CommandError } from "../core/expected-error.ts";
import { backup } from "../office/verbs/server.ts";
import type { Invocation } from "./command.ts";
import { perform } from "./perform.ts";
import { inputOf, tell } from "./verb-input.ts";

export default async function makeBackup(invocation: Invocation): Promise<number> {
  const wanted = inputOf(backup, invocation);
  const made = await perform(invocation, backup, wanted, async (dataFolder, user, progress) => {
    const { copyAsItIs } = await import("./stopped-books.ts");
    return copyAsItIs(dataFolder, wanted.file, user, progress);
  });
  // A server under systemd has a /tmp of its own, which goes with it.
  if (sizeOf(made.file) !== made.bytes) {
    throw new CommandError(
      `the server wrote ${made.file} where this command cannot see it (a private /tmp?); name a file in the data folder`,
    );
  }
  return tell(invocation, backup, wanted, made);
}

/** Null where it is missing or unreadable. */
function sizeOf(file: string): number | null {
  try {
    return statSync(file).size;
  } catch {
    return null;
  }
}
