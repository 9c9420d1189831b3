// Prompts as hashes of their blocks: what two of them have in common, and what of it is the same on every way here.
import { describe, expect, test } from "bun:test";
import {
  blockBytes,
  bytesOfBlocks,
  packBlocks,
  promptBlocks,
  promptBlocksMax,
  promptBlocksOf,
  unpackBlocks,
} from "../../../src/nodes/queue/prompt-blocks.ts";
import type { Turn } from "../../../src/core/types.ts";
import { askOf, preparedOf, toolOf } from "../../fixtures/asks.ts";

const system = { role: "system", content: "You are an agent. ".repeat(500) } as const;
const user = (content: string) => ({ role: "user", content }) as const;
const answer = (content: string) => ({ role: "assistant", content, reasoning: "hm", calls: [] }) as const;
const common = (a: readonly Turn[], b: readonly Turn[]): number => {
  const [one, other] = [promptBlocks(a, []).hashes, promptBlocks(b, []).hashes];
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
};

test("blocks follow each other without a gap, small ones first", () => {
  let sum = 0;
  for (let at = 0; at < promptBlocksMax; at++) {
    expect(bytesOfBlocks(at)).toBe(sum);
    sum += blockBytes(at);
  }
  expect([blockBytes(0), blockBytes(64), blockBytes(304)]).toEqual([256, 1_024, 4_096]);
});

test("two prompts have the blocks in common that end before their first difference", () => {
  const text = "abcdefgh".repeat(40_000);
  for (const same of [0, 1, 255, 256, 257, 16_383, 16_384, 20_000, 70_000, 300_000]) {
    const other = `${text.slice(0, same)}#${text.slice(same + 1)}`;
    const blocks = common([user(text)], [user(other)]);
    const before = same + "user".length;
    expect(bytesOfBlocks(blocks)).toBeLessThanOrEqual(before);
    expect(bytesOfBlocks(blocks) + blockBytes(blocks)).toBeGreaterThan(before);
  }
});

test("a later turn has the blocks of the earlier one, and its end as what was before", () => {
  const first = [system, user("Fix the build")];
  const later = [...first, answer("Done. ".repeat(90)), user("And now?")];
  const [one, two] = [promptBlocks(first, []), promptBlocks(later, [])];
  expect(common(first, later)).toBe(one.hashes.length);
  expect(two.before).toBe(one.end);
  expect(two.beforeBytes).toBe(one.bytes + "assistant".length + 540);
  expect(two.bytes - two.beforeBytes).toBe("userAnd now?".length);
  expect([one.before, promptBlocks([system, user("Fix the tests")], []).end === one.end]).toEqual([0, false]);
});

test("tools stand behind the system's text, and tell prompts apart", () => {
  const of = (tool: string) => promptBlocks([system, user("x".repeat(5_000))], [toolOf(tool)]).hashes;
  const [bash, python] = [of("bash"), of("python")];
  const inSystem = Math.floor(("system".length + system.content.length) / 256);
  expect([...bash.slice(0, inSystem)]).toEqual([...python.slice(0, inSystem)]);
  expect(bash[inSystem]).not.toBe(python[inSystem]);
});

test("the split of texts into steps does not show, in any alphabet", () => {
  for (const letter of ["a", "é", "漢", "😀"]) {
    const text = letter.repeat(50_001);
    const bytes = Buffer.byteLength(text) + 4;
    const { hashes, bytes: counted } = promptBlocks([user(text)], []);
    expect(counted).toBe(bytes);
    expect(bytesOfBlocks(hashes.length)).toBeLessThanOrEqual(bytes);
    expect(new Set(hashes).size).toBe(hashes.length);
  }
});

test("what is longer than all blocks is counted", () => {
  const { hashes, bytes } = promptBlocks([user("y".repeat(6_000_000))], []);
  expect([hashes.length, bytes]).toEqual([promptBlocksMax, 6_000_004]);
  expect(packBlocks({ hashes, bytes, end: 1, before: 0, beforeBytes: 0 }).length).toBeLessThan(7_000);
});

describe("of a request", () => {
  test("whose large body a Worker has read: what stands behind goes on from there", () => {
    const turns = [system, user("hello ".repeat(2_000))];
    const prepared = preparedOf({ blocks: promptBlocks(turns, []) });
    expect(promptBlocksOf(askOf({ prepared, turns: [] }))).toBe(prepared.blocks);
    const more = promptBlocksOf(askOf({ prepared, turns: [answer("a".repeat(9_000)), user("b")] }));
    expect([...more.hashes.slice(0, prepared.blocks.hashes.length)]).toEqual([...prepared.blocks.hashes]);
    expect(more.hashes.length).toBeGreaterThan(prepared.blocks.hashes.length);
  });
  test("with an inline image: by its ends, whatever it weighs", () => {
    const image = (filling: string) =>
      promptBlocksOf(
        askOf({
          turns: [
            { role: "user", content: [{ kind: "image", url: `data:,${filling.repeat(900_000)}`, detail: null }] },
          ],
        }),
      );
    expect(image("A").end).not.toBe(image("B").end);
    expect(image("A").bytes).toBeLessThan(10_000);
  });
  test("for vectors: its size alone", () => {
    const inputs = { kind: "vectors", count: 1, tokens: null, format: "float", dimensions: null } as const;
    expect(promptBlocksOf(askOf({ inputs, bodyBytes: 700 }))).toMatchObject({ bytes: 700, end: 0 });
  });
  test("on its way to another thread", () => {
    for (const turns of [[user("a")], [system, user("b"), answer("c"), user("d")]]) {
      const blocks = promptBlocks(turns, []);
      expect(unpackBlocks(packBlocks(blocks))).toEqual(blocks);
    }
  });
});
