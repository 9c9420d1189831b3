// GET /v1/models and /v1/models/{id}: one document that both SDK families read as their own list.
import type { Catalog } from "../catalog.ts";
import { outputTokensMax } from "../limits.ts";
import type { Model } from "../types.ts";

const created = "2025-01-01T00:00:00Z";

export const modelBody = (model: Model) => ({
  id: model.id,
  object: "model",
  type: "model",
  created: Date.parse(created) / 1000,
  created_at: created,
  owned_by: "tollgate",
  display_name: model.id,
  context_window: model.contextTokens,
  max_input_tokens: model.contextTokens,
  max_tokens: outputTokensMax,
  /** True where the model reads the depth setting: hosted models; first-party tiers choose their own. */
  reasoning_effort: model.tier === "hosted",
});

/** A page of the list; `after_id`, `before_id` and `limit` are how Anthropic's SDK pages. */
export function modelsBody(catalog: Catalog, query: URLSearchParams): object {
  const all = [...catalog.models.values()];
  const limit = Math.min(Math.max(Math.trunc(Number(query.get("limit") ?? 1000)) || 1000, 1), 1000);
  const after = all.findIndex((model) => model.id === query.get("after_id")) + 1;
  const before = all.findIndex((model) => model.id === query.get("before_id"));
  const rest = all.slice(after, before === -1 ? all.length : before);
  const page = before === -1 ? rest.slice(0, limit) : rest.slice(-limit);
  return {
    object: "list",
    data: page.map(modelBody),
    has_more: page.length < rest.length,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}
