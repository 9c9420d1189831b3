// The tokenizer returns the same tokens as tiktoken, in time proportional to the text.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { Tiktoken } from "tiktoken/lite";
import o200kBase from "tiktoken/encoders/o200k_base.json" with { type: "json" };
import { CharacterClass, classifyCodePoints } from "../../src/tokens/character-class.ts";
import { TokenReading } from "../../src/tokens/tokenizer.ts";
import { hashAppend } from "../../src/tokens/vocabulary.ts";
import type { EncodingName } from "../../src/core/types.ts";
import { longForm } from "../fixtures/optional.ts";
import { mergeChains } from "./merge-chains.ts";
import { encodeInSteps, encodings, fragments, reference, tokenizer } from "./reference.ts";

/** 1,000 random texts take a third of a second; TOLLGATE_TOKENS_RUNS=100000 looks longer. */
const runs = Number(process.env["TOLLGATE_TOKENS_RUNS"] ?? (longForm ? 3_000 : 250));
const timeLimit = Math.max(120_000, runs * 10);
const root = join(import.meta.dir, "../..");
const names = Object.keys(encodings) as EncodingName[];
const chains = new Map<EncodingName, ReturnType<typeof mergeChains>>();
const chainsOf = (encoding: EncodingName) =>
  chains.getOrInsertComputed(encoding, () => mergeChains(encodings[encoding].tokenizer.vocabulary));

function expectSameTokens(text: string): void {
  for (const encoding of names) expectSameTokensIn(encoding, text);
}

function expectSameTokensIn(encoding: EncodingName, text: string): void {
  const { reference, tokenizer, tinyWindows } = encodings[encoding];
  const expected = reference.encode_ordinary(text);
  expect(tokenizer.encode(text)).toEqual(expected);
  expect(tinyWindows.encode(text)).toEqual(expected);
}

describe("the tables", () => {
  test.each([
    ["o200k_base", 199_998, 199_998],
    ["cl100k_base", 100_256, 100_256],
    ["p50k_base", 50_281, 50_280],
    ["r50k_base", 50_256, 50_256],
  ] as const)("every token of %s is found by its bytes", (encoding, size, used) => {
    const { reference, tokenizer } = encodings[encoding];
    const { vocabulary } = tokenizer;
    expect(vocabulary.size).toBe(size);
    const ranks = Array.from({ length: size }, (_none, rank) => rank).filter((rank) => vocabulary.lengthOf(rank) > 0);
    expect(ranks).toHaveLength(used);
    for (const rank of ranks) {
      const bytes = reference.decode_single_token_bytes(rank);
      const found = vocabulary.find(bytes, 0, bytes.length, bytes.reduce(hashAppend, 0));
      if (found !== rank) expect({ rank, found }).toEqual({ rank, found: rank });
    }
  });

  test.each(names)("what follows a place in %s changes no token beyond the overlap of windows", (encoding) => {
    expect(chainsOf(encoding).furthestBytes).toBeLessThanOrEqual(293);
  });

  test("every code point has the class that tiktoken's regular expression gives it", () => {
    const points = Array.from({ length: 0x110000 }, (_none, point) => point).filter((at) => at < 0xd800 || at > 0xdfff);
    let text = "";
    for (const point of points) text += String.fromCodePoint(point);
    const bytes = o200kBase.bpe_ranks.split(" ", 258).join(" ");
    const classes = classifyCodePoints();
    for (const [pattern, members] of [
      ["[\\p{Lu}\\p{Lt}]", CharacterClass.Upper],
      ["\\p{Ll}", CharacterClass.Lower],
      ["[\\p{Lm}\\p{Lo}]", CharacterClass.Caseless],
      ["\\p{M}", CharacterClass.Mark],
      ["\\p{N}", CharacterClass.Number],
      ["\\s", CharacterClass.Space | CharacterClass.Newline],
      ["[\\r\\n]", CharacterClass.Newline],
    ] as const) {
      // An encoding without merges and with this pattern keeps exactly the characters that match it.
      const matcher = new Tiktoken(bytes, {}, pattern);
      const matched = new Uint8Array(0x110000);
      for (const character of new TextDecoder("utf-8", { ignoreBOM: true }).decode(
        matcher.decode(matcher.encode_ordinary(text)),
      )) {
        matched[character.codePointAt(0)!] = 1;
      }
      matcher.free();
      const wrong = points.filter((point) => ((classes[point]! & members) !== 0) !== (matched[point] === 1));
      expect({ pattern, wrong }).toEqual({ pattern, wrong: [] });
    }
  });
});

describe("the same tokens as tiktoken", () => {
  test("for the sources of this program", () => {
    for (const [index, path] of [...new Bun.Glob("src/**/*.{ts,md}").scanSync({ cwd: root })].sort().entries()) {
      if (!longForm && index % 10 > 0) continue;
      const text = readFileSync(join(root, path), "utf8");
      expect(tokenizer.encode(text)).toEqual(reference.encode_ordinary(text));
    }
  });

  test.each([
    "",
    " ",
    "\n",
    "a",
    "hello <|endoftext|> world <|endofprompt|>",
    "\ud800",
    "a\udc00b\ud83d",
    "a I'ſ b l'ſ I'M 'S 'ſ don't DON'T we'LL x'Re ''s '",
    "\u0301ABC \u0301ABC \u0301日ABC!\u0301",
    "ABC日ABCabc日本ABC",
    "1234567 ٣٤٥٦ ½½½½ Ⅷ1",
    "a\n\n  \n b   c\r\n\t d\u00a0\u00a0e  ",
    "  !! //\n/\r\n/ !?/\n\n/x",
    "\u0085x\ufeffy\u2028\u2029z\u3000",
    "ʕʔ ǅungla ʰʰ ßẞ ﬁ",
    "👩‍👩‍👧‍👦 🇩🇪 e\u0301\u0301\u0301",
    "\u0000\u0001\u007f",
  ])("for %j", expectSameTokens);

  test(
    "for random texts of every character class",
    () => {
      const run = fc
        .tuple(
          fc.constantFrom(...fragments),
          fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 30 })),
        )
        .map(([fragment, times]) => fragment.repeat(times));
      fc.assert(
        fc.property(fc.array(run, { maxLength: 40 }), (texts) => expectSameTokens(texts.join(""))),
        { numRuns: runs },
      );
    },
    timeLimit,
  );

  test(
    "for random UTF-16, lone surrogates included",
    () => {
      const unit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));
      fc.assert(fc.property(fc.string({ unit, maxLength: 60 }), expectSameTokens), { numRuns: runs });
    },
    timeLimit,
  );

  test("for random words that are far from the vocabulary, over several windows", () => {
    for (const letters of ["ab", "aA", "abcdefghijklmnopqrstuvwxyz", "éàü", "日本語中文", "=-", "xyzzy "]) {
      const text = fc.sample(fc.array(fc.constantFrom(...letters), { minLength: 500, maxLength: 2_000 }), {
        numRuns: 5,
        seed: letters.length,
      });
      for (const characters of text) expectSameTokensIn("o200k_base", characters.join(""));
    }
  });

  test.each(["a", "A", "ab", " ", "\n", " \n", "\t", "日", "日本", "😀", "\u0301", "=", "1", "-=", "é", "\ufffd"])(
    "for long runs of %j",
    (unit) => {
      for (const length of [127, 128, 129, 1_000, 2_048]) {
        expectSameTokensIn("o200k_base", unit.repeat(length));
        expectSameTokensIn("o200k_base", `x${unit.repeat(length)}y`);
      }
    },
  );

  test.each(["ab", "-", " ", "=*", "日", "😀"])("for a run of %j over several full windows", (unit) => {
    for (const end of longForm ? ["", "x", unit[0]!] : ["x"]) {
      const text = unit.repeat(14_000 / Buffer.byteLength(unit)) + end;
      expect(tokenizer.encode(text)).toEqual(reference.encode_ordinary(text));
    }
  });

  test(
    "for runs of the characters whose runs have the longest tokens",
    () => {
      const run = fc
        .tuple(fc.constantFrom(..."-=*#/_. \t\n"), fc.integer({ min: 1, max: 200 }))
        .map(([character, length]) => character.repeat(length));
      fc.assert(
        fc.property(fc.array(run, { maxLength: 12 }), (texts) => expectSameTokens(texts.join(""))),
        { numRuns: runs / 10 },
      );
    },
    timeLimit,
  );

  test(
    "for random halves of tokens put together",
    () => {
      const half = fc.integer({ min: 0, max: tokenizer.vocabulary.size - 1 }).map((rank) => {
        const text = new TextDecoder().decode(reference.decode_single_token_bytes(rank));
        return text.slice(rank % 2 === 0 ? 0 : text.length >> 1);
      });
      fc.assert(
        fc.property(fc.array(half, { maxLength: 40 }), (texts) => expectSameTokens(texts.join(""))),
        { numRuns: runs },
      );
    },
    timeLimit,
  );

  test.each(names)("for %s where one more token changes those on its left as far back as it can", (encoding) => {
    const { longest } = chainsOf(encoding);
    expect(longest.length).toBeGreaterThan(50);
    // The end of the first window is at one place of it after the other.
    for (let before = 0; before <= longest.length; before += longForm ? 11 : 33) {
      expectSameTokensIn(encoding, "ab".repeat(1_024).slice(before) + longest + longest);
    }
  });

  test("when it is read a step at a time", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...fragments), { maxLength: 60 }), (texts) => {
        expect(encodeInSteps(texts.join(""))).toEqual(reference.encode_ordinary(texts.join("")));
      }),
      { numRuns: 100 },
    );
    expect(encodeInSteps("a".repeat(30_000))).toEqual(tokenizer.encode("a".repeat(30_000)));
  });
});

describe("the work is linear", () => {
  const steps = (text: string): number => {
    const before = tokenizer.steps;
    tokenizer.encode(text);
    return tokenizer.steps - before;
  };
  const random = (first: number, count: number) =>
    fc
      .sample(fc.integer({ min: first, max: first + count - 1 }), { numRuns: 40_000, seed: 7 })
      .map((code) => String.fromCodePoint(code))
      .join("");

  test.each([
    ...[
      "a",
      "A",
      "aA",
      " ",
      "\n",
      "\r\n",
      " \n",
      "\t",
      "日",
      "日本",
      "😀",
      "\u0301",
      "\u0301A",
      "!",
      "/",
      "!/\n",
      "'",
      "1",
      "A日",
    ],
    ...["-", "=", "*", "-=", "--=", "'s", " a", "\u0301 ", "\u0000", "<|endoftext|>", "ab", "\ufffd"],
  ])("for runs of %j", (unit) => {
    const once = unit.repeat(40_000 / unit.length);
    expect(steps(once + once)).toBeLessThanOrEqual(2.2 * steps(once));
    expect(steps(once)).toBeLessThanOrEqual(50 * Buffer.byteLength(once));
  });

  const randomRuns = (characters: string, longest: number) =>
    fc
      .sample(fc.tuple(fc.constantFrom(...characters), fc.integer({ min: 1, max: longest })), { numRuns: 500, seed: 7 })
      .map(([character, length]) => character.repeat(length))
      .join("");

  test.each([
    ["small letters", random(0x61, 26)],
    ["capital letters", random(0x41, 26)],
    ["Han", random(0x4e00, 20_000)],
    ["bytes", random(0, 256)],
    ["emoji", random(0x1f300, 500)],
    ["runs of dashes and signs", randomRuns("-=*#/", 200)],
    ["runs of white space", randomRuns(" \t", 300)],
  ])("for random %s in one line", (_what, once) => {
    expect(steps(once + once)).toBeLessThanOrEqual(2.2 * steps(once));
    expect(steps(once)).toBeLessThanOrEqual(50 * Buffer.byteLength(once));
  });

  test("no character is looked at more than 5 times to find the pieces", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...fragments), { minLength: 1, maxLength: 80 }), (texts) => {
        const bytes = Buffer.from(texts.join(""));
        const { splitter } = tokenizer;
        const before = splitter.steps;
        splitter.open(bytes, bytes.length);
        for (let at = 0; at < bytes.length;) at = splitter.pieceEnd(at);
        expect(splitter.steps - before).toBeLessThanOrEqual(5 * [...bytes.toString()].length);
      }),
      { numRuns: runs },
    );
  });

  test("a step ends soon, also within one piece of a megabyte", () => {
    const reading = new TokenReading(tokenizer, Buffer.from("a".repeat(1_000_000)), false);
    reading.advance(1); // finds the end of the piece
    for (let done = false; !done;) {
      const before = tokenizer.steps;
      done = reading.advance(10_000);
      expect(tokenizer.steps - before).toBeLessThan(10_000 + 50 * 4_096);
    }
    expect(reading.count).toBe(125_000);
  });
});
