// The official JavaScript client's calls of the responses dialect, in its current major version and the three before.
import { describe, test } from "bun:test";
import * as openai from "openai";
import { installed, missing } from "../fixtures/optional.ts";
import { describeOpenAIResponses } from "./openai-responses-suite.ts";
import type { OpenAIModule } from "./openai-suite.ts";

describeOpenAIResponses("openai 7 responses", openai);

for (const major of [6, 5, 4]) {
  const name = `openai-${major}`;
  const module = await installed<OpenAIModule>(name, import.meta.dir);
  if (missing(name, module !== null, "run npm ci in test/clients") || module === null) {
    describe(`${name} responses`, () => test.skip("is not installed", () => {}));
  } else describeOpenAIResponses(`openai ${major} responses`, module);
}
