// GET /v1/models and /v1/models/{id}: one document that both SDK families read as their own list. Only `capabilities` are
// called otherwise by each: a header that only the clients of a dialect send says whose names are wanted.
import { outputTokensMax } from "../core/limits.ts";
import type { Model } from "../core/types.ts";

const created = "2025-01-01T00:00:00Z";

export type ModelsView = Readonly<{
  /** The context in tokens that the model's nodes tell; null where they tell none. */
  nodesContext(modelId: string): number | null;
  /** A model's capabilities as the dialect of the client has them; null: as usual. */
  ownCapabilities: ((model: Model) => object) | null;
}>;

/** Anthropic's libraries promise these, and programs leave out what is not active. */
const inUse = { lifecycle: "active", line: null, deprecated_at: null, retires_at: null } as const;

export function modelBody(model: Model, { nodesContext, ownCapabilities }: ModelsView) {
  const { id, contextTokens } = model;
  return {
    id,
    object: "model",
    type: "model",
    created: Date.parse(created) / 1000,
    created_at: created,
    owned_by: "tollgate",
    name: id,
    display_name: id,
    description: descriptionOf(model),
    context_window: contextTokens,
    max_input_tokens: contextTokens,
    /** What there really is: nodes may run with less than the catalog says. */
    context_length: Math.min(contextTokens, nodesContext(id) ?? contextTokens),
    max_tokens: outputTokensMax,
    max_output_tokens: Math.min(outputTokensMax, contextTokens),
    /** True where the model reads the depth setting: hosted models; first-party tiers choose their own. */
    reasoning_effort: model.kind === "chat" && model.readsDepth,
    capabilities: (ownCapabilities ?? capabilities)(model),
    ...inUse,
  };
}

function descriptionOf({ kind, readsImages, structuredOutput }: Model): string {
  if (kind !== "chat") return kind === "embedding" ? "Makes vectors of texts." : "Orders documents by a query.";
  const answers = { json_schema: "JSON that fits a schema", json_object: "JSON", none: null }[structuredOutput];
  const reads = readsImages ? "Reads text, files and images" : "Reads text and files";
  return `${reads}, calls tools${answers === null ? "" : `, answers with ${answers}`}.`;
}

/** What user interfaces offer switches for; one that gives no answers has nothing of it. */
function capabilities({ kind, readsImages, readsDepth, structuredOutput }: Model) {
  const answers = kind === "chat";
  return {
    vision: answers && readsImages,
    tools: answers,
    reasoning: answers && readsDepth,
    structured_output: answers && structuredOutput === "json_schema",
    json_mode: answers && structuredOutput !== "none",
  };
}

/** A page of them all; `after_id`, `before_id` and `limit` are how Anthropic's SDK pages. */
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
