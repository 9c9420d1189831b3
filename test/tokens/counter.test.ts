// Counting in the Worker: results, fairness, refusals, and what happens when a client or the Worker goes.
import { afterEach, describe, expect, test } from "bun:test";
import { CancelSignal } from "../../src/core/cancel-signal.ts";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { LogFields } from "../../src/core/log.ts";
import { TokenCounter, type CounterOptions } from "../../src/tokens/counter.ts";
import type { CountingCall } from "../../src/tokens/counting-worker.ts";
import { encodeTexts } from "../../src/tokens/encoded-texts.ts";
import { longForm } from "../fixtures/optional.ts";
import { encodings, reference } from "./reference.ts";

/** Counting it takes a second and more. */
const longLength = longForm ? 4_000_000 : 1_200_000;
const stays = new AbortController().signal;
const open: TokenCounter[] = [];
const logged: [event: string, fields: LogFields][] = [];

function makeCounter(options: Partial<CounterOptions> = {}): TokenCounter {
  const counter = new TokenCounter({ log: (_level, event, fields = {}) => logged.push([event, fields]), ...options });
  open.push(counter);
  return counter;
}

afterEach(async () => {
  for (const counter of open.splice(0)) {
    expect(counter.waiting).toEqual({ places: 0, bytes: 0 });
    await counter.close();
    expect(counter.isLoaded).toBe(false);
  }
  logged.length = 0;
});

/** Linux: how long this thread was on a processor, which does not depend on what else the machine does. */
const threadTimes = "/proc/thread-self/schedstat";
const threadMs = (): number => Number(readFileSync(threadTimes, "utf8").split(" ")[0]) / 1e6;

/** A Worker that answers when the test says so. */
class ScriptedWorker extends EventTarget {
  readonly orders: CountingCall[] = [];
  readonly #numbers = new Map<number, number>();
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;

  postMessage({ number, ...call }: { number: number } & CountingCall): void {
    this.orders.push(call);
    if (call.order === "count") return void this.#numbers.set(call.id, number);
    this.onmessage!({ data: { number, result: undefined } });
    if (call.order === "close") this.end();
  }

  answer(id: number, count: number): void {
    this.onmessage!({ data: { number: this.#numbers.get(id), result: { count, tokens: [] } } });
  }

  die(message: string): void {
    this.onerror!({ message });
    this.end();
  }

  end(): void {
    this.dispatchEvent(new Event("close"));
  }

  unref(): void {}
}

function scripted(options: Partial<CounterOptions> = {}) {
  const workers: ScriptedWorker[] = [];
  const startWorker = () => {
    workers.push(new ScriptedWorker());
    return workers.at(-1) as unknown as Worker;
  };
  return { workers, counter: makeCounter({ ...options, startWorker }) };
}

describe("results", () => {
  test("the sum over all texts, each counted by itself", async () => {
    const counter = makeCounter();
    const texts = ["hello world", "", "日本語 <|endoftext|>", "\ud800", " a".repeat(70_000)];
    const expected = texts.reduce((sum, text) => sum + reference.encode_ordinary(text).length, 0);
    expect(await counter.count("o200k_base", texts, 1, stays)).toBe(expected);
    expect(await counter.count("o200k_base", [], 1, stays)).toBe(0);
    expect(await counter.encode("o200k_base", "hello 日本", 1, stays)).toEqual(reference.encode_ordinary("hello 日本"));
  });

  test("each encoding by its own tables", async () => {
    const counter = makeCounter();
    for (const encoding of ["cl100k_base", "o200k_base", "p50k_base", "r50k_base"] as const) {
      const expected = encodings[encoding].reference.encode_ordinary("日本語 HELLO'S  12345\n\n");
      expect(await counter.encode(encoding, "日本語 HELLO'S  12345\n\n", 1, stays)).toEqual(expected);
      expect(await counter.count(encoding, ["日本語", " HELLO'S"], 1, stays)).toBeGreaterThan(0);
    }
  });

  test.skipIf(!existsSync(threadTimes))(
    "the main thread does a small part of the work, and never much at once",
    async () => {
      const counter = makeCounter();
      await counter.count("o200k_base", ["loads the tables"], 1, stays);
      let letters = "";
      while (letters.length < 500_000) letters += Math.random().toString(36).slice(2).replace(/\d/g, "");
      let longestTurnMs = 0;
      let counting = true;
      const turns = (async () => {
        for (let beforeMs = threadMs(); counting;) {
          await Bun.sleep(1);
          const nowMs = threadMs();
          longestTurnMs = Math.max(longestTurnMs, nowMs - beforeMs);
          beforeMs = nowMs;
        }
      })();
      const before = process.cpuUsage();
      const counts: Promise<unknown>[] = [];
      for (let index = 0; index < 8; index++) {
        counts.push(counter.count("o200k_base", [letters], 1, stays));
        await Bun.sleep(1);
      }
      await Promise.all(counts);
      counting = false;
      await turns;
      const { user, system } = process.cpuUsage(before);
      // Counted on the main thread, one text alone would take an eighth.
      expect(longestTurnMs).toBeLessThan((user + system) / 1_000 / 16);
    },
    60_000,
  );

  test("24 at once are all answered", async () => {
    const counter = makeCounter();
    const counts = Array.from({ length: 24 }, (_none, index) =>
      counter.count("o200k_base", ["a b ".repeat(index)], 1, stays),
    );
    expect(await Promise.all(counts)).toEqual(
      Array.from({ length: 24 }, (_none, index) => reference.encode_ordinary("a b ".repeat(index)).length),
    );
  });

  test("another account's short text does not wait for megabytes, whatever they hold", async () => {
    const counter = makeCounter();
    const ended: string[] = [];
    const long = [
      counter.count("o200k_base", ["a".repeat(longLength)], 1, stays).then(() => ended.push("one line")),
      counter.count("o200k_base", ["some prose. ".repeat(longLength / 12)], 2, stays).then(() => ended.push("prose")),
    ];
    await counter.count("o200k_base", ["short"], 3, stays);
    ended.push("short");
    await Promise.all(long);
    expect(ended[0]).toBe("short");
  }, 120_000);

  test("the tables are not loaded before the first count, nor by any module of the main thread", async () => {
    expect(makeCounter().isLoaded).toBe(false);
    const folder = join(import.meta.dir, "../../src/tokens");
    const reached = new Set<string>();
    const visit = async (file: string): Promise<void> => {
      if (reached.has(file)) return;
      reached.add(file);
      const text = await Bun.file(join(folder, file)).text();
      for (const { path } of new Bun.Transpiler({ loader: "ts" }).scanImports(text)) {
        expect(path).not.toContain("tiktoken");
        if (path.startsWith("./")) await visit(path.slice(2));
      }
    };
    for (const file of ["counter.ts", "node-count.ts", "tokenize.ts"]) await visit(file);
    expect(reached.has("render.ts")).toBe(true);
  });
});

describe("refusals", () => {
  test("what does not fit is refused as busy, and enters when there is room again", async () => {
    const { counter, workers } = scripted({
      room: { places: 100, bytes: 1_000, accountPlaces: 2, accountBytes: 500 },
    });
    const first = counter.count("o200k_base", ["a".repeat(300)], 1, stays);
    const busy = { refusal: "busy", detail: { seconds: 5 } } as const;
    expect(await counter.count("o200k_base", ["é".repeat(101)], 1, stays)).toEqual(busy);
    const second = counter.count("o200k_base", ["é".repeat(100)], 1, stays);
    expect(await counter.count("o200k_base", [""], 1, stays)).toEqual(busy);
    workers[0]!.answer(0, 38);
    expect(await first).toBe(38);
    const third = counter.count("o200k_base", ["x"], 1, stays);
    workers[0]!.answer(1, 100);
    workers[0]!.answer(2, 1);
    expect(await Promise.all([second, third])).toEqual([100, 1]);
    expect(workers).toHaveLength(1);
  });

  test("a client that has gone is not counted for", async () => {
    const { counter, workers } = scripted();
    const cancelSignal = new AbortController();
    const counted = counter.count("o200k_base", ["text"], 1, cancelSignal.signal);
    cancelSignal.abort();
    expect(await counted).toMatchObject({ refusal: "busy" });
    expect(workers[0]!.orders.map(({ order }) => order)).toEqual(["count", "forget"]);
    workers[0]!.answer(0, 1); // crossed the message on its way
    expect(await counter.count("o200k_base", ["text"], 1, cancelSignal.signal)).toMatchObject({ refusal: "busy" });
    expect(workers[0]!.orders).toHaveLength(2);
  });

  test("the Worker drops what is given up, and counts on", async () => {
    const counter = makeCounter();
    const cancelSignal = new CancelSignal();
    const long = counter.count("o200k_base", ["a".repeat(longLength)], 1, cancelSignal);
    const short = counter.count("o200k_base", ["behind it"], 1, stays);
    cancelSignal.abort();
    expect(await long).toMatchObject({ refusal: "busy" });
    expect(await short).toBe(2);
  });
});

describe("the Worker's life", () => {
  test("when it dies, this is reported, what it had is refused, and the next count gets another", async () => {
    const { counter, workers } = scripted();
    const counts = [counter.count("o200k_base", ["a"], 1, stays), counter.count("o200k_base", ["b"], 2, stays)];
    workers[0]!.die("out of memory");
    expect(await Promise.all(counts)).toEqual([{ refusal: "internal" }, { refusal: "internal" }]);
    expect(logged).toEqual([["the token counter died", { reason: "out of memory", counts: 2 }]]);
    const next = counter.count("o200k_base", ["c"], 1, stays);
    expect(workers).toHaveLength(2);
    workers[1]!.answer(2, 7);
    expect(await next).toBe(7);
  });

  test("a real Worker that throws is noticed", async () => {
    const file = join(import.meta.dir, "failing-worker.ts");
    let started = 0;
    const counter = makeCounter({ startWorker: () => new Worker(started++ === 0 ? file : realWorker) });
    expect(await counter.count("o200k_base", ["a"], 1, stays)).toEqual({ refusal: "internal" });
    expect(logged[0]![0]).toBe("the token counter died");
    expect(logged[0]![1].reason).toContain("planted");
    expect(await counter.count("o200k_base", ["a"], 1, stays)).toBe(1);
  });

  test("it ends when nothing was counted for a while, and comes back when needed", async () => {
    const counter = makeCounter({ idleMs: 20 });
    expect(await counter.count("o200k_base", ["a"], 1, stays)).toBe(1);
    expect(counter.isLoaded).toBe(true);
    while (counter.isLoaded) await Bun.sleep(5);
    expect(logged).toEqual([]);
    expect(await counter.count("o200k_base", ["a b"], 1, stays)).toBe(2);
  });

  test("it does not end while something is counted, however long that takes", async () => {
    const { counter, workers } = scripted({ idleMs: 1 });
    const first = counter.count("o200k_base", ["a"], 1, stays);
    const second = counter.count("o200k_base", ["b"], 1, stays);
    workers[0]!.answer(0, 1);
    await first;
    await Bun.sleep(10);
    expect(counter.isLoaded).toBe(true);
    workers[0]!.answer(1, 1);
    await second;
    while (counter.isLoaded) await Bun.sleep(1);
    expect(workers[0]!.orders.at(-1)).toEqual({ order: "close" });
  });

  test("it ends when it is told to, and not by a fault, even while it counts", async () => {
    const worker = new Worker(realWorker);
    const errors: string[] = [];
    const answers: unknown[] = [];
    worker.onerror = ({ message }) => void errors.push(message);
    worker.onmessage = ({ data }) => void answers.push(data);
    const ended = new Promise((resolve) => worker.addEventListener("close", resolve));
    const order = { order: "count", account: 1, encoding: "o200k_base", keep: false } as const;
    const calls = [
      { ...order, id: 0, ...encodeTexts(["some words ".repeat(300_000)]) },
      { order: "close" },
    ] satisfies CountingCall[];
    for (const [number, call] of calls.entries()) worker.postMessage({ ...call, number });
    await ended;
    expect(errors).toEqual([]);
    expect(answers).toEqual([
      { number: 1, result: undefined },
      { number: 0, result: null },
    ]);
  });

  test("closing refuses what still waits", async () => {
    const { counter } = scripted();
    const counted = counter.count("o200k_base", ["a"], 1, stays);
    await counter.close();
    expect(await counted).toMatchObject({ refusal: "busy" });
  });
});

const realWorker = join(import.meta.dir, "../../src/tokens/counting-worker.ts");
