// The nodes that a server works with: those that the configuration names, else an engine on this machine, else the
// demo node.
import type { Catalog } from "../catalog.ts";
import type { Clock } from "../clock.ts";
import type { Config, NodeConfig } from "../config.ts";
import { nodeSlotsDefault } from "../limits.ts";
import { startDemoNode } from "../nodes/demo.ts";
import { discoverLocalEngine } from "../nodes/engine.ts";

export type ServingNodes = Readonly<{
  nodes: readonly NodeConfig[];
  /** Says in one line which they are and why. */
  description: string;
  /** True where it is the demo node, whose answers are synthetic. */
  demo: boolean;
  /** Stops what was started here. */
  stop(): Promise<void>;
}>;

/** Never fails; takes at most the 0.3 s in which a local engine must answer. */
export async function findServingNodes(config: Config, catalog: Catalog, clock: Clock): Promise<ServingNodes> {
  const stop = () => Promise.resolve();
  if (config.nodes.length > 0) {
    return { nodes: config.nodes, description: `Nodes: ${list(config.nodes)}.`, demo: false, stop };
  }
  const local = await discoverLocalEngine();
  if (local !== null) {
    return { nodes: [local], description: `Nodes: ${list([local])}, found on this machine.`, demo: false, stop };
  }
  const demo = startDemoNode({ models: [...catalog.models.values()], clock });
  const node = { name: "demo", url: demo.url, apiKey: null, slots: nodeSlotsDefault, models: { "*": "*" } };
  const description =
    "Nodes: the built-in demo node, whose answers are synthetic: no inference engine was found on this machine. " +
    "Name one with --node URL.";
  return { nodes: [node], description, demo: true, stop: demo.stop };
}

const list = (nodes: readonly NodeConfig[]): string => nodes.map(({ name, url }) => `${name} at ${url}`).join(", ");
