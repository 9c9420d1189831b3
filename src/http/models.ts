// GET /v1/models and /v1/models/{id}: one list for both SDK families; a header decides the names of `capabilities`.
import { claimsOf } from "../core/catalog.ts";
import { outputTokensMax, partsPerCent } from "../core/limits.ts";
import { isVoice, type ModelKind } from "../core/model-kinds.ts";
import type { Model } from "../core/types.ts";
import { unitDollars } from "../core/voices.ts";

const created = "2025-01-01T00:00:00Z";

export type ModelsView = Readonly<{
  /** The context in tokens that the model's nodes report; null where they report none. */
  nodesContext(modelId: string): number | null;
  /** A model's capabilities under the names of the client's dialect; null: the usual names. */
  ownCapabilities: ((model: Model) => object) | null;
}>;

/** Anthropic's libraries promise these members, and programs skip models that are not active. */
const inUse = { lifecycle: "active", line: null, deprecated_at: null, retires_at: null } as const;

export function modelBody(model: Model, { nodesContext, ownCapabilities }: ModelsView) {
  const { id, contextTokens } = model;
  /** The actual context: nodes may run with less than the catalog says. */
  const contextLength = Math.min(contextTokens, nodesContext(id) ?? contextTokens);
  const budgetMax = Math.min(outputTokensMax, contextLength);
  return {
    id,
    object: "model",
    type: "model",
    created: Date.parse(created) / 1000,
    created_at: created,
    owned_by: "tollgate",
    name: id,
    display_name: id,
    kind: model.kind,
    description: descriptionOf(model),
    context_window: contextTokens,
    max_input_tokens: contextTokens,
    context_length: contextLength,
    max_tokens: budgetMax,
    max_output_tokens: budgetMax,
    /** True where the model takes a depth setting: hosted models; first-party tiers choose their own. */
    reasoning_effort: model.kind === "chat" && model.readsDepth,
    capabilities: (ownCapabilities ?? capabilities)(model),
    ...inUse,
    ...catalogFields(model, contextLength, budgetMax),
  };
}

/** What programs read that know the lists of OpenRouter and LM Studio: prices, context and abilities. */
function catalogFields(model: Model, contextLength: number, budgetMax: number) {
  const { kind, price } = model;
  const { images, tools, formats } = claimsOf(model);
  const isChat = kind === "chat";
  const { reads, answer } = modalitiesOf[kind];
  const isHeard = isChat && model.readsAudio === true;
  const modalities = [reads, ...(images ? ["image"] : []), ...(isHeard ? ["audio"] : []), ...(isChat ? ["file"] : [])];
  const parts = price.kind === "split" ? price.parts : undefined;
  const [input, cached, output] =
    price.kind === "split"
      ? [price.inputCents, price.cachedInputCents, price.outputCents]
      : [price.cents, price.cents, price.cents];
  return {
    pricing: unitPricing(model) ?? {
      prompt: dollarsPerToken(input, parts?.input),
      completion: dollarsPerToken(output, parts?.output),
      input_cache_read: dollarsPerToken(cached, parts?.cachedInput),
      request: "0",
    },
    architecture: {
      modality: `${reads}${images ? "+image" : ""}${isHeard ? "+audio" : ""}->${answer}`,
      input_modalities: modalities,
      output_modalities: [answer],
      tokenizer: "Other",
      instruct_type: null,
    },
    supported_parameters: !isChat
      ? []
      : [
          ...commonParameters,
          ...(tools ? ["tools", "tool_choice", "parallel_tool_calls"] : []),
          ...(formats === "none" ? [] : ["response_format"]),
          ...(formats === "json_schema" ? ["structured_outputs"] : []),
          ...(model.readsDepth ? ["reasoning", "include_reasoning", "reasoning_effort"] : []),
        ],
    top_provider: { context_length: contextLength, max_completion_tokens: budgetMax, is_moderated: false },
    per_request_limits: null,
    max_context_length: model.contextTokens,
    loaded_context_length: contextLength,
  };
}

const modalitiesOf = {
  chat: { reads: "text", answer: "text" },
  embedding: { reads: "text", answer: "embeddings" },
  rerank: { reads: "text", answer: "rerank" },
  transcription: { reads: "audio", answer: "text" },
  speech: { reads: "text", answer: "audio" },
} as const satisfies Record<ModelKind, object>;

/** Under the names of the configuration, since programs would take other ones for prices of tokens. */
function unitPricing({ kind, price }: Model): Readonly<Record<string, string>> | null {
  if (!isVoice(kind)) return null;
  const dollars = String(unitDollars(kind, price));
  return { [kind === "speech" ? "price_per_1k_characters" : "price_per_minute"]: dollars };
}

/** Every engine takes them. */
const commonParameters = [
  ...["max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "seed"],
  ...["presence_penalty", "frequency_penalty", "web_search_options"],
];

/** An exact decimal of cents and parts of cents per million tokens. */
function dollarsPerToken(cents: number, parts = 0): string {
  const digits = String(cents * partsPerCent + parts).padStart(13, "0");
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, "");
}

const descriptions = {
  embedding: "Makes vectors of texts.",
  rerank: "Orders documents by a query.",
  transcription: "Writes down speech.",
  speech: "Reads texts aloud.",
} as const satisfies Record<Exclude<ModelKind, "chat">, string>;

function descriptionOf(model: Model): string {
  const { kind } = model;
  if (kind !== "chat") return descriptions[kind];
  const { images, tools, formats } = claimsOf(model);
  const answers = { json_schema: "answers with JSON that fits a schema", json_object: "answers with JSON", none: null };
  const reads = images ? "Reads text, files and images" : "Reads text and files";
  return `${[reads, tools ? "calls tools" : null, answers[formats]].filter((words) => words !== null).join(", ")}.`;
}

/** Abilities that user interfaces offer switches for; a model without answers has none of them. */
function capabilities(model: Model) {
  const { images, tools, formats } = claimsOf(model);
  return {
    vision: images,
    tools,
    reasoning: model.kind === "chat" && model.readsDepth,
    structured_output: formats === "json_schema",
    json_mode: formats !== "none",
  };
}

/** A page of them; Anthropic's SDK pages with `after_id`, `before_id` and `limit`. */
export function modelsBody(all: readonly Model[], query: URLSearchParams, view: ModelsView): object {
  const limit = Math.min(Math.max(Math.trunc(Number(query.get("limit") ?? 1000)) || 1000, 1), 1000);
  const after = all.findIndex((model) => model.id === query.get("after_id")) + 1;
  const before = all.findIndex((model) => model.id === query.get("before_id"));
  const rest = all.slice(after, before === -1 ? all.length : before);
  const page = before === -1 ? rest.slice(0, limit) : rest.slice(-limit);
  return {
    object: "list",
    data: page.map((model) => modelBody(model, view)),
    has_more: page.length < rest.length,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}
