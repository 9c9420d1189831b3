// Keys, paths, body limits and every row of the error table that the messages dialect can give, through real HTTP.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Account } from "../fixtures/gateway-process.ts";
import { post, says } from "../fixtures/requests.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 30_000;
const path = "/v1/messages";
let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

const ask = (script: string, more: object = {}): Record<string, unknown> => says(stack.node.marker(script), more);

type ErrorObject = { type: string; message: string; [more: string]: unknown };

/** Reads a refusal in the dialect's own form. */
async function refusal(reply: Response): Promise<ErrorObject & { status: number }> {
  expect(reply.headers.get("content-type")).toStartWith("application/json");
  const body = (await reply.json()) as { type: string; error: ErrorObject; request_id: string };
  expect(body.type).toBe("error");
  expect(body.request_id).toBe(reply.headers.get("request-id") ?? "none");
  expect(reply.headers.get("x-request-id")).toBe(body.request_id);
  expect(body.error.message).not.toBe("");
  expect(body.error).not.toHaveProperty("code");
  expect(body.error).not.toHaveProperty("param");
  return { status: reply.status, ...body.error };
}

const uncharged = async (account: Account): Promise<void> => {
  expect(await stack.gateway.usage(account.email)).toEqual([]);
  expect((await stack.gateway.show(account.email)).reserved).toBe(0);
};

describe("keys", () => {
  test(
    "a key is read from Authorization and from x-api-key, whatever the version headers say",
    async () => {
      const { api_key } = await stack.gateway.account();
      for (const [header, value] of [
        ["authorization", `Bearer ${api_key}`],
        ["x-api-key", api_key],
      ] as const) {
        for (const version of [null, "2023-06-01", "2026-10-21", "banana"]) {
          const reply = await fetch(`${stack.gateway.url}${path}`, {
            method: "POST",
            headers: {
              [header]: value,
              ...(version === null ? {} : { "anthropic-version": version }),
              "anthropic-beta": "x,y,z",
            },
            body: JSON.stringify(ask("text")),
          });
          expect(reply.status, await reply.text()).toBe(200);
        }
      }
    },
    timeLimit,
  );

  test.each([
    ["no key", {}],
    ["an unknown key", { "x-api-key": `sk-tg-${"x".repeat(43)}` }],
    ["an empty key", { "x-api-key": "" }],
    ["two different keys", { authorization: "Bearer a", "x-api-key": "b" }],
  ])("%s: 401 that clients do not try again", async (_, headers) => {
    const reply = await fetch(`${stack.gateway.url}${path}`, {
      method: "POST",
      headers: headers as Record<string, string>,
      body: JSON.stringify(ask("text")),
    });
    expect(reply.headers.get("x-should-retry")).toBe("false");
    expect(await refusal(reply)).toEqual({
      status: 401,
      type: "authentication_error",
      message: "Invalid API key provided",
    });
  });
});

describe("paths", () => {
  test(
    "a query string never changes the route; both base addresses are understood",
    async () => {
      const account = await stack.gateway.account();
      for (const address of [`${path}?beta=true`, `${path}?limit=1000`, "/messages", "/v1/v1/messages"]) {
        const reply = await post(stack, account, ask("text"), { path: address });
        expect(reply.status, await reply.text()).toBe(200);
      }
    },
    timeLimit,
  );

  test.each([
    ["GET", path],
    ["DELETE", path],
    ["POST", "/v1/messages/nothing"],
    ["GET", "/v1/messages/batches"],
  ])("%s %s is a JSON 404 in the dialect's form", async (method, address) => {
    const { api_key } = await stack.gateway.account();
    const reply = await fetch(`${stack.gateway.url}${address}`, { method, headers: { "x-api-key": api_key } });
    expect(await refusal(reply)).toMatchObject({ status: 404, type: "not_found_error" });
  });
});

describe("400", () => {
  const user = [{ role: "user", content: "hi" }];
  const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } };
  const schema = { type: "json_schema", schema: { type: "object" } };
  test.each([
    ["messages that are no array", { model: "core-3", messages: "not-an-array" }],
    ["no messages", { model: "core-3" }],
    ["an empty conversation", { model: "core-3", messages: [] }],
    ["no model", { messages: user }],
    ["an unknown model", { model: "core-99", messages: user }],
    ["a role that is not known", { model: "core-3", messages: [{ role: "wizard", content: "hi" }] }],
    ["a block without a type", { model: "core-3", messages: [{ role: "user", content: [{ text: "hi" }] }] }],
    ["a budget that is no number", { model: "core-3", messages: user, max_tokens: "many" }],
    ["a stream flag that is no flag", { model: "core-3", messages: user, stream: "yes" }],
    ["a system prompt that is no text", { model: "core-3", messages: user, system: 42 }],
    ["tools that are no array", { model: "core-3", messages: user, tools: {} }],
    ["a tool without a name", { model: "core-3", messages: user, tools: [{ input_schema: {} }] }],
    ["a tool that is not there", { model: "core-3", messages: user, tool_choice: { type: "tool", name: "x" } }],
    ["a depth that is not known", { model: "core-3", messages: user, output_config: { effort: "frantic" } }],
    [
      "a schema for a model without structured output",
      { model: "open-08-W4A16-AUTOROUND-REAP", messages: user, output_config: { format: schema } },
    ],
    [
      "an image for a model that reads text only",
      { model: "open-12-W8A16", messages: [{ role: "user", content: [picture] }] },
    ],
    ["a conversation that the server is to keep", { model: "core-3", messages: user, thread: { type: "create" } }],
    ["an array", []],
    ["null", "null"],
    ["a number", "42"],
    ["cut-off JSON", '{"model":"core-3","messages":['],
    ["no body", ""],
    ["a body that nests without end", `{"model":"core-3","messages":${"[".repeat(100_000)}`],
  ])(
    "%s is refused with a message, in the dialect's form",
    async (_, body) => {
      const account = await stack.gateway.account();
      const error = await refusal(await post(stack, account, body, { path }));
      expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
      await uncharged(account);
    },
    timeLimit,
  );

  test(
    "a prompt beyond the node's context is refused in the words that agents compact on",
    async () => {
      const account = await stack.gateway.account();
      for (const stream of [false, true]) {
        const error = await refusal(await post(stack, account, ask("prompt-too-long", { stream }), { path }));
        expect(error).toEqual({
          status: 400,
          type: "invalid_request_error",
          message: "prompt is too long: 5000 tokens > 4096 maximum",
        });
      }
      await uncharged(account);
    },
    timeLimit,
  );
});

describe("413", () => {
  const limit = 33_554_432;
  test.each(["content-length", "chunked"])(
    "one byte over 32 MiB is a refusal that the client can read, %s",
    async (framing) => {
      const account = await stack.gateway.account();
      const [head = "", tail = ""] = JSON.stringify(ask("text")).split("hello ");
      const body = `${head}${"a".repeat(limit + 1 - head.length - tail.length)}${tail}`;
      const reply = await fetch(`${stack.gateway.url}${path}`, {
        method: "POST",
        headers: { "x-api-key": account.api_key },
        body: framing === "chunked" ? new Blob([body]).stream() : body,
      });
      expect(await refusal(reply)).toEqual({
        status: 413,
        type: "invalid_request_error",
        message: "Request body larger than 32 MiB",
      });
      await uncharged(account);
    },
    timeLimit,
  );
});

describe("429", () => {
  test(
    "the 121st request of a window waits for the window's end, in the message and in retry-after",
    async () => {
      const account = await stack.gateway.account();
      // refused parameters count too, and are quicker
      for (let request = 0; request < 120; request++) {
        await (await post(stack, account, { model: "core-3", messages: [] }, { path })).text();
      }
      const reply = await post(stack, account, ask("text"), { path });
      const seconds = Number(reply.headers.get("retry-after"));
      expect(seconds).toBeWithin(1, 61);
      expect(reply.headers.get("x-should-retry")).toBeNull();
      expect(await refusal(reply)).toEqual({
        status: 429,
        type: "rate_limit_error",
        message: `Too many requests. Retry in ${seconds}s.`,
      });
      await uncharged(account);
    },
    timeLimit,
  );

  test(
    "a reservation that does not fit is refused with the plan page, not to be tried again",
    async () => {
      const account = await stack.gateway.account(0); // the free plan's 30,000 of today
      const reply = await post(stack, account, ask("text", { max_tokens: 60_000 }), { path });
      expect(reply.headers.get("x-should-retry")).toBe("false");
      expect(reply.headers.get("retry-after")).toBeNull();
      expect(await refusal(reply)).toEqual({
        status: 429,
        type: "rate_limit_error",
        message: expect.stringMatching(/^Quota exceeded\. Upgrade your plan at http:\/\/\S+\/plan$/),
        spendable: 30_000,
        requested: 60_000,
        resets_at: expect.any(Number),
      });
      await uncharged(account);
    },
    timeLimit,
  );

  test(
    "the coder tier is counted in calls here, a failed one too, and refused by name when they are used up",
    async () => {
      const account = await stack.gateway.account(0);
      const coder = (script: string): Promise<Response> =>
        post(stack, account, ask(script, { model: "core-coder-1", max_tokens: 65_536 }), { path });
      for (const [script, status] of [
        ["text", 200],
        ["text", 200],
        ["status-500", 500],
      ] as const) {
        const reply = await coder(script); // 65,536 tokens would not fit into the balance
        expect(reply.status, await reply.text()).toBe(status);
      }
      const reply = await coder("text");
      expect(reply.headers.get("x-should-retry")).toBe("false");
      expect(await refusal(reply)).toEqual({
        status: 429,
        type: "rate_limit_error",
        message: expect.stringMatching(/^\S.* call quota reached\. Upgrade your plan at http:\/\/\S+\/plan$/),
        ...{
          used: 3,
          limit: 3,
          resets_at: expect.any(Number),
        },
      });
      const state = await stack.gateway.show(account.email);
      expect(state.coder_calls).toMatchObject({ used: 3, limit: 3 });
      expect(state.allowance.left).toBe(state.allowance.granted);
      for (const row of await stack.gateway.usage(account.email)) expect(row.billed_tokens).toBe(0);
    },
    timeLimit,
  );
});

describe("a node that fails", () => {
  test.each(["status-500", "error-in-stream", "dies-before-head", "no-finish", "dies-rst", "dies-fin"])(
    "before the client has an answer: %s is an HTTP status, uncharged",
    async (script) => {
      const account = await stack.gateway.account();
      const error = await refusal(await post(stack, account, ask(script), { path }));
      expect(error).toMatchObject({ status: 500, type: "api_error" });
      expect(JSON.stringify(error)).not.toMatch(/10\.1\.2\.3|127\.0\.0\.1|scripted/);
      await uncharged(account);
    },
    timeLimit,
  );

  test.each(["status-500", "error-in-stream", "dies-before-head"])(
    "%s gives a streaming client its status too, because no byte was sent",
    async (script) => {
      const account = await stack.gateway.account();
      const error = await refusal(await post(stack, account, ask(script, { stream: true }), { path }));
      expect(error).toMatchObject({ status: 500, type: "api_error" });
      await uncharged(account);
    },
    timeLimit,
  );

  test.each(["status-503", "status-429"])(
    "%s is a busy route, to be tried again",
    async (script) => {
      const account = await stack.gateway.account();
      const reply = await post(stack, account, ask(script), { path });
      expect(Number(reply.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(reply.headers.get("x-should-retry")).toBeNull();
      expect(await refusal(reply)).toEqual({
        status: 429,
        type: "rate_limit_error",
        message: "Routes are temporarily busy. Please retry.",
      });
      await uncharged(account);
    },
    timeLimit,
  );
});
