// Streams of the messages dialect, looked at event by event and byte by byte.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { goldenMessages } from "../fixtures/messages-captures.ts";
import {
  collectedMessage,
  expectWellFormedMessage,
  type MessagesEvent,
  messagesEventsOf,
} from "../fixtures/messages-events.ts";
import { longForm } from "../fixtures/optional.ts";
import { post, says } from "../fixtures/requests.ts";
import { once, text } from "../fixtures/scripts.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 30_000;
const path = "/v1/messages";
const hosted = "open-05-3BIT-REAP";
const shown = { thinking: { type: "adaptive" } };
const omitted = { thinking: { type: "adaptive", display: "omitted" } };
let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
  // vLLM names the sequence that ended the answer
  const ended = { index: 0, delta: {}, finish_reason: "stop", stop_reason: "END" };
  const chunk = { id: "c", object: "chat.completion.chunk", created: 0, model: "m", choices: [ended] };
  const usage = { usage: { prompt_tokens: 120, completion_tokens: 20, total_tokens: 140 } };
  await stack.node.define(
    "stop-sequence",
    once(text("Hi ", "there!"), { raw: `data: ${JSON.stringify(chunk)}\n\n` }, usage, { done: true }),
  );
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

const streamed = async (account: Account, script: string, more: object = {}): Promise<string> => {
  const reply = await post(stack, account, says(stack.node.marker(script), { stream: true, ...more }), { path });
  expect(reply.status).toBe(200);
  expect(reply.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(reply.headers.get("cache-control")).toBe("no-cache");
  return await reply.text();
};
const usageOf = (events: readonly MessagesEvent[]): unknown =>
  events.find(({ type }) => type === "message_delta")?.["usage"];

type Reply = {
  content: { type: string; text?: string; thinking?: string; name?: string; input?: unknown }[];
  stop_reason: string;
  stop_sequence: string | null;
  usage: Record<string, number>;
};

test(
  "the stream begins with the count of its input, the same that the counting endpoint gives",
  async () => {
    const account = await stack.gateway.account();
    const body = { ...says(stack.node.marker("silent-2s")), system: "Answer briefly. ".repeat(40) };
    const count = await post(stack, account, body, { path: `${path}/count_tokens` });
    const { input_tokens: counted } = (await count.json()) as { input_tokens: number };
    const reply = await post(stack, account, { ...body, stream: true }, { path });
    const start = messagesEventsOf(await reply.text()).find(({ type }) => type === "message_start");
    expect(counted).toBeGreaterThan(100);
    expect(start).toMatchObject({ message: { usage: { input_tokens: counted } } });
  },
  timeLimit,
);

describe("order", () => {
  const scripts = [
    "text",
    "reasoning-text",
    "reasoning-vllm",
    "one-tool",
    "two-bash-calls",
    "parallel-tools",
    "forced-tool",
    "length",
    "stop-sequence",
    "json",
  ];
  test.each(scripts.flatMap((script) => [{}, shown, omitted].map((thinking) => [script, thinking] as const)))(
    "%s %j: one block open at a time, its usage at both ends, one end",
    async (script, thinking) => {
      const events = messagesEventsOf(await streamed(await stack.gateway.account(), script, thinking));
      expectWellFormedMessage(events);
      expect(usageOf(events)).toEqual({ input_tokens: 120, output_tokens: 20 });
    },
    timeLimit,
  );

  test.each([
    ["end_turn", "reasoning-text"],
    ["tool_use", "parallel-tools"],
    ["tool_use", "forced-tool"],
    ["max_tokens", "length"],
    ["stop_sequence", "stop-sequence"],
  ])(
    "the collected stream equals the reply that is not streamed: %s of %s",
    async (reason, script) => {
      const account = await stack.gateway.account();
      const more = { model: hosted, stop_sequences: ["END"], ...shown };
      const events = messagesEventsOf(await streamed(account, script, more));
      const stream = collectedMessage(events);
      const reply = (await (
        await post(stack, account, says(stack.node.marker(script), more), { path })
      ).json()) as Reply;
      expect([stream.stopReason, reply.stop_reason]).toEqual([reason, reason]);
      expect(reply.stop_sequence).toBe(reason === "stop_sequence" ? "END" : null);
      expect(stream.kinds).toEqual(reply.content.map(({ type }) => type));
      expect(stream.text).toBe(reply.content.map((block) => block.text ?? "").join(""));
      expect(stream.thinking).toBe(reply.content.map((block) => block.thinking ?? "").join(""));
      expect(stream.tools.map(({ name, json }) => ({ name, input: JSON.parse(json) }))).toEqual(
        reply.content.flatMap(({ name, input }) => (name === undefined ? [] : [{ name, input }])) as never,
      );
      expect(usageOf(events)).toEqual(reply.usage);
      const [first, second] = await stack.gateway.usage(account.email);
      expect(first?.billed_tokens).toBe(second?.billed_tokens);
    },
    timeLimit,
  );

  test(
    "a hosted model's usage splits cached from uncached input, at the start too",
    async () => {
      const events = messagesEventsOf(await streamed(await stack.gateway.account(), "text", { model: hosted }));
      expect(events[0]?.["message"].usage).toMatchObject({
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
      });
      expect(usageOf(events)).toEqual({
        input_tokens: 100,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 20,
        output_tokens: 20,
      });
    },
    timeLimit,
  );
});

describe("golden replies", () => {
  /** Ids, model, usage and signature are the reply's own; pings may stand anywhere. */
  const comparable = (wire: string): string =>
    wire
      .replaceAll('event: ping\ndata: {"type":"ping"}\n\n', "")
      .replaceAll(/"id":"(?:msg|toolu|call)_[^"]*"/g, '"id":"id"')
      .replaceAll(/"model":"[^"]*"/g, '"model":"m"')
      .replaceAll(/"usage":\{[^}]*\}/g, '"usage":{}')
      .replaceAll(/"signature":"[^"]+"/g, '"signature":"s"');

  test.each([
    ["messages_text", "reasoning-text"],
    ["messages_max_tokens", "length"],
    ["messages_stop_sequence", "stop-sequence"],
  ] as const)(
    "%s is byte for byte what every client read correctly",
    async (golden, script) => {
      const wire = await streamed(await stack.gateway.account(), script, { stop_sequences: ["END"], ...shown });
      expect(comparable(wire)).toBe(comparable(goldenMessages[golden]));
    },
    timeLimit,
  );

  test.each(["dies-rst", "dies-fin", "no-finish", "error-mid-stream"])(
    "%s: text, then the error in place of an end, without a terminator and without a charge",
    async (script) => {
      const account = await stack.gateway.account();
      const wire = await streamed(account, script);
      const events = messagesEventsOf(wire);
      expect(collectedMessage(events).text).toBe("Hi there");
      expect(events.map(({ type }) => type)).not.toContain("message_stop");
      expect(events.at(-1)).toEqual({
        type: "error",
        error: { type: "api_error", message: "The model stopped answering. Please retry." },
        request_id: expect.stringMatching(/^req_/),
      });
      expect(wire).not.toContain("10.1.2.3");
      expect(await stack.gateway.usage(account.email)).toEqual([]);
    },
    timeLimit,
  );
});

describe("framing", () => {
  test(
    "every event arrives whole in one chunk of the transfer, with its name, and [DONE] never",
    async () => {
      const account = await stack.gateway.account();
      const body = JSON.stringify(says(stack.node.marker("slow"), { stream: true }));
      const url = new URL(stack.gateway.url);
      const raw = await new Promise<string>((resolve, reject) => {
        let text = "";
        const socket = connect(Number(url.port), url.hostname, () => {
          socket.write(
            `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: ${account.api_key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
          );
        });
        socket.on("error", reject);
        socket.on("data", (bytes) => (text += bytes));
        socket.on("end", () => resolve(text));
      });
      const [head = "", ...rest] = raw.split("\r\n\r\n");
      expect(head).toStartWith("HTTP/1.1 200");
      const chunks = [...rest.join("\r\n\r\n").matchAll(/(?:^|\r\n)[0-9a-f]+\r\n([^\r]*)/gi)].map(
        ([, chunk = ""]) => chunk,
      );
      expect(chunks.length).toBeGreaterThanOrEqual(20);
      for (const chunk of chunks.filter((text) => text !== "")) expect(messagesEventsOf(chunk)).not.toEqual([]);
      expect(raw).not.toContain("[DONE]");
    },
    timeLimit,
  );

  test.skipIf(!longForm)(
    "a stream whose node is silent for a minute pings at least every 15 s",
    async () => {
      const account = await stack.gateway.account();
      const reply = await post(stack, account, says(stack.node.marker("silent-60s"), { stream: true }), { path });
      let last = performance.now();
      let longest = 0;
      let wire = "";
      const decoder = new TextDecoder();
      for await (const bytes of reply.body ?? []) {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
        wire += decoder.decode(bytes, { stream: true });
      }
      expect(longest).toBeLessThan(15_000);
      const events = messagesEventsOf(wire);
      expect(events.filter(({ type }) => type === "ping").length).toBeGreaterThanOrEqual(4);
      expectWellFormedMessage(events);
      expect(collectedMessage(events).text).toBe("late");
    },
    90_000,
  );

  test("a stream that waits for a place on the node opens within seconds and pings", async () => {
    await using narrow = await Stack.start({ slots: 1 });
    const account = await narrow.gateway.account();
    const controller = new AbortController();
    const first = await post(narrow, account, says(narrow.node.marker("endless"), { stream: true }), {
      path,
      signal: controller.signal,
    });
    const reading = first.text().catch(() => "aborted");
    const marker = narrow.node.marker("text");
    const second = await post(narrow, account, says(marker, { stream: true }), { path });
    expect(second.status).toBe(200);
    expect(await narrow.node.requests(marker)).toEqual([]); // it waits in the gateway, not in the node
    controller.abort();
    await reading;
    const events = messagesEventsOf(await second.text());
    expect(events[0]?.type).toBe("ping");
    expectWellFormedMessage(events);
    expect(collectedMessage(events).text).toBe("Hi there!");
    await narrow.gateway.expectNothingReserved();
  }, 60_000);
});

describe("clients that leave", () => {
  test.each([true, false])(
    "an abort stops the node within a second and is charged once if anything was received, streamed: %p",
    async (stream) => {
      const account = await stack.gateway.account();
      const marker = stack.node.marker("endless");
      const controller = new AbortController();
      const request = post(stack, account, says(marker, { stream }), { path, signal: controller.signal });
      const reading = request.then((reply) => reply.text()).catch(() => "aborted");
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
      expect(rows).toHaveLength(1);
      expect(rows[0]).toMatchObject({ endpoint: "/v1/messages", estimated: true });
      expect(rows[0]?.output).toBeGreaterThan(5);
      expect((await stack.gateway.show(account.email)).reserved).toBe(0);
    },
    timeLimit,
  );
});
