// Which inference engine is behind an address. Engines take the same chat-completions request with different extras;
// what is not known for sure stays "unknown", for which only what all engines take is sent.
import { systemClock } from "../core/clock.ts";
import type { NodeConfig } from "../config/config.ts";
import { NodeClient, originOf } from "./client/client.ts";
import type { ClientOptions } from "./client/client.ts";
import { type Answer, get, isAnswer, type NoAnswer } from "./client/get.ts";
import { parseNodeJson, record } from "./json.ts";

export type EngineKind =
  "vllm" | "sglang" | "tensorrt-llm" | "llama.cpp" | "ollama" | "lm-studio" | "tgi" | "demo" | "unknown";

export type Engine = Readonly<{
  kind: EngineKind;
  /** Context length that the engine names, in tokens; null when it names none. */
  contextTokens: number | null;
  /** Model names that the engine lists. */
  models: readonly string[];
}>;

export const unknownEngine: Engine = { kind: "unknown", contextTokens: null, models: [] };

/** `owned_by` of GET /v1/models, where it is telling. */
const owners: Readonly<Record<string, EngineKind>> = {
  vllm: "vllm",
  sglang: "sglang",
  tensorrt_llm: "tensorrt-llm",
  llamacpp: "llama.cpp",
  organization_owner: "lm-studio",
  "tollgate-demo": "demo",
};

/** Asks the node which engine it is; null when it cannot be reached or lists no models in the expected form. */
export async function detectEngine(
  client: NodeClient,
  basePath: string,
  apiKey: string | null,
  timeoutMs: number,
): Promise<Engine | null> {
  const listed = await get(client, `${basePath}/models`, apiKey, timeoutMs);
  return isAnswer(listed) ? engineOf(client, listed, timeoutMs) : null;
}

/**
 * The engine that gave this list of models; null where it is none. `known`: the engine that it was, whose kind is not
 * found out again where it lists the same.
 */
export async function engineOf(
  client: NodeClient,
  listed: Answer,
  timeoutMs: number,
  known: Engine | null = null,
): Promise<Engine | null> {
  const models = listed.status === 200 ? modelsOf(listed.body) : null;
  if (models === null) return null;
  const names = models.map(({ id }) => id);
  const { owner, contextTokens } = models[0]!;
  if (known?.contextTokens === contextTokens && Bun.deepEquals(known.models, names)) return known;
  const kind =
    listed.headers.get("server") === "llama.cpp"
      ? "llama.cpp"
      : (owners[owner] ?? (await kindByRoutes(client, timeoutMs)));
  return { kind, contextTokens, models: names };
}

/** Engines whose model list says nothing about them answer on routes of their own. */
async function kindByRoutes(client: NodeClient, timeoutMs: number): Promise<EngineKind> {
  const [version, info] = await Promise.all([
    get(client, "/api/version", null, timeoutMs),
    get(client, "/info", null, timeoutMs),
  ]);
  if (isOk(version) && typeof record(parseNodeJson(version.body))?.["version"] === "string") return "ollama";
  if (isOk(info) && record(parseNodeJson(info.body))?.["max_total_tokens"] !== undefined) return "tgi";
  return "unknown";
}

const isOk = (result: Answer | NoAnswer): result is Answer => isAnswer(result) && result.status === 200;

type Listed = Readonly<{ id: string; owner: string; contextTokens: number | null }>;

/** The entries of a model list, or null when the body is none: any web server answers something. */
function modelsOf(body: string): readonly Listed[] | null {
  const list = record(parseNodeJson(body));
  if (list?.["object"] !== "list" || !Array.isArray(list["data"]) || list["data"].length === 0) return null;
  const models: Listed[] = [];
  for (const entry of list["data"].map(record)) {
    if (entry === null || typeof entry["id"] !== "string" || entry["object"] !== "model") return null;
    const context = entry["max_model_len"] ?? record(entry["meta"])?.["n_ctx"];
    models.push({
      id: entry["id"],
      owner: String(entry["owned_by"] ?? ""),
      contextTokens: typeof context === "number" && Number.isSafeInteger(context) && context > 0 ? context : null,
    });
  }
  return models;
}

/** The engine in words, with what it names of itself. */
export function engineInWords({ kind, contextTokens, models }: Engine): string {
  if (kind === "demo") return "the built-in demo node, whose answers are made up: no model runs";
  const context = contextTokens === null ? "" : `, context of ${contextTokens} tokens`;
  const listed = models.length === 1 ? `model ${models[0]}` : `${models.length} models`;
  return `${kind === "unknown" ? "an engine that does not say which it is" : kind}, ${listed}${context}`;
}

/** Default ports of engines on this machine and how many requests they run at once as installed. */
const localEngines = [
  { name: "vllm", port: 8000, slots: 64 },
  { name: "sglang", port: 30_000, slots: 64 },
  { name: "llama-cpp", port: 8080, slots: 4 },
  { name: "ollama", port: 11_434, slots: 4 },
  { name: "lm-studio", port: 1234, slots: 4 },
] as const;

/** Each of the at most two steps (model list, own routes); start-up waits for both. */
const discoverStepMs = 140;

/** The first engine that answers on its default port of this machine, as a node for every model; null without one. */
export async function discoverLocalEngine(dial?: ClientOptions["dial"]): Promise<NodeConfig | null> {
  const options = { clock: systemClock, connectTimeoutMs: discoverStepMs, ...(dial === undefined ? {} : { dial }) };
  const found = await Promise.all(
    localEngines.map(async ({ name, port, slots }): Promise<NodeConfig | null> => {
      const url = `http://127.0.0.1:${port}/v1`;
      const client = new NodeClient(originOf(new URL(url)), options);
      const engine = await detectEngine(client, "/v1", null, discoverStepMs);
      client.close();
      return engine === null ? null : { name, url, apiKey: null, slots, models: { "*": engine.models[0]! } };
    }),
  );
  return found.find((node) => node !== null) ?? null;
}
