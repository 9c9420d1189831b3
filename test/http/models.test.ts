// The model list, as both SDK families page through it.
import { expect, test } from "bun:test";
import { embeddedCatalog, listedModels } from "../../src/core/catalog.ts";
import { messages } from "../../src/dialects/messages/messages.ts";
import { modelBody, modelsBody, type ModelsView } from "../../src/http/models.ts";

type Page = { data: { id: string }[]; has_more: boolean; first_id: string | null; last_id: string | null };
const view: ModelsView = { nodesContext: () => null, ownCapabilities: null };
const page = (query: string) => modelsBody(listedModels(embeddedCatalog()), new URLSearchParams(query), view) as Page;
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
    name: "core-3",
    display_name: "core-3",
    kind: "chat",
    description: "Reads text, files and images, calls tools, answers with JSON that fits a schema.",
    context_window: 196608,
    max_input_tokens: 196608,
    context_length: 196608,
    max_tokens: 65536,
    max_output_tokens: 65536,
    reasoning_effort: false,
    capabilities: { vision: true, tools: true, reasoning: false, structured_output: true, json_mode: true },
    lifecycle: "active",
    line: null,
    deprecated_at: null,
    retires_at: null,
    pricing: { prompt: "0.00000335", completion: "0.00000335", input_cache_read: "0.00000335", request: "0" },
    architecture: {
      modality: "text+image->text",
      input_modalities: ["text", "image", "file"],
      output_modalities: ["text"],
      tokenizer: "Other",
      instruct_type: null,
    },
    supported_parameters: expect.arrayContaining(["temperature", "tools", "structured_outputs"]),
    top_provider: { context_length: 196608, max_completion_tokens: 65536, is_moderated: false },
    per_request_limits: null,
    max_context_length: 196608,
    loaded_context_length: 196608,
  });
});

const modelOf = (id: string, more: Partial<ModelsView> = {}) =>
  modelBody(embeddedCatalog().models.get(id)!, { ...view, ...more });

test("capabilities are the model's own", () => {
  expect(modelOf("open-08-W4A16-AUTOROUND-REAP")).toMatchObject({
    description: "Reads text and files, calls tools.",
    capabilities: { vision: false, reasoning: true, structured_output: false, json_mode: false },
  });
  expect(modelOf("open-09-W4A16-AUTOROUND-REAP").capabilities).toMatchObject({
    vision: true,
    structured_output: false,
    json_mode: true,
  });
});

test("a messages client finds them under its library's names", () => {
  expect(modelOf("core-coder-1", { ownCapabilities: messages.capabilities! }).capabilities).toMatchObject({
    image_input: { supported: false },
    pdf_input: { supported: true },
    structured_outputs: { supported: true },
    effort: { supported: false, high: { supported: false } },
    thinking: { supported: true },
  });
});

test("the context is what the nodes have, if they have less", () => {
  for (const [told, context] of [
    [null, 196_608],
    [32_768, 32_768],
    [262_144, 196_608],
  ] as const) {
    expect(modelOf("core-3", { nodesContext: () => told })).toMatchObject({
      context_window: 196_608,
      max_input_tokens: 196_608,
      context_length: context,
    });
  }
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
