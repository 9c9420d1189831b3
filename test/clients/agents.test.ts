// The OpenAI Agents SDK over chat-completions.
import { describe, expect, test } from "bun:test";
import * as openai from "openai";
import { installed, missing } from "../fixtures/optional.ts";
import { useStack } from "../fixtures/stack.ts";

/** The few calls used here; the package's own types are not there in a plain checkout. */
type AgentsModule = {
  Agent: new (options: object) => object;
  OpenAIChatCompletionsModel: new (client: unknown, model: string) => object;
  Runner: new (options: object) => { run(agent: object, input: string, options?: object): Promise<RunResult> };
  tool(options: object): object;
};
type RunResult = { finalOutput: unknown; completed?: Promise<void> };

const agents = await installed<AgentsModule>("@openai/agents", import.meta.dir);
const absent = missing("the Agents SDK", agents !== null, "run npm ci in test/clients");

describe.skipIf(absent)("Agents SDK", () => {
  const stack = useStack();

  test.each([false, true])("an agent calls its tool and answers, streamed: %p", async (streamed) => {
    if (agents === null) throw new Error("the Agents SDK is not installed");
    const account = await stack.gateway.account();
    const client = new openai.OpenAI({ baseURL: `${stack.gateway.url}/v1`, apiKey: account.api_key });
    const asked: unknown[] = [];
    const agent = new agents.Agent({
      name: "weather",
      instructions: "be brief",
      model: new agents.OpenAIChatCompletionsModel(client, "core-3"),
      tools: [
        agents.tool({
          name: "get_weather",
          description: "The weather of a city",
          strict: false,
          parameters: {
            type: "object",
            properties: { city: { type: "string" } },
            required: ["city"],
            additionalProperties: true,
          },
          execute: (input: unknown) => (asked.push(input), Promise.resolve("sunny, 21 C")),
        }),
      ],
    });
    const runner = new agents.Runner({ tracingDisabled: true });
    const result = await runner.run(
      agent,
      `hello [[${stack.node.marker("one-tool")}]]`,
      streamed ? { stream: true } : {},
    );
    await result.completed;
    expect(result.finalOutput).toBe("It is sunny in Paris.");
    expect(asked).toEqual([{ city: "Paris" }]);
  });
});
