// Finds out which user runs a command, for the audit log. A user who may run commands on a data folder may do everything
// there.
import { readFileSync } from "node:fs";
import type { Environment } from "../../config/config.ts";

const nameMaxLength = 64;

/** "ada", or "root, by sudo of ada"; "user 1000" where the system's own file has no name. */
export function unixUser(environment: Environment): string {
  const sudoer = environment["SUDO_USER"];
  return sudoer === undefined ? name() : `${name()}, by sudo of ${sudoer.slice(0, nameMaxLength)}`;
}

/** Bun's `userInfo` believes the variable USER, which a service or a container may lack. */
function name(): string {
  const id = String(process.geteuid?.());
  try {
    const lines = readFileSync("/etc/passwd", "utf8").split("\n");
    const line = lines.map((each) => each.split(":")).find(([, , user]) => user === id);
    if (line !== undefined) return line[0]!.slice(0, nameMaxLength);
  } catch (error) {
    if ((error as { code?: string }).code !== "ENOENT") throw error; // an image need not have one
  }
  return `user ${id}`;
}
