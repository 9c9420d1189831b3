// The official tiktoken, written in Rust and run from Python, gives the same tokens: the npm package that the other
// tests compare with is a build of it by others. TOLLGATE_TOKENS_PYTHON names the interpreter of a virtual environment
// that has requirements.txt installed.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { runToEnd } from "../fixtures/children.ts";
import { missing } from "../fixtures/optional.ts";
import type { EncodingName } from "../../src/core/types.ts";
import { encodings, fragments } from "./reference.ts";

const root = join(import.meta.dir, "../..");
const python = process.env["TOLLGATE_TOKENS_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");
const absent = missing(
  "the Python tiktoken",
  existsSync(python),
  "make a virtual environment in test/tokens/.venv with requirements.txt, or name its interpreter in TOLLGATE_TOKENS_PYTHON",
);

/** Texts that do not depend on chance, so that a difference is seen again. */
function texts(): string[] {
  const sources = [...new Bun.Glob("{src,test}/**/*.{ts,md,py,json}").scanSync({ cwd: root })]
    .filter((path) => !path.includes("node_modules"))
    .sort()
    .map((path) => readFileSync(join(root, path), "utf8"));
  const runs = ["a", "A", " ", "\n", " \n", "\t", "-", "=", "語", "日本", "😀", "\u0301", "1", "-="].flatMap((unit) =>
    [1, 2, 127, 128, 129, 1_000].map((length) => unit.repeat(length)),
  );
  const random = fc.sample(
    fc.array(fc.constantFrom(...fragments), { maxLength: 60 }).map((parts) => parts.join("").toWellFormed()),
    { numRuns: 2_000, seed: 7 },
  );
  const unicode = fc.sample(fc.string({ unit: "binary", maxLength: 60 }), { numRuns: 2_000, seed: 7 });
  return [...sources, ...runs, ...random, ...unicode, "", "hello <|endoftext|> world <|endofprompt|>"];
}

describe.skipIf(absent)("the official tiktoken", () => {
  test.each(Object.keys(encodings) as EncodingName[])(
    "gives the same tokens of %s for every text",
    async (encoding) => {
      const all = texts();
      const encoder = join(root, `node_modules/tiktoken/encoders/${encoding}.json`);
      const command = [python, join(import.meta.dir, "python_tiktoken.py"), encoder];
      const { code, stdout, stderr } = await runToEnd(command, { stdin: JSON.stringify(all) });
      expect({ code, stderr }).toMatchObject({ code: 0 });
      const lines = stdout.trimEnd().split("\n");
      expect(lines).toHaveLength(all.length);
      for (const [index, text] of all.entries()) {
        expect([...encodings[encoding].tokenizer.encode(text)]).toEqual(JSON.parse(lines[index]!) as number[]);
      }
    },
    120_000,
  );
});
