// Answers to requests that named no output budget, of which more is held while they are written: what was read before that
// is answered waits for it, whatever becomes of the connection meanwhile. The node is scripted on a raw socket.
import { afterEach, expect, test } from "bun:test";
import { systemClock } from "../../src/core/clock.ts";
import { HeldBudget } from "../../src/core/growing-budget.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import { type Ending, StoreUnavailable } from "../../src/core/types.ts";
import { loadLimitsDefault } from "../../src/nodes/queue/load-watch.ts";
import { NodePool, type PoolLimits } from "../../src/nodes/queue/pool.ts";
import { AnswerReader } from "../../src/nodes/reader.ts";
import { askOf } from "../fixtures/asks.ts";
import {
  chunk,
  doneEvent,
  finishEvent,
  lastChunk,
  RawNode,
  type RawReply,
  streamHead,
  streamHeadUntilClose,
  textEvent,
  turns,
  usageEvent,
} from "../fixtures/raw-node.ts";

const limits: PoolLimits = {
  ...loadLimitsDefault,
  firstPieceMs: 60_000,
  stallMs: 60_000,
  afterFinishMs: 80,
  connectTimeoutMs: 60_000,
  idleSocketMs: 60_000,
  probeIntervalMs: 60_000,
  idleLookIntervalMs: 60_000,
  factsIntervalMs: 60_000,
  probeTimeoutMs: 60_000,
  coolOffMs: 50,
};

const open: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop();
});

/** Of so many tokens there are `all`; the hold has `held` of them at first, and `ahead` more than are written then. */
type Tokens = Readonly<{ all: number; held: number; ahead: number }>;
type Grow = (written: number) => number | Promise<number>;

const grows = ({ all, ahead }: Tokens): Grow => {
  return (written) => Math.min(all, written + ahead);
};
/** The same, known a few turns of the event loop later. */
const late =
  (grow: Grow): Grow =>
  async (written) => {
    await turns(2);
    return grow(written);
  };

const client = new AbortController();

/** What comes of an answer of which the node writes `answer`. */
async function read(
  answer: (reply: RawReply) => void,
  tokens: Tokens,
  grow: Grow,
  cancelSignal: AbortSignal = client.signal,
): Promise<Readonly<{ ending: Ending; pieces: number }>> {
  const node = new RawNode((_, reply) => answer(reply));
  open.push(node);
  const pool = new NodePool([{ name: "n", url: node.url, apiKey: null, slots: 8, models: { "*": "m" } }], {
    clock: systemClock,
    queueMaxWaitMs: 60_000,
    log: () => {},
    limits,
    looks: false,
  });
  open.push({ stop: () => pool.close() });
  let pieces = 0;
  const growing = new HeldBudget({ grow }, { held: tokens.held, most: tokens.all }, systemClock);
  const ask = { ...askOf({ outputTokensMax: tokens.all }), growing };
  const entered = await pool.enter(ask, 1, cancelSignal);
  if (isRefusal(entered)) throw new Error(entered.refusal);
  using slot = entered;
  const ending = await slot.run(ask, 1, cancelSignal, { piece: () => void (pieces += 1), flush: () => null });
  return { ending, pieces };
}

const answerOf = (events: readonly string[], output = events.length): string =>
  [...events, finishEvent(), usageEvent(10, output), doneEvent].join("");
/** All in one write, with its end. */
const whole =
  (...answer: Parameters<typeof answerOf>) =>
  (reply: RawReply): void =>
    reply.write(streamHead + chunk(answerOf(...answer)) + lastChunk);
const words = (count: number, more: (index: number) => object = () => ({})): string[] =>
  Array.from({ length: count }, (_, index) => textEvent("ab ", more(index)));
/** An engine that writes so many tokens with each event, and says so. */
const running = (tokens: number) => (index: number) => ({
  usage: { prompt_tokens: 10, completion_tokens: tokens * (index + 1) },
});

const tokens: Tokens = { all: 100_000, held: 16, ahead: 16 };

for (const [when, soon] of [
  ["at once", (grow: Grow) => grow],
  ["late", late],
] as const) {
  test(`growth that is answered ${when}: an answer that came in one read, with its end, is whole`, async () => {
    const untilClose = (reply: RawReply): void => {
      reply.write(streamHeadUntilClose + answerOf(words(500)));
      reply.end();
    };
    for (const answer of [whole(words(500)), untilClose]) {
      const { ending, pieces } = await read(answer, tokens, soon(grows(tokens)));
      expect(ending).toMatchObject({ kind: "end", reason: "stop", usage: { output: 500 }, estimated: false });
      expect(pieces).toBe(500);
    }
  });

  test(`growth that is answered ${when}: is cut at the token where nothing more is found`, async () => {
    for (const all of [16, 17, 100, 399]) {
      const few = { ...tokens, all };
      const { ending, pieces } = await read(whole(words(400)), few, soon(grows(few)));
      expect(ending).toMatchObject({ kind: "end", reason: "length", usage: { output: all } });
      expect(pieces).toBe(all);
    }
    // What was found to be free at first is not anymore.
    const refused = await read(
      whole(words(400)),
      tokens,
      soon(() => tokens.held),
    );
    expect(refused).toMatchObject({ ending: { reason: "length", usage: { output: 16 } }, pieces: 16 });
  });

  test(`growth that is answered ${when}: an engine that writes several tokens with an event is cut only where there is no more`, async () => {
    for (const each of [1, 3, 20]) {
      const { ending, pieces } = await read(whole(words(200, running(each)), 200 * each), tokens, soon(grows(tokens)));
      expect(ending).toMatchObject({ reason: "stop", usage: { output: 200 * each }, estimated: false });
      expect(pieces).toBe(200);
      const few = { ...tokens, all: 100 };
      const cut = await read(whole(words(200, running(each)), 200 * each), few, soon(grows(few)));
      expect(cut).toMatchObject({ ending: { reason: "length", usage: { output: 100 } } });
      expect(cut.pieces).toBe(Math.floor(100 / each));
    }
  });

  test(`growth that is answered ${when}: what is no number of tokens counts for nothing`, async () => {
    for (const output of [20.5, "20", -20, 1e300, {}, true]) {
      const odd = words(200, () => ({ usage: { prompt_tokens: 10, completion_tokens: output } }));
      const { ending, pieces } = await read(whole(odd, 200), tokens, soon(grows(tokens)));
      expect(ending).toMatchObject({ reason: "stop", usage: { output: 200 }, estimated: false });
      expect(pieces).toBe(200);
    }
  });

  test(`growth that is answered ${when}: a count that stands still, or is far beyond the truth, lets no more past than is held`, async () => {
    for (const completion_tokens of [0, 1, 1e300, Number.MAX_SAFE_INTEGER]) {
      const few = { ...tokens, all: 200 };
      const events = Array.from({ length: 900 }, () =>
        textEvent("some words ", { usage: { prompt_tokens: 5, completion_tokens } }),
      );
      const { ending, pieces } = await read(whole(events, 900), few, soon(grows(few)));
      expect([completion_tokens, pieces]).toEqual([completion_tokens, 200]);
      expect(ending).toMatchObject({ kind: "end", reason: "length", usage: { output: 200 } });
    }
  });

  test(`growth that is answered ${when}: while the books cannot be read there is what there was, and another error fails the answer`, async () => {
    const throwing = (error: Error): Grow =>
      soon(() => {
        throw error;
      });
    const unknown = await read(whole(words(100)), tokens, throwing(new StoreUnavailable("away")));
    expect(unknown).toMatchObject({ ending: { reason: "length", usage: { output: 16 } } });
    const wrong = await read(whole(words(100)), tokens, throwing(new RangeError("ours")));
    expect(wrong.ending).toMatchObject({ kind: "failed" });
  });
}

test("an answer that breaks off while more is asked for fails after what was read of it", async () => {
  for (const end of [lastChunk, "no chunk\r\n"]) {
    const broken = (reply: RawReply): void => reply.write(streamHead + chunk(words(100).join("")) + end);
    const { ending, pieces } = await read(broken, tokens, late(grows(tokens)));
    expect(ending).toMatchObject({ kind: "failed" });
    expect(pieces).toBe(100);
  }
});

test("of an answer that is over no more is held", () => {
  const endings = [
    (reader: AnswerReader) => reader.cancelled(),
    (reader: AnswerReader) => {
      reader.event(finishEvent().slice("data: ".length));
      return reader.ending();
    },
  ];
  for (const end of endings) {
    const growing = { spent: 0, outputTokens: 16, grow: (): never => expect.unreachable() };
    const reader = new AnswerReader({ ...askOf({ outputTokensMax: 100 }), growing }, { piece() {} });
    end(reader);
    expect(reader.grow()).toBeNull();
  }
});

test("a client that leaves while more is asked for pays for what it was given", async () => {
  for (const events of [words(100), words(100, running(7))]) {
    const leaving = new AbortController();
    const asked = Promise.withResolvers<number>();
    const grow: Grow = () => {
      void turns(5).then(() => leaving.abort());
      return asked.promise;
    };
    const { ending, pieces } = await read(whole(events), tokens, grow, leaving.signal);
    asked.resolve(tokens.all); // nobody reads on
    await turns(2);
    if (ending.kind !== "cancelled") throw new Error(ending.kind);
    expect(pieces).toBeGreaterThan(0);
    expect(ending.usage.output).toBeGreaterThanOrEqual(pieces);
    expect(ending.usage.output).toBeLessThanOrEqual(tokens.held);
  }
});
