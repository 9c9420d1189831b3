// What an engine tells of one of its models: the context that it really has, and what it can do. A node may write what it
// likes: what makes no sense counts as not told.
import { record } from "./json.ts";

const nodeModelNameMaxLength = 512;
/** No model has a smaller context; a node that reports one would have every request refused. */
const nodeContextMinTokens = 128;

export type Capability = "chat" | "tools" | "thinking" | "images" | "embeddings" | "rerank";
/** What is not there was not told. */
export type Capabilities = Readonly<Partial<Record<Capability, boolean>>>;

export type ModelFacts = Readonly<{
  /** As the engine calls it. */
  name: string;
  /** The prompt and its answer together; null where the engine does not tell. */
  contextTokens: number | null;
  capabilities: Capabilities;
}>;

/** An entry of a model list; its owner may tell the engine. */
export type ListedModel = ModelFacts & Readonly<{ owner: string }>;

/** The entries of a model list, or null when the body is none: any web server answers something. */
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
  // vLLM tells the context of an adapter's base model alone.
  const contexts = new Map(models.map(({ name, contextTokens }) => [name, contextTokens]));
  return models.map((model) => ({
    ...model,
    contextTokens: model.contextTokens ?? contexts.get(parents.get(model.name) ?? "") ?? null,
  }));
}

/** An engine that lists more than these is a market of models; the rest of its list is not looked at. */
const modelsMax = 1_000;

/** A number that can be a context. No model has less than the least, and one that says so would refuse everything. */
export function contextOf(value: unknown): number | null {
  const isContext = typeof value === "number" && Number.isSafeInteger(value) && value >= nodeContextMinTokens;
  return isContext ? value : null;
}

/** LiteLLM's word for what a model is for. */
function capabilitiesOfMode(mode: unknown): Capabilities {
  if (mode === "embedding") return { chat: false, embeddings: true };
  if (mode === "rerank") return { chat: false, rerank: true };
  return mode === "chat" ? { chat: true } : {};
}

/** sglang-router lists this one name in place of those of its workers, which none of them takes. */
const placeholder = "unknown";

/** Those that may be asked for an answer where the configuration names none: no embedding and no rerank models. */
export function chatModelsOf(models: readonly ModelFacts[]): readonly string[] {
  const able = models.filter(({ capabilities }) => capabilities.chat !== false);
  if (models.length === 1 && able.length === 1) return able[0]!.name === placeholder ? [] : [able[0]!.name];
  const told = able.filter(({ name, capabilities }) => capabilities.chat === true || !isNamedOtherwise(name));
  // Where every name says so, names say nothing.
  return (told.length > 0 ? told : able).map(({ name }) => name);
}

/** A name that says what the model is for, where the engine does not. Those of Hugging Face have their owner before it. */
export const isNamedOtherwise = (name: string): boolean =>
  /embed|rerank|(?:^|\/)(?:bge|gte|e5|all-minilm|paraphrase)[-_]/i.test(name);

/** The name without Ollama's tag, where that may be left out. */
export const withoutTag = (name: string): string => (name.endsWith(latest) ? name.slice(0, -latest.length) : name);

/** Whether this is the model that the configuration means: Ollama's names have a tag that may be left out. */
export const isNamed = (listed: string, name: string): boolean =>
  listed === name ||
  (listed.length === name.length + latest.length && listed.endsWith(latest) && listed.startsWith(name));
const latest = ":latest";
