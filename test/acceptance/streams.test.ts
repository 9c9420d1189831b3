// Streams of the chat-completions dialect, looked at event by event and byte by byte.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { goldenChat } from "../fixtures/captures.ts";
import { collected, eventsOf, expectWellFormed } from "../fixtures/events.ts";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { longForm } from "../fixtures/optional.ts";
import { post, says } from "../fixtures/requests.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 30_000;
const hosted = "open-05-3BIT-REAP";
let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

const streamed = async (account: Account, script: string, more: object = {}): Promise<string> => {
  const reply = await post(stack, account, says(stack.node.marker(script), { stream: true, ...more }));
  expect(reply.status).toBe(200);
  expect(reply.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(reply.headers.get("cache-control")).toBe("no-cache");
  return await reply.text();
};

describe("order", () => {
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
    "%s: role first, ids once, usage last, then the terminator",
    async (script) => {
      const events = eventsOf(await streamed(await stack.gateway.account(), script));
      expectWellFormed(events);
      expect(events.chunks.at(-1)?.usage).toMatchObject({
        prompt_tokens: 120,
        completion_tokens: 20,
        total_tokens: 140,
      });
    },
    timeLimit,
  );

  test.each([
    ["stop", "reasoning-text"],
    ["tool_calls", "parallel-tools"],
    ["length", "length"],
  ])(
    "the collected stream equals the reply that is not streamed: %s",
    async (reason, script) => {
      const account = await stack.gateway.account();
      const stream = collected(eventsOf(await streamed(account, script)));
      const reply = await post(stack, account, says(stack.node.marker(script)));
      const { choices } = (await reply.json()) as Reply;
      const message = choices[0]?.message;
      expect(stream.finishReason).toBe(reason);
      expect(choices[0]?.finish_reason).toBe(reason);
      expect(message?.content ?? "").toBe(stream.content);
      expect(message?.reasoning_content ?? "").toBe(stream.reasoning);
      expect((message?.tool_calls ?? []).map(({ function: call }) => call)).toEqual(
        stream.calls.map((call) => ({ name: call.name, arguments: call.arguments })),
      );
      const [first, second] = await stack.gateway.usage(account.email);
      expect(first?.billed_tokens).toBe(second?.billed_tokens);
    },
    timeLimit,
  );

  test.each([
    ["left out", {}],
    ["null", { stream_options: null }],
    ["without the field", { stream_options: {} }],
    ["false", { stream_options: { include_usage: false } }],
  ])(
    "a client that did not ask for a chunk of usage (%s) gets it with the finish, and every chunk has a choice",
    async (_, more) => {
      const events = eventsOf(await streamed(await stack.gateway.account(), "text", more));
      expectWellFormed(events);
      expect(events.chunks.map(({ choices }) => choices.length)).toEqual(events.chunks.map(() => 1));
      expect(events.chunks.at(-1)).toMatchObject({
        choices: [{ finish_reason: "stop" }],
        usage: { total_tokens: 140 },
      });
    },
    timeLimit,
  );

  test(
    "a client that asked for it gets the usage in a chunk of its own, without choices",
    async () => {
      const asked = { stream_options: { include_usage: true } };
      const events = eventsOf(await streamed(await stack.gateway.account(), "text", asked));
      expectWellFormed(events, { usageApart: true });
    },
    timeLimit,
  );
});

type Reply = {
  choices: {
    message: {
      content: string | null;
      reasoning_content?: string;
      tool_calls?: { function: { name: string; arguments: string } }[];
    };
    finish_reason: string;
  }[];
};

describe("golden replies", () => {
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
  ] as const)(
    "%s is byte for byte what every client read correctly",
    async (golden, script) => {
      const asked = { model: hosted, stream_options: { include_usage: true } };
      const text = await streamed(await stack.gateway.account(), script, asked);
      expect(comparable(text)).toBe(comparable(goldenChat[golden]));
    },
    timeLimit,
  );

  test.each([
    ["chat_text__nonstream", "reasoning-text"],
    ["chat_tools__nonstream", "two-bash-calls"],
  ] as const)(
    "%s has the same fields",
    async (golden, script) => {
      const reply = await post(
        stack,
        await stack.gateway.account(),
        says(stack.node.marker(script), { model: hosted }),
      );
      const json = JSON.stringify(await reply.json());
      expect(JSON.parse(comparable(json))).toEqual(JSON.parse(comparable(JSON.stringify(goldenChat[golden]))));
    },
    timeLimit,
  );

  test(
    "chat_error: text, then the error in place of an end, without a terminator and without a charge",
    async () => {
      const account = await stack.gateway.account();
      for (const script of ["dies-rst", "dies-fin", "no-finish", "error-mid-stream"]) {
        const text = await streamed(account, script);
        const { chunks, done } = eventsOf(text);
        expect(done).toBe(false);
        expect(collected({ chunks: chunks.slice(0, -1), comments: [], done }).content).toBe("Hi there");
        expect(chunks.at(-1)).toEqual({
          error: {
            type: "api_error",
            message: "The model stopped answering. Please retry.",
            code: null,
            param: null,
          },
        } as never);
        expect(text).not.toContain("10.1.2.3");
      }
      expect(await stack.gateway.usage(account.email)).toEqual([]);
    },
    timeLimit,
  );
});

describe("framing", () => {
  test(
    "every event arrives whole in one chunk of the transfer, and has no event line",
    async () => {
      const account = await stack.gateway.account();
      const body = JSON.stringify(says(stack.node.marker("slow"), { stream: true }));
      const url = new URL(stack.gateway.url);
      const raw = await new Promise<string>((resolve, reject) => {
        let text = "";
        const socket = connect(Number(url.port), url.hostname, () => {
          socket.write(
            `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${account.api_key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
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
      for (const chunk of chunks.filter((text) => text !== "")) {
        expect(chunk).toEndWith("\n\n");
        expect(chunk).not.toContain("event:");
      }
    },
    timeLimit,
  );

  test(
    "tokens are passed on as they come, not collected",
    async () => {
      const reply = await post(stack, await stack.gateway.account(), says(stack.node.marker("slow"), { stream: true }));
      let reads = 0;
      for await (const _ of reply.body ?? []) reads++;
      expect(reads).toBeGreaterThan(10);
    },
    timeLimit,
  );

  test.skipIf(!longForm).each([
    ["silent-12s", 1],
    ["silent-60s", 4],
  ])(
    "a stream whose node is silent shows life at least every 15 s: %s",
    async (script, commentsMin) => {
      const account = await stack.gateway.account();
      const started = performance.now();
      const reply = await post(stack, account, says(stack.node.marker(script), { stream: true }));
      let last = started;
      let longest = 0;
      let text = "";
      const decoder = new TextDecoder();
      for await (const bytes of reply.body ?? []) {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
        text += decoder.decode(bytes, { stream: true });
      }
      expect(longest).toBeLessThan(15_000);
      const events = eventsOf(text);
      expect(events.comments.length).toBeGreaterThanOrEqual(commentsMin);
      expectWellFormed(events);
      expect(collected(events).content).toBe("late");
    },
    90_000,
  );

  test("a stream that waits for a place on the node opens within seconds and shows life", async () => {
    await using narrow = await Stack.start({ slots: 1 });
    const account = await narrow.gateway.account();
    const controller = new AbortController();
    const first = await post(narrow, account, says(narrow.node.marker("endless"), { stream: true }), {
      signal: controller.signal,
    });
    const reading = first.text().catch(() => "aborted");
    const marker = narrow.node.marker("text");
    const second = await post(narrow, account, says(marker, { stream: true }));
    expect(second.status).toBe(200);
    expect(await narrow.node.requests(marker)).toEqual([]); // it waits in the gateway, not in the node
    controller.abort();
    await reading;
    const events = eventsOf(await second.text());
    expectWellFormed(events);
    expect(collected(events).content).toBe("Hi there!");
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
      const request = post(stack, account, says(marker, { stream }), { signal: controller.signal });
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
      // the reservation goes back at once, the charge is on disk a moment later
      const rows = await eventually("the abort is charged", async () => {
        const rows = await stack.gateway.usage(account.email);
        return rows.length > 0 && rows;
      });
      expect(rows).toHaveLength(1);
      expect(rows[0]).toMatchObject({ estimated: true });
      expect(rows[0]?.output).toBeGreaterThan(5);
      expect((await stack.gateway.show(account.email)).reserved).toBe(0);
    },
    timeLimit,
  );

  test("a client that leaves while it waits in line never reaches the node and pays nothing", async () => {
    await using narrow = await Stack.start({ slots: 1 });
    const account = await narrow.gateway.account();
    const [running, waiting] = [new AbortController(), new AbortController()];
    const first = await post(narrow, account, says(narrow.node.marker("endless"), { stream: true }), {
      signal: running.signal,
    });
    const reading = first.text().catch(() => "aborted");
    const patient = await narrow.gateway.account();
    const marker = narrow.node.marker("text");
    const second = post(narrow, patient, says(marker), { signal: waiting.signal }).catch(() => "aborted");
    await eventually(
      "the second request is admitted",
      async () => (await narrow.gateway.show(patient.email)).reserved > 0,
    );
    waiting.abort();
    expect(await second).toBe("aborted");
    await eventually("its reservation is back", async () => (await narrow.gateway.show(patient.email)).reserved === 0);
    running.abort();
    await reading;
    expect(await narrow.node.requests(marker)).toEqual([]);
    expect(await narrow.gateway.usage(patient.email)).toEqual([]);
    await narrow.gateway.expectNothingReserved();
  }, 60_000);
});

describe("usage", () => {
  test(
    "a first-party tier pays the total at its flat rate, a hosted one its three rates apart",
    async () => {
      const account = await stack.gateway.account();
      for (const model of ["core-3", hosted]) await streamed(account, "text", { model });
      const [second, first] = await stack.gateway.usage(account.email);
      // $3.35 flat on 140 tokens; $0.50 on 100 fresh, a tenth of it on 20 cached, $2.00 on 20 output; $5 per million
      expect(first).toMatchObject({ input: 120, cached_input: 20, output: 20, billed_tokens: billed(140 * 335) });
      expect(second).toMatchObject({
        reasoning: 5,
        billed_tokens: billed(100 * 50 + 20 * 5 + 20 * 200),
        estimated: false,
      });
      const state = await stack.gateway.show(account.email);
      expect(state.allowance.left).toBe(
        state.allowance.granted - billed(140 * 335) - billed(100 * 50 + 20 * 5 + 20 * 200),
      );
    },
    timeLimit,
  );

  test.each(["usage-missing", "usage-negative", "usage-absurd"])(
    "%s: the gateway counts by itself and says so; nonsense is never passed on",
    async (script) => {
      const account = await stack.gateway.account();
      const events = eventsOf(await streamed(account, script));
      expectWellFormed(events);
      const usage = events.chunks.at(-1)?.usage as { prompt_tokens: number; completion_tokens: number };
      for (const tokens of [usage.prompt_tokens, usage.completion_tokens]) {
        expect(Number.isSafeInteger(tokens)).toBe(true);
        expect(tokens).toBeWithin(1, 1_000);
      }
      const [row] = await stack.gateway.usage(account.email);
      expect(row).toMatchObject({ estimated: true, input: usage.prompt_tokens, output: usage.completion_tokens });
    },
    timeLimit,
  );
});

/** Balance tokens of model tokens times cents, computed apart from the gateway's own arithmetic. */
function billed(tokenCents: number): number {
  return Number((2n * BigInt(tokenCents) + 500n) / 1_000n);
}
