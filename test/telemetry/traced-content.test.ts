// What a trace keeps of a prompt: without what the operator redacts, and in little time, whatever was sent.
import { expect, test } from "bun:test";
import type { Ask } from "../../src/core/types.ts";
import { TracedContent } from "../../src/telemetry/traced-content.ts";

const kept = (text: string, ...redact: readonly string[]): string => {
  const ask = { turns: [{ role: "user", content: text }] } as unknown as Ask;
  const said = new TracedContent(redact, null).attributes(ask, "stop")["gen_ai.input.messages"]!;
  return (JSON.parse(said) as [{ parts: [{ content: string }] }])[0].parts[0].content;
};

test.each([
  ["each of several", "ann@x.org and sk-12", ["sk-\\w+", "\\w+@\\w+\\.org"], "[redacted] and [redacted]"],
  ["what is matched twice, once", "abcd", ["abc", "bcd"], "[redacted]"],
  ["nothing for an empty match", "abc", ["$", "x*"], "abc"],
  ["beyond what is seen at once", `${"y ".repeat(5_000)}sk-1`, ["sk-\\d"], `${"y ".repeat(5_000)}[redacted]`],
  ["over where that ends", `${"y".repeat(4_090)} sk-0123456789`, ["sk-\\d+"], `${"y".repeat(4_090)} [redacted]`],
])("a pattern takes out %s", (_, text, patterns, wanted) => {
  expect(kept(text, ...patterns)).toBe(wanted);
});

test("a prompt that is made for a pattern to be slow takes no minutes", () => {
  const before = process.threadCpuUsage().user;
  kept("a".repeat(500_000), "[\\w.+-]+@[\\w.-]+\\.\\w+");
  expect(process.threadCpuUsage().user - before).toBeLessThan(3_000_000); // 0.3 s; 2 minutes in one piece
});
