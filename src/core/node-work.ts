// Work on a node as gateways tell each other of it, so that shares hold over all of them.
import type { Priority } from "./priority.ts";
import type { AccountId } from "./types.ts";

/** In units of the line; below 0: a correction. `member`: see Standing. Without it and `priority`: of several. */
export type NodeWork = Readonly<{
  node: string;
  account: AccountId;
  member?: string;
  priority?: Priority;
  work: number;
}>;
