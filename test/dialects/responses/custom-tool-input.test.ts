// Unwrapping a custom tool's input from function-call arguments that arrive in fragments.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CustomToolInput } from "../../../src/dialects/responses/custom-tool-input.ts";
import { JsonEnd } from "../../../src/core/json-end.ts";

/** Feeds the fragments; `streamed` is what was known before the end. */
function unwrap(fragments: readonly string[]): { input: string; streamed: string } {
  const unwrapper = new CustomToolInput();
  const streamed = fragments.map((fragment) => unwrapper.push(fragment)).join("");
  return { input: streamed + unwrapper.finish(), streamed };
}

/** Cuts between characters: a fragment is well-formed text. */
const cut = (text: string, places: readonly number[]): string[] => {
  const characters = [...text];
  const at = [...new Set(places.map((place) => place % (characters.length + 1)))].sort((a, b) => a - b);
  return [...at, characters.length].map((end, index) => characters.slice(at[index - 1] ?? 0, end).join(""));
};
const places = fc.array(fc.nat(), { maxLength: 12 });
const anyText = fc.string({ unit: "binary", maxLength: 60 }).map((text) => text.toWellFormed());
const escaped = (text: string): string =>
  JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

describe("a custom tool's input", () => {
  test("is the same wherever its arguments are cut, and streams", () => {
    fc.assert(
      fc.property(anyText, places, fc.boolean(), fc.constantFrom("", " ", "\n\t "), (text, at, ascii, space) => {
        const value = ascii ? escaped(text) : JSON.stringify(text);
        const json = `${space}{${space}"input"${space}:${space}${value}${space}}${space}`;
        expect(unwrap(cut(json, at))).toEqual({ input: text, streamed: text });
      }),
      { numRuns: 500 },
    );
  });

  test("is the same with a fragment for every character", () => {
    const patch = '*** Begin Patch\n+"quoted" \\ and \u00e9 😀\n*** End Patch\n';
    expect(unwrap([...JSON.stringify({ input: patch })]).streamed).toBe(patch);
    expect(unwrap([...`{"input":${escaped(patch)}}`]).streamed).toBe(patch);
  });

  test.each([
    ['{"other":1,"input":"a"}', "a"],
    ['{"patch":"a"}', "a"],
    ['{"a":"b","c":"d"}', '{"a":"b","c":"d"}'],
    ['{"input":{"a":1}}', '{"input":{"a":1}}'],
    ["*** Begin Patch", "*** Begin Patch"],
    ['"a"', "a"],
    ["{}", "{}"],
    ["", ""],
    ["null", "null"],
    ["[1]", "[1]"],
  ])("%p is understood as %p", (json, input) => {
    expect(unwrap([json]).input).toBe(input);
    expect(unwrap([...json]).input).toBe(input);
  });

  test("that the budget cut is what came so far", () => {
    expect(unwrap(['{"input":"abc', "de\\"]).input).toBe("abcde");
    expect(unwrap(['{"input":"abc\\ud83d']).input).toBe("abc");
  });

  test("holds no half of a surrogate pair", () => {
    expect(unwrap(['{"input":"\\ud83d', '\\ude00"}']).input).toBe("😀");
    expect(unwrap(['{"input":"\\ud83dx"}']).input).toBe("\ufffdx");
    expect(unwrap(['{"input":"\\ud83d"}']).input).toBe("\ufffd");
    expect(unwrap(['{"input":"\\ude00\\ud83d\\n"}']).input).toBe("\ufffd\ufffd\n");
  });
});

describe("the end of an object", () => {
  test("is found at its last bracket, wherever it is cut", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), places, (value, at) => {
        const end = new JsonEnd();
        const fragments = cut(JSON.stringify(value), at);
        for (const [index, fragment] of fragments.entries()) {
          expect(end.reached).toBe(false);
          end.push(fragment);
          if (fragments.slice(index + 1).every((rest) => rest === "")) break;
        }
        expect(end.reached).toBe(true);
      }),
    );
  });
});
