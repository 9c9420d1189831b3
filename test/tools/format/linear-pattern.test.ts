// Patterns without backtracking: the same answers as the engine's own, in linear time.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { linearPattern } from "../../../src/tools/format/linear-pattern.ts";

const runs = Number(process.env["TOLLGATE_TEST_RUNS"] ?? 3_000);

/** Patterns of every kind that has a linear way; small enough that the engine's own way through them ends. */
const { pattern } = fc.letrec((tie) => ({
  atom: fc.oneof(
    fc.constantFrom(
      "a",
      "b",
      "é",
      "\\n",
      ".",
      "[ab]",
      "[^a]",
      "\\w",
      "\\W",
      "\\d",
      "\\s",
      "[\\s\\S]",
      "\\u0061",
      "\\.",
      "x",
    ),
    fc.constantFrom("^", "$", "\\b", "\\B"),
    tie("group"),
  ) as fc.Arbitrary<string>,
  group: fc
    .tuple(fc.constantFrom("(", "(?:", "(?=", "(?!", "(?<=", "(?<!"), tie("pattern") as fc.Arbitrary<string>)
    .map(([start, inner]) => `${start}${inner})`),
  piece: fc
    .tuple(
      tie("atom") as fc.Arbitrary<string>,
      fc.constantFrom("", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "{0}"),
    )
    // Of a repeated group that begins with ^ the engine says that (^)*(?<=(?=^)[^a]) is not in an emoji; V8 finds it.
    .map(([atom, repeat]) => (/^(\^|\$|\\b|\\B|\(\?<?[=!]|\((?:\?:)?\^)/.test(atom) ? atom : atom + repeat)),
  sequence: fc.array(tie("piece") as fc.Arbitrary<string>, { maxLength: 3 }).map((pieces) => pieces.join("")),
  pattern: fc
    .array(tie("sequence") as fc.Arbitrary<string>, { minLength: 1, maxLength: 2, depthIdentifier: "pattern" })
    .map((alternatives) => alternatives.join("|")),
}));
const text = fc.array(fc.constantFrom("a", "b", "x", "é", "\n", " ", "1", "_", ".", "😀", "\ud83d"), { maxLength: 7 });

test(`${runs} random patterns match as the engine says`, () => {
  fc.assert(
    fc.property(
      pattern as fc.Arbitrary<string>,
      text,
      fc.constantFrom("u" as const, "" as const),
      (source, characters, flags) => {
        // The engine tries every way through (((a*?)+|)+|)+(?!)| for a minute and a half, and then says that it found none.
        if ((source.match(/\)[*+{]/g) ?? []).length > 2) return;
        const linear = linearPattern(source, flags);
        if (linear === null) return;
        const given = characters.join("");
        expect(linear.test(given)).toBe(new RegExp(source, flags).test(given));
      },
    ),
    { numRuns: runs },
  );
});

describe("patterns of people", () => {
  test.each([
    // zod 4: e-mail, UUID, date
    [
      "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
      ["a.b@c.de", "a+b@x.y.example"],
      ["a..b@c.de", ".a@c.de", "a@b", "a@b.c"],
    ],
    [
      "^[0-9a-fA-F]{8}\\b-[0-9a-fA-F]{4}\\b-[0-9a-fA-F]{12}$",
      ["01234567-89ab-0123456789ab"],
      ["01234567-89ab-0123456789a"],
    ],
    ["^\\d{4}-(?:0[1-9]|1[0-2])-(?:[12]\\d|0[1-9]|3[01])$", ["2026-11-22"], ["2026-13-01"]],
    ["^\\p{Lu}\\p{L}*$", ["Ärger"], ["ärger"]],
    ["^.$", ["😀"], ["😀😀", "\n"]],
  ])("%s", (source, matching, others) => {
    const linear = linearPattern(source, "u")!;
    expect(matching.filter((given) => !linear.test(given))).toEqual([]);
    expect(others.filter((given) => linear.test(given))).toEqual([]);
  });
});

test.each(["(a)\\1", "(?<n>a)\\k<n>", "(?i:a)", "a{100000}", "(?:){1000000000}", "(((a{100}){100}){100}){100}"])(
  "%s has no linear way, which is found out at once",
  (source) => expect(linearPattern(source, "u")).toBe(null),
);

test.each(["(", "a{2,1}", "[b-a]", "\\", "(?P<year>a)"])("%s is no pattern", (source) => {
  expect(() => linearPattern(source, "u")).toThrow(SyntaxError);
});

describe("time", () => {
  const long = "a".repeat(100_000);
  test.each([
    "^(a+)+$",
    "^(a|aa|a*)+$",
    "(x+x+)+y",
    "a*a*a*a*b",
    "((((a*)*)*)*)*b",
    "(?=(a+)+$)b",
    "(?<!a*)b|^(\\w+\\s?)*$",
    "^(?:.*a){12}$",
  ])("%s on 100,000 characters", (source) => {
    const linear = linearPattern(source, "u")!;
    const before = process.threadCpuUsage();
    expect(linear.test(`${long}!`)).toBe(false);
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(1_000);
  });
});
