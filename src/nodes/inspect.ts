// Asks a node once how it is, for `tollgate check` and for `tollgate nodes` while no server runs.
import type { Clock } from "../clock.ts";
import type { NodeConfig } from "../config.ts";
import { nodeConnectTimeoutMs, nodeProbeTimeoutMs } from "../limits.ts";
import { NodeClient, originOf } from "./client.ts";
import { detectEngine } from "./engine.ts";
import { get } from "./get.ts";

export type Inspection = Readonly<{
  name: string;
  url: string;
  slots: number;
  well: boolean;
  /** "vllm", "ollama", ...; null when the node did not answer. */
  engine: string | null;
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
  // It runs with the gateway that starts it, maybe on a port that is chosen then.
  if (managed !== undefined) return { name, url, slots, well: false, engine: null, models: [], problem: null };
  const address = new URL(url);
  const basePath = address.pathname.replace(/\/$/, "");
  const client = new NodeClient(originOf(address), { clock, connectTimeoutMs: nodeConnectTimeoutMs });
  try {
    const engine = await detectEngine(client, basePath, apiKey, nodeProbeTimeoutMs);
    if (engine === null) {
      const answer = await get(client, `${basePath}/models`, apiKey, nodeProbeTimeoutMs);
      const problem =
        answer === null
          ? `does not answer at ${url}`
          : `answers GET ${url}/models with status ${answer.status} and no list of models`;
      return { name, url, slots, well: false, engine: null, models: [], problem };
    }
    const missing = Object.values(node.models).filter((model) => model !== "*" && !engine.models.includes(model));
    const problem =
      missing.length === 0 ? null : `does not list ${missing.join(", ")}, but ${engine.models.join(", ")}`;
    return { name, url, slots, well: true, engine: engine.kind, models: engine.models, problem };
  } finally {
    client.close();
  }
}
