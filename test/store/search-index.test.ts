// The full-text index on a real file: which words find what, that a client's text is never a query language, and that
// an unusable file is started anew.
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { DataFolderUnusable } from "../../src/store/folder/folder-faults.ts";
import { prepareSearchIndex, SearchIndexReader, SearchIndexWriter } from "../../src/store/search-index.ts";

let folder: string;
let file: string;
let writer: SearchIndexWriter;
let reader: SearchIndexReader;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-index-"));
  file = join(folder, "search.db");
  prepareSearchIndex(file);
  writer = new SearchIndexWriter(file);
  reader = new SearchIndexReader(file);
});
afterEach(() => {
  writer.close();
  reader.close();
  rmSync(folder, { recursive: true, force: true });
});

function put(path: string, title: string, ...passages: string[]): void {
  const file = { path, modifiedMs: 1.5, bytes: 2, hash: new Uint8Array([1]), skipped: null };
  writer.put([{ file, text: { title, passages } }]);
}
const paths = (query: string, resultsMax = 10): string[] => reader.search(query, resultsMax).map(({ path }) => path);

test.skipIf(process.geteuid?.() !== 0)("an index that root makes belongs to whose the folder is", () => {
  const nobody = 65_534;
  chownSync(folder, nobody, nobody);
  const other = join(folder, "other.db");
  prepareSearchIndex(other);
  expect(statSync(other).uid).toBe(nobody);
});

describe("a query", () => {
  beforeEach(() => {
    put("tower.md", "Tokyo Tower", "The tower is 333 metres high.", "Visitors climbed its naïve façade in 1958.");
    put("guides/setup-node.md", "Getting started", "Searching nodes needs a configuration.");
    put("jp.md", "東京タワー", "東京タワーは東京都港区にある。高さは333メートルです。");
    put("kr.md", "서울", "도쿄에서 서울까지 비행기로 간다.");
    put("th.md", "หอคอย", "หอคอยโตเกียวสูงสามร้อยเมตร");
    put("ar.md", "برج", "برج طوكيو مرتفع");
  });

  test.each([
    ["a word", "metres", ["tower.md"]],
    ["another form of it", "climbing", ["tower.md"]],
    ["a word in other letters", "NAIVE facade", ["tower.md"]],
    ["a word of the path", "setup", ["guides/setup-node.md"]],
    ["a number", "1958", ["tower.md"]],
    ["a part of a Japanese sentence", "港区", ["jp.md"]],
    ["a Japanese question", "東京タワーの高さは何メートルですか", ["jp.md"]],
    ["one Chinese character", "港", ["jp.md"]],
    ["a Korean word without its particle", "도쿄", ["kr.md"]],
    ["a Thai word within a sentence", "โตเกียว", ["th.md"]],
    ["an Arabic word", "طوكيو", ["ar.md"]],
    ["words of two scripts", "タワー333", ["jp.md", "tower.md"]],
    ["a word that nobody wrote", "zeppelin", []],
    ["no word at all", " .,;!? ", []],
    ["nothing", "", []],
  ])("%s", (_, query, expected) => {
    expect(paths(query)).toEqual(expected);
  });

  test("finds files with all its words before files with one of them", () => {
    put("a.md", "A", "tower tower tower tower tower");
    put("b.md", "B", `metres and a tower ${"and much else ".repeat(50)}`);
    expect(paths("tower metres").slice(0, 2).toSorted()).toEqual(["b.md", "tower.md"]);
    expect(paths("tower metres")).toContain("a.md");
    expect(paths("tower metres", 2)).toHaveLength(2);
  });

  test("finds what is in a title before what is in a text", () => {
    put("text.md", "Other", "zeppelin");
    put("title.md", "Zeppelin", "other");
    expect(paths("zeppelin")).toEqual(["title.md", "text.md"]);
  });

  test("shows the passages that fit, in the order of the file, as they were written", () => {
    put("long.md", "Long", "first 東京 apple", "second", "third apple apple apple", "fourth apple", "fifth apple");
    const [found] = reader.search("東京 apple", 2);
    expect(found!.title).toBe("Long");
    expect(found!.passages).toHaveLength(3);
    expect(found!.passages[0]).toBe("first 東京 apple");
    expect(found!.passages).not.toContain("second");
  });
});

describe("a query is words and nothing else", () => {
  beforeEach(() => put("a.md", "NEAR", "and or not column title text a b"));

  test.each([
    'a" OR "b',
    "title: a",
    "{title path}: a",
    "NEAR(a b, 2)",
    "a*",
    "^a",
    "a AND",
    "NOT",
    "a + b",
    "- a",
    "(((",
    '"',
    "''",
    "'; DROP TABLE files; --",
    "a\0b",
    "\u200b",
    "\ud800 a \udfff",
    "a\u0301\u0302",
    "\u0301",
    "%_?",
    `${"(".repeat(10_000)}a`,
    "x".repeat(100_000),
    "word ".repeat(20_000),
    Array.from({ length: 20_000 }, (_, index) => `w${index}`).join(" "),
    "東".repeat(30_000),
    '"'.repeat(100_000),
  ])("%p", (query) => {
    for (const { path } of reader.search(query, 5)) expect(path).toBe("a.md");
  });

  test("whatever it holds", () => {
    const noise = fc.string({ unit: "binary", maxLength: 200 });
    const grammar = fc.array(
      fc.constantFrom(
        "a",
        '"',
        "*",
        "^",
        "(",
        ")",
        "{",
        "}",
        ":",
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "+",
        "-",
        ",",
        " ",
        "\0",
      ),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          noise,
          grammar.map((parts) => parts.join(" ")),
        ),
        (query) => {
          reader.search(query, 3);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("the index", () => {
  test("forgets a file with all its passages", () => {
    put("a.md", "A", "apple", "apple");
    put("b.md", "B", "apple");
    writer.remove(["a.md", "never.md"]);
    expect(paths("apple")).toEqual(["b.md"]);
    expect(writer.files().map(({ path }) => path)).toEqual(["b.md"]);
  });

  test("has a file's new text alone after it changed", () => {
    put("a.md", "A", "apple", "pear", "plum");
    put("a.md", "A", "cherry");
    expect([paths("apple"), paths("plum"), paths("cherry")]).toEqual([[], [], ["a.md"]]);
  });

  test("remembers what was skipped, which no query finds", () => {
    const skipped = { path: "huge.md", modifiedMs: 7, bytes: 8, hash: null, skipped: "it is too large" };
    put("huge.md", "Huge", "apple");
    writer.put([{ file: skipped, text: null }]);
    expect(writer.files()).toEqual([skipped]);
    expect(paths("apple huge")).toEqual([]);
  });

  test("is readable by its owner alone, and stays when it is opened again", () => {
    put("a.md", "A", "apple");
    prepareSearchIndex(file);
    expect(paths("apple")).toEqual(["a.md"]);
    expect(statSync(file).mode & 0o077).toBe(0);
  });

  test.each([
    ["is no database", (path: string) => writeFileSync(path, "no database ".repeat(1_000))],
    [
      "is of another version",
      (path: string) => {
        const database = new Database(path);
        database.run("CREATE TABLE files (other)");
        database.run("PRAGMA user_version = 77");
        database.close();
      },
    ],
  ])("that %s is begun anew", (_, spoil) => {
    const other = join(folder, "other.db");
    spoil(other);
    prepareSearchIndex(other);
    const anew = new SearchIndexWriter(other);
    expect(anew.files()).toEqual([]);
    anew.close();
  });

  test("that cannot be made is the operator's to put right", () => {
    expect(() => prepareSearchIndex(join(folder, "nowhere", "search.db"))).toThrow(DataFolderUnusable);
  });

  test("is read while it is written", () => {
    put("a.md", "A", "apple");
    const other = new Database(file, { readwrite: true });
    other.run("BEGIN IMMEDIATE");
    other.run("DELETE FROM files");
    expect(paths("apple")).toEqual(["a.md"]);
    other.run("ROLLBACK");
    other.close();
  });
});
