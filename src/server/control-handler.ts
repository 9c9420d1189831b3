// What the commands ask of a running server through the socket in its data folder: verbs by their names, and what checks
// beside a server must know.
import { version } from "../../package.json" with { type: "json" };
import { CommandError } from "../core/expected-error.ts";
import { formatPath } from "../core/schema-errors.ts";
import type { Soon } from "../core/soon.ts";
import { findVerb } from "../office/registry.ts";
import { problemWith } from "../office/verb.ts";
import type { Fleet, Work } from "../office/work.ts";
import type { Handler } from "./control-socket.ts";

/** What `check` and `doctor` must know to see what a running server sees, and its configuration does not say. */
export type StartedWith = Readonly<{
  /** The configuration's file; null without one. */
  config: string | null;
  nodes: readonly string[];
}>;

export type ControlParts = Readonly<{
  work: Work & Readonly<{ fleet: Fleet }>;
  /** What an operator should know of how browsers come here. */
  notices(): Soon<readonly string[]>;
  started: StartedWith;
}>;

export function controlHandler({ work, notices, started }: ControlParts): Handler {
  return async (name, input, progress, user) => {
    if (name === "started with") return started;
    if (name === "notices") return notices();
    if (name === "state") return work.fleet.health();
    const verb = await findVerb(name);
    if (verb === null) {
      throw new CommandError(`the running server (version ${version}) does not know "${name}"; restart it`);
    }
    const wrong = problemWith(verb, input);
    if (wrong !== null) {
      const what = `${formatPath(wrong.path)} ${wrong.problem}`.trimStart();
      throw new CommandError(`${name}: ${what} (the running server has version ${version})`);
    }
    return verb.run(work, { actor: { kind: "shell", user }, input, progress });
  };
}
