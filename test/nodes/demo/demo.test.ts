// The demo node over real HTTP: the node protocol, and answers that fit what was asked.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type DemoNode, startDemoNode } from "../../../src/nodes/demo/demo.ts";
import { systemClock } from "../../../src/core/clock.ts";

type Json = Record<string, any>;

let node: DemoNode;
beforeAll(() => {
  const models = [{ id: "core-3", contextTokens: 196_608 }];
  node = startDemoNode({ models, clock: systemClock, tokensPerSecond: Number.POSITIVE_INFINITY });
});
afterAll(() => node.stop());

const post = (body: unknown): Promise<Response> =>
  fetch(`${node.url}/chat/completions`, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
const ask = (content: unknown, settings: object = {}): Json => ({
  model: "core-3",
  messages: [{ role: "user", content }],
  ...settings,
});
const complete = async (body: Json): Promise<Json> => (await post(body)).json() as Promise<Json>;
const thoughtOff = { chat_template_kwargs: { enable_thinking: false } };

async function stream(body: Json): Promise<Json[]> {
  const response = await post({ ...body, stream: true });
  expect(response.headers.get("content-type")).toStartWith("text/event-stream");
  const events = (await response.text()).split("\n\n").filter((event) => event !== "");
  expect(events.at(-1)).toBe("data: [DONE]");
  return events.slice(0, -1).map((event) => JSON.parse(event.replace(/^data: /, "")) as Json);
}
const deltas = (chunks: Json[], key: string): string =>
  chunks.map(({ choices }) => choices[0]?.delta[key] ?? "").join("");

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: {
      type: "object",
      required: ["city", "unit"],
      properties: { city: { type: "string" }, unit: { type: "string", enum: ["celsius"] } },
    },
  },
};
const clockTool = { type: "function", function: { name: "read_clock", parameters: { type: "object" } } };

describe("the demo node", () => {
  test("lists its models as its own and is well", async () => {
    const { data } = (await (await fetch(`${node.url}/models`)).json()) as Json;
    expect(data).toEqual([
      { id: "core-3", object: "model", created: 0, owned_by: "tollgate-demo", max_model_len: 196_608 },
    ]);
    expect((await fetch(new URL("/health", node.url))).status).toBe(200);
  });

  test("says that its answer is synthetic and repeats the question", async () => {
    const { choices, usage } = await complete(ask("How high is Mont Blanc?"));
    expect(choices[0].message.content).toContain("synthetic");
    expect(choices[0].message.content).toContain('"How high is Mont Blanc?"');
    expect(choices[0].message.reasoning_content).toContain("Mont Blanc");
    expect(choices[0].finish_reason).toBe("stop");
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
    expect(usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(0);
  });

  test("streams the thought first, then the answer, and both as the non-streaming answer has them", async () => {
    const body = ask("Hello");
    const chunks = await stream({ ...body, stream_options: { include_usage: true } });
    const { choices, usage } = await complete(body);
    expect(chunks[0]!["choices"][0].delta).toEqual({ role: "assistant", content: "" });
    expect(deltas(chunks, "reasoning_content")).toBe(choices[0].message.reasoning_content);
    expect(deltas(chunks, "content")).toBe(choices[0].message.content);
    const kinds = chunks.map(({ choices: [choice] }) => (choice?.delta.reasoning_content ? "r" : "c")).join("");
    expect(kinds).toMatch(/^cr+c+$/);
    expect(chunks.at(-2)!["choices"][0].finish_reason).toBe("stop");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: usage.completion_tokens } });
  });

  test("sends usage only when it is asked for, and running usage on each chunk", async () => {
    const quiet = await stream(ask("Hello"));
    expect(quiet.every((chunk) => !("usage" in chunk))).toBe(true);
    const running = await stream(
      ask("Hello", { stream_options: { continuous_usage_stats: true, include_usage: true } }),
    );
    const counts = running.map(({ usage }) => usage.completion_tokens as number);
    expect(counts).toEqual([0, ...Array.from({ length: counts.length - 3 }, (_, i) => i + 1), ...counts.slice(-2)]);
    expect(counts.at(-1)).toBe(counts.length - 3);
  });

  test.each([{ reasoning_effort: "none" }, thoughtOff, { chat_template_kwargs: { thinking: false } }])(
    "does not think with %j",
    async (settings) => {
      const { choices, usage } = await complete(ask("Hello", settings));
      expect(choices[0].message.reasoning_content).toBeNull();
      expect(usage.completion_tokens_details.reasoning_tokens).toBe(0);
    },
  );

  test("stops at max_tokens", async () => {
    const { choices, usage } = await complete(ask("Hello", { max_tokens: 7, ...thoughtOff }));
    expect(choices[0].finish_reason).toBe("length");
    expect(usage.completion_tokens).toBe(7);
  });

  test("stops before the first stop sequence", async () => {
    const { choices } = await complete(ask("Hello", { stop: ["You asked", "no language"], ...thoughtOff }));
    expect(choices[0].message.content).toEndWith("made it, ");
    expect(choices[0]).toMatchObject({ finish_reason: "stop", stop_reason: "no language" });
  });

  test("reports the earlier rounds as cached", async () => {
    const first = { role: "user", content: "word ".repeat(200) };
    const messages = [first, { role: "assistant", content: "yes" }, { role: "user", content: "and now?" }];
    const { usage } = await complete({ messages });
    expect(usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(100);
    expect(usage.prompt_tokens_details.cached_tokens % 16).toBe(0);
    expect(usage.prompt_tokens_details.cached_tokens).toBeLessThan(usage.prompt_tokens);
    expect((await complete({ messages: [first] }))["usage"].prompt_tokens_details.cached_tokens).toBe(0);
  });

  test("answers the same request with the same bytes", async () => {
    const withoutTime = async () => (await (await post(ask("Hello"))).text()).replace(/"created":\d+/, "");
    expect(await withoutTime()).toBe(await withoutTime());
  });

  test("counts images", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const { choices } = await complete(ask([{ type: "text", text: "What is this?" }, image]));
    expect(choices[0].message.content).toContain("1 image");
  });

  test.each([
    [
      "json_schema",
      { type: "json_schema", json_schema: { schema: weather.function.parameters } },
      { city: "example", unit: "celsius" },
    ],
    ["json_object", { type: "json_object" }, { synthetic: true, question: "Hello" }],
  ])("answers %s with JSON that fits", async (_, response_format, value) => {
    const { choices } = await complete(ask("Hello", { response_format }));
    expect(JSON.parse(choices[0].message.content)).toEqual(value);
  });

  test.each([
    ["no JSON", "{"],
    ["no list of messages", { messages: "hello" }],
    ["a message that is none", { messages: [null] }],
    ["null", null],
  ])("refuses %s as a bad request", async (_, body) => {
    const response = await post(body);
    expect(response.status).toBe(400);
    expect(((await response.json()) as Json)["error"]).toMatchObject({ type: "BadRequestError", code: 400 });
  });

  test("refuses a prompt longer than its context as engines do", async () => {
    const response = await post(ask("abcdef ".repeat(263_000)));
    expect(response.status).toBe(400);
    expect(((await response.json()) as Json)["error"].message).toContain("maximum context length is 262144 tokens");
  });
});

describe("a tool call of the demo node", () => {
  const calls = async (content: string, settings: object): Promise<[string, unknown][] | null> => {
    const { choices } = await complete(ask(content, settings));
    const { tool_calls } = choices[0].message;
    expect(choices[0].finish_reason).toBe(tool_calls === undefined ? "stop" : "tool_calls");
    return tool_calls?.map((call: Json) => [call["function"].name, JSON.parse(call["function"].arguments)]) ?? null;
  };
  const tools = [clockTool, weather];
  const paris: [string, unknown] = ["get_weather", { city: "Paris", unit: "celsius" }];
  const rome = ["get_weather", { city: "Rome", unit: "celsius" }];
  const time = ["read_clock", {}];
  const rows: [string, string, object, unknown][] = [
    ["a word of the tool's name", "What is the weather in Paris?", { tools }, [paris]],
    ["two things joined", "Compare the weather in Paris and Rome", { tools }, [paris, rome]],
    [
      "two things, one call at a time",
      "The weather in Paris and Rome",
      { tools, parallel_tool_calls: false },
      [["get_weather", { city: "example", unit: "celsius" }]],
    ],
    ["nothing about a tool", "Hello", { tools }, null],
    ["tools switched off", "What is the weather in Paris?", { tools, tool_choice: "none" }, null],
    ["any tool required", "Hello", { tools, tool_choice: "required" }, [time]],
    ["the required tool that fits", "The weather in Paris?", { tools, tool_choice: "required" }, [paris]],
    [
      "one tool forced",
      "Hello",
      { tools, tool_choice: { type: "function", function: { name: "read_clock" } } },
      [time],
    ],
    ["no tools", "What is the weather in Paris?", {}, null],
  ];
  test.each(rows)("for %s", async (_, question, settings, expected) => {
    expect(await calls(question, settings)).toEqual(expected as [string, unknown][] | null);
  });

  test("not for a word that an agent added to what the person wrote", async () => {
    const reminder = "<system-reminder>\nthe weather, a clock\n</system-reminder>";
    expect(await calls(`${reminder}\n\nSay hello ${reminder}`, { tools })).toBeNull();
    const instructions = { role: "user", content: "<system>\nthe weather, a clock\n</system>" };
    const said = { role: "user", content: "Say hello" };
    expect(await calls("Say hello", { tools, messages: [said, instructions] })).toBeNull();
    const asked = { role: "user", content: `${reminder}The weather in Paris?` };
    expect(await calls("", { tools, messages: [asked, instructions] })).toEqual([paris]);
    expect(await calls("<system-reminder> is a mark: the weather in Paris?", { tools })).toEqual([paris]);
  });

  test("streams id and name first, then the arguments", async () => {
    const chunks = await stream(ask("The weather in Paris and Rome", { tools, ...thoughtOff }));
    const parts = chunks.flatMap(({ choices }) => (choices[0]?.delta.tool_calls as Json[]) ?? []);
    const heads = parts.filter(({ id }) => id !== undefined);
    expect(heads.map(({ index, type, function: { name } }) => [index, type, name])).toEqual([
      [0, "function", "get_weather"],
      [1, "function", "get_weather"],
    ]);
    expect(new Set(heads.map(({ id }) => id)).size).toBe(2);
    const argumentsAt = (at: number) =>
      parts.map(({ index, function: f }) => (index === at ? f.arguments : "")).join("");
    expect(JSON.parse(argumentsAt(0))).toEqual(paris[1]);
    expect(JSON.parse(argumentsAt(1))).toEqual(rome[1]);
    expect(chunks.at(-1)!["choices"][0].finish_reason).toBe("tool_calls");
  });

  test("is a search where one is asked for, and the answer cites what it found", async () => {
    const parameters = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
    const search = { type: "function", function: { name: "web_search", parameters } };
    const { choices } = await complete(ask("Search for Bun", { tools: [search] }));
    const [call] = choices[0].message.tool_calls;
    expect(JSON.parse(call.function.arguments)).toEqual({ query: "Search for Bun" });
    const content =
      "Material.\n\n<<<ab12\n[1] Bun\nhttps://bun.example/\nfast\nab12>>>\n\n<<<ab12\n[2] Elysia\nhttps://e.example/\nab12>>>";
    const messages = [
      { role: "user", content: "Search for Bun" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: call.id, content },
    ];
    const after = await complete({ model: "core-3", messages, tools: [search] });
    expect(after["choices"][0].message.content).toContain("web_search gave Bun [1], Elysia [2].");
    messages[2]!.content = "Material.\n<<<ab12\nnothing\nab12>>>";
    const none = await complete({ model: "core-3", messages, tools: [search] });
    expect(none["choices"][0].message.content).toContain('web_search gave "nothing".');
  });

  test("is followed by an answer that tells what the tools gave", async () => {
    const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } };
    const messages = [
      { role: "user", content: "What is the weather in Paris?" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "21 degrees" },
    ];
    const { choices } = await complete({ messages, tools });
    expect(choices[0].message.content).toContain('get_weather gave "21 degrees"');
    expect(choices[0].finish_reason).toBe("stop");
  });

  test("gives a search the whole question", async () => {
    const search = {
      type: "function",
      function: {
        name: "web_search",
        parameters: { type: "object", required: ["query"], properties: { query: { type: "string" } } },
      },
    };
    expect(await calls("Search for Bun releases", { tools: [search] })).toEqual([
      ["web_search", { query: "Search for Bun releases" }],
    ]);
  });
});

test("a plain completion goes on with its prompt, streamed and not, up to its budget and stop", async () => {
  const send = (body: object) =>
    fetch(`${node.url}/completions`, { method: "POST", body: JSON.stringify({ model: "core-3", ...body }) });
  const whole = (await (await send({ prompt: "Once upon", max_tokens: 4 })).json()) as Json;
  expect(whole).toMatchObject({
    object: "text_completion",
    choices: [{ text: " (synthetic: what Tollga", finish_reason: "length" }],
    usage: { prompt_tokens: 2, completion_tokens: 4 },
  });
  const streamed = await (await send({ prompt: "Once upon", max_tokens: 4, stream: true })).text();
  const texts = [...streamed.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text);
  expect([texts.join(""), streamed.endsWith("data: [DONE]\n\n")]).toEqual([whole["choices"][0].text, true]);
  const stopped = (await (await send({ prompt: [1, 2, 3], stop: ": what" })).json()) as Json;
  expect(stopped).toMatchObject({
    choices: [{ text: " (synthetic", finish_reason: "stop" }],
    usage: { prompt_tokens: 3 },
  });
  expect((await fetch(`${node.url}/completions`, { method: "POST", body: "[]" })).status).toBe(400);
});
