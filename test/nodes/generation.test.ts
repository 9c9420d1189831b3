// What a node can do wrong, by row number, when nothing was sent yet and when a Piece was.
// The nodes are scripted on raw sockets; the time limits are short ones.
import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { NodePool } from "../../src/nodes/pool.ts";
import type { PoolLimits } from "../../src/nodes/pool.ts";
import { isRefusal } from "../../src/refusals.ts";
import type { Ask, Ending, Piece, Slot } from "../../src/types.ts";
import { askOf, firstPartyModel } from "../fixtures/asks.ts";
import {
  chunk,
  doneEvent,
  finishEvent,
  lastChunk,
  RawNode,
  streamHead,
  streamHeadUntilClose,
  textEvent,
  usageEvent,
  wholeReply,
} from "../fixtures/raw-node.ts";
import type { RawReply, RawRequest } from "../fixtures/raw-node.ts";

/** Long enough for a busy machine; tests of a limit shorten it. */
const limits: PoolLimits = {
  firstPieceMs: 10_000,
  stallMs: 10_000,
  afterFinishMs: 80,
  connectTimeoutMs: 300,
  idleSocketMs: 1_000,
  probeIntervalMs: 1_000,
  probeTimeoutMs: 300,
  coolOffMs: 50,
};

const impatient: PoolLimits = { ...limits, firstPieceMs: 300, stallMs: 200 };

type Result = { text: string; pieces: Piece[]; ending: Ending; log: string[]; pool: NodePool };
const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

function nodeOf(answer: (request: RawRequest, reply: RawReply) => void | Promise<void>): RawNode {
  const node = new RawNode(answer);
  open.push(node);
  return node;
}

function poolOf(url: string, log: string[] = [], given = limits): NodePool {
  const pool = new NodePool([{ name: "node-1", url, apiKey: null, slots: 8, models: { "*": "m" } }], {
    clock: systemClock,
    queueMaxWaitMs: 1_000,
    log: ({ level, message }) => log.push(`${level}: ${message}`),
    limits: given,
    detectEngines: false,
  });
  open.push({ stop: () => void pool.close() });
  return pool;
}

async function slotOf(pool: NodePool, ask: Ask): Promise<Slot> {
  const slot = await pool.enter(ask, 1, new AbortController().signal);
  if (isRefusal(slot)) throw new Error(`no slot: ${slot.refusal}`);
  return slot;
}

async function generateOn(
  url: string,
  { ask = askOf(), gone = new AbortController().signal, onPiece = (_: Piece): void => {}, given = limits } = {},
): Promise<Result> {
  const log: string[] = [];
  const pool = poolOf(url, log, given);
  using slot = await slotOf(pool, ask);
  const pieces: Piece[] = [];
  const ending = await slot.generate(ask, 1, gone, {
    piece(piece) {
      pieces.push(piece);
      onPiece(piece);
    },
    flush: () => null,
  });
  const text = pieces.map((piece) => (piece.kind === "text" ? (JSON.parse(piece.literal) as string) : "")).join("");
  return { text, pieces, ending, log, pool };
}

const failed = (refusal: string, elsewhere: boolean) => ({ kind: "failed", refusal: { refusal }, elsewhere });
const answerEvents = [textEvent("a"), textEvent("b"), finishEvent(), usageEvent(10, 2), doneEvent];
const begun = streamHead + chunk(textEvent("a"));

describe("nothing sent yet", () => {
  test("1 refused: busy, may go elsewhere, and the node is down", async () => {
    const node = new RawNode(() => {});
    const { url } = node;
    node.stop();
    const { ending, pool, log } = await generateOn(url);
    expect(ending).toMatchObject(failed("busy", true));
    expect(pool.states()).toMatchObject([{ health: "down" }]);
    expect(await pool.enter(askOf(), 1, new AbortController().signal)).toMatchObject({ refusal: "busy" });
    expect(log).toContain("error: is down");
  });

  test("2 connect black hole: busy within the connect limit", async () => {
    // a socket that listens with a full backlog cannot be had portably: dialling that never tells anything is the same
    const pool = new NodePool(
      [{ name: "n", url: "http://192.0.2.1/v1", apiKey: null, slots: 1, models: { "*": "m" } }],
      {
        clock: systemClock,
        queueMaxWaitMs: 1_000,
        log: () => {},
        limits,
        detectEngines: false,
        dial: () => {},
      },
    );
    open.push({ stop: () => void pool.close() });
    using slot = await slotOf(pool, askOf());
    const ending = await slot.generate(askOf(), 1, new AbortController().signal, { piece() {}, flush: () => null });
    expect(ending).toMatchObject(failed("busy", true));
  });

  const rows: [string, (request: RawRequest, reply: RawReply) => void, object][] = [
    ["3 RST before headers", (_, reply) => reply.reset(), failed("node_failed", true)],
    ["4 FIN before headers", (_, reply) => reply.end(), failed("node_failed", true)],
    [
      "5 429",
      (_, reply) => reply.write(wholeReply("429 Too Many Requests", '{"error":"Model is overloaded"}')),
      failed("busy", true),
    ],
    ["5 503", (_, reply) => reply.write(wholeReply("503 Service Unavailable", "")), failed("busy", true)],
    [
      "5 503 whose body never ends",
      (_, reply) => reply.write("HTTP/1.1 503 x\r\nContent-Length: 9\r\n\r\n"),
      failed("busy", true),
    ],
    ["6 500", (_, reply) => reply.write(wholeReply("500 x", "Traceback at 10.0.0.7")), failed("node_failed", false)],
    ["6 502", (_, reply) => reply.write(wholeReply("502 x", "")), failed("node_failed", false)],
    ["6 504", (_, reply) => reply.write(wholeReply("504 x", "")), failed("node_failed", false)],
    [
      "7 400 prompt too long (vLLM)",
      (_, reply) =>
        reply.write(
          wholeReply(
            "400 Bad Request",
            '{"error":{"message":"You passed 4000 input tokens and requested 100 output tokens. However, the model\'s context length is only 4096 tokens","code":400}}',
          ),
        ),
      {
        kind: "failed",
        refusal: { refusal: "context_length_exceeded", detail: { tokens: 4_100, maximum: 4_096 } },
        elsewhere: false,
      },
    ],
    [
      "7 422 prompt too long (TGI)",
      (_, reply) =>
        reply.write(
          wholeReply(
            "422 x",
            '{"error":"`inputs` must have less than 1000 tokens. Given: 2000","error_type":"validation"}',
          ),
        ),
      { refusal: { refusal: "context_length_exceeded", detail: { tokens: 2_000, maximum: 1_000 } } },
    ],
    [
      "7 400 prompt too long without numbers",
      (_, reply) =>
        reply.write(wholeReply("400 x", '{"error":{"message":"prompt is longer than the context length"}}')),
      { refusal: { refusal: "context_length_exceeded", detail: { tokens: 262_145, maximum: 262_144 } } },
    ],
    [
      "another 400",
      (_, reply) => reply.write(wholeReply("400 x", '{"error":{"message":"unknown field secret"}}')),
      failed("malformed", false),
    ],
    ["8 401", (_, reply) => reply.write(wholeReply("401 x", '{"error":"Unauthorized"}')), failed("node_failed", false)],
    ["8 403", (_, reply) => reply.write(wholeReply("403 x", "")), failed("node_failed", false)],
    ["8 404", (_, reply) => reply.write(wholeReply("404 x", "")), failed("node_failed", false)],
    [
      "9 302",
      (_, reply) => reply.write(wholeReply("302 Found", "", "Location: http://127.0.0.1:1/\r\n")),
      failed("node_failed", false),
    ],
    [
      "10 200 text/html",
      (_, reply) => reply.write(wholeReply("200 OK", "<p>hello</p>", "Content-Type: text/html\r\n")),
      failed("node_failed", false),
    ],
    [
      "10 an answer that is called text/html",
      (_, reply) =>
        reply.write(wholeReply("200 OK", textEvent("a") + finishEvent() + doneEvent, "Content-Type: text/html\r\n")),
      failed("node_failed", false),
    ],
    ["10 200 JSON", (_, reply) => reply.write(wholeReply("200 OK", "{}")), failed("node_failed", false)],
    [
      "11 200 empty",
      (_, reply) => reply.write(wholeReply("200 OK", "", "Content-Type: text/event-stream\r\n")),
      failed("node_failed", false),
    ],
    [
      "11 200 empty without a type",
      (_, reply) => reply.write(wholeReply("200 OK", "", "")),
      failed("node_failed", false),
    ],
    [
      "12 garbage events",
      (_, reply) => reply.write(streamHead + chunk("data: garbage\n\n")),
      failed("node_failed", false),
    ],
    [
      "13 half an event, then the end",
      (_, reply) => {
        reply.write(streamHeadUntilClose + textEvent("a").slice(0, 40));
        reply.end();
      },
      failed("node_failed", false),
    ],
    ["16 silent for ever", (_, reply) => reply.write(streamHead), failed("node_failed", false)],
    ["16 silent for ever, no head", () => {}, failed("node_failed", false)],
    [
      "18 any content-encoding",
      (_, reply) =>
        reply.write(
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n",
        ),
      failed("node_failed", false),
    ],
    [
      "28 error event",
      (_, reply) =>
        reply.write(streamHead + chunk('data: {"error":{"message":"secret","code":500}}\n\n' + doneEvent) + lastChunk),
      failed("node_failed", false),
    ],
    [
      "28 overloaded by an error event",
      (_, reply) =>
        reply.write(
          streamHead +
            chunk('data: {"error":{"message":"The request queue is full","code":503}}\n\n' + doneEvent) +
            lastChunk,
        ),
      failed("busy", true),
    ],
    ["not HTTP", (_, reply) => reply.write("SSH-2.0-OpenSSH_9.2\r\n\r\n"), failed("node_failed", false)],
  ];
  for (const [name, answer, expected] of rows)
    test(name, async () => {
      const { ending, pieces, log } = await generateOn(nodeOf(answer).url, {
        given: name.startsWith("16") ? impatient : limits,
      });
      expect(ending).toMatchObject(expected);
      expect(pieces).toEqual([]);
      expect(JSON.stringify([ending, log])).not.toMatch(/secret|10\.0\.0\.7|127\.0\.0\.1/);
    });

  test("8 tells the operator", async () => {
    const { log } = await generateOn(nodeOf((_, reply) => reply.write(wholeReply("404 x", ""))).url);
    expect(log).toContain("error: generation failed: status 404");
  });

  test("9 is not followed", async () => {
    const other = nodeOf(() => {});
    await generateOn(nodeOf((_, reply) => reply.write(wholeReply("302 x", "", `Location: ${other.url}\r\n`))).url);
    expect(other.connections).toBe(0);
  });

  test("15 silence below the limit is waited for, comments too", async () => {
    const node = nodeOf(async (_, reply) => {
      await Bun.sleep(120);
      reply.write(streamHead + chunk(": ping\n\n"));
      await Bun.sleep(120);
      reply.write(chunk(answerEvents.join("")) + lastChunk);
    });
    expect(await generateOn(node.url)).toMatchObject({ text: "ab", ending: { kind: "end", reason: "stop" } });
  });

  test("comments alone do not keep an answer alive", async () => {
    const node = nodeOf(async (_, reply) => {
      reply.write(streamHead);
      for (let ping = 0; ping < 40; ping++) {
        reply.write(chunk(": ping\n\n"));
        await Bun.sleep(30);
      }
    });
    expect((await generateOn(node.url, { given: impatient })).ending).toMatchObject(failed("node_failed", false));
  });

  test("19 a line without end", async () => {
    const node = nodeOf((_, reply) => {
      reply.write(streamHeadUntilClose + "data: ");
      for (let part = 0; part < 8; part++) reply.write(Buffer.alloc(1_000_000, 97));
    });
    const { ending } = await generateOn(node.url);
    expect(ending).toMatchObject(failed("node_failed", false));
  });
});

describe("bytes sent", () => {
  const rows: [string, (reply: RawReply) => void][] = [
    ["12 garbage events", (reply) => reply.write(chunk("data: garbage\n\n"))],
    [
      "13 half an event, then the end",
      (reply) => {
        reply.write(chunk(textEvent("b").slice(0, 40)) + lastChunk);
      },
    ],
    ["14 RST", (reply) => reply.reset()],
    ["14 FIN within the chunks", (reply) => reply.end()],
    ["14 the end in form, without a finish reason", (reply) => reply.write(lastChunk)],
    ["14 [DONE] without a finish reason", (reply) => reply.write(chunk(doneEvent) + lastChunk)],
    ["16 silent for ever", () => {}],
    ["a chunk that is none", (reply) => reply.write("zz\r\n")],
    ["28 error event", (reply) => reply.write(chunk('data: {"error":{"message":"secret","code":503}}\n\n'))],
  ];
  for (const [name, fault] of rows)
    test(name, async () => {
      const broken = nodeOf(async (_, reply) => {
        reply.write(begun);
        await Bun.sleep(5);
        fault(reply);
      });
      const { ending, text, log } = await generateOn(broken.url, { given: name.startsWith("16") ? impatient : limits });
      expect(text).toBe("a");
      expect(ending).toMatchObject({ kind: "failed", elsewhere: false });
      expect(JSON.stringify([ending, log])).not.toContain("secret");
    });

  test("17 a slow answer is an answer", async () => {
    const node = nodeOf(async (_, reply) => {
      reply.write(streamHead);
      for (const one of [textEvent("a"), textEvent("b"), finishEvent() + usageEvent(10, 2) + doneEvent]) {
        await Bun.sleep(100);
        reply.write(chunk(one));
      }
      reply.write(lastChunk);
    });
    expect(await generateOn(node.url)).toMatchObject({ text: "ab", ending: { kind: "end", estimated: false } });
  });

  test("19 a flood of tiny events does not hold up the others", async () => {
    const flood = Buffer.from(textEvent("x").repeat(50_000));
    const node = nodeOf((_, reply) => {
      reply.write(streamHeadUntilClose);
      reply.write(flood);
      reply.write(finishEvent("stop", { usage: { prompt_tokens: 10, completion_tokens: 50_000 } }));
      reply.end();
    });
    let turns = 0;
    const turn = setInterval(() => turns++, 1);
    const { text, ending } = await generateOn(node.url, { ask: askOf({ outputTokensMax: 65_536 }) });
    clearInterval(turn);
    expect(text.length).toBe(50_000);
    expect(ending).toMatchObject({ kind: "end" });
    expect(turns).toBeGreaterThan(3);
  });

  test("20, 21 usage missing or absurd: own count, flagged", async () => {
    const node = nodeOf((_, reply) =>
      reply.write(streamHead + chunk(textEvent("a") + finishEvent() + usageEvent(-1, 1e19) + doneEvent) + lastChunk),
    );
    expect((await generateOn(node.url, { ask: askOf({ bodyBytes: 40 }) })).ending).toEqual({
      kind: "end",
      reason: "stop",
      stopSequence: null,
      usage: { inputFresh: 10, inputCached: 0, output: 1, reasoning: 0 },
      estimated: true,
    });
  });

  test("25 a node that never stops is cut at the budget and closed", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const node = nodeOf(async (_, reply) => {
      void reply.closed.then(resolve);
      reply.write(streamHead);
      for (let sent = 0; sent < 200; sent++) {
        reply.write(chunk(textEvent("a")));
        await Bun.sleep(1);
      }
    });
    const { text, ending } = await generateOn(node.url, { ask: askOf({ outputTokensMax: 20 }) });
    expect(text).toBe("a".repeat(20));
    expect(ending).toMatchObject({ kind: "end", reason: "length", usage: { output: 20 } });
    await promise;
  });

  test("26 a socket left open after the finish reason", async () => {
    const node = nodeOf((_, reply) => reply.write(streamHead + chunk(textEvent("a") + finishEvent())));
    expect(await generateOn(node.url)).toMatchObject({ text: "a", ending: { kind: "end", estimated: true } });
    const withUsage = nodeOf((_, reply) =>
      reply.write(streamHead + chunk(textEvent("a") + finishEvent() + usageEvent(5, 1))),
    );
    expect((await generateOn(withUsage.url)).ending).toMatchObject({
      kind: "end",
      estimated: false,
      usage: { inputFresh: 5 },
    });
  });

  test("26 a connection cut after the finish reason", async () => {
    const node = nodeOf((_, reply) => {
      reply.write(streamHead + chunk(textEvent("a") + finishEvent() + usageEvent(5, 1)));
      reply.end();
    });
    expect((await generateOn(node.url)).ending).toMatchObject({ kind: "end", estimated: false });
  });

  test("27 two ends: the first wins", async () => {
    const node = nodeOf((_, reply) =>
      reply.write(
        streamHead +
          chunk(
            textEvent("a") +
              finishEvent("length") +
              usageEvent(5, 1) +
              doneEvent +
              textEvent("b") +
              finishEvent() +
              usageEvent(9, 9) +
              doneEvent,
          ) +
          lastChunk,
      ),
    );
    expect(await generateOn(node.url)).toMatchObject({
      text: "a",
      ending: { reason: "length", usage: { inputFresh: 5, output: 1 } },
    });
  });

  test("29 UTF-8 split at any byte", async () => {
    const bytes = Buffer.from(textEvent("é你😀") + finishEvent() + doneEvent);
    const node = nodeOf(async (_, reply) => {
      reply.write(streamHead);
      for (const byte of bytes) {
        reply.write(chunk(Buffer.from([byte])));
        if (byte > 0x7f) await Bun.sleep(1);
      }
      reply.write(lastChunk);
    });
    expect((await generateOn(node.url)).text).toBe("é你😀");
  });
});

describe("the client leaves", () => {
  test("mid-stream: the node's socket closes, and its running usage is charged", async () => {
    const left = Promise.withResolvers<void>();
    const running = (output: number) => ({ usage: { prompt_tokens: 50, completion_tokens: output } });
    const node = nodeOf(async (_, reply) => {
      void reply.closed.then(left.resolve);
      reply.write(streamHead + chunk(textEvent("a", running(1))) + chunk(textEvent("b", running(2))));
    });
    const client = new AbortController();
    const { ending } = await generateOn(node.url, {
      gone: client.signal,
      onPiece: (piece) => {
        if (piece.kind === "text" && piece.literal === '"b"') setImmediate(() => client.abort());
      },
    });
    expect(ending).toEqual({
      kind: "gone",
      usage: { inputFresh: 50, inputCached: 0, output: 2, reasoning: 0 },
      estimated: false,
    });
    await left.promise;
  });

  test("from within a piece", async () => {
    const node = nodeOf((_, reply) =>
      reply.write(streamHead + chunk(textEvent("a") + textEvent("b") + textEvent("c"))),
    );
    const client = new AbortController();
    const { ending } = await generateOn(node.url, { gone: client.signal, onPiece: () => client.abort() });
    expect(ending).toMatchObject({ kind: "gone", estimated: true });
  });

  test("before a byte came, and before it began", async () => {
    const node = nodeOf((_, reply) => void reply.closed);
    const client = new AbortController();
    setTimeout(() => client.abort(), 20);
    expect((await generateOn(node.url, { gone: client.signal })).ending).toMatchObject({
      kind: "gone",
      usage: { output: 0 },
    });
    expect((await generateOn(node.url, { gone: AbortSignal.abort() })).ending).toMatchObject({ kind: "gone" });
  });
});

describe("a slow client", () => {
  test("pauses the node until it has caught up", async () => {
    const big = "x".repeat(8_000);
    let sent = 0;
    const node = nodeOf(async (_, reply) => {
      reply.write(streamHead);
      for (; sent < 4_000; sent++) {
        reply.write(chunk(textEvent(big)));
        if (sent % 50 === 0) await Bun.sleep(0);
      }
      reply.write(chunk(finishEvent("stop", { usage: { prompt_tokens: 1, completion_tokens: 4_000 } })) + lastChunk);
    });
    const pool = poolOf(node.url, [], { ...limits, stallMs: 300 });
    const ask = askOf({ model: firstPartyModel });
    using slot = await slotOf(pool, ask);
    const caughtUp = Promise.withResolvers<void>();
    let pieces = 0;
    let flushes = 0;
    const ending = slot.generate(ask, 1, new AbortController().signal, {
      piece: () => void pieces++,
      flush: () => (++flushes === 3 ? caughtUp.promise : null),
    });
    // longer than the stall limit: a pause of ours is no stall of the node
    await Bun.sleep(450);
    expect(flushes).toBe(3);
    const whilePaused = pieces;
    await Bun.sleep(50);
    expect(pieces).toBe(whilePaused);
    expect(whilePaused).toBeLessThan(1_000);
    caughtUp.resolve();
    expect(await ending).toMatchObject({ kind: "end" });
    expect(pieces).toBe(4_000);
  });
});

describe("the connection after an answer", () => {
  const threeTimes = async (answer: (request: RawRequest, reply: RawReply) => void): Promise<RawNode> => {
    const node = nodeOf(answer);
    const pool = poolOf(node.url);
    for (let round = 0; round < 3; round++) {
      using slot = await slotOf(pool, askOf());
      const ending = await slot.generate(askOf(), 1, new AbortController().signal, { piece() {}, flush: () => null });
      expect(ending).toMatchObject({ kind: "end" });
      await Bun.sleep(20);
    }
    return node;
  };
  test("is used again when it ended in form", async () => {
    expect(
      (await threeTimes((_, reply) => reply.write(streamHead + chunk(answerEvents.join("")) + lastChunk))).connections,
    ).toBe(1);
  });
  test("also when the last chunk comes a moment after [DONE]", async () => {
    const node = await threeTimes((_, reply) => {
      reply.write(streamHead + chunk(answerEvents.join("")));
      setTimeout(() => reply.write(lastChunk), 5);
    });
    expect(node.connections).toBe(1);
  });
  test("is not used again when the node would close it", async () => {
    const node = await threeTimes((_, reply) => {
      reply.write(streamHeadUntilClose + answerEvents.join(""));
      reply.end();
    });
    expect(node.connections).toBe(3);
  });
});
