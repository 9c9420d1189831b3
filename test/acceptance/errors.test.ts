// Every row of the error table that chat-completions can give, through real HTTP: status, type, code, message, headers.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { nodeTable } from "../fixtures/stack.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import type { ErrorReply } from "../fixtures/requests.ts";
import { post, says } from "../fixtures/requests.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 30_000;
let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

async function refusal(reply: Response): Promise<ErrorReply["error"] & { status: number }> {
  expect(reply.headers.get("content-type")).toStartWith("application/json");
  expect(reply.headers.get("request-id")).toBe(reply.headers.get("x-request-id"));
  const { error } = (await reply.json()) as ErrorReply;
  expect(error.message).not.toBe("");
  return { status: reply.status, ...error };
}

const uncharged = async (account: Account): Promise<void> => {
  expect(await stack.gateway.usage(account.email)).toEqual([]);
  expect((await stack.gateway.show(account.email)).reserved).toBe(0);
};

describe("400", () => {
  const user = [{ role: "user", content: "hi" }];
  test.each([
    ["messages that are no array", { model: "core-3", messages: "not-an-array" }],
    ["no messages", { model: "core-3" }],
    ["no model", { messages: user }],
    ["an unknown model", { model: "core-99", messages: user }],
    ["a role that is not known", { model: "core-3", messages: [{ role: "wizard", content: "hi" }] }],
    ["a budget that is no number", { model: "core-3", messages: user, max_tokens: "many" }],
    ["a stream flag that is no flag", { model: "core-3", messages: user, stream: "yes" }],
    ["tools that are no array", { model: "core-3", messages: user, tools: {} }],
    ["a tool without a name", { model: "core-3", messages: user, tools: [{ type: "function", function: {} }] }],
    ["a depth that is not known", { model: "core-3", messages: user, reasoning_effort: "frantic" }],
    ["a JSON schema that is no object", { model: "core-3", messages: user, response_format: { type: "json_schema" } }],
    [
      "a schema for a model without structured output",
      { model: "open-08-W4A16-AUTOROUND-REAP", messages: user, response_format: { type: "json_object" } },
    ],
    [
      "an image for a model that reads text only",
      {
        model: "open-12-W8A16",
        messages: [
          { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }] },
        ],
      },
    ],
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
      const error = await refusal(await post(stack, account, body));
      expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
      await uncharged(account);
    },
    timeLimit,
  );

  test(
    "an unknown model and a missing key do not count for flood protection, malformed parameters do",
    async () => {
      const account = await stack.gateway.account();
      for (let i = 0; i < 130; i++) await (await post(stack, account, { model: "core-99", messages: user })).text();
      for (let i = 0; i < 120; i++) {
        expect((await refusal(await post(stack, account, { model: "core-3", messages: "no" }))).status).toBe(400);
      }
      expect((await refusal(await post(stack, account, { model: "core-3", messages: "no" }))).status).toBe(429);
    },
    timeLimit,
  );

  test(
    "a prompt beyond the node's context has its code, and nothing of the node's own text",
    async () => {
      const account = await stack.gateway.account();
      for (const stream of [false, true]) {
        const error = await refusal(await post(stack, account, says(stack.node.marker("prompt-too-long"), { stream })));
        expect(error).toMatchObject({ status: 400, code: "context_length_exceeded", type: "invalid_request_error" });
        expect(error.message).toMatch(/^prompt is too long/);
      }
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
      const body = says(stack.node.marker("text"));
      for (let i = 0; i < 120; i++) {
        const reply = await post(stack, account, body);
        expect(reply.status).toBe(200);
        await reply.text();
      }
      const reply = await post(stack, account, body);
      const seconds = Number(reply.headers.get("retry-after"));
      expect(await refusal(reply)).toEqual({
        status: 429,
        type: "rate_limit_error",
        message: `Too many requests. Retry in ${seconds}s.`,
        code: null,
        param: null,
      });
      expect(seconds).toBeWithin(1, 61);
      expect(reply.headers.get("x-should-retry")).toBeNull();
      expect(await stack.gateway.usage(account.email)).toHaveLength(120);
      // another account is not touched, and the window is not reset by a new key
      const other = await stack.gateway.account();
      expect((await post(stack, other, body)).status).toBe(200);
      const { api_key } = await stack.gateway.cli<{ api_key: string }>("keys", "rotate", account.email);
      const rotated = await post(stack, { ...account, api_key }, body);
      expect((await refusal(rotated)).message).toStartWith("Too many requests.");
    },
    timeLimit,
  );

  test(
    "a reservation that does not fit is refused with the plan page, not to be tried again",
    async () => {
      const account = await stack.gateway.account(0); // the free plan's 30,000 of today
      const reply = await post(stack, account, says(stack.node.marker("text"), { max_tokens: 60_000 }));
      expect(reply.headers.get("x-should-retry")).toBe("false");
      expect(reply.headers.get("retry-after")).toBeNull();
      expect(await refusal(reply)).toMatchObject({
        status: 429,
        type: "rate_limit_error",
        code: "insufficient_quota",
        message: expect.stringMatching(/^Quota exceeded\. Upgrade your plan at http:\/\/\S+\/plan$/),
        spendable: 30_000,
        requested: 60_000,
        resets_at: expect.any(Number),
      });
      await uncharged(account);
      const fits = await post(stack, account, says(stack.node.marker("text"), { max_tokens: 20 }));
      expect(fits.status).toBe(200);
      await fits.text();
    },
    timeLimit,
  );

  test(
    "open requests hold their budgets, so that together they cannot overdraw the balance",
    async () => {
      const account = await stack.gateway.account(0);
      const controller = new AbortController();
      // 7 x 4,096 = 28,672 of 30,000 tokens
      const open = await Promise.all(
        Array.from({ length: 7 }, () =>
          post(stack, account, says(stack.node.marker("endless"), { stream: true }), { signal: controller.signal }),
        ),
      );
      expect(open.map(({ status }) => status)).toEqual(Array(7).fill(200));
      expect((await stack.gateway.show(account.email)).reserved).toBe(28_672);
      const eighth = await refusal(await post(stack, account, says(stack.node.marker("text"))));
      expect(eighth).toMatchObject({ code: "insufficient_quota", spendable: 1_328, requested: 4_096 });
      controller.abort();
      await Promise.allSettled(open.map((reply) => reply.text()));
    },
    timeLimit,
  );

  test(
    "coder calls beyond the window's allowance are refused by name; a failed call counts too",
    async () => {
      const account = await stack.gateway.account(0);
      const coder = (script: string): Record<string, unknown> =>
        says(stack.node.marker(script), { model: "core-coder-1" });
      for (const script of ["text", "text", "status-500"]) await (await post(stack, account, coder(script))).text();
      const reply = await post(stack, account, coder("text"));
      expect(reply.headers.get("x-should-retry")).toBe("false");
      const error = await refusal(reply);
      expect(error).toMatchObject({ status: 429, type: "rate_limit_error", code: "insufficient_quota" });
      expect(error.message).toMatch(/^\S.* call quota reached\. Upgrade your plan at http:\/\/\S+\/plan$/);
      const state = await stack.gateway.show(account.email);
      expect(state.coder_calls).toMatchObject({ used: 3, limit: 3 });
      expect(state.allowance.left).toBe(state.allowance.granted);
    },
    timeLimit,
  );
});

describe("a node that fails", () => {
  test.each([
    ["status-500", 500],
    ["error-in-stream", 500],
    ["dies-before-head", 500],
    ["no-finish", 500],
    ["dies-rst", 500],
    ["dies-fin", 500],
  ])(
    "before the client has an answer: %s is an HTTP status, uncharged",
    async (script, status) => {
      const account = await stack.gateway.account();
      const error = await refusal(await post(stack, account, says(stack.node.marker(script))));
      expect(error).toMatchObject({ status, type: "api_error" });
      expect(JSON.stringify(error)).not.toMatch(/10\.1\.2\.3|127\.0\.0\.1|scripted/);
      await uncharged(account);
    },
    timeLimit,
  );

  test.each(["status-500", "error-in-stream", "dies-before-head"])(
    "%s gives a streaming client its status too, because no byte was sent",
    async (script) => {
      const account = await stack.gateway.account();
      const error = await refusal(await post(stack, account, says(stack.node.marker(script), { stream: true })));
      expect(error).toMatchObject({ status: 500, type: "api_error" });
      await uncharged(account);
    },
    timeLimit,
  );

  test.each(["status-503", "status-429"])(
    "%s is a busy route, to be tried again",
    async (script) => {
      const account = await stack.gateway.account();
      const reply = await post(stack, account, says(stack.node.marker(script)));
      expect(Number(reply.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(reply.headers.get("x-should-retry")).toBeNull();
      expect(await refusal(reply)).toMatchObject({
        status: 429,
        type: "rate_limit_error",
        message: "Routes are temporarily busy. Please retry.",
      });
      await uncharged(account);
    },
    timeLimit,
  );

  test("a node that is not there is a busy route; when it comes back it is used again", async () => {
    const node = await ScriptedNode.start();
    await using gateway = await GatewayProcess.start({ config: nodeTable(node, 4) });
    const account = await gateway.account();
    const send = (): Promise<Response> =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${account.api_key}` },
        body: JSON.stringify(says("text#1")),
      });
    await node.kill();
    const cancelSignal = await send();
    expect(await refusal(cancelSignal)).toMatchObject({
      status: 429,
      message: "Routes are temporarily busy. Please retry.",
    });
    await using _again = await ScriptedNode.start(node.port);
    await eventually(
      "the node is used again",
      async () => {
        const reply = await send();
        await reply.text();
        return reply.status === 200;
      },
      20_000,
    );
    await gateway.expectNothingReserved();
  }, 60_000);
});
