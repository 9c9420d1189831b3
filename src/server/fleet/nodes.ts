// The nodes that a server uses: those of the configuration, else an engine on this machine, else the demo node. Nodes
// that have a command are started here.
import { CommandError } from "../../core/expected-error.ts";
import { statSync } from "node:fs";
import { type Catalog, distinctModels } from "../../core/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import type { Config, NodeConfig } from "../../config/config.ts";
import { freePort } from "../../http/free-port.ts";
import { nodeSlotsDefault } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import { discoverLocalEngine } from "../../nodes/engine.ts";
import { type AppliedNodes, ManagedNodes } from "../../nodes/managed/managed-nodes.ts";
import type { Ms } from "../../core/types.ts";

export type ServingNodes = Readonly<{
  /** Those of the start, with their addresses, also of those that run on a port that was free. */
  applied: AppliedNodes;
  /** Says in one line which they are and why. */
  description: string;
  /** True where it is the demo node, whose answers are synthetic. */
  demo: boolean;
  /** Starts and ends what another configuration asks for, and gives its nodes; one without any keeps those of the start. */
  replace(nodes: readonly NodeConfig[]): AppliedNodes;
  stop(): Promise<void>;
}>;

export type ServingNodesParts = Readonly<{
  catalog: Catalog;
  clock: Clock;
  log: Log;
  port: number;
  /** What programs that are started here get beside their own `env`, at each start. */
  environment(): Readonly<Record<string, string>>;
  /** See ManagedNodes. */
  busyAt(url: string): number;
  leaveGraceMs(): Ms;
}>;

/**
 * Takes at most the 0.3 s in which a local engine must answer. `demoOnly`: the demo node, whatever else there is. Throws
 * CommandError where a node's program is missing.
 */
export async function findServingNodes(
  config: Config,
  demoOnly: boolean,
  parts: ServingNodesParts,
): Promise<ServingNodes> {
  const { catalog, clock, port, environment } = parts;
  if (demoOnly) {
    const { node, stop } = await demoNode(catalog, clock);
    const applied: AppliedNodes = { nodes: [node], arrivals: new Map() };
    const description = "Nodes: the built-in demo node alone, as --demo asks.";
    return { applied, description, demo: true, replace: () => applied, stop };
  }
  checkPrograms(config.nodes, environment());
  const managed = new ManagedNodes({ ...parts, ownPort: port, freePort: () => freePort("127.0.0.1") });
  if (config.nodes.length > 0) {
    const applied = managed.apply(config.nodes);
    return {
      applied,
      description: `Nodes: ${list(applied.nodes)}.`,
      demo: false,
      replace: (next) => managed.apply(next.length > 0 ? next : config.nodes),
      stop: () => managed.close(),
    };
  }
  const found = await foundNode(catalog, clock);
  return {
    applied: managed.apply([found.node]),
    description: found.description,
    demo: found.stop !== null,
    replace: (next) => managed.apply(next.length > 0 ? next : [found.node]),
    async stop() {
      await Promise.all([managed.close(), found.stop?.()]);
    },
  };
}

type FoundNode = Readonly<{ node: NodeConfig; description: string; stop: (() => Promise<void>) | null }>;

async function foundNode(catalog: Catalog, clock: Clock): Promise<FoundNode> {
  const local = await discoverLocalEngine();
  if (local !== null) {
    return { node: local, description: `Nodes: ${list([local])}, found on this machine.`, stop: null };
  }
  const description =
    "Nodes: the built-in demo node, because no inference engine was found on this machine. Name one with --node URL.";
  return { ...(await demoNode(catalog, clock)), description };
}

async function demoNode(catalog: Catalog, clock: Clock): Promise<Pick<FoundNode, "node"> & Pick<ServingNodes, "stop">> {
  const { startDemoNode } = await import("../../nodes/demo/demo.ts"); // most servers have nodes of their own
  const { url, stop } = startDemoNode({ models: distinctModels(catalog), clock });
  return { node: { name: "demo", url, apiKey: null, slots: nodeSlotsDefault, models: { "*": "*" } }, stop };
}

const list = (nodes: readonly NodeConfig[]): string => nodes.map(({ name, url }) => `${name} at ${url}`).join(", ");

/** A program or folder that is not there is a fault of the configuration, not of the node. Throws CommandError. */
export function checkPrograms(nodes: readonly NodeConfig[], environment: Readonly<Record<string, string>>): void {
  const lines = nodes.flatMap(({ name, managed }) => {
    if (managed === undefined) return [];
    const { command, folder } = managed;
    if (folder !== null && !isFolder(folder)) return [`node "${name}": its cwd ${folder} is not a folder`];
    const [program = ""] = command;
    const path = managed.environment["PATH"] ?? environment["PATH"] ?? "";
    const found = Bun.which(program, { PATH: path, cwd: folder ?? "." });
    return found === null ? [`node "${name}": there is no program ${program} on the PATH`] : [];
  });
  if (lines.length > 0) throw new CommandError(lines.join("\n"));
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** Throws CommandError where there is no such file: llama-server would say so in the log, again and again. */
export function checkModelFile(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new CommandError(`--gguf: there is no file ${path}`);
  }
}
