// The streaming outlet over a real HTTP server: when headers leave and with which status, signs of life, slow clients
// and clients that left. The test triggers the beats, so nothing here waits for a timer.
import { afterEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import { chatCompletions } from "../../../src/dialects/chat/chat-completions.ts";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import { messages } from "../../../src/dialects/messages/messages.ts";
import {
  type Beating,
  clientStallBeats,
  Heartbeat,
  keepAliveBeats,
  streamOpenBeats,
} from "../../../src/http/outlets/heartbeat.ts";
import { StreamOutlet } from "../../../src/http/outlets/stream-outlet.ts";
import { refuse } from "../../../src/core/refusals.ts";
import { ActiveSet, type ActiveHandle } from "../../../src/core/active-set.ts";
import type { Ask, Usage } from "../../../src/core/types.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { readBody, writerOf } from "../../fixtures/reading.ts";

const ask = readBody(
  chatCompletions,
  { model: "core-3", stream: true, messages: [{ role: "user", content: "x" }] },
  50,
  embeddedCatalog(),
) as Ask;
/** Without `thinking`: its thoughts are not shown. */
const messagesAsk = readBody(
  messages,
  { model: "open-05-3BIT-REAP", stream: true, max_tokens: 9, messages: [{ role: "user", content: "x" }] },
  50,
  embeddedCatalog(),
) as Ask;
const usage: Usage = { inputFresh: 1, inputCached: 0, output: 1, reasoning: 0 };
const end = { reason: "stop", stopSequence: null, usage } as const;
const piece = { kind: "text", literal: '"word"', logprobs: null } as const;

/** Beats only when it is struck. */
class ManualHeartbeat extends Heartbeat {
  readonly #outlets = new ActiveSet<Beating>();
  override join(outlet: Beating): ActiveHandle<Beating> {
    return this.#outlets.join(outlet);
  }
  override leave(handle: ActiveHandle<Beating>): void {
    this.#outlets.leave(handle);
  }
  override get size(): number {
    return this.#outlets.size;
  }
  strike(beats: number): void {
    for (let beat = 0; beat < beats; beat++) for (const outlet of this.#outlets.members()) outlet.beat();
  }
}

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

const replyOf = ({ ask, dialect }: { ask: Ask; dialect: Dialect }) => {
  const encoder = writerOf(ask).encoder({ requestId: "req_1", createdSeconds: 0 }, "events");
  return { ask, dialect, requestId: "req_1", encoder };
};

/** One request on a raw socket, and the outlet that answers it. */
async function request(asked: { ask: Ask; dialect: Dialect } = { ask, dialect: chatCompletions }): Promise<{
  outlet: StreamOutlet;
  heartbeat: ManualHeartbeat;
  client: Socket;
  received: () => string;
}> {
  const heartbeat = new ManualHeartbeat();
  const { promise, resolve } = Promise.withResolvers<StreamOutlet>();
  const server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    fetch(incoming) {
      const outlet = new StreamOutlet(replyOf(asked), incoming.signal, heartbeat);
      resolve(outlet);
      return outlet.response;
    },
  });
  const client = connect(server.port!, "127.0.0.1");
  let text = "";
  client.on("data", (bytes) => (text += bytes.toString()));
  client.on("error", () => {}); // a reset after destroy() is no news
  client.write("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n");
  closers.push(() => {
    client.destroy();
    void server.stop(true);
  });
  return { outlet: await promise, heartbeat, client, received: () => text };
}

const text = (received: () => string, part: string) =>
  eventually(`received ${part}`, async () => received().includes(part));

describe("the status", () => {
  test("is 200 from the first piece on, and nothing leaves before it", async () => {
    const { outlet, received } = await request();
    await Bun.sleep(20);
    expect(received()).toBe("");
    outlet.piece(piece);
    void outlet.flush();
    await text(received, '"content":"word"');
    expect(received()).toStartWith("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n");
    void outlet.end(end);
    await text(received, "data: [DONE]\n\n");
  });

  test("is the refusal's own while the stream has not begun", async () => {
    const { outlet, received, heartbeat } = await request();
    outlet.fail(refuse("busy", { seconds: 3 }));
    await text(received, "temporarily busy");
    expect(received()).toStartWith("HTTP/1.1 429");
    expect(received().toLowerCase()).toContain("\r\nretry-after: 3\r\n");
    expect(heartbeat.size).toBe(0);
  });

  test("is 200 after a short wait, and a later failure is an event without a terminator", async () => {
    const { outlet, received, heartbeat } = await request();
    heartbeat.strike(streamOpenBeats - 1);
    await Bun.sleep(20);
    expect(received()).toBe("");
    heartbeat.strike(1);
    await text(received, ": waiting\n\n");
    outlet.fail(refuse("node_failed"));
    await text(received, '"The model stopped answering. Please retry."');
    await text(received, "0\r\n\r\n");
    expect(received()).not.toContain("[DONE]");
  });
});

describe("a reply that is broken off", () => {
  test.each([false, true])("has no last word and no status of its own, though it has begun: %p", async (hasBegun) => {
    const { outlet, received, client, heartbeat } = await request();
    const closed = new Promise<void>((resolve) => client.once("close", () => resolve()));
    if (hasBegun) {
      outlet.piece(piece);
      void outlet.flush();
      await text(received, '"content":"word"');
    }
    outlet.breakOff();
    await closed;
    if (!hasBegun) expect(received()).toBe("");
    expect(received()).not.toContain("0\r\n\r\n");
    expect(received()).not.toContain("[DONE]");
    expect(heartbeat.size).toBe(0);
  });
});

describe("an answer of which the client was shown nothing", () => {
  test("ends with its dialect's last events, though no piece was flushed before", async () => {
    const { outlet, received, heartbeat } = await request();
    void outlet.end(end);
    await text(received, "data: [DONE]\n\n");
    expect(received()).toStartWith("HTTP/1.1 200");
    expect(heartbeat.size).toBe(0);
  });

  test("is whole where its pieces were held until its end", async () => {
    const { outlet, received } = await request();
    outlet.piece(piece);
    void outlet.end(end);
    await text(received, "data: [DONE]\n\n");
    expect(received()).toContain('"content":"word"');
  });

  test("gets signs of life while the node thinks, however often that writes", async () => {
    const { outlet, received, heartbeat } = await request({ ask: messagesAsk, dialect: messages });
    const thought = Buffer.from('"hm"');
    const think = () => {
      outlet.literal("reasoning", thought, 0, thought.length);
      void outlet.flush();
    };
    think();
    heartbeat.strike(streamOpenBeats);
    await text(received, "HTTP/1.1 200");
    const before = received().length;
    for (let beat = 0; beat < keepAliveBeats; beat++) {
      think();
      heartbeat.strike(1);
    }
    await eventually("a sign of life", async () => received().length > before);
    void outlet.end(end);
    await text(received, "event: message_stop");
  });
});

test("a silent stream gets a sign of life, a talking one none", async () => {
  const { outlet, received, heartbeat } = await request();
  const flush = async (count: number) => {
    outlet.piece(piece);
    void outlet.flush();
    await eventually("the piece", async () => received().split('"word"').length === count + 1);
  };
  await flush(1);
  heartbeat.strike(keepAliveBeats - 1);
  await flush(2);
  heartbeat.strike(keepAliveBeats - 1);
  expect(received()).not.toContain(": waiting");
  heartbeat.strike(1);
  await text(received, ": waiting\n\n");
});

test("a stream that the gateway cuts aborts the generation and still has room for the error", async () => {
  const { outlet, received } = await request();
  outlet.piece(piece);
  void outlet.flush();
  await text(received, "word");
  outlet.cut(refuse("stopping"));
  expect(outlet.cancelSignal.reason).toEqual(refuse("stopping"));
  outlet.fail(refuse("stopping"));
  await text(received, "The server is stopping");
  expect(received()).not.toContain("[DONE]");
});

describe("a client that leaves", () => {
  test("before its reply is begun stops the generation, and nothing keeps the reply", async () => {
    const heartbeat = new Heartbeat();
    const outlet = new StreamOutlet(replyOf({ ask, dialect: chatCompletions }), AbortSignal.abort(), heartbeat);
    expect([outlet.cancelSignal.aborted, (await outlet.response).status, heartbeat.size]).toEqual([true, 499, 0]);
  });

  test.each(["before the first piece", "in the middle"])("%s aborts the generation", async (when) => {
    const { outlet, client, received, heartbeat } = await request();
    if (when === "in the middle") {
      outlet.piece(piece);
      void outlet.flush();
      await text(received, "word");
    }
    client.destroy();
    await eventually("cancelled", async () => outlet.cancelSignal.aborted);
    expect([heartbeat.size, outlet.opened]).toEqual([0, when === "in the middle"]);
    outlet.piece(piece);
    expect(outlet.flush()).toBeNull();
    void outlet.end(end); // what comes late does no harm
  });

  test("by not reading is waited for, with bounded memory, and then cut", async () => {
    const { outlet, client, heartbeat, received } = await request();
    outlet.piece(piece);
    void outlet.flush();
    await text(received, "word");
    client.pause();
    const megabyte = { kind: "text", literal: `"${"x".repeat(1 << 20)}"`, logprobs: null } as const;
    let caughtUp: Promise<void> | null = null;
    for (let count = 0; count < 64 && caughtUp === null; count++) {
      outlet.piece(megabyte);
      caughtUp = outlet.flush();
    }
    expect(caughtUp).not.toBeNull();
    heartbeat.strike(clientStallBeats - 1);
    expect(outlet.cancelSignal.aborted).toBe(false);
    heartbeat.strike(1);
    expect(outlet.cancelSignal.aborted).toBe(true);
    await caughtUp;
  });

  test("slowly is resumed when it has read", async () => {
    const { outlet, client, heartbeat, received } = await request();
    outlet.piece(piece);
    void outlet.flush();
    await text(received, "word");
    client.pause();
    let caughtUp: Promise<void> | null = null;
    while (caughtUp === null) {
      outlet.piece({ kind: "text", literal: `"${"x".repeat(1 << 20)}"`, logprobs: null });
      caughtUp = outlet.flush();
    }
    client.resume();
    await caughtUp;
    heartbeat.strike(clientStallBeats - 1); // it may be silent now: only signs of life follow
    expect(outlet.cancelSignal.aborted).toBe(false);
    void outlet.end(end);
    await text(received, "[DONE]");
  });
});
