// Asks nodes once for their state, for `tollgate check`, `doctor`, and for `tollgate nodes` while no server runs.
import type { Clock } from "../core/clock.ts";
import type { NodeConfig } from "../config/config.ts";
import { modelNameOn } from "./model-routes.ts";
import { nodeConnectTimeoutMs } from "../core/limits.ts";
import { nodeProbeTimeoutMs, nodeTrialTimeoutMs } from "./limits.ts";
import type { Model } from "../core/types.ts";
import { type Abilities, abilitiesOf, leastContext, modelsOn } from "./abilities.ts";
import { NodeClient } from "./client/client.ts";
import { originOf } from "./client/dial.ts";
import { isReply, post } from "./client/get.ts";
import { factsOf, noneServed, unknownEngine, unlisted } from "./engine.ts";
import type { EngineKind } from "./engine-kind.ts";
import { askForLoad, type EngineLoad, isLoad } from "./engine-load.ts";
import type { Asking } from "./engine-routes.ts";
import { type Look, lookAt } from "./health/look.ts";
import { parseNodeJson, record } from "./json.ts";
import { usualSlots } from "./queue/load-watch.ts";

export type Inspection = Readonly<{
  name: string;
  url: string;
  /** Null where they follow the engine's load. */
  slots: number | null;
  /** The engine's load where slots follow it; null where it does not report it. */
  load: EngineLoad | null;
  well: boolean;
  /** "vllm", "ollama", ...; null where the node did not say. */
  engine: EngineKind | null;
  version: string | null;
  /** In tokens: the smallest of the models that requests use; null where the node does not report it. */
  context: number | null;
  /** The names of the models it lists. */
  models: readonly string[];
  abilities: Abilities;
  /** Ids of the models that requests may go there for; for an unhealthy node, those that are configured. */
  serves: readonly string[];
  /** Ids of configured models that it does not have. */
  lacks: readonly string[];
  /** What is wrong, in words; null when nothing is. */
  problem: string | null;
  /** A likely mistake on a healthy node: it serves nothing, or not everything that it is configured for. */
  warning: string | null;
}>;

/**
 * Asks each node for its model list and its other facts. Where those do not show whether it takes requests, it is asked
 * for one token. Takes a few seconds at most and never throws. Skips nodes that a gateway starts itself, which run only
 * with it and maybe on a port chosen then. Which node serves a model depends on all their lists.
 */
export async function inspectNodes(
  nodes: readonly NodeConfig[],
  models: ReadonlyMap<string, Model>,
  clock: Clock,
): Promise<Inspection[]> {
  const looked = await Promise.all(
    nodes.map(async (node) => ({ ...node, node, engine: null, ...(await lookOnce(node, clock)) })),
  );
  const servedBy = modelsOn(looked, models);
  return Promise.all(looked.map((seen) => inspect(seen, servedBy(seen), clock)));
}

type Looked = Readonly<{ node: NodeConfig }> & Partial<Look>;

async function inspect(
  { node, health, engine = null, problem = null }: Looked,
  served: readonly Model[],
  clock: Clock,
): Promise<Inspection> {
  const { name, url } = node;
  const idsOf = (models: readonly Model[]) => models.map(({ id }) => id);
  const nothing: Abilities = { models: [], below: [] };
  const unknown = { engine: null, version: null, context: null, models: [], abilities: nothing };
  const slots = node.slots === "auto" ? null : usualSlots(unknownEngine, node.slots);
  const unasked = { name, url, slots, load: null, well: false, ...unknown, serves: idsOf(served), lacks: [] };
  if (health === undefined) return { ...unasked, problem: null, warning: null };
  const well = health === "well";
  const nameOf = (model: Model) => modelNameOn(node.models, model, engine);
  const asking = askingOf(node, clock);
  try {
    if (engine === null) {
      const answers = well && (problem === null || (await eachAnswers(asking, namesOf(served, nameOf))));
      return { ...unasked, well, problem: answers ? null : `${url}: ${problem}`, warning: null };
    }
    const listsNothing = engine.chatModels.length === 0;
    const unlistedOnes = served.filter((model) => {
      const name = nameOf(model);
      return factsOf(engine, name) === null && (listsNothing || unlisted(engine, [name]) !== null);
    });
    const unlistedNames = namesOf(unlistedOnes, nameOf);
    // A known engine lists everything that it has.
    const isUnclear = unlistedOnes.length > 0 && (listsNothing || engine.kind === "unknown");
    const lacking = isUnclear && (await eachAnswers(asking, unlistedNames)) ? [] : unlistedOnes;
    const listed = engine.models.map((model) => model.name);
    const isUseless = listsNothing && lacking.length > 0 && lacking.length === served.length;
    const abilities = abilitiesOf(engine, node, served);
    const answer = typeof node.slots === "number" ? "unreported" : await askForLoad(asking);
    const load = isLoad(answer) ? answer : null;
    const follows = node.slots === "auto" || load !== null;
    return {
      ...unasked,
      slots: follows && engine.requestsMax !== 1 ? null : usualSlots(engine, node.slots),
      load,
      well: true,
      engine: engine.kind,
      version: engine.version,
      context: leastContext(abilities),
      models: listed,
      abilities,
      serves: idsOf(served.filter((model) => !lacking.includes(model))),
      lacks: idsOf(lacking),
      problem: isUseless ? `lists no model that gives answers, but ${listed.join(", ")}` : null,
      warning: noneServed(engine, served) ?? (lacking.length > 0 ? unlisted(engine, unlistedNames) : null),
    };
  } finally {
    asking.client.close();
  }
}

const namesOf = (models: readonly Model[], nameOf: (model: Model) => string): string[] => [
  ...new Set(models.map(nameOf)),
];

/** Probes a node once; null where it runs only with the gateway that starts it. Never throws. */
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

/** At most this many names are tried, because each model may have to be loaded. */
const triedNamesMax = 3;

/** Whether each name is answered with a token: some engines list nothing, or names that they do not accept. */
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
    const isAnswered = isReply(answer) && answer.status === 200;
    if (!isAnswered || !Array.isArray(record(parseNodeJson(answer.body))?.["choices"])) return false;
  }
  return names.length > 0;
}
