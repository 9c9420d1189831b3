// What goes out of a call's arguments: clients parse what has come after each event, and run what has ended.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CallInput } from "../../../src/dialects/messages/call-input.ts";

/** What goes out of a text that comes in these pieces, event by event, and what completes it. */
function played(pieces: readonly string[]) {
  const input = new CallInput();
  const sent = pieces.map((piece) => input.push(piece));
  const literal = JSON.stringify(pieces.join(""));
  return { input, sent, rest: input.rest(literal), literal };
}

const cutAt = (text: string, places: readonly number[]): string[] => {
  const at = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b);
  return [...at, text.length].map((end, index) => text.slice(at[index - 1] ?? 0, end));
};
const places = fc.array(fc.nat(), { maxLength: 6 });
const strings = fc.string({ unit: "grapheme", maxLength: 9 });
const objects = fc.dictionary(strings, fc.jsonValue({ maxDepth: 3, stringUnit: "grapheme" }), { maxKeys: 4 });
const escapedText = (text: string): string =>
  text.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

test("an object goes out as it was written, however it is cut and escaped, and what follows is dropped", () => {
  const spaces = fc.constantFrom(0, 1);
  fc.assert(
    fc.property(objects, places, spaces, fc.boolean(), strings, (object, cuts, space, escapes, behind) => {
      const plain = JSON.stringify(object, null, space);
      const text = escapes ? escapedText(plain) : plain;
      const { input, sent, rest } = played(cutAt(`${text}${behind}`, cuts));
      expect([sent.join(""), rest, input.complete]).toEqual([text, "", true]);
    }),
    { numRuns: 500 },
  );
});

/** JSON texts, spoiled in one place, and marks in any order. */
const spoiled = fc.oneof(
  fc.tuple(objects, fc.nat(), fc.string({ maxLength: 3 }), fc.nat({ max: 2 })).map(([object, place, put, taken]) => {
    const text = JSON.stringify(object);
    const at = place % (text.length + 1);
    return text.slice(0, at) + put + text.slice(at + taken);
  }),
  fc
    .array(fc.constantFrom("{", "}", "[", "]", ":", ",", '"', "\\", "u", "d83d", "1", "-", "e", "null", "a", "\n"), {
      maxLength: 14,
    })
    .map((marks) => `{${marks.join("")}`),
);

test("at every event what went out can become an object; what spoils it ends in one whose members are void", () => {
  fc.assert(
    fc.property(spoiled, places, (text, cuts) => {
      for (let until = 0, pieces = cutAt(text, cuts); until <= pieces.length; until++) {
        const { input, sent, rest, literal } = played(pieces.slice(0, until));
        const whole = sent.join("") + rest;
        if (whole === "") continue;
        const value = JSON.parse(whole) as Record<string, unknown>;
        if (input.complete) continue;
        const { INVALID_JSON: written, ...members } = value;
        expect(written).toBe(JSON.parse(literal));
        expect(Object.values(members).every((member) => member === null)).toBe(true);
      }
    }),
    { numRuns: 2_000 },
  );
});

describe("what models write", () => {
  test.each([
    ['{"city": Paris}', '{"city": null,"city":null,"INVALID_JSON":"{\\"city\\": Paris}"}'],
    ['{"rm":"-rf /\\x"}', '{"rm":"-rf /","rm":null,"INVALID_JSON":"{\\"rm\\":\\"-rf /\\\\x\\"}"}'],
    ["{'a':1}", `{"INVALID_JSON":"{'a':1}"}`],
    ["words", '{"INVALID_JSON":"words"}'],
    ["[1]", '{"INVALID_JSON":"[1]"}'],
    [" null ", ""],
    ['{"a":"x\ny"}', '{"a":"x\\ny"}'],
    ['{"a":1}{"a":2}', '{"a":1}'],
    ['{"a":"\\ud83d!"}', '{"a":"","a":null,"INVALID_JSON":"{\\"a\\":\\"\\\\ud83d!\\"}"}'],
  ])("%s", (text, out) => {
    for (const pieces of [[text], [...text]]) {
      const { sent, rest } = played(pieces);
      expect((sent.join("") + rest).trim()).toBe(out);
    }
  });

  test("numbers, names and depth without an end are given up; time stays linear", () => {
    const texts = [`{"a":${"1".repeat(300)}`, `{"${"a".repeat(300)}`, `{"a":${"[".repeat(200)}`];
    for (const text of texts) expect(JSON.parse(played([...text]).sent.join("") + played([...text]).rest)).toBeObject();
    const long = `{"a":"${"x".repeat(1_000_000)}","b":[${"1,".repeat(200_000)}1]}`;
    const begun = performance.now();
    expect(played([...long.match(/.{1,4}/gs)!]).sent.join("")).toBe(long);
    expect(performance.now() - begun).toBeLessThan(5_000);
  });
});
