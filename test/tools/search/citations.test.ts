// Marks in a text become citations, wherever the stream cuts it.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CitationReader, Sources } from "../../../src/tools/search/citations.ts";
import type { Piece, Source } from "../../../src/core/types.ts";

const source = (name: string): Source => ({ title: name, url: `https://${name}.example/`, text: name });

function read(fragments: readonly string[], sourceNames = ["a", "b", "c"], before = 0): Piece[] {
  const sources = new Sources();
  for (const name of sourceNames) sources.add(source(name));
  const pieces: Piece[] = [];
  const reader = new CitationReader(sources, before, (piece) => pieces.push(piece));
  for (const fragment of fragments) reader.text({ kind: "text", literal: JSON.stringify(fragment), logprobs: null });
  reader.flush();
  expect(reader.length).toBe(before + textOf(pieces).length);
  return pieces;
}

const textOf = (pieces: readonly Piece[]): string =>
  pieces.map((piece) => (piece.kind === "text" ? (JSON.parse(piece.literal) as string) : "")).join("");
/** `[title, what stands there]` of each citation. */
const citedIn = (pieces: readonly Piece[]): [string, string][] =>
  pieces.flatMap((piece) =>
    piece.kind === "citation" ? [[piece.source.title, textOf(pieces).slice(piece.start, piece.end)]] : [],
  );

describe("a mark", () => {
  test.each([
    ["It is [1].", [["a", "[1]"]]],
    [
      "[2][3]",
      [
        ["b", "[1]"],
        ["c", "[2]"],
      ],
    ],
    [
      "x [1, 3] y",
      [
        ["a", "[1, 2]"],
        ["c", "[1, 2]"],
      ],
    ],
    [
      "x [1;2]",
      [
        ["a", "[1;2]"],
        ["b", "[1;2]"],
      ],
    ],
    ["【2†L3-L9】", [["b", "【1†L3-L9】"]]],
    ["[1](https://a.example/)", [["a", "[1]"]]],
    ["[[3]]", [["c", "[1]"]]],
    ["[1, 1]", [["a", "[1, 1]"]]],
    ["[0] [4] [99]", []],
    ["[1, 9]", [["a", "[1, 9]"]]],
    ["a[i] = [x] [] [1.5] [-1] [1", []],
    ["[1\n]", []],
    [`[${"1,".repeat(30)}1]`, []],
  ] as [string, [string, string][]][])("in %p", (text, expected) => {
    expect(citedIn(read([text]))).toEqual(expected);
  });

  test.each([
    ["As [2] says, and [2], but [3].", "As [1] says, and [1], but [2]."],
    ["[3, 1] [1] [2] [7]", "[1, 2] [2] [3] [7]"],
    ["[1] first, as the model has it [2]", "[1] first, as the model has it [2]"],
    ["`list[2]` is code [2]", "`list[2]` is code [1]"],
    ["```\na[2] = b[3]\n```\n[3]", "```\na[2] = b[3]\n```\n[1]"],
    ["``a`[2]`` [2]", "``a`[2]`` [1]"],
    ["5` wide [2]\n[2]", "5` wide [2]\n[1]"],
    ["~~~py\nb[1] = items[2]\n~~~\n[2]", "~~~py\nb[1] = items[2]\n~~~\n[1]"],
    ["```\n~~~\nitems[2]\n```\n[2]", "```\n~~~\nitems[2]\n```\n[1]"],
    ["about ~~~[2], ~5 [3]\n ~1 [2]", "about ~~~[1], ~5 [2]\n ~1 [1]"],
    ["a[3] = m[2][3], my_list[2] and $x[3]$ [3]", "a[3] = m[2][3], my_list[2] and $x[3]$ [1]"],
    ["fast[3], España[2], it's[3], _Nature_[2]", "fast[1], España[2], it's[1], _Nature_[2]"],
    ["[3] and [1-3], 【1–2】", "[1] and [2, 3, 1], 【2, 3】"],
    ["[2] [1-9] [2-1] [0-2] [2019-2021] [3-3]", "[1] [1-9] [2-1] [0-2] [2019-2021] [2]"],
  ])("is counted by the first one of its source: %p is shown as %p", (text, shown) => {
    expect(textOf(read([text]))).toBe(shown);
    expect(textOf(read([...text]))).toBe(shown);
  });

  test("keeps its number in the rounds after", () => {
    const sources = new Sources();
    for (const name of ["a", "b"]) sources.add(source(name));
    const pieces: Piece[] = [];
    for (const text of ["[2] ", "[1][2]"]) {
      const reader = new CitationReader(sources, textOf(pieces).length, (piece) => pieces.push(piece));
      reader.text({ kind: "text", literal: JSON.stringify(text), logprobs: null });
    }
    expect(textOf(pieces)).toBe("[1] [2][1]");
    expect(citedIn(pieces)).toEqual([
      ["b", "[1]"],
      ["a", "[2]"],
      ["b", "[1]"],
    ]);
  });

  test("follows at once the text that ends with it", () => {
    expect(read(["A [1] B"])).toEqual([
      { kind: "text", literal: '"A [1]"', logprobs: null },
      { kind: "citation", source: source("a"), start: 2, end: 5 },
      { kind: "text", literal: '" B"', logprobs: null },
    ]);
  });

  test("counts from the text of the rounds before", () => {
    expect(read(["[1]"], ["a"], 100)).toMatchObject([{}, { start: 100, end: 103 }]);
  });

  test("is the same at any cut, and the text is whole", () => {
    const parts = fc.constantFrom(
      "[1]",
      "[2, 3]",
      "[",
      "]",
      "1",
      "text ",
      "😀",
      "[x]",
      "\n",
      "【3】",
      "`",
      "†",
      "~~~",
      "a",
    );
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 12 }), fc.array(fc.nat(60), { maxLength: 6 }), (words, cuts) => {
        const text = words.join("");
        const at = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
        const fragments = at.slice(1).map((end, index) => text.slice(at[index], end));
        const pieces = read(fragments);
        expect(textOf(pieces)).toBe(textOf(read([text])));
        expect(textOf(pieces).replace(/\d/g, "0")).toBe(text.replace(/\d/g, "0"));
        expect(citedIn(pieces)).toEqual(citedIn(read([text])));
        // A client takes the n-th of those that are cited for [n].
        const inOrder = [...new Set(citedIn(pieces).map(([title]) => title))];
        for (const [title, mark] of citedIn(pieces)) expect(mark).toContain(String(inOrder.indexOf(title) + 1));
      }),
    );
  });

  test("a text without any is handed on as it came", () => {
    const piece: Piece = { kind: "text", literal: '"caf\\u00e9"', logprobs: "{}" };
    const pieces: Piece[] = [];
    new CitationReader(new Sources(), 0, (each) => pieces.push(each)).text(piece);
    expect(pieces[0]).toBe(piece);
  });

  test("log probabilities go out once", () => {
    const pieces: Piece[] = [];
    const sources = new Sources();
    sources.add(source("a"));
    new CitationReader(sources, 0, (each) => pieces.push(each)).text({
      kind: "text",
      literal: '"[1] [1] x"',
      logprobs: "{}",
    });
    expect(pieces.flatMap((each) => (each.kind === "text" ? [each.logprobs] : []))).toEqual(["{}", null, null]);
  });

  test("log probabilities of what is kept back go out at once", () => {
    const sources = new Sources();
    sources.add(source("a"));
    const pieces: Piece[] = [];
    const reader = new CitationReader(sources, 0, (each) => pieces.push(each));
    for (const text of ["[", "1", "]"])
      reader.text({ kind: "text", literal: JSON.stringify(text), logprobs: `{"${text}":0}` });
    expect(pieces.flatMap((each) => (each.kind === "text" ? [[each.literal, each.logprobs]] : []))).toEqual([
      ['""', '{"[":0}'],
      ['""', '{"1":0}'],
      ['"[1]"', '{"]":0}'],
    ]);
  });
});
