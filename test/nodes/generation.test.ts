// What a node can do wrong, by row number, before and after a first Piece was sent. The nodes are scripted on raw
// sockets; the time limits are short.
import { afterEach, describe, expect, jest, test } from "bun:test";
import { systemClock } from "../../src/core/clock.ts";
import { NodePool } from "../../src/nodes/queue/pool.ts";
import type { PoolLimits } from "../../src/nodes/queue/pool.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Ask, Ending, Piece, Sink, Slot } from "../../src/core/types.ts";
import { askOf, firstPartyModel, toolOf } from "../fixtures/asks.ts";
import { begun, faultsAtStart, faultsWithin, isSilence, oddAnswers } from "../fixtures/node-faults.ts";
import {
  chunk,
  doneEvent,
  finishEvent,
  lastChunk,
  RawNode,
  streamHead,
  streamHeadUntilClose,
  textEvent,
  turns,
  usageEvent,
  wholeReply,
} from "../fixtures/raw-node.ts";
import { recorded, recordedNode } from "../fixtures/recorded-node.ts";
import { loadLimitsDefault } from "../../src/nodes/queue/load-watch.ts";
import type { RawReply, RawRequest } from "../fixtures/raw-node.ts";

/** Long enough for a busy machine; tests of a limit shorten it. What follows a finish reason is only waited for. */
const limits: PoolLimits = {
  ...loadLimitsDefault,
  firstPieceMs: 60_000,
  stallMs: 60_000,
  afterFinishMs: 80,
  connectTimeoutMs: 60_000,
  idleSocketMs: 60_000,
  probeIntervalMs: 1_000,
  idleLookIntervalMs: 60_000,
  factsIntervalMs: 60_000,
  probeTimeoutMs: 60_000,
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
    queueMaxWaitMs: 60_000,
    log: ({ level, message }) => log.push(`${level}: ${message}`),
    limits: given,
    looks: false,
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
  { ask = askOf(), cancelSignal = new AbortController().signal, onPiece = (_: Piece): void => {}, given = limits } = {},
): Promise<Result> {
  const log: string[] = [];
  const pool = poolOf(url, log, given);
  using slot = await slotOf(pool, ask);
  const pieces: Piece[] = [];
  const ending = await slot.run(ask, 1, cancelSignal, {
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

describe("nothing sent yet", () => {
  test("1 refused: busy, may go elsewhere, and the node is down", async () => {
    const node = new RawNode(() => {});
    const { url } = node;
    node.stop();
    const { ending, pool, log } = await generateOn(url);
    expect(ending).toMatchObject(failed("busy_unreachable", true));
    expect(pool.states()).toMatchObject([{ health: "down" }]);
    expect(log).toContain("error: is down: it cannot be reached: nothing listens at its address");
  });

  test("2 connect black hole: busy within the connect limit", async () => {
    // a socket that listens with a full backlog cannot be had portably: dialing that never tells anything is the same
    const pool = new NodePool(
      [{ name: "n", url: "http://192.0.2.1/v1", apiKey: null, slots: 1, models: { "*": "m" } }],
      {
        clock: systemClock,
        queueMaxWaitMs: 60_000,
        log: () => {},
        limits: { ...limits, connectTimeoutMs: 50 },
        looks: false,
        dial: () => {},
      },
    );
    open.push({ stop: () => void pool.close() });
    using slot = await slotOf(pool, askOf());
    const ending = await slot.run(askOf(), 1, new AbortController().signal, { piece() {}, flush: () => null });
    expect(ending).toMatchObject(failed("busy_unreachable", true));
  });

  for (const [name, answer, expected] of faultsAtStart)
    test(name, async () => {
      const { ending, pieces, log } = await generateOn(nodeOf(answer).url, {
        given: isSilence(name) ? impatient : limits,
      });
      expect(ending).toMatchObject(expected);
      expect(pieces).toEqual([]);
      expect(JSON.stringify(ending)).not.toContain("secret");
      expect(JSON.stringify([ending, log])).not.toMatch(/10\.0\.0\.7|127\.0\.0\.1/);
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
  for (const [name, fault] of faultsWithin)
    test(name, async () => {
      const broken = nodeOf(async (_, reply) => {
        reply.write(begun);
        await turns();
        fault(reply);
      });
      const { ending, text } = await generateOn(broken.url, { given: isSilence(name) ? impatient : limits });
      expect(text).toBe("a");
      expect(ending).toMatchObject({ kind: "failed", elsewhere: false });
      expect(JSON.stringify(ending)).not.toContain("secret");
    });

  for (const { name, answer, text, usage, estimated, reason } of oddAnswers)
    test(name, async () => {
      const found = await generateOn(nodeOf(answer).url, { ask: askOf({ bodyBytes: 40 }) });
      expect(found).toMatchObject({ text, ending: { kind: "end", reason, estimated } });
      const [input, output] = usage;
      if (!estimated) expect(found.ending).toMatchObject({ usage: { inputFresh: input, output } });
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
      cancelSignal: client.signal,
      onPiece: (piece) => {
        if (piece.kind === "text" && piece.literal === '"b"') setImmediate(() => client.abort());
      },
    });
    expect(ending).toEqual({
      kind: "cancelled",
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
    const { ending } = await generateOn(node.url, { cancelSignal: client.signal, onPiece: () => client.abort() });
    expect(ending).toMatchObject({ kind: "cancelled", estimated: true });
  });

  test("before a byte came, and before it began", async () => {
    const client = new AbortController();
    const node = nodeOf(() => client.abort());
    expect((await generateOn(node.url, { cancelSignal: client.signal })).ending).toMatchObject({
      kind: "cancelled",
      usage: { output: 0 },
    });
    expect((await generateOn(node.url, { cancelSignal: AbortSignal.abort() })).ending).toMatchObject({
      kind: "cancelled",
    });
  });
});

describe("what a node sends in one turn of the event loop", () => {
  /** Asks a node that sends these events, and takes what it sends into `sink`. */
  async function take(
    sink: Pick<Sink, "piece" | "flush">,
    answer: (reply: RawReply) => void,
    cancelSignal = new AbortController().signal,
  ): Promise<Ending> {
    const node = nodeOf((_, reply) => {
      reply.write(streamHead);
      answer(reply);
    });
    const ask = askOf();
    using slot = await slotOf(poolOf(node.url), ask);
    return await slot.run(ask, 1, cancelSignal, sink);
  }

  test("is with the client before its leaving is heard: it pays for nothing that was not written", async () => {
    const client = new AbortController();
    let written = 0;
    let pieces = 0;
    const piece = (): void => {
      if (++pieces === 2) queueMicrotask(() => client.abort()); // what is heard next
    };
    const flush = (): null => {
      if (!client.signal.aborted) written = pieces;
      return null;
    };
    const ending = await take(
      { piece, flush },
      (reply) => reply.write(chunk(textEvent("a") + textEvent("b"))),
      client.signal,
    );
    expect(ending).toMatchObject({ kind: "cancelled", usage: { output: 2 } });
    expect(written).toBe(2);
  });

  const failing = (): never => {
    throw new RangeError("of one request");
  };
  for (const [what, sink] of [
    ["a piece", { piece: failing, flush: () => null }],
    ["a flush", { piece() {}, flush: failing }],
  ] as const)
    test(`fails one request where its client's side cannot take ${what}`, async () => {
      const whole = (reply: RawReply): void => reply.write(chunk(answerEvents.join("")) + lastChunk);
      const [ending, other] = await Promise.all([take(sink, whole), take({ piece() {}, flush: () => null }, whole)]);
      expect(ending).toMatchObject({ kind: "failed" });
      expect(other).toMatchObject({ kind: "end", usage: { output: 2 } });
    });

  test("counts before the wait for it is over, after a pause of the whole process", async () => {
    let node: RawReply | null = null;
    const flush = (): null => {
      node?.write(chunk(usageEvent(1_000, 77) + doneEvent) + lastChunk);
      node = null;
      Bun.sleepSync(2 * limits.afterFinishMs);
      return null;
    };
    const ending = await take({ piece() {}, flush }, (reply) => {
      node = reply;
      reply.write(chunk(textEvent("a") + finishEvent()));
    });
    expect(ending).toMatchObject({ kind: "end", estimated: false, usage: { output: 77 } });
  });
});

describe("a slow client", () => {
  test("pauses the node until it has caught up", async () => {
    const big = "x".repeat(8_000);
    let sent = 0;
    const node = nodeOf(async (_, reply) => {
      reply.write(streamHead);
      for (; sent < 4_000; sent++) {
        reply.write(chunk(textEvent("x", { padding: big })));
        if (sent % 50 === 0) await new Promise((resume) => setImmediate(resume));
      }
      reply.write(chunk(finishEvent("stop", { usage: { prompt_tokens: 1, completion_tokens: 4_000 } })) + lastChunk);
    });
    const pool = poolOf(node.url);
    const ask = askOf({ model: firstPartyModel });
    using slot = await slotOf(pool, ask);
    const caughtUp = Promise.withResolvers<void>();
    const paused = Promise.withResolvers<void>();
    let pieces = 0;
    let flushes = 0;
    jest.useFakeTimers();
    const ending = slot.run(ask, 1, new AbortController().signal, {
      piece: () => void pieces++,
      flush: () => (++flushes === 3 ? (paused.resolve(), caughtUp.promise) : null),
    });
    await paused.promise;
    jest.advanceTimersByTime(10 * limits.stallMs); // a pause of ours is no stall of the node
    jest.useRealTimers();
    const whilePaused = pieces;
    await turns(50);
    expect([flushes, pieces]).toEqual([3, whilePaused]);
    expect(whilePaused).toBeLessThan(1_000);
    caughtUp.resolve();
    expect(await ending).toMatchObject({ kind: "end" });
    expect(pieces).toBe(4_000);
  });
});

test("Ollama, which forces no tool, is held to a schema of the calls: its text is the one that it chose", async () => {
  const answer = recorded("ollama", "23c-one-of-two-as-schema");
  const node = recordedNode("ollama", { "/v1/chat/completions": answer });
  open.push(node);
  const found = Promise.withResolvers<void>();
  const pool = new NodePool([{ name: "node-1", url: node.url, apiKey: null, slots: 8, models: { "*": "*" } }], {
    clock: systemClock,
    queueMaxWaitMs: 60_000,
    log: () => {},
    limits,
    onFirstLook: () => found.resolve(),
  });
  open.push({ stop: () => void pool.close() });
  await found.promise;
  const ask = askOf({ tools: [toolOf("get_weather"), toolOf("get_time")], toolChoice: "required" });
  using slot = await slotOf(pool, ask);
  const pieces: Piece[] = [];
  const sink = { piece: (piece: Piece) => void pieces.push(piece), flush: () => null };
  const ending = await slot.run(ask, 1, new AbortController().signal, sink);
  expect(ending).toMatchObject({ kind: "end", reason: "tool_calls", usage: { inputFresh: 144, output: 14 } });
  expect(pieces.filter(({ kind }) => kind !== "reasoning")).toMatchObject([
    { kind: "call", name: "get_time" },
    { kind: "call-arguments", literal: '"{"' },
    { kind: "call-arguments", literal: '"}"' },
  ]);
});

describe("the connection after an answer", () => {
  const threeTimes = async (answer: (request: RawRequest, reply: RawReply) => void): Promise<RawNode> => {
    const node = nodeOf(answer);
    const pool = poolOf(node.url, [], { ...limits, afterFinishMs: 60_000 });
    for (let round = 0; round < 3; round++) {
      using slot = await slotOf(pool, askOf());
      const ending = await slot.run(askOf(), 1, new AbortController().signal, { piece() {}, flush: () => null });
      expect(ending).toMatchObject({ kind: "end" });
      await turns();
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
      void turns(2).then(() => reply.write(lastChunk));
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
