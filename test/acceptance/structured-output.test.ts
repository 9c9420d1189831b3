// Structured output of the running gateway: answers that fit, answers that are asked for again, and what the others
// cost.
import { beforeAll, describe, expect, test } from "bun:test";
import { type Dialect, dialectOf, eachDialect, hosted } from "../fixtures/dialects.ts";
import { exchange, post, says } from "../fixtures/requests.ts";
import { once, text, finish, stream } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

const stack = useStack();
beforeAll(async () => {
  const wrong = stream(text('{"title":42}'), finish("stop"));
  const right = stream(text('{"title":', '"Dune"}'), finish("stop", { prompt_tokens: 500, completion_tokens: 30 }));
  await stack.node.define("wrong-then-right", { advance: "attempts", replies: [wrong, right] });
  await stack.node.define("cut-json", once(text('{"title":'), finish("length")));
});

const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };

/** Asks for the script in a dialect; its charges too. */
async function ask(dialect: Dialect, script: string, more: object = {}) {
  const form = { model: hosted, ...dialect.schema(schema), ...more };
  const { reply, account, marker } = await exchange(stack, dialect, script, form);
  const words = await reply.text();
  const rows = await stack.gateway.usage(account.email);
  return { reply, words, rows, asked: await stack.node.requests(marker) };
}

describe.each(eachDialect)("%s", (_, dialect) => {
  test("an answer that fits is asked for once", async () => {
    const { reply, words, rows, asked } = await ask(dialect, "json");
    expect(reply.status, words).toBe(200);
    expect(words).toContain("Dune");
    expect(rows).toHaveLength(1);
    expect(asked).toHaveLength(1);
  });

  test("one that does not is asked for again; the client pays for its prompt and the answer that it got", async () => {
    const { reply, words, rows, asked } = await ask(dialect, "wrong-then-right");
    expect(reply.status, words).toBe(200);
    expect(words).toContain("Dune");
    expect(words).not.toContain(":42"); // alone, 42 is also in times and random ids
    expect(asked).toHaveLength(2);
    expect(JSON.stringify(asked[1]?.body)).toContain("/title must be string");
    expect(rows).toMatchObject([{ input: 120, output: 30 }]);
  });

  test("one that never fits is a 500 after three passes, which no client repeats, and costs nothing", async () => {
    const { reply, words, rows, asked } = await ask(dialect, "wrong-json");
    expect(reply.status, words).toBe(500);
    expect(JSON.parse(words)).toMatchObject({ error: { type: "api_error" } });
    expect(reply.headers.get("x-should-retry")).toBe("false");
    expect(asked).toHaveLength(3);
    expect(rows).toEqual([]);
  });

  test("in a stream its text flows and an error event ends it; what was delivered is charged", async () => {
    const { reply, words, rows, asked } = await ask(dialect, "wrong-json", { stream: true });
    expect(reply.status).toBe(200);
    expect(words).toContain(":42");
    expect(words).toContain("does not match the requested format");
    expect(words).not.toContain("[DONE]");
    expect(words).not.toContain("message_stop");
    expect(words).not.toContain("response.completed");
    expect(asked).toHaveLength(1);
    expect(rows).toHaveLength(1);
    expect(rows[0]!.output).toBeGreaterThan(0);
  });

  test("one that its budget cut goes out as it is", async () => {
    const { reply, words, rows, asked } = await ask(dialect, "cut-json");
    expect(reply.status, words).toBe(200);
    expect(words).toMatch(/"length"|"max_tokens"|"max_output_tokens"/);
    expect(rows).toHaveLength(1);
    expect(asked).toHaveLength(1);
  });
});

describe("schemas", () => {
  const nested = (depth: number): object => {
    let inner: object = { type: "string" };
    for (let level = 0; level < depth; level++) inner = { not: inner };
    return inner;
  };

  test.each([
    ["too deep", nested(100), "nests too deep"],
    [
      "too wide",
      { anyOf: Array.from({ length: 10_000 }, (_, index) => ({ const: index })) },
      "has more than 20000 values",
    ],
    ["remote", { $ref: "http://127.0.0.1/x" }, 'refers to "http://127.0.0.1/x", which is not in it'],
    ["no schema", { type: "banana" }, "The JSON Schema cannot be used: /type must be"],
  ])("%s: 400, and the node is not asked", async (_, wrong, message) => {
    const account = await stack.gateway.account();
    const marker = stack.node.marker("json");
    const response_format = { type: "json_schema", json_schema: { name: "x", schema: wrong } };
    const reply = await post(stack, account, says(marker, { response_format }));
    expect(reply.status).toBe(400);
    expect(((await reply.json()) as { error: { message: string } }).error.message).toContain(message);
    expect(await stack.node.requests(marker)).toEqual([]);
  });

  test("beside tools the node reads the schema in its prompt, and the final answer is checked all the same", async () => {
    const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }];
    const { reply, asked, words } = await ask(dialectOf.chat, "wrong-json", { tools });
    expect(reply.status, words).toBe(500);
    const [first] = asked as unknown as {
      body: { messages: { role: string; content: string }[]; response_format?: unknown };
    }[];
    expect(first?.body.response_format).toBeUndefined();
    expect(first?.body.messages[0]).toMatchObject({ role: "system" });
    expect(first?.body.messages[0]?.content).toContain(JSON.stringify(schema));
  });
});
