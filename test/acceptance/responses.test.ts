// Replies of the responses dialect: streams event by event and byte by byte, failures, compaction, what the Open
// Responses suite asks for, and clients that leave.
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { largeBodyMinBytes } from "../../src/core/limits.ts";
import { pixelUrl } from "../fixtures/pictures.ts";
import { type ErrorReply, post } from "../fixtures/requests.ts";
import {
  expectOrderedResponse,
  expectResponseShape,
  type ResponseBody,
  responseEvents,
} from "../fixtures/response-events.ts";
import { goldenResponses } from "../fixtures/responses-captures.ts";
import { callArguments, callStart, finish, once, reasoning, text } from "../fixtures/scripts.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 30_000;
const path = "/v1/responses";
const hosted = "open-05-3BIT-REAP";
const bash = {
  type: "function",
  name: "bash",
  description: "run",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  strict: false,
};
let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

const ask = (script: string, more: object = {}): Record<string, unknown> => ({
  model: "core-3",
  input: `hello [[${stack.node.marker(script)}]]`,
  ...more,
});
const streamed = async (account: Account, body: object): Promise<string> => {
  const reply = await post(stack, account, { ...body, stream: true }, { path });
  const wire = await reply.text();
  expect(reply.status, wire).toBe(200);
  expect(reply.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(reply.headers.get("cache-control")).toBe("no-cache");
  return wire;
};
const whole = async (account: Account, body: object): Promise<ResponseBody> => {
  const reply = await post(stack, account, body, { path });
  const response = (await reply.json()) as ResponseBody;
  expect(reply.status, JSON.stringify(response)).toBe(200);
  expect(reply.headers.get("content-type")).toStartWith("application/json");
  expectResponseShape(response);
  return response;
};
const refusal = async (reply: Response): Promise<ErrorReply["error"] & { status: number }> => {
  const { error } = (await reply.json()) as ErrorReply;
  expect(error.message).toBeString();
  expect(error.message).not.toContain("10.1.2.3");
  expect(error).toHaveProperty("param");
  expect(reply.headers.get("x-request-id")).toBe(reply.headers.get("request-id"));
  return { ...error, status: reply.status };
};
const uncharged = async (account: Account): Promise<void> => {
  expect(await stack.gateway.usage(account.email)).toEqual([]);
  expect((await stack.gateway.show(account.email)).reserved).toBe(0);
};

describe("keys and paths", () => {
  test(
    "a key is read from Authorization and from x-api-key, whatever the version headers say",
    async () => {
      const { api_key } = await stack.gateway.account();
      for (const [header, value] of [
        ["authorization", `Bearer ${api_key}`],
        ["x-api-key", api_key],
      ] as const) {
        for (const version of [null, "2023-06-01", "2026-10-21", "banana"]) {
          const headers = new Headers({ [header]: value, "anthropic-beta": "x,y,z", "openai-beta": "x" });
          if (version !== null) headers.set("anthropic-version", version);
          const body = JSON.stringify(ask("text"));
          const reply = await fetch(`${stack.gateway.url}${path}`, { method: "POST", headers, body });
          expect(reply.status, await reply.text()).toBe(200);
        }
      }
    },
    timeLimit,
  );

  test(
    "a query string never changes the route; both base addresses are understood",
    async () => {
      const account = await stack.gateway.account();
      for (const address of [`${path}?beta=true`, `${path}?limit=1000`, "/responses", "/v1/v1/responses"]) {
        const reply = await post(stack, account, ask("text"), { path: address });
        expect(reply.status, await reply.text()).toBe(200);
      }
    },
    timeLimit,
  );

  test(
    "a WebSocket is refused with 426, before any key is asked for",
    async () => {
      const headers = { upgrade: "websocket", connection: "upgrade", "openai-beta": "responses_websockets=2026-02-06" };
      const reply = await fetch(`${stack.gateway.url}${path}`, { headers });
      expect(await refusal(reply)).toMatchObject({ status: 426 });
    },
    timeLimit,
  );
});

describe("refusals", () => {
  test.each([
    ["an input that is a number", { input: 42 }],
    ["an item that is null", { input: [null] }],
    ["an unknown role", { input: [{ role: "robot", content: "x" }] }],
    ["no input", { input: undefined }],
    ["no model", { model: undefined }],
    ["a background run", { background: true }],
    ["an unknown depth", { reasoning: { effort: "much" } }],
    ["an array", []],
    ["half a body", '{"model":"core-3","input":"x'],
    ["an empty body", ""],
  ])(
    "%s is refused with a message",
    async (_, body) => {
      const account = await stack.gateway.account();
      const sent = typeof body === "string" || Array.isArray(body) ? body : { ...ask("text"), ...body };
      const reply = await post(stack, account, sent, { path });
      expect(await refusal(reply)).toMatchObject({ status: 400, type: "invalid_request_error", code: null });
      await uncharged(account);
    },
    timeLimit,
  );

  test(
    "an unknown model has its code",
    async () => {
      const reply = await post(stack, await stack.gateway.account(), ask("text", { model: "core-99" }), { path });
      expect(await refusal(reply)).toMatchObject({ status: 400, code: "model_not_found" });
    },
    timeLimit,
  );

  test.each([
    ["status-500", 500, null],
    ["error-in-stream", 500, null],
    ["dies-before-head", 429, null],
    ["status-503", 429, null],
    ["no-finish", 500, null],
    ["dies-rst", 500, null],
    ["dies-fin", 500, null],
    ["prompt-too-long", 400, "context_length_exceeded"],
  ] as const)(
    "%s is an HTTP status where nothing was sent yet, never a failed response, and uncharged",
    async (script, status, code) => {
      const account = await stack.gateway.account();
      const reply = await post(stack, account, ask(script), { path });
      const refused = await refusal(reply);
      expect(refused.code ?? null).toBe(code);
      if (script !== "dies-before-head" && script !== "status-503") expect(refused.status).toBe(status);
      else expect([429, 500]).toContain(refused.status);
      await uncharged(account);
    },
    timeLimit,
  );

  test(
    "a stream that has not begun gets the node's refusal as a status",
    async () => {
      const account = await stack.gateway.account();
      const reply = await post(stack, account, ask("prompt-too-long", { stream: true }), { path });
      expect(await refusal(reply)).toMatchObject({ status: 400, code: "context_length_exceeded" });
      await uncharged(account);
    },
    timeLimit,
  );

  test(
    "an unreadable balance is 500 for first-party tiers and 503 for hosted models; nothing is charged, nothing is lost",
    async () => {
      await using own = await Stack.start();
      const account = await own.gateway.account();
      const lock = new Database(join(own.gateway.dataFolder, "tollgate.db"));
      lock.run("BEGIN IMMEDIATE");
      const body = (model: string) => ({ model, input: `hello [[${own.node.marker("text")}]]` });
      // the writer notices at its first try; replies that came before wait for their charge
      const waiting = post(own, account, body("core-3"), { path });
      const refused = await eventually("the disk is noticed", () =>
        post(own, account, body("core-3"), { path, signal: AbortSignal.timeout(500) }).catch(() => null),
      );
      expect(await refusal(refused)).toMatchObject({ status: 500, type: "api_error", code: null });
      const other = await refusal(await post(own, account, body(hosted), { path }));
      expect(other).toMatchObject({ status: 503, message: "Could not verify your quota right now. Please retry." });
      lock.run("ROLLBACK");
      lock.close();
      expect((await waiting).status).toBe(200);
      const after = await eventually("the disk is well again", async () => {
        const reply = await post(own, account, body("core-3"), { path });
        return reply.status === 200 ? reply : null;
      });
      expect(((await after.json()) as ResponseBody)["output_text"]).toBe("Hi there!");
    },
    timeLimit,
  );
});

describe("streams", () => {
  test.each([
    "text",
    "reasoning-text",
    "reasoning-vllm",
    "one-tool",
    "two-bash-calls",
    "parallel-tools",
    "forced-tool",
    "length",
    "json",
  ])(
    "%s: in order, one end, and the same as the reply that is not streamed",
    async (script) => {
      const account = await stack.gateway.account();
      const more = { tools: [bash], include: ["reasoning.encrypted_content"] };
      const stream = expectOrderedResponse(await streamed(account, ask(script, more)));
      const reply = await whole(account, ask(script, more));
      expect(stream.id).not.toBe(reply.id);
      expect(comparable(stream)).toEqual(comparable(reply));
      const rows = await stack.gateway.usage(account.email);
      expect(rows.map(({ endpoint }) => endpoint)).toEqual([path, path]);
      expect(rows[0]?.billed_tokens).toBe(rows[1]?.billed_tokens);
    },
    timeLimit,
  );

  test(
    "usage names cached input and reasoning, and their totals",
    async () => {
      const { usage } = (await whole(await stack.gateway.account(), ask("text", { model: hosted }))) as ResponseBody;
      expect(usage).toEqual({
        input_tokens: 120,
        input_tokens_details: { cached_tokens: 20 },
        output_tokens: 20,
        output_tokens_details: { reasoning_tokens: 5 },
        total_tokens: 140,
      });
    },
    timeLimit,
  );

  test.each([
    ["responses_text", [...reasoning("Let me th", "ink."), ...text("Hi th", "ere!")], "stop", {}],
    [
      "responses_tools",
      [
        ...reasoning("Two calls", "."),
        callStart(0, "call_1", "bash"),
        ...callArguments(0, '{"command', '":"echo a', '"}'),
        callStart(1, "call_2", "bash"),
        ...callArguments(1, '{"command', '":"echo b', '"}'),
      ],
      "tool_calls",
      { tools: [bash] },
    ],
    ["responses_incomplete", text("Hi th", "ere!"), "length", {}],
  ] as const)(
    "%s is what every client read correctly, streamed and not",
    async (golden, steps, reason, more) => {
      await stack.node.define(golden, once([...steps], finish(reason)));
      const account = await stack.gateway.account();
      const body = { store: false, include: ["reasoning.encrypted_content"], ...more };
      const { events } = responseEvents(await streamed(account, ask(golden, body)));
      expect(comparable(events)).toEqual(comparable(responseEvents(goldenResponses[golden] as string).events));
      const reply = await whole(account, ask(golden, body));
      expect(comparable(reply)).toEqual(comparable(goldenResponses[`${golden}__nonstream`]));
    },
    timeLimit,
  );

  test.each(["dies-rst", "dies-fin", "no-finish", "error-mid-stream"])(
    "%s: text, then response.failed with a code, without a terminator and without a charge",
    async (script) => {
      const account = await stack.gateway.account();
      const wire = await streamed(account, ask(script));
      const failed = expectOrderedResponse(wire);
      expect(failed).toMatchObject({ status: "failed", error: { code: "server_error" } });
      expect(wire).toContain('"delta":"there"');
      expect(wire).not.toContain("10.1.2.3");
      expect(wire).not.toContain("[DONE]");
      await uncharged(account);
    },
    timeLimit,
  );

  test(
    "every event arrives whole in one chunk of the transfer, with its name; [DONE] ends them",
    async () => {
      const account = await stack.gateway.account();
      const body = JSON.stringify(ask("slow", { stream: true }));
      const url = new URL(stack.gateway.url);
      const raw = await new Promise<string>((resolve, reject) => {
        let received = "";
        const socket = connect(Number(url.port), url.hostname, () => {
          socket.write(
            `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: ${account.api_key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
          );
        });
        socket.on("error", reject);
        socket.on("data", (bytes) => (received += bytes));
        socket.on("end", () => resolve(received));
      });
      const [head = "", ...rest] = raw.split("\r\n\r\n");
      expect(head).toStartWith("HTTP/1.1 200");
      const chunks = [...rest.join("\r\n\r\n").matchAll(/(?:^|\r\n)[0-9a-f]+\r\n([^\r]*)/gi)]
        .map(([, chunk = ""]) => chunk)
        .filter((chunk) => chunk !== "");
      expect(chunks.length).toBeGreaterThanOrEqual(20);
      // throws where an event is cut, or its name is not its type
      for (const chunk of chunks) responseEvents(chunk);
      expect(chunks.at(-1)).toEndWith("data: [DONE]\n\n");
    },
    timeLimit,
  );

  test(
    "a node that is silent for a while: a sign of life every 10 s that no client takes for an event",
    async () => {
      const wire = await streamed(await stack.gateway.account(), ask("silent-12s"));
      expect(wire).toStartWith(": waiting\n\n");
      expect(expectOrderedResponse(wire).output).toMatchObject([{ content: [{ text: "late" }] }]);
    },
    timeLimit,
  );

  test.each([true, false])(
    "an abort stops the node within a second and is charged once if anything was received, streamed: %p",
    async (stream) => {
      const account = await stack.gateway.account();
      const marker = stack.node.marker("endless");
      const controller = new AbortController();
      const body = { model: "core-3", input: `[[${marker}]]`, stream };
      const reading = post(stack, account, body, { path, signal: controller.signal })
        .then((reply) => reply.text())
        .catch(() => "aborted");
      await eventually(
        "the node is generating",
        async () => ((await stack.node.requests(marker))[0]?.sent.length ?? 0) > 10,
      );
      const abortedAt = Date.now();
      controller.abort();
      expect(await reading).toBe("aborted");
      expect((await stack.node.closedAt(marker)) - abortedAt).toBeLessThan(1_000);
      if (!stream) {
        await stack.gateway.expectNothingReserved();
        expect(await stack.gateway.usage(account.email)).toEqual([]);
        return;
      }
      const rows = await eventually("the abort is charged", async () => {
        const rows = await stack.gateway.usage(account.email);
        return rows.length > 0 && rows;
      });
      expect(rows).toMatchObject([{ endpoint: path, estimated: true }]);
    },
    timeLimit,
  );
});

describe("compaction", () => {
  const user = { type: "message", role: "user", content: [{ type: "input_text", text: "remember 42" }] };

  test.each([true, false])(
    "a trigger as the last item yields exactly one compaction item, streamed: %p",
    async (stream) => {
      const account = await stack.gateway.account();
      const marker = stack.node.marker("text");
      const input = [user, { role: "assistant", content: `[[${marker}]] noted` }, { type: "compaction_trigger" }];
      const body = { model: "core-3", input, tools: [bash] };
      const response = stream ? expectOrderedResponse(await streamed(account, body)) : await whole(account, body);
      expect(response.output.map(({ type }) => type)).toEqual(["compaction"]);
      expect(response.output[0]!["encrypted_content"]).toBeString();
      expect(JSON.stringify(response)).not.toContain("Hi there!"); // sealed

      const next = stack.node.marker("text");
      await whole(account, { model: "core-3", input: [...response.output, { role: "user", content: `[[${next}]]` }] });
      expect(JSON.stringify((await stack.node.request(next)).body)).toContain("Hi there!");
    },
    timeLimit,
  );

  test.each([0, largeBodyMinBytes])(
    "POST /v1/responses/compact replies with the user's messages and a compaction, usable as input; no model is 400 (%i)",
    async (padding) => {
      const account = await stack.gateway.account();
      const compact = { path: "/v1/responses/compact" };
      const earlier = await whole(account, ask("text", { input: "remember blue" }));
      const input = [user, { role: "assistant", content: "x".repeat(padding) }, { ...user, content: "and red" }];
      const body = { model: "core-3", input, previous_response_id: earlier.id, prompt_cache_key: "k" };
      const reply = await post(stack, account, body, compact);
      const compaction = (await reply.json()) as ResponseBody;
      expect(reply.status).toBe(200);
      expect(compaction).toMatchObject({ object: "response.compaction", usage: { total_tokens: 140 } });
      const { encrypted_content } = compaction.output.at(-1)!;
      expect(compaction.output).toMatchObject([
        { type: "message", role: "user", content: [{ type: "input_text", text: "remember blue" }] },
        { type: "message", role: "user" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "and red" }] },
        { type: "compaction", encrypted_content: expect.any(String) },
      ]);
      expect(encrypted_content).not.toContain("x".repeat(9));
      await whole(account, ask("text", { input: [...compaction.output, { role: "user", content: "go on" }] }));
      const { model: _, ...without } = body;
      expect(await refusal(await post(stack, account, without, compact))).toMatchObject({ status: 400 });
    },
    timeLimit,
  );
});

describe("the cases of the Open Responses suite", () => {
  const message = (role: string, content: unknown, more: object = {}) => ({ type: "message", role, content, ...more });
  const hello = message("user", "Say hello in exactly 3 words.");
  const image = { type: "input_image", image_url: pixelUrl };
  const tool = {
    type: "function",
    name: "get_weather",
    description: "Get the current weather for a location",
    parameters: { type: "object", properties: { location: { type: "string" } }, required: ["location"] },
  };

  test.each([
    ["basic-response", { input: [hello] }],
    [
      "assistant-phase",
      {
        input: [
          message("assistant", "Looking.", { phase: "commentary" }),
          message("assistant", "Done.", { phase: "final_answer" }),
          hello,
        ],
      },
    ],
    ["system-prompt", { input: [message("system", "You are a pirate."), hello] }],
    ["image-input", { input: [message("user", [{ type: "input_text", text: "What is this?" }, image])] }],
    ["multi-turn", { input: [message("user", "I am Alice."), message("assistant", "Hello Alice!"), hello] }],
  ])(
    "%s, and as a stream",
    async (_, body) => {
      const account = await stack.gateway.account();
      const response = await whole(account, { model: "core-3", ...body });
      const stream = expectOrderedResponse(await streamed(account, { model: "core-3", ...body }));
      for (const { status, output } of [response, stream]) {
        expect(status).toBe("completed");
        expect(output).not.toBeEmpty();
      }
    },
    timeLimit,
  );

  test(
    "tool-calling with a tool that has no `strict`",
    async () => {
      const response = await whole(await stack.gateway.account(), ask("one-tool", { tools: [tool] }));
      expect(response.output).toContainEqual(expect.objectContaining({ type: "function_call" }));
      expect(response["tools"]).toEqual([{ ...tool, strict: null }]);
    },
    timeLimit,
  );
});

/** Ids, times, sealed bytes and the convenience key are a reply's own. */
function comparable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, inner: unknown) => {
    if ((key === "id" || key === "item_id") && typeof inner === "string") return inner.replace(/_.*/, "");
    if (key === "created_at" || key === "completed_at") return inner === null ? null : 0;
    if (key === "encrypted_content") return "sealed";
    if (key === "output_text" || key === "call_id" || key === "usage" || key === "model") return undefined;
    return inner;
  });
}
