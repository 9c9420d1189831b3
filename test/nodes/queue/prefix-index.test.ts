// The index of one node's cache beside a model that keeps a list.
import { expect, test } from "bun:test";
import { indexEntriesMax, PrefixIndex } from "../../../src/nodes/queue/prefix-index.ts";
import { blockBytes, mixed } from "../../../src/nodes/queue/prompt-blocks.ts";
import { randomOf } from "../../fixtures/random.ts";

type Block = { key: number; bytes: number; read: boolean };

/** Oldest first. */
class ListIndex {
  list: Block[] = [];
  constructor(public most: number) {}
  use(keys: Uint32Array): void {
    for (let at = keys.length - 1; at >= 0; at--) {
      const known = this.list.find(({ key }) => key === keys[at]);
      this.list = this.list.filter((block) => block !== known);
      this.list.push(known ?? { key: keys[at]!, bytes: blockBytes(at), read: false });
    }
    this.evict();
  }
  evict(): void {
    while (this.list.reduce((sum, { bytes }) => sum + bytes, 0) > this.most) this.list.shift();
  }
  match(keys: Uint32Array, read: boolean): number {
    const blocks = new Map(this.list.map((block) => [block.key, block]));
    let at = 0;
    while (at < keys.length && blocks.has(keys[at]!) && (!read || blocks.get(keys[at]!)!.read)) at++;
    return at;
  }
  read(keys: Uint32Array, from: number): void {
    for (const block of this.list) if (keys.indexOf(block.key) >= from) block.read = true;
  }
}

/** Prompts of a tree: each has the beginning of another one. */
const promptOf = (branch: number, blocks: number): Uint32Array =>
  Uint32Array.from({ length: blocks }, (_none, at) =>
    mixed(1 + at + 1_000 * (at < 5 ? 0 : at < 20 ? branch & 1 : branch)),
  );

test("matches, keeps and loses what the model does", () => {
  for (let seed = 1; seed <= 8; seed++) {
    const random = randomOf(seed);
    const index = new PrefixIndex(30_000);
    const model = new ListIndex(30_000);
    for (let step = 0; step < 200; step++) {
      const keys = promptOf(Math.floor(random() * 12), 1 + Math.floor(random() * 90));
      switch (Math.floor(random() * 8)) {
        case 0:
          index.read(keys, 3);
          model.read(keys, 3);
          break;
        case 1:
          model.most = 5_000 + Math.floor(random() * 60_000);
          index.limit(model.most);
          model.evict();
          break;
        case 2:
          if (random() > 0.1) break;
          index.clear();
          model.list = [];
          break;
        default:
          index.use(keys);
          model.use(keys);
      }
      expect(index.match(keys)).toBe(model.match(keys, false));
      const bytes = model.list.reduce((sum, block) => sum + block.bytes, 0);
      expect([index.bytes, index.blocks]).toEqual([bytes, model.list.length]);
    }
  }
});

test("a block that was sent and not read is matched, and not yet as read", () => {
  const index = new PrefixIndex(1_000_000);
  const [keys, longer] = [promptOf(1, 10), promptOf(1, 30)];
  index.use(keys);
  expect([index.match(longer), index.match(longer, true)]).toEqual([10, 0]);
  index.read(keys, 0);
  index.use(longer);
  expect([index.match(longer), index.match(longer, true)]).toEqual([30, 10]);
});

test("an answered prompt's mark takes its room and goes like a block", () => {
  const index = new PrefixIndex(10_000);
  index.note(7, 3_000);
  index.note(7, 3_000);
  expect([index.has(7), index.bytes]).toEqual([true, 3_072]);
  for (let key = 100; key < 200; key++) index.use(Uint32Array.of(key));
  expect(index.has(7)).toBe(false);
  index.note(8, 3_000);
  index.forget(8);
  index.forget(8);
  expect(index.has(8)).toBe(false);
});

test("has so many entries at most, however much it may keep", () => {
  const index = new PrefixIndex(Number.MAX_SAFE_INTEGER);
  for (let key = 1; key <= 3 * indexEntriesMax; key++) index.use(Uint32Array.of(mixed(key)));
  expect(index.blocks).toBe(indexEntriesMax);
  expect(index.memoryBytes).toBeLessThan(1 << 20); // 64 nodes: 64 MiB
  expect(index.match(Uint32Array.of(mixed(3 * indexEntriesMax)))).toBe(1);
  expect(index.match(Uint32Array.of(mixed(1)))).toBe(0);
});
