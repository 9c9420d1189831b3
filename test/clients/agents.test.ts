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
  OpenAIConversationsSession: new (options: object) => Session;
}>;
type Session = Readonly<{
  getSessionId(): Promise<string>;
  getItems(limit?: number): Promise<readonly Record<string, unknown>[]>;
  popItem(): Promise<Record<string, unknown> | undefined>;
  clearSession(): Promise<void>;
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

  test.skipIf(modelClass !== "OpenAIResponsesModel").each([false, true])(
    "a session and a conversation are kept here over runs with a tool, streamed: %p",
    async (streamed) => {
      const account = await stack.gateway.account();
      const client = new openai.OpenAI({ baseURL: `${stack.gateway.url}/v1`, apiKey: account.api_key });
      const asked: unknown[] = [];
      const tools = [toolNamed("get_weather", asked, "sunny")];
      const agent = new sdk.Agent({ name: "reporter", model: new sdk[modelClass](client, "core-3"), tools });
      const runner = new sdk.Runner({ tracingDisabled: true });
      const run = async (input: string, options: object): Promise<unknown> => {
        const result = await runner.run(agent, input, { ...options, ...(streamed ? { stream: true } : {}) });
        await result.completed;
        return result.finalOutput;
      };
      const whole = ["user", "assistant", "tool", "assistant"];

      const session = new sdk.OpenAIConversationsSession({ client });
      const ofSession = stack.node.marker("one-tool");
      expect(await run(`hello [[${ofSession}]]`, { session })).toBe("It is sunny in Paris.");
      expect((await session.getItems()).map(({ type }) => type)).toEqual([
        ...["message", "function_call", "function_call_result", "message"],
      ]);
      await run("and now?", { session });
      expect((await rolesOf(ofSession)).at(-1)).toEqual([...whole, "user"]);
      expect((await session.getItems(1))[0]).toMatchObject({ role: "assistant" });
      expect(await session.popItem()).toMatchObject({ role: "assistant" });
      expect((await session.getItems(1))[0]).toMatchObject({ role: "user" });
      const id = await session.getSessionId();
      await session.clearSession();
      expect(await client.conversations.retrieve(id).catch((error: unknown) => error)).toMatchObject({ status: 404 });

      const { id: conversationId } = await client.conversations.create();
      const ofConversation = stack.node.marker("one-tool");
      expect(await run(`hello [[${ofConversation}]]`, { conversationId })).toBe("It is sunny in Paris.");
      await run("and now?", { conversationId });
      expect((await rolesOf(ofConversation)).at(-1)).toEqual([...whole, "user"]);
      const items = await Array.fromAsync(client.conversations.items.list(conversationId, { order: "asc" }));
      expect<unknown[]>(items.map(({ type }) => type)).toEqual([
        ...["message", "function_call", "function_call_output", "message", "message", "message"],
      ]);
      expect(asked).toHaveLength(2);
    },
  );
});
