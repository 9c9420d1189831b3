// Which count is returned: the node's if it can count, else ours; and how long a node's count is trusted.
import { afterAll, describe, expect, test } from "bun:test";
import { anySearch } from "../../src/dialects/request/search-request.ts";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { nodeCountBytesMax } from "../../src/core/limits.ts";
import { TokenCounter } from "../../src/tokens/counter.ts";
import {
  countingCacheEntriesMax,
  countingCacheMs,
  type NodeCounter,
  TokenCounts,
} from "../../src/tokens/node-count.ts";
import { askOf, preparedOf } from "../fixtures/asks.ts";

const catalog = embeddedCatalog();
const stays = new AbortController().signal;
const unreadFile = { part: { kind: "file", url: "data:application/pdf;base64,AA==", name: null }, places: 1 } as const;
const counter = new TokenCounter({ log: () => {} });
afterAll(() => counter.close());
const model = catalog.models.get("core-3")!;

/** A node that counts 1,000, 1,001, 1,002, ... until it is told not to. */
class CountingNode implements NodeCounter {
  asked = 0;
  able = true;

  countAsk(): Promise<number | null> {
    return Promise.resolve(this.able ? 1_000 + this.asked++ : null);
  }

  countText(): Promise<number | null> {
    return this.countAsk();
  }
}

function setUp() {
  const clock = { now: 0, monotonic: () => clock.now };
  const node = new CountingNode();
  return { clock, node, counts: new TokenCounts(counter, node, clock) };
}

describe("who counts", () => {
  test("the node, exactly", async () => {
    const { counts } = setUp();
    const count = { tokens: 1_000, exact: true, tokenizer: "model" };
    expect(await counts.ofAsk(askOf(), 1, stays)).toEqual(count);
    expect(await counts.ofText("hello world", model, 1, stays)).toEqual({ ...count, tokens: 1_001 });
  });

  test("our own tokenizer where no node can, where none is asked, and where no model is named", async () => {
    const { counts, node } = setUp();
    const own = { tokens: 2, exact: false, tokenizer: "o200k_base" };
    expect(await counts.ofText("hello world", null, 1, stays)).toEqual(own);
    expect(await counts.estimateOfAsk(askOf(), "o200k_base", 1, stays)).toMatchObject({ exact: false });
    expect(node.asked).toBe(0);
    node.able = false;
    expect(await counts.ofText("hello world", model, 1, stays)).toEqual(own);
    expect(await counts.ofAsk(askOf(), 1, stays)).toMatchObject({ exact: false, tokenizer: "o200k_base" });
    const alone = new TokenCounts(counter, null, { monotonic: () => 0 });
    expect(await alone.ofText("hello world", model, 1, stays)).toEqual(own);
  });

  test("of an input that nobody reported: the node, our own count, or the texts' length where others wait already", async () => {
    const { counts, node } = setUp();
    expect(await counts.ofUnreported(askOf(), 1)).toBe(1_000);
    node.able = false;
    const own = await counts.estimateOfAsk(askOf({ stream: true }), "o200k_base", 1, stays);
    expect(await counts.ofUnreported(askOf({ effort: "high" }), 1)).toBe((own as { tokens: number }).tokens);
    const room = { places: 4, bytes: 4, accountPlaces: 2, accountBytes: 2 };
    const full = new TokenCounts(new TokenCounter({ log: () => {}, room }), node, { monotonic: () => 0 });
    // "Hello", and what a template adds; the body's own length says nothing of it
    const length = Math.ceil(5 / 4) + 13;
    expect(await full.ofUnreported(askOf({ effort: "low", bodyBytes: 100_000 }), 1)).toBe(length);
    expect(await full.ofUnreported(askOf({ effort: "low", prepared: preparedOf() }), 1)).toBeNull();
  });

  test("of an input that nobody reported: our own, also where the node does not answer", async () => {
    const silent: NodeCounter = {
      countAsk: (_, cancelSignal) =>
        new Promise((resolve) => cancelSignal.addEventListener("abort", () => resolve(null), { once: true })),
      countText: () => Promise.resolve(null),
    };
    const own = (await counter.count("o200k_base", ["Hello"], 1, stays)) as number;
    expect(await new TokenCounts(counter, silent, { monotonic: () => 0 }).ofUnreported(askOf(), 1)).toBe(own + 13);
  });

  test("of an input that nobody reported: also by a node that has to read it, as is not asked where nothing is charged", async () => {
    const said: (boolean | undefined)[] = [];
    const reading: NodeCounter = {
      countAsk: (_, __, mayRead) => Promise.resolve(said.push(mayRead) > 0 && mayRead === true ? 10 : null),
      countText: () => Promise.resolve(null),
    };
    const counts = new TokenCounts(counter, reading, { monotonic: () => 0 });
    expect(await counts.ofAsk(askOf(), 1, stays)).toMatchObject({ exact: false });
    expect(await counts.ofUnreported(askOf(), 1)).toBe(10);
    expect(said).toEqual([false, true]);
  });

  test("the node, but not exactly, where the model may search first", async () => {
    const { counts } = setUp();
    const count = { tokens: 1_000, exact: false, tokenizer: "model" };
    expect(await counts.ofAsk(askOf({ webSearch: anySearch }), 1, stays)).toEqual(count);
  });

  test("a refusal is handed on", async () => {
    const { counts } = setUp();
    expect(await counts.ofText("hello", null, 1, AbortSignal.abort())).toMatchObject({ refusal: "busy" });
  });
});

describe("a node's count is kept", () => {
  test("for the same content and a minute", async () => {
    const { counts, clock, node } = setUp();
    const first = await counts.ofAsk(askOf(), 1, stays);
    clock.now = countingCacheMs - 1;
    expect(await counts.ofAsk(askOf({ stream: true, outputTokensMax: 9 }), 2, stays)).toEqual(first);
    expect(node.asked).toBe(1);
    clock.now = countingCacheMs;
    expect(await counts.ofAsk(askOf(), 1, stays)).toMatchObject({ tokens: 1_001 });
  });

  test.each([
    ["another model", { model: catalog.models.get("core-2-pro")! }],
    ["other turns", { turns: [{ role: "user", content: "Hi" }] }],
    ["the same text in another role", { turns: [{ role: "system", content: "Hello" }] }],
    ["tools", { tools: [{ name: "a", description: null, parameters: {}, strict: null }] }],
    ["another effort", { effort: "high" }],
    ["another format", { format: { kind: "json_object" } }],
    ["search", { webSearch: anySearch }],
  ] as const)("but not for %s", async (_what, fields) => {
    const { counts, node } = setUp();
    await counts.ofAsk(askOf(), 1, stays);
    await counts.ofAsk(askOf(fields), 1, stays);
    expect(node.asked).toBe(2);
  });

  test("but not for a conversation that is not written yet: its files are to be read first", async () => {
    const { counts, node } = setUp();
    await counts.ofAsk(askOf({ prepared: preparedOf(), turns: [] }), 1, stays);
    const unread = preparedOf({ unready: [unreadFile] });
    for (let count = 1; count < 3; count++) {
      expect(await counts.ofAsk(askOf({ prepared: unread, turns: [] }), 2, stays)).toMatchObject({
        tokens: 1_000 + count,
      });
    }
    expect(node.asked).toBe(3);
  });

  test("but not an estimate: the node may be back", async () => {
    const { counts, node } = setUp();
    node.able = false;
    await counts.ofAsk(askOf(), 1, stays);
    node.able = true;
    expect(await counts.ofAsk(askOf(), 1, stays)).toMatchObject({ tokens: 1_000 });
  });

  test("but not of large requests, and only the most recently used", async () => {
    const { counts, node } = setUp();
    const large = askOf({ bodyBytes: nodeCountBytesMax + 1 });
    await counts.ofAsk(large, 1, stays);
    await counts.ofAsk(large, 1, stays);
    expect(node.asked).toBe(2);
    for (let index = 0; index < countingCacheEntriesMax; index++) await counts.ofText(`${index}`, model, 1, stays);
    await counts.ofText("0", model, 1, stays); // used again: now 1 is the oldest
    await counts.ofText("one more", model, 1, stays);
    const asked = node.asked;
    await counts.ofText("0", model, 1, stays);
    expect(node.asked).toBe(asked);
    await counts.ofText("1", model, 1, stays);
    expect(node.asked).toBe(asked + 1);
  });
});
