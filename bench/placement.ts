// Which core each process of a benchmark runs on. The proxy under test has a core of its own, so that its CPU time
// is not bought by evicting the node's and the client's caches, and so that the load cannot starve it.
import { availableParallelism } from "node:os";

export type Role = "proxy" | "node" | "client" | "anywhere";

/** `own core`: as above. `free`: the system places everything, so that a proxy may use more than one core. */
type Placement = "own core" | "free";
let placement: Placement = "own core";

/** For all processes that are started from now on. Throws for another word. */
export function setPlacement(wanted: string): void {
  if (wanted !== "own core" && wanted !== "free")
    throw new Error(`--placement is "own core" or "free", not "${wanted}"`);
  placement = wanted;
}

/** With three cores or more each role has its own; with two, node and client share core 0. */
export function coreOf(role: Role): number | null {
  const cores = availableParallelism();
  if (placement === "free" || role === "anywhere" || cores < 2 || Bun.which("taskset") === null) return null;
  if (role === "proxy") return 1;
  return role === "client" && cores > 2 ? 2 : 0;
}

/** The command that runs `command` on the role's core. `taskset` replaces itself, so the process id stays. */
export function placed(role: Role, command: readonly string[]): string[] {
  const core = coreOf(role);
  return core === null ? [...command] : ["taskset", "-c", `${core}`, ...command];
}

/** Moves this process and its threads to the client's core. */
export function placeClient(): void {
  const core = coreOf("client");
  if (core !== null) Bun.spawnSync(["taskset", "-apc", `${core}`, `${process.pid}`]);
}

/** One line for the results. */
export function placementLine(): string {
  const core = coreOf("proxy");
  return core === null
    ? "processes not pinned"
    : `proxy on core ${core}, node on core ${coreOf("node")}, client on core ${coreOf("client")}`;
}
