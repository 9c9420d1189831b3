// What chat-completions alone has: where a stream tells its usage, turns without content, and its recorded replies.
import { describe, expect, test } from "bun:test";
import { goldenChat } from "../fixtures/captures.ts";
import { dialectOf, hosted, toolsOf, weather } from "../fixtures/dialects.ts";
import { eventsOf } from "../fixtures/events.ts";
import { answered, type Asking } from "../fixtures/requests.ts";
import { useStack } from "../fixtures/stack.ts";

const stack = useStack();
const ask = (script: string, more: object, asked: Asking = {}) => answered(stack, dialectOf.chat, script, more, asked);

test.each([{}, { content: null }, { content: "" }])("an assistant turn with calls and %j", async (content) => {
  const called = { id: "call_1", type: "function", function: { name: "get_weather", arguments: "" } };
  const raw = [
    { role: "user", content: "weather?" },
    { role: "assistant", ...content, tool_calls: [called] },
    { role: "tool", tool_call_id: "call_1", content: "sunny" },
  ];
  const { sent } = await ask("text", toolsOf(dialectOf.chat, weather), { raw });
  expect(sent.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
});

test.each([
  ["left out", {}],
  ["null", { stream_options: null }],
  ["without the field", { stream_options: {} }],
  ["false", { stream_options: { include_usage: false } }],
])(
  "a client that did not ask for a chunk of usage (%s) gets it behind the finish, and every chunk has a choice",
  async (_, more) => {
    const { chunks } = eventsOf((await ask("text", { stream: true, ...more })).written);
    expect(chunks.every(({ choices: [choice] }) => choice?.delta !== undefined)).toBe(true);
    const [finish, last] = chunks.slice(-2);
    expect(finish!.choices).toMatchObject([{ finish_reason: "stop" }]);
    expect(finish).not.toHaveProperty("usage");
    expect(last).toMatchObject({ choices: [{ delta: {}, finish_reason: null }, {}], usage: { total_tokens: 140 } });
  },
);

test("a client that asked for it gets the usage in a chunk of its own, without choices", async () => {
  const { chunks } = eventsOf((await ask("text", { stream: true, stream_options: { include_usage: true } })).written);
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 140 } });
});

describe("recorded replies", () => {
  /** Id, time and model are the reply's own; before a text the first delta's content may be "" or null. */
  const comparable = (text: string): string =>
    text
      .replace(/^: waiting\n\n/, "")
      .replace(/"id":"chatcmpl-[^"]*"/g, '"id":"chatcmpl"')
      .replace(/"created":\d+/g, '"created":0')
      .replace(/"model":"[^"]*"/g, '"model":"m"')
      .replace('"role":"assistant","content":null', '"role":"assistant","content":""')
      // a call's id is the gateway's when the node's cannot be trusted to be unique
      .replace(/"id":"call_[^"]*"/g, '"id":"call"');

  test.each([
    ["chat_text", "reasoning-text"],
    ["chat_tools", "two-bash-calls"],
    ["chat_length", "length"],
  ] as const)("%s is byte for byte what every client read correctly", async (golden, script) => {
    const { written } = await ask(script, { model: hosted, stream: true, stream_options: { include_usage: true } });
    expect(comparable(written)).toBe(comparable(goldenChat[golden]));
  });

  test.each([
    ["chat_text__nonstream", "reasoning-text"],
    ["chat_tools__nonstream", "two-bash-calls"],
  ] as const)("%s has the same fields", async (golden, script) => {
    const { written } = await ask(script, { model: hosted });
    expect(JSON.parse(comparable(written))).toEqual(JSON.parse(comparable(JSON.stringify(goldenChat[golden]))));
  });
});
