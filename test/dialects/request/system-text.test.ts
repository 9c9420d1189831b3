// Claude Code's billing header is no part of a prompt, whichever dialect it comes in: a proxy may have rewritten it.
import { describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import { systemText } from "../../../src/dialects/request/system-text.ts";
import { dialects, type DialectName } from "../../golden/dialects.ts";
import { readBody } from "../../fixtures/reading.ts";

const line = "x-anthropic-billing-header: cc_version=2.1.329.a1b; cc_entrypoint=cli;";
const catalog = embeddedCatalog();

test.each([
  [line, ""],
  [`${line}\nBe brief.`, "Be brief."],
  [`${line}\n\nBe brief.\n`, "Be brief.\n"],
  [`Be brief.\n${line}`, `Be brief.\n${line}`],
  ["", ""],
])("of %j remains %j", (given, kept) => {
  expect(systemText(given)).toBe(kept);
});

describe("two conversations with another header have the same turns", () => {
  const hello = { role: "user", content: "hello" };
  const bodies: readonly (readonly [DialectName, (text: string) => object])[] = [
    ["chat", (content) => ({ messages: [{ role: "system", content }, hello] })],
    ["chat", (text) => ({ messages: [{ role: "developer", content: [{ type: "text", text }] }, hello] })],
    ["messages", (system) => ({ system, messages: [hello] })],
    ["responses", (instructions) => ({ instructions, input: "hello" })],
    ["responses", (content) => ({ input: [{ role: "system", content }, hello] })],
  ];
  test.each(bodies)("%s %p", (name, bodyOf) => {
    const turnsOf = (text: string) => {
      const read = readBody(dialects[name], { model: "core-3", ...bodyOf(text) }, 100, catalog);
      return isRefusal(read) ? read : read.turns;
    };
    expect(turnsOf(`${line}\nBe brief.`)).toEqual(turnsOf("Be brief."));
    expect(turnsOf(`${line}\nBe brief.`)).toEqual(turnsOf(`${line.replace("a1b", "c2d")}\nBe brief.`));
  });
});
