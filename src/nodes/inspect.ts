// Asks a node once how it is, for `tollgate check` and for `tollgate nodes` while no server runs.
import type { Clock } from "../core/clock.ts";
import type { NodeConfig } from "../config/config.ts";
import { nodeConnectTimeoutMs, nodeProbeTimeoutMs } from "../core/limits.ts";
import { NodeClient, originOf } from "./client/client.ts";
import { lookAt } from "./health/look.ts";

export type Inspection = Readonly<{
  name: string;
  url: string;
  slots: number;
  well: boolean;
  /** "vllm", "ollama", ...; null when the node did not say. */
  engine: string | null;
  /** In tokens, where the node names it. */
  context: number | null;
  /** The names of the models it lists. */
  models: readonly string[];
  /** What is wrong, in words; null when nothing is. */
  problem: string | null;
}>;

/**
 * Asks for the node's model list; takes at most a few seconds and never throws. Nodes that a gateway starts itself are not
 * asked.
 */
export async function inspectNode(node: NodeConfig, clock: Clock): Promise<Inspection> {
  const { name, url, slots, apiKey, managed } = node;
  const unasked = { name, url, slots, well: false, engine: null, context: null, models: [], problem: null };
  // It runs with the gateway that starts it, maybe on a port that is chosen then.
  if (managed !== undefined) return unasked;
  const address = new URL(url);
  const basePath = address.pathname.replace(/\/$/, "");
  const client = new NodeClient(originOf(address), { clock, connectTimeoutMs: nodeConnectTimeoutMs });
  try {
    const { engine, problem } = await lookAt(client, basePath, apiKey, nodeProbeTimeoutMs);
    if (engine === null) return { ...unasked, problem: `${url}: ${problem}` };
    const { kind, contextTokens: context, models } = engine;
    const missing = Object.values(node.models).filter((model) => model !== "*" && !models.includes(model));
    const absent = missing.length === 0 ? null : `does not list ${missing.join(", ")}, but ${models.join(", ")}`;
    return { name, url, slots, well: true, engine: kind, context, models, problem: absent };
  } finally {
    client.close();
  }
}
