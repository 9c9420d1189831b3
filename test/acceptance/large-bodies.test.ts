// Requests whose bodies are read in a Worker: a large unknown field turns any request into one of them, and nothing
// else may change.
import { eventually } from "../fixtures/eventually.ts";
import { beforeAll, expect, test } from "bun:test";
import { largeBodyMinBytes } from "../../src/core/limits.ts";
import { eventsOf, expectWellFormed } from "../fixtures/events.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { pixelUrl } from "../fixtures/pictures.ts";
import { post } from "../fixtures/requests.ts";
import { useStack } from "../fixtures/stack.ts";

const stack = useStack();

// The node is asked for more once its engine is known, which must not happen between two requests that are compared.
beforeAll(async () => {
  const account = await stack.gateway.account();
  const body = (text: string) => ({ model: "core-3", messages: [user(text)] });
  await eventually("the engine is known", async () => {
    const { asked } = await answered(account, "/v1/chat/completions", body, {}, "text");
    return (asked as { stream_options: object }).stream_options.hasOwnProperty("continuous_usage_stats");
  });
});

/** A field that no dialect knows. */
const padding = { padding: "x".repeat(largeBodyMinBytes) };

type Answered = Readonly<{ status: number; reply: Record<string, unknown>; asked: unknown }>;

/** What the node was asked and the client answered; the marker is in the text that `body` is given. */
async function answered(
  account: Account,
  path: string,
  body: (text: string) => object,
  more: object,
  script: string,
): Promise<Answered> {
  const marker = stack.node.marker(script);
  const response = await post(stack, account, { ...body(`hello [[${marker}]]`), ...more }, { path });
  const reply = (await response.json()) as Record<string, unknown>;
  const asked = response.status === 200 ? (await stack.node.request(marker)).body : null;
  const unmarked = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll(marker, "MARKER")) as never;
  return { status: response.status, reply: unmarked(withoutIds(reply)), asked: unmarked(asked) };
}

const withoutIds = (reply: Record<string, unknown>): unknown =>
  JSON.parse(
    JSON.stringify(reply, (key, value: unknown) =>
      /^(?:id|request_id|created(?:_at)?|completed_at)$/.test(key) ? null : value,
    ),
  );

const weather = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const user = (content: unknown) => ({ role: "user", content });

test.each([
  ["chat", "/v1/chat/completions", (text: string) => ({ model: "core-3", messages: [user(text)] })],
  [
    "chat with a system message, images and tools",
    "/v1/chat/completions",
    (text: string) => ({
      model: "core-3",
      messages: [
        { role: "system", content: "Be brief. é \u{1f600}" },
        user([
          { type: "text", text },
          { type: "image_url", image_url: { url: pixelUrl } },
        ]),
      ],
      tools: [{ type: "function", function: { name: "get_weather", parameters: weather } }],
      response_format: { type: "json_schema", json_schema: { name: "w", schema: { type: "string" } } },
    }),
  ],
  [
    "chat of an unknown model",
    "/v1/chat/completions",
    (text: string) => ({ model: "no-such-model", messages: [user(text)] }),
  ],
  ["chat without messages", "/v1/chat/completions", () => ({ model: "core-3", messages: [] })],
  [
    "messages",
    "/v1/messages",
    (text: string) => ({ model: "core-3", max_tokens: 9, system: "Be brief.", messages: [user(text)] }),
  ],
  [
    "responses with a custom tool and a file",
    "/v1/responses",
    (text: string) => ({
      model: "core-3",
      instructions: "Be brief.",
      input: [
        user([
          { type: "input_text", text },
          { type: "input_file", file_data: `data:text/plain;base64,${btoa("of a file")}`, filename: "a.txt" },
        ]),
      ],
      tools: [{ type: "custom", name: "patch" }],
    }),
  ],
])("%s: the node is asked and the client is answered the same", async (_, path, body) => {
  const script = "text";
  const account = await stack.gateway.account();
  const small = await answered(account, path, body, {}, script);
  const large = await answered(account, path, body, padding, script);
  expect(large).toEqual(small);
});

test("what a large request keeps is found by the next one, whichever of the two is large", async () => {
  const account = await stack.gateway.account();
  const respond = async (body: object) => {
    const response = await post(stack, account, { model: "core-3", ...body }, { path: "/v1/responses" });
    return (await response.json()) as { id: string; status: string };
  };
  const first = await respond({ input: "remember blue", ...padding });
  const marker = stack.node.marker("text");
  const second = await respond({ input: `what? [[${marker}]]`, previous_response_id: first.id, ...padding });
  expect(second.status).toBe("completed");
  const { messages } = (await stack.node.request(marker)).body as { messages: { content: string }[] };
  expect(messages.map(({ content }) => content)).toEqual(["remember blue", "Hi there!", `what? [[${marker}]]`]);
  expect((await respond({ input: "and?", previous_response_id: second.id })).status).toBe("completed");
});

test.each([true, false])("a stream's usage comes apart where the client asked for that: %p", async (usageApart) => {
  const asked = { stream: true, stream_options: { include_usage: usageApart }, ...padding };
  const body = { model: "core-3", messages: [user(`hello [[${stack.node.marker("text")}]]`)], ...asked };
  const reply = await post(stack, await stack.gateway.account(), body);
  expectWellFormed(eventsOf(await reply.text()), { usageApart });
});

test("counts are the same", async () => {
  const account = await stack.gateway.account();
  const conversation = { model: "core-3", max_tokens: 1, messages: [user("Say hello")], system: "Be brief." };
  for (const path of ["/v1/messages/count_tokens", "/v1/tokenize"]) {
    const [small, large] = await Promise.all(
      [{}, padding].map(async (more) => (await post(stack, account, { ...conversation, ...more }, { path })).json()),
    );
    expect(large).toEqual(small);
  }
});

test("clients that leave while their bodies are read leave nothing behind", async () => {
  const account = await stack.gateway.account();
  const body = JSON.stringify({ model: "core-3", messages: [user("a")], padding: "x".repeat(20_000_000) });
  await Promise.all(
    [1, 10, 20, 40, 60, 100, 150].map(async (ms) => {
      const reply = post(stack, account, body, { signal: AbortSignal.timeout(ms) }).then(
        (response) => response.text(),
        (error: Error) => error.name,
      );
      await reply;
    }),
  );
  // All of the room is there again, once the last that was being read is: seven of these do not fit beside each other.
  await eventually("room for it", async () => (await post(stack, account, body)).status === 200, 30_000);
});
