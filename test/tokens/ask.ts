// A request for tests, to be changed field by field.
import { embeddedCatalog } from "../../src/catalog.ts";
import type { Ask } from "../../src/types.ts";

export const catalog = embeddedCatalog();

export const askWith = (fields: Partial<Ask> = {}): Ask => ({
  endpoint: "/v1/chat/completions",
  model: catalog.models.get("core-3")!,
  turns: [{ role: "user", content: "Hi" }],
  tools: [],
  toolChoice: "auto",
  parallelToolCalls: null,
  stop: [],
  outputTokensMax: 4_096,
  effort: null,
  format: null,
  webSearch: false,
  stream: false,
  sampling: {},
  bodyBytes: 100,
  ...fields,
});
