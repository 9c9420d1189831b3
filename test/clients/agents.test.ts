// The OpenAI Agents SDK, with tools and a handoff, over both dialects that it speaks.
import { describe, expect, test } from "bun:test";
import * as openai from "openai";
import { installed, missing } from "../fixtures/optional.ts";
import { callArguments, callStart, finish, reasoning, stream, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

/** The few calls used here; the package's own types are not there in a plain checkout. */
type Model = new (client: unknown, model: string) => object;
type AgentsModule = Readonly<{
  Agent: new (options: object) => object;
  OpenAIChatCompletionsModel: Model;
  OpenAIResponsesModel: Model;
  Runner: new (options: object) => { run(agent: object, input: unknown, options?: object): Promise<RunResult> };
  tool(options: object): object;
}>;
type RunResult = {
  finalOutput: unknown;
  lastAgent: { name: string };
  lastResponseId: string;
  completed?: Promise<void>;
};

const agents = await installed<AgentsModule>("@openai/agents", import.meta.dir);
const absent = missing("the Agents SDK", agents !== null, "run npm ci in test/clients");
const dialects = ["OpenAIChatCompletionsModel", "OpenAIResponsesModel"] as const;

describe.skipIf(absent).each(dialects)("Agents SDK, %s", (modelClass) => {
  const sdk = agents!;
  const stack = useStack();
  const rolesOf = async (marker: string): Promise<string[][]> =>
    (await stack.node.requests(marker)).map(({ body }) =>
      (body!["messages"] as { role: string }[]).map(({ role }) => role),
    );
  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: true,
  };
  const toolNamed = (name: string, asked: unknown[], result: string): object =>
    sdk.tool({
      name,
      description: name,
      strict: false,
      parameters,
      execute: (input: unknown) => (asked.push([name, input]), Promise.resolve(result)),
    });

  test.each([false, true])(
    "an agent calls both its tools, hands over, and the other one answers, streamed: %p",
    async (streamed) => {
      const account = await stack.gateway.account();
      await stack.node.define("agents-handoff", {
        advance: "rounds",
        replies: [
          stream(
            reasoning("Two things."),
            callStart(0, "call_w", "get_weather"),
            callArguments(0, '{"city":"Paris"}'),
            callStart(1, "call_t", "get_time"),
            callArguments(1, '{"city":"Paris"}'),
            finish("tool_calls"),
          ),
          stream(callStart(0, "call_h", "transfer_to_writer"), callArguments(0, "{}"), finish("tool_calls")),
          stream(text("Noon, ", "and sunny."), finish("stop")),
        ],
      });
      const client = new openai.OpenAI({ baseURL: `${stack.gateway.url}/v1`, apiKey: account.api_key });
      const model = new sdk[modelClass](client, "core-3");
      const asked: unknown[] = [];
      const writer = new sdk.Agent({ name: "writer", instructions: "write", model });
      const reporter = new sdk.Agent({
        name: "reporter",
        instructions: "ask, then hand over",
        model,
        tools: [toolNamed("get_weather", asked, "sunny"), toolNamed("get_time", asked, "noon")],
        handoffs: [writer],
      });
      const marker = stack.node.marker("agents-handoff");
      const runner = new sdk.Runner({ tracingDisabled: true });
      const result = await runner.run(reporter, `report [[${marker}]]`, streamed ? { stream: true } : {});
      await result.completed;
      expect(result.finalOutput).toBe("Noon, and sunny.");
      expect(result.lastAgent.name).toBe("writer");
      expect(asked).toEqual([
        ["get_weather", { city: "Paris" }],
        ["get_time", { city: "Paris" }],
      ]);
      expect(await rolesOf(marker)).toEqual([
        ["system", "user"],
        ["system", "user", "assistant", "tool", "tool"],
        ["system", "user", "assistant", "tool", "tool", "assistant", "tool"],
      ]);

      if (modelClass !== "OpenAIResponsesModel") return;
      // the next run continues on the server's side
      const next = await runner.run(writer, "and?", { previousResponseId: result.lastResponseId });
      expect(next.finalOutput).toBe("Noon, and sunny.");
      expect((await rolesOf(marker)).at(-1)?.slice(-2)).toEqual(["assistant", "user"]);
    },
  );
});
