// What the official clients add to the responses dialect: searches as items, the events of their helper, and conversations
// that the client or the server keeps.
import { describe, expect, test } from "bun:test";
import type OpenAIClient from "openai";
import { dialectOf, hosted, weather } from "../fixtures/dialects.ts";
import { callArguments, callStart, finish, reasoning, stream, text } from "../fixtures/scripts.ts";
import { foundPages } from "../fixtures/search-service.ts";
import { useStack } from "../fixtures/stack.ts";
import { clientsOf, failure, served } from "./official-clients.ts";

type InputItem = OpenAIClient.Responses.ResponseInputItem;

const stack = useStack({ search: true });
const weatherTool = { ...dialectOf.responses.tool(weather), strict: true } as OpenAIClient.Responses.FunctionTool;
const reasonedCall = stream(
  reasoning("I must ", "ask."),
  callStart(0, "call_1", "get_weather"),
  callArguments(0, '{"city":"Paris"}'),
  finish("tool_calls"),
);
const answer = stream(text("It is sunny ", "in Paris."), finish("stop"));

describe.each(clientsOf("responses"))("%s", (_, official) => {
  const { module } = official;
  const newClient = async (): Promise<OpenAIClient> => (await served(stack, official).newClient()).sdk as OpenAIClient;
  const prompt = (script: string): { marker: string; input: string } => {
    const marker = stack.node.marker(script);
    return { marker, input: `hello [[${marker}]]` };
  };
  const input = (script: string): { input: string } => ({ input: prompt(script).input });
  /** Version 4 has it under another name. */
  const remove = (client: OpenAIClient, id: string): Promise<unknown> => {
    const responses = client.responses as OpenAIClient["responses"] & { del?: OpenAIClient["responses"]["delete"] };
    return responses.delete === undefined ? responses.del!(id) : responses.delete(id);
  };
  const rolesSeen = async (marker: string): Promise<string[]> => {
    const last = (await stack.node.requests(marker)).at(-1)!;
    return (last.body!["messages"] as { role: string }[]).map(({ role }) => role);
  };

  test("a web search gives an item with its sources and annotations, streamed and not", async () => {
    const client = await newClient();
    const request = {
      model: hosted,
      tools: [{ type: "web_search" }] as never[],
      include: ["web_search_call.action.sources" as never],
    };
    const whole = await client.responses.create({ ...request, ...input("web-search") });
    expect(whole.output.map(({ type }) => type)).toEqual(["message", "web_search_call", "message"]);
    expect(whole.output_text).toBe("I look. Bun is fast [1]. Elysia runs on it [2].");
    expect(whole.output[1]).toMatchObject({
      status: "completed",
      action: { query: "bun runtime", sources: foundPages.map(({ url }) => ({ type: "url", url })) },
    });
    const { content } = whole.output[2] as OpenAIClient.Responses.ResponseOutputMessage;
    const { text, annotations } = content[0] as OpenAIClient.Responses.ResponseOutputText;
    expect(annotations).toMatchObject(foundPages.map(({ url, title }) => ({ type: "url_citation", url, title })));
    for (const at of annotations) {
      if (at.type === "url_citation") expect(text.slice(at.start_index, at.end_index)).toMatch(/^\[[12]\]$/);
    }
    const stream = await client.responses.create({ ...request, stream: true, ...input("web-search") });
    const types: string[] = [];
    let final: OpenAIClient.Responses.Response | null = null;
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === "response.completed") final = event.response;
    }
    expect(types).toContain("response.web_search_call.searching");
    expect(types.filter((type) => type === "response.output_text.annotation.added")).toHaveLength(2);
    const withoutIds = (output: unknown) => JSON.stringify(output).replaceAll(/"id":"\w+"/g, "");
    expect(withoutIds(final!.output)).toBe(withoutIds(whole.output));
    if (client.responses.stream !== undefined) {
      const helped = client.responses.stream({ ...request, ...input("web-search") });
      expect((await helped.finalResponse()).output_text).toBe(whole.output_text);
    }
  });

  test.each(["text", "reasoning-text", "parallel-tools", "two-bash-calls", "length"])(
    "the .stream() helper puts the answer together: %s",
    async (script) => {
      const client = await newClient();
      const types: string[] = [];
      const stream = client.responses.stream({ model: "core-3", tools: [weatherTool], ...input(script) });
      stream.on("event", ({ type }) => types.push(type));
      const final = await stream.finalResponse();
      // the helpers of versions 4 and 5 do not read response.incomplete and stay at what was before
      if (script === "length") expect(["incomplete", "in_progress"]).toContain(final.status!);
      else expect(final.status).toBe("completed");
      expect(types[0]).toBe("response.created");
      if (script === "parallel-tools") {
        expect(final.output).toMatchObject([
          { type: "function_call", name: "get_weather", arguments: '{"city":"London"}' },
          { type: "function_call", name: "get_weather", arguments: '{"city":"Tokyo"}' },
        ]);
      } else if (script !== "two-bash-calls") {
        const message = final.output.find((item) => item.type === "message")!;
        expect(message.content).toMatchObject([{ type: "output_text", text: "Hi there!" }]);
      }
    },
  );

  test("a tool loop that sends every item back, reasoning sealed among them", async () => {
    const client = await newClient();
    const script = { advance: "rounds" as const, replies: [reasonedCall, answer] };
    await stack.node.define("responses-loop", script);
    const { marker, input } = prompt("responses-loop");
    const items: InputItem[] = [{ role: "user", content: input }];
    const request = { model: "core-3", store: false, include: ["reasoning.encrypted_content" as const] };
    const first = await client.responses.create({ ...request, tools: [weatherTool], input: items });
    const call = first.output.find((item) => item.type === "function_call")!;
    expect(JSON.parse(call.arguments)).toEqual({ city: "Paris" });
    const [thought] = first.output;
    expect(thought?.type === "reasoning" && thought.encrypted_content).toBeString();
    items.push(...(first.output as InputItem[]));
    items.push({ type: "function_call_output", call_id: call.call_id, output: "sunny" });
    const second = await client.responses.create({ ...request, tools: [weatherTool], input: items });
    expect(second.output_text).toBe("It is sunny in Paris.");
    const messages = (await stack.node.requests(marker))[1]!.body!["messages"] as Record<string, unknown>[];
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(JSON.stringify(messages[1])).toContain("I must ask.");
  });

  test("a conversation by previous_response_id; retrieved, listed and deleted", async () => {
    const client = await newClient();
    const { marker, input } = prompt("one-tool");
    const tools = [weatherTool];
    const first = await client.responses.create({ model: "core-3", input, tools });
    const call = first.output.find((item) => item.type === "function_call")!;
    const second = await client.responses.create({
      model: "core-3",
      previous_response_id: first.id,
      tools,
      input: [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }],
    });
    expect(second.output_text).toBe("It is sunny in Paris.");
    const stream = client.responses.stream({ model: "core-3", previous_response_id: second.id, input: "thanks" });
    const third = await stream.finalResponse();
    expect(third.previous_response_id).toBe(second.id);
    expect(await rolesSeen(marker)).toEqual(["user", "assistant", "tool", "assistant", "user"]);

    const fetched = await client.responses.retrieve(second.id);
    expect(fetched).toMatchObject({ id: second.id, output_text: "It is sunny in Paris.", usage: second.usage! });
    const listed: unknown[] = [];
    for await (const item of client.responses.inputItems.list(second.id, { limit: 1 })) listed.push(item);
    expect(listed).toMatchObject([{ type: "function_call_output", output: "sunny" }]);
    await remove(client, second.id);
    expect(await failure(client.responses.retrieve(second.id))).toBeInstanceOf(module!["NotFoundError"]);
    const cancelSignal = await failure(
      client.responses.create({ model: "core-3", previous_response_id: third.id, input: "more" }),
    );
    expect(cancelSignal).toBeInstanceOf(module!["BadRequestError"]);
    expect(cancelSignal).toMatchObject({ code: "previous_response_not_found" });
  });

  test("input items page by page", async () => {
    const client = await newClient();
    const items: InputItem[] = Array.from({ length: 7 }, (_, index) => ({
      role: "user",
      content: `${index} ${prompt("text").input}`,
    }));
    const { id } = await client.responses.create({ model: "core-3", input: items });
    const seen: string[] = [];
    for await (const item of client.responses.inputItems.list(id, { limit: 3, order: "asc" })) {
      seen.push((item as { content: { text: string }[] }).content[0]!.text[0]!);
    }
    expect(seen.join("")).toBe("0123456");
  });
});
