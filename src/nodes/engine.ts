// Which inference engine is behind an address. One that is not identified for sure gets only what all engines accept.
import { systemClock } from "../core/clock.ts";
import type { NodeConfig } from "../config/config.ts";
import { NodeClient } from "./client/client.ts";
import { originOf } from "./client/dial.ts";
import type { ClientOptions } from "./client/client.ts";
import { type NodeReply, get, isReply } from "./client/get.ts";
import type { EngineKind } from "./engine-kind.ts";
import { type Asking, type EngineReport, rootOf, reportOf } from "./engine-routes.ts";
import { parseNodeJson, record } from "./json.ts";
import type { Model, Ms } from "../core/types.ts";
import { chatModelsOf, isNamed, type ListedModel, listedModels, type ModelFacts, withoutTag } from "./model-facts.ts";

export type Engine = Readonly<{
  kind: EngineKind;
  /** As the engine reports it; null where it does not. */
  version: string | null;
  /** Requests that it runs at once; absent where it does not report it. */
  requestsMax?: number;
  /** It schedules by priority: which numbers are urgent. Absent where it does not, or does not report it. */
  urgentFirst?: "low" | "high";
  models: readonly ModelFacts[];
  /** Names of the models that may answer where the configuration names none, preferred one first. */
  chatModels: readonly string[];
}>;

export const unknownEngine: Engine = { kind: "unknown", version: null, models: [], chatModels: [] };

/** `owned_by` of GET /v1/models, where it identifies the engine. */
const owners: Readonly<Record<string, EngineKind>> = {
  vllm: "vllm",
  sglang: "sglang",
  tensorrt_llm: "tensorrt-llm",
  llamacpp: "llama.cpp",
  organization_owner: "lm-studio",
  me: "llama-cpp-python",
  "tollgate-demo": "demo",
};

/** These engines answer to any name with the one model that they have. */
export const answersToAnyName: ReadonlySet<EngineKind> = new Set(["sglang", "llama.cpp", "tgi"]);

/** The engine behind a list of models, null if it is none. `known` is used again while its list stays the same. */
export async function engineOf(asking: Asking, listed: NodeReply, known: Engine | null = null): Promise<Engine | null> {
  const list = listed.status === 200 ? listedModels(parseNodeJson(listed.body)) : null;
  if (list === null) return null;
  const sameAsKnown = known !== null && isSameList(known.models, list) ? known : null;
  // Only Ollama changes its loaded models while its list stays the same.
  if (sameAsKnown !== null && sameAsKnown.kind !== "ollama") return sameAsKnown;
  const kind = sameAsKnown?.kind ?? (await kindOf(asking, listed, list));
  const report = await reportOf(kind, asking, list, sameAsKnown?.models ?? []);
  const engine = engineFrom(kind, list, report, sameAsKnown);
  return Bun.deepEquals(engine, known) ? known : engine;
}

function engineFrom(kind: EngineKind, list: readonly ListedModel[], report: EngineReport, known: Engine | null) {
  const models = list.map(({ name, contextTokens, capabilities }): ModelFacts => {
    const more = report.ofModel(name);
    return {
      name,
      contextTokens: contextTokens ?? more.contextTokens,
      capabilities: { ...capabilities, ...more.capabilities },
    };
  });
  const version = report.version ?? known?.version ?? null;
  // It ends a stream as soon as it receives any other request.
  const requestsMax = kind === "llama-cpp-python" ? 1 : report.requestsMax;
  const runs = requestsMax === null ? {} : { requestsMax };
  const { urgentFirst } = report;
  return {
    kind,
    version,
    ...runs,
    ...(urgentFirst === undefined ? {} : { urgentFirst }),
    models,
    chatModels: chatModelsOf(models),
  };
}

/** Compares the lists alone: the other facts come from elsewhere. */
const isSameList = (known: readonly ModelFacts[], list: readonly ListedModel[]): boolean =>
  known.length === list.length &&
  list.every(({ name, contextTokens }, index) => {
    const before = known[index]!;
    return before.name === name && (contextTokens === null || before.contextTokens === contextTokens);
  });

async function kindOf(asking: Asking, listed: NodeReply, list: readonly ListedModel[]): Promise<EngineKind> {
  if (listed.headers.get("server") === "llama.cpp") return "llama.cpp";
  const owner = list[0]?.owner ?? "";
  return owners[owner] ?? (owner === "local" ? await kindOfLocal(asking) : null) ?? (await kindByRoutes(asking));
}

/** sglang-router lists its workers' local models. It identifies itself on a route of its own. */
async function kindOfLocal({ client, basePath, apiKey, timeoutMs }: Asking): Promise<EngineKind | null> {
  const answer = await get(client, `${rootOf(basePath)}/workers`, apiKey, timeoutMs);
  const report = isReply(answer) && answer.status === 200 ? record(parseNodeJson(answer.body)) : null;
  return Array.isArray(report?.["workers"]) ? "sglang-router" : null;
}

/** Identifies engines by their own routes where the model list does not. */
async function kindByRoutes({ client, basePath, apiKey, timeoutMs }: Asking): Promise<EngineKind> {
  const root = rootOf(basePath);
  const [version, info, loading] = await Promise.all(
    ["/api/version", "/info", "/load_model"].map((path) => get(client, root + path, apiKey, timeoutMs)),
  );
  const fieldsOf = (answer: typeof version) =>
    answer !== undefined && isReply(answer) && answer.status === 200 ? record(parseNodeJson(answer.body)) : null;
  if (typeof fieldsOf(version)?.["version"] === "string") return "ollama";
  if (fieldsOf(info)?.["max_total_tokens"] !== undefined) return "tgi";
  // `transformers serve` does not identify itself, but it loads models on demand: only it has this route, for POST.
  const isLoading = loading !== undefined && isReply(loading) && loading.status === 405;
  return isLoading && loading.headers.get("allow") === "POST" ? "transformers" : "unknown";
}

const listedShownMax = 20;

/** The facts of the model that the node calls by this name; null where it lists no such name. */
export function factsOf(engine: Engine, nodeModel: string): ModelFacts | null {
  const { kind, models } = engine;
  return listedAs(engine, nodeModel) ?? (answersToAnyName.has(kind) && models.length === 1 ? models[0]! : null);
}

/** By name, built once for an engine: each request looks up a model, and a router lists a thousand. */
const modelsByName = new WeakMap<Engine, ReadonlyMap<string, ModelFacts>>();

/** The entry under the name, with or without Ollama's optional tag; null where there is none. */
export function listedAs(engine: Engine, nodeModel: string): ModelFacts | null {
  let byName = modelsByName.get(engine);
  if (byName === undefined) {
    const { models } = engine;
    byName = new Map([
      ...models.map((model) => [withoutTag(model.name), model] as const),
      ...models.map((model) => [model.name, model] as const),
    ]);
    modelsByName.set(engine, byName);
  }
  return byName.get(nodeModel) ?? null;
}

/** Says which of the names it does not list; null where it lists all of them, or where its list proves nothing. */
export function unlisted({ kind, models, chatModels }: Engine, names: readonly string[]): string | null {
  const listed = models.map(({ name }) => name);
  if (answersToAnyName.has(kind) || listed.length === 0 || chatModels.length === 0) return null;
  const missing = names.filter((name) => name !== "*" && !listed.some((each) => isNamed(each, name)));
  if (missing.length === 0) return null;
  return `does not list ${missing.join(", ")}, but ${listedInWords(models)}`;
}

const listedInWords = (models: readonly ModelFacts[]): string =>
  `${models
    .slice(0, listedShownMax)
    .map(({ name }) => name)
    .join(", ")}${models.length > listedShownMax ? ", ..." : ""}`;

/** Describes a node that answers but serves nothing; null where it serves something, or where its list proves nothing. */
export const noneServed = ({ kind, models }: Engine, served: readonly Model[]): string | null =>
  served.length > 0 || models.length === 0 || kind === "demo" ? null : `lists ${listedInWords(models)}, none of yours`;

export function engineInWords(engine: Engine): string {
  const { kind, version, models, chatModels } = engine;
  if (kind === "demo") return "the built-in demo node, whose answers are made up: no model runs";
  const facts = models.find(({ name }) => name === chatModels[0]) ?? models[0];
  const context = (facts?.contextTokens ?? null) === null ? "" : `, context of ${facts!.contextTokens} tokens`;
  const listed = models.length === 1 ? `model ${models[0]!.name}` : `${models.length} models`;
  const named = kind === "unknown" ? "an engine that does not say which it is" : kind;
  return `${named}${version === null ? "" : ` ${version}`}, ${listed}${context}`;
}

/** Default ports of engines on this machine, and how many requests they run at once when installed with defaults. */
export const localEngines = [
  { name: "vllm", port: 8000, slots: null },
  { name: "sglang", port: 30_000, slots: null },
  { name: "llama-cpp", port: 8080, slots: "auto" },
  { name: "ollama", port: 11_434, slots: 4 },
  { name: "lm-studio", port: 1234, slots: 4 },
] as const;

/** Timeout for its model list, because start-up waits for it. */
const discoverMs = 140;

/** The first engine that answers on its default port here, for whatever models it lists at the moment; null: none. */
export async function discoverLocalEngine(dial?: ClientOptions["dial"]): Promise<NodeConfig | null> {
  const found = await Promise.all(
    localEngines.map(async ({ name, port, slots }): Promise<NodeConfig | null> => {
      const url = `http://127.0.0.1:${port}/v1`;
      const isEngine = await listsModels(url, discoverMs, dial);
      return isEngine ? { name, url, apiKey: null, slots, models: { "*": "*" } } : null;
    }),
  );
  return found.find((node) => node !== null) ?? null;
}

export async function listsModels(url: string, timeoutMs: Ms, dial?: ClientOptions["dial"]): Promise<boolean> {
  const options = { clock: systemClock, connectTimeoutMs: timeoutMs, ...(dial === undefined ? {} : { dial }) };
  const client = new NodeClient(originOf(new URL(url)), options);
  const listed = await get(client, "/v1/models", null, timeoutMs);
  client.close();
  return isReply(listed) && listed.status === 200 && listedModels(parseNodeJson(listed.body)) !== null;
}
