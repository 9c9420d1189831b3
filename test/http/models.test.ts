// The model list, as both SDK families page through it.
import { expect, test } from "bun:test";
import { embeddedCatalog } from "../../src/catalog.ts";
import { modelsBody } from "../../src/http/models.ts";

type Page = { data: { id: string }[]; has_more: boolean; first_id: string | null; last_id: string | null };
const page = (query: string) => modelsBody(embeddedCatalog(), new URLSearchParams(query)) as Page;
const ids = [...embeddedCatalog().models.keys()];

test("all 21 models come on one page with the fields of both list shapes", () => {
  const all = page("");
  expect(all.data.map((model) => model.id)).toEqual(ids);
  expect(all.has_more).toBe(false);
  expect(all.data[4] as object).toEqual({
    id: "core-3",
    object: "model",
    type: "model",
    created: 1735689600,
    created_at: "2025-01-01T00:00:00Z",
    owned_by: "tollgate",
    display_name: "core-3",
    context_window: 196608,
    max_input_tokens: 196608,
    max_tokens: 65536,
    reasoning_effort: false,
  });
});

test("paging forward meets every model once and ends", () => {
  const seen: string[] = [];
  for (let at = page("limit=4"); ; at = page(`limit=4&after_id=${at.last_id}`)) {
    seen.push(...at.data.map((model) => model.id));
    if (!at.has_more) break;
  }
  expect(seen).toEqual(ids);
});

test("a page before a model is the one that ends just there", () => {
  const before = page(`limit=4&before_id=${ids[6]}`);
  expect([before.data.map((model) => model.id), before.has_more]).toEqual([ids.slice(2, 6), true]);
});

test("nonsense in the query is ignored", () => {
  expect(page("beta=true&limit=banana&after_id=nobody").data).toHaveLength(21);
});
