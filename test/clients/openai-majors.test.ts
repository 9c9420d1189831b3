// The older major versions of the official JavaScript client that are still in use.
import { describe, test } from "bun:test";
import { installed, missing } from "../fixtures/optional.ts";
import type { OpenAIModule } from "./openai-suite.ts";
import { describeOpenAI } from "./openai-suite.ts";

for (const major of [6, 5, 4]) {
  const name = `openai-${major}`;
  const module = await installed<OpenAIModule>(name, import.meta.dir);
  if (missing(name, module !== null, "run npm ci in test/clients") || module === null) {
    describe(name, () => test.skip("is not installed", () => {}));
  } else describeOpenAI(`openai ${major}`, module);
}
