// What engines report on their own routes: version, contexts, abilities. An unexpected answer leaves facts unknown.
import { nodeSlotsMax } from "../core/limits.ts";
import { visibleLine } from "../core/visible.ts";
import type { NodeClient } from "./client/client.ts";
import { type NodeReply, get, isReply, type NoReply, post } from "./client/get.ts";
import type { EngineKind } from "./engine-kind.ts";
import { parseNodeJson, record } from "./json.ts";
import { type Capabilities, contextOf, isNamed, type ListedModel, type ModelFacts } from "./model-facts.ts";

export type Asking = Readonly<{
  client: NodeClient;
  basePath: string;
  apiKey: string | null;
  timeoutMs: number;
}>;

/** The path above the /v1 of an engine's OpenAI-compatible routes. */
export const rootOf = (basePath: string): string => basePath.replace(/\/v1$/, "");

type ModelReport = Readonly<{ contextTokens: number | null; capabilities: Capabilities }>;
export type EngineReport = Readonly<{
  version: string | null;
  requestsMax: number | null;
  urgentFirst?: "low" | "high";
  ofModel(name: string): ModelReport;
}>;

const nothing: ModelReport = { contextTokens: null, capabilities: {} };
const versionMaxLength = 60;

/** `known`: what was known about the same models before. */
export function reportOf(
  kind: EngineKind,
  asking: Asking,
  list: readonly ListedModel[],
  known: readonly ModelFacts[],
): Promise<EngineReport> {
  switch (kind) {
    case "vllm":
      return reportFrom(asking, ["/version"], ([version]) => ({ version: version?.["version"] }));
    case "sglang":
      return reportFrom(asking, ["/server_info", "/get_server_info", "/get_model_info"], ([info, older, model]) => ({
        version: info?.["version"] ?? older?.["version"],
        requestsMax: info?.["max_running_requests"] ?? older?.["max_running_requests"],
        ...urgency(info ?? older),
        capabilities: {
          ...flag("images", model?.["has_image_understanding"]),
          ...flag("audio", model?.["has_audio_understanding"]),
          ...(model?.["is_generation"] === false ? { chat: false, embeddings: true } : {}),
        },
      }));
    case "llama.cpp":
      return reportFrom(asking, ["/props"], ([props]) => ({
        version: props?.["build_info"],
        requestsMax: props?.["total_slots"],
        contextTokens: record(props?.["default_generation_settings"])?.["n_ctx"],
        capabilities: {
          ...flag("images", record(props?.["modalities"])?.["vision"]),
          ...flag("audio", record(props?.["modalities"])?.["audio"]),
          ...flag("tools", record(props?.["chat_template_caps"])?.["supports_tools"]),
        },
      }));
    case "tgi":
      return reportFrom(asking, ["/info"], ([info]) => ({
        version: info?.["version"],
        contextTokens: info?.["max_total_tokens"],
      }));
    case "ollama":
      return ollamaReport(asking, list, known);
    default:
      return Promise.resolve({ version: null, requestsMax: null, ofModel: () => nothing });
  }
}

type Fields = Record<string, unknown> | null;
type Found = Readonly<{
  version?: unknown;
  requestsMax?: unknown;
  urgentFirst?: "low" | "high";
  contextTokens?: unknown;
  capabilities?: Capabilities;
}>;

async function reportFrom(
  { client, basePath, apiKey, timeoutMs }: Asking,
  paths: readonly string[],
  read: (answers: readonly (Fields | undefined)[]) => Found,
): Promise<EngineReport> {
  const root = rootOf(basePath);
  const answers = await Promise.all(paths.map((path) => get(client, root + path, apiKey, timeoutMs)));
  const { version, requestsMax, contextTokens, capabilities = {}, ...more } = read(answers.map(fieldsOf));
  const ofAll = { contextTokens: contextOf(contextTokens), capabilities };
  return { version: versionOf(version), requestsMax: requestsOf(requestsMax), ofModel: () => ofAll, ...more };
}

const urgency = (info: Fields | undefined): Pick<Found, "urgentFirst"> =>
  info?.["enable_priority_scheduling"] === true
    ? { urgentFirst: info["schedule_low_priority_values_first"] === true ? "low" : "high" }
    : {};

const fieldsOf = (answer: NodeReply | NoReply): Fields =>
  isReply(answer) && answer.status === 200 ? record(parseNodeJson(answer.body)) : null;

const versionOf = (value: unknown): string | null =>
  typeof value === "string" && value !== "" ? visibleLine(value.slice(0, versionMaxLength)) : null;

const requestsOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= nodeSlotsMax ? value : null;

const flag = (name: keyof Capabilities, value: unknown): Capabilities =>
  typeof value === "boolean" ? { [name]: value } : {};

/** Models that Ollama is asked about one by one. Operators with more installed name the one they mean. */
const shownMax = 32;
const shownAtOnce = 4;

/** Contexts are not in Ollama's list: /api/ps has a loaded model's, and num_ctx is what an unloaded one will get. */
async function ollamaReport(
  { client, basePath, apiKey, timeoutMs }: Asking,
  list: readonly ListedModel[],
  known: readonly ModelFacts[],
): Promise<EngineReport> {
  const root = rootOf(basePath);
  const [version, running] = await Promise.all(
    ["/api/version", "/api/ps"].map(async (path) => fieldsOf(await get(client, root + path, apiKey, timeoutMs))),
  );
  const loaded = new Map<string, number>();
  const entries = running?.["models"];
  for (const entry of Array.isArray(entries) ? entries.map(record) : []) {
    const contextTokens = contextOf(entry?.["context_length"]);
    if (typeof entry?.["name"] === "string" && contextTokens !== null) loaded.set(entry["name"], contextTokens);
  }
  const shown = new Map<string, ModelReport>(known.map((facts) => [facts.name, facts]));
  const unseen = list.filter(({ name }) => !shown.has(name)).slice(0, shownMax);
  const show = async (): Promise<void> => {
    for (let model = unseen.shift(); model !== undefined; model = unseen.shift()) {
      const { name } = model;
      const answer = await post(client, `${root}/api/show`, JSON.stringify({ model: name }), apiKey, timeoutMs);
      const fields = fieldsOf(answer);
      if (fields !== null) shown.set(name, shownFacts(fields));
    }
  };
  await Promise.all(Array.from({ length: shownAtOnce }, show));
  return {
    version: versionOf(version?.["version"]),
    requestsMax: null,
    ofModel(name) {
      const { contextTokens, capabilities } = shown.get(name) ?? nothing;
      const now = [...loaded].find(([other]) => isNamed(other, name))?.[1];
      return { contextTokens: now ?? contextTokens, capabilities };
    },
  };
}

function shownFacts({ parameters, capabilities: listed }: Record<string, unknown>): ModelReport {
  const numCtx = typeof parameters === "string" ? /^num_ctx\s{1,99}(\d{1,15})$/m.exec(parameters)?.[1] : undefined;
  const contextTokens = contextOf(numCtx === undefined ? null : Number(numCtx));
  if (!Array.isArray(listed) || listed.length === 0) return { contextTokens, capabilities: {} };
  return {
    contextTokens,
    capabilities: {
      chat: listed.includes("completion"),
      tools: listed.includes("tools"),
      thinking: listed.includes("thinking"),
      images: listed.includes("vision"),
      audio: listed.includes("audio"),
      embeddings: listed.includes("embedding"),
    },
  };
}
