// The versions of the official JavaScript client of the messages dialect that are in use. Version 1 sends its key as
// `Authorization: Bearer`, the older ones as `x-api-key`.
import { describe, test } from "bun:test";
import { installed, longForm, missing } from "../fixtures/optional.ts";
import { type AnthropicModule, describeAnthropic } from "./anthropic-suite.ts";

for (const name of ["@anthropic-ai/sdk", "anthropic-0.137", "anthropic-0.60"]) {
  const module = await installed<AnthropicModule>(name, import.meta.dir);
  if (missing(name, module !== null, "run npm ci in test/clients") || module === null) {
    describe(name, () => test.skip("is not installed", () => {}));
  } else describeAnthropic(name, module, longForm && name === "@anthropic-ai/sdk");
}
