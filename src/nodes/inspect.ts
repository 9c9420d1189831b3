// Asks a node once how it is, for `tollgate check`, `doctor`, and for `tollgate nodes` while no server runs.
import type { Clock } from "../core/clock.ts";
import type { NodeConfig } from "../config/config.ts";
import { modelNameOn } from "./model-routes.ts";
import { nodeConnectTimeoutMs, nodeProbeTimeoutMs, nodeTrialTimeoutMs } from "../core/limits.ts";
import type { Model } from "../core/types.ts";
import { type Abilities, abilitiesOf, leastContext } from "./abilities.ts";
import { NodeClient, originOf } from "./client/client.ts";
import { isAnswer, post } from "./client/get.ts";
import { type EngineKind, unlisted } from "./engine.ts";
import { askForLoad, type EngineLoad, isLoad } from "./engine-load.ts";
import type { Asking } from "./engine-routes.ts";
import { type Look, lookAt } from "./health/look.ts";
import { parseNodeJson, record } from "./json.ts";

export type Inspection = Readonly<{
  name: string;
  url: string;
  /** Null where they follow its load. */
  slots: number | null;
  /** Where they do: what its engine has to do; null where it does not tell it. */
  load: EngineLoad | null;
  well: boolean;
  /** "vllm", "ollama", ...; null when the node did not say. */
  engine: EngineKind | null;
  version: string | null;
  /** In tokens, where the node names it: the least of the models that it is asked for. */
  context: number | null;
  /** The names of the models it lists. */
  models: readonly string[];
  abilities: Abilities;
  /** What is wrong, in words; null when nothing is. */
  problem: string | null;
}>;

/**
 * Asks for the node's model list and what else its engine tells; where that does not say whether it takes requests, it is
 * asked for one token. Takes at most some seconds and never throws. Nodes that a gateway starts itself are not asked.
 * `served`: the models of the catalog that it is configured for.
 */
export async function inspectNode(node: NodeConfig, served: readonly Model[], clock: Clock): Promise<Inspection> {
  const { name, url, managed } = node;
  const slots = node.slots === "auto" ? null : node.slots;
  const nothing: Abilities = { models: [], below: [] };
  const unknown = { engine: null, version: null, context: null, models: [], abilities: nothing, problem: null };
  const unasked = { name, url, slots, load: null, well: false, ...unknown };
  // It runs with the gateway that starts it, maybe on a port that is chosen then.
  if (managed !== undefined) return unasked;
  const asking = askingOf(node, clock);
  try {
    const { health, engine, problem } = await lookAt(asking);
    const names = [...new Set(served.map((model) => modelNameOn(node.models, model, engine)))];
    if (engine === null) {
      const answers = health === "well" && (await eachAnswers(asking, names));
      return { ...unasked, well: health === "well", problem: answers ? null : `${url}: ${problem}` };
    }
    const misfit = unlisted(engine, names);
    const isUntold = engine.chatModels.length === 0;
    // What an engine is known to list is all that it has.
    const isUnclear = isUntold || engine.kind === "unknown";
    const answers = (misfit === null && !isUntold) || (isUnclear && (await eachAnswers(asking, names)));
    const absent =
      misfit ?? `lists no model that gives answers, but ${engine.models.map((model) => model.name).join(", ")}`;
    const abilities = abilitiesOf(engine, node, served);
    const is = { engine: engine.kind, version: engine.version, models: engine.models.map((model) => model.name) };
    const context = leastContext(abilities);
    const told = slots === null ? await askForLoad(asking) : "untold";
    const load = isLoad(told) ? told : null;
    return { ...unasked, ...is, load, well: true, context, abilities, problem: answers ? null : absent };
  } finally {
    asking.client.close();
  }
}

/** Looks at a node once; null where it runs only with the gateway that starts it. Never throws. */
export async function lookOnce(node: NodeConfig, clock: Clock): Promise<Look | null> {
  if (node.managed !== undefined) return null;
  const asking = askingOf(node, clock);
  try {
    return await lookAt(asking);
  } finally {
    asking.client.close();
  }
}

function askingOf({ url, apiKey }: NodeConfig, clock: Clock): Asking {
  const address = new URL(url);
  const basePath = address.pathname.replace(/\/$/, "");
  const client = new NodeClient(originOf(address), { clock, connectTimeoutMs: nodeConnectTimeoutMs });
  return { client, basePath, apiKey, timeoutMs: nodeProbeTimeoutMs };
}

/** So many names are tried: each may have to be loaded. */
const triedNamesMax = 3;

/** Whether each is answered by a token: some engines list nothing, or other names than those that they take. */
async function eachAnswers(
  { client, basePath, apiKey }: Pick<Asking, "client" | "basePath" | "apiKey">,
  names: readonly string[],
): Promise<boolean> {
  for (const model of names.slice(0, triedNamesMax)) {
    const body = JSON.stringify({
      model,
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: 1,
      stream: false,
    });
    const answer = await post(client, `${basePath}/chat/completions`, body, apiKey, nodeTrialTimeoutMs);
    const isAnswered = isAnswer(answer) && answer.status === 200;
    if (!isAnswered || !Array.isArray(record(parseNodeJson(answer.body))?.["choices"])) return false;
  }
  return names.length > 0;
}
