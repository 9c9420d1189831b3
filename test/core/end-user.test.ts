// What end users are called: a line of bounded length, whatever a program sends.
import { expect, test } from "bun:test";
import { endUserName, endUserNameMaxLength } from "../../src/core/end-user.ts";

test.each([
  ["ada@example.org", "ada@example.org"],
  ["  Ada Lovelace ", "Ada Lovelace"],
  ["Ωδή 🧮", "Ωδή 🧮"],
  ["=1+1", "=1+1"], // CSV escapes it where it is written
  ["", ""],
  [" \t\n", ""],
  [undefined, ""],
  [null, ""],
  [7, ""],
  [{ toString: () => "x" }, ""],
  [["x"], ""],
])("%j is %j", (given, name) => {
  expect(endUserName(given)).toBe(name);
});

test.each([
  "a\nb",
  "a\u0000b",
  "a\u202eb",
  "a\u2028b",
  "\u001b[31mred",
  "\ud800",
  "x".repeat(endUserNameMaxLength + 1),
  `${"x".repeat(endUserNameMaxLength - 1)}🧮`,
  "\ud83d".repeat(100_000),
])("an odd or long name (%#) is one bounded line, and apart from its like", (given) => {
  const name = endUserName(given);
  expect(name.length).toBeLessThanOrEqual(endUserNameMaxLength);
  expect(name).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
  expect(name.isWellFormed()).toBe(true);
  expect(name).toMatch(/~[0-9a-f]{24}$/);
  expect(endUserName(`${given}\u0001`)).not.toBe(name);
  expect(endUserName(name)).toBe(name); // by that name it is exported and erased
});

test("a name of a megabyte takes a few milliseconds", () => {
  const started = performance.now();
  for (let i = 0; i < 10; i += 1) endUserName("x\n".repeat(524_288) + i);
  expect(performance.now() - started).toBeLessThan(1_000);
});
