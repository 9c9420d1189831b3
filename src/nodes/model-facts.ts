// What an engine reports about a model: context and abilities. Values that make no sense count as not reported.
import { record } from "./json.ts";

const nodeModelNameMaxLength = 512;
/** No model has a smaller context; a node that reports one would have every request refused. */
const nodeContextMinTokens = 128;

export type Capability =
  "chat" | "tools" | "thinking" | "images" | "audio" | "embeddings" | "rerank" | "transcription" | "speech";
/** An absent ability was not reported. */
export type Capabilities = Readonly<Partial<Record<Capability, boolean>>>;

export type ModelFacts = Readonly<{
  name: string;
  /** Prompt and answer together; null where the engine does not report it. */
  contextTokens: number | null;
  capabilities: Capabilities;
}>;

/** An entry of a model list. Its owner may identify the engine. */
export type ListedModel = ModelFacts & Readonly<{ owner: string }>;

/** The entries of a model list; null where the body is none, since any web server answers something. */
export function listedModels(body: unknown): readonly ListedModel[] | null {
  const list = record(body);
  if (list?.["object"] !== "list" || !Array.isArray(list["data"]) || list["data"].length === 0) return null;
  const models: ListedModel[] = [];
  const parents = new Map<string, string>();
  for (const entry of list["data"].slice(0, modelsMax).map(record)) {
    if (entry === null || typeof entry["id"] !== "string" || entry["object"] !== "model") return null;
    if (entry["id"].length > nodeModelNameMaxLength) continue;
    const { max_model_len: vllm, max_input_tokens: litellm, mode, parent } = entry;
    if (typeof parent === "string") parents.set(entry["id"], parent);
    models.push({
      name: entry["id"],
      contextTokens: contextOf(vllm ?? record(entry["meta"])?.["n_ctx"] ?? litellm),
      capabilities: capabilitiesOfMode(mode),
      owner: typeof entry["owned_by"] === "string" ? entry["owned_by"] : "",
    });
  }
  // For an adapter, vLLM reports only its base model's context.
  const contexts = new Map(models.map(({ name, contextTokens }) => [name, contextTokens]));
  return models.map((model) => ({
    ...model,
    contextTokens: model.contextTokens ?? contexts.get(parents.get(model.name) ?? "") ?? null,
  }));
}

/** An engine that lists more than this is a marketplace of models; the rest of its list is ignored. */
const modelsMax = 1_000;

export function contextOf(value: unknown): number | null {
  const isContext = typeof value === "number" && Number.isSafeInteger(value) && value >= nodeContextMinTokens;
  return isContext ? value : null;
}

/** LiteLLM's word for a model's purpose. */
function capabilitiesOfMode(mode: unknown): Capabilities {
  if (mode === "embedding") return { chat: false, embeddings: true };
  if (mode === "rerank") return { chat: false, rerank: true };
  if (mode === "audio_transcription") return { chat: false, transcription: true };
  if (mode === "audio_speech") return { chat: false, speech: true };
  return mode === "chat" ? { chat: true } : {};
}

/** sglang-router lists this one name instead of its workers' names, and none of them accepts it. */
const placeholder = "unknown";

/** The models that may answer where the configuration names none: no embedding or rerank models. */
export function chatModelsOf(models: readonly ModelFacts[]): readonly string[] {
  const able = models.filter(({ capabilities }) => capabilities.chat !== false);
  if (models.length === 1 && able.length === 1) return able[0]!.name === placeholder ? [] : [able[0]!.name];
  const likely = able.filter(({ name, capabilities }) => capabilities.chat === true || !isNamedOtherwise(name));
  // Where every name matches, names prove nothing.
  return (likely.length > 0 ? likely : able).map(({ name }) => name);
}

/** Whether the name shows another purpose, where the engine does not report one. Hugging Face names begin with their owner. */
export const isNamedOtherwise = (name: string): boolean =>
  /embed|rerank|(?:^|\/)(?:bge|gte|e5|all-minilm|paraphrase)[-_]/i.test(name) || voiceNamed(name) !== null;

/** Names of families that only hear, or only speak. */
export function voiceNamed(name: string): "transcription" | "speech" | null {
  if (/whisper|parakeet|canary|moonshine|transcribe/i.test(name)) return "transcription";
  return /kokoro|piper|(?:^|[-_/])tts(?:[-_]|$)/i.test(name) ? "speech" : null;
}

export const withoutTag = (name: string): string => (name.endsWith(latest) ? name.slice(0, -latest.length) : name);

/** Whether this is the configured model: the tag in Ollama's names is optional. */
export const isNamed = (listed: string, name: string): boolean =>
  listed === name ||
  (listed.length === name.length + latest.length && listed.endsWith(latest) && listed.startsWith(name));
const latest = ":latest";
