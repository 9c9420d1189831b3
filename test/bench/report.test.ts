// The report puts each result between the markers, with its command, machine and date.
import { expect, test } from "bun:test";
import { withResults } from "../../bench/report.ts";
import { percentile, spread } from "../../bench/statistics.ts";

const begin = "<!-- results: written by bench/report.ts -->";
const end = "<!-- end of results -->";

test("results replace what is between the markers and nothing else", () => {
  const result = {
    bench: "relay-token",
    variant: "",
    question: "CPU time per relayed token",
    columns: ["way", "us/token"],
    rows: [["nginx", "10.00"]],
    chart: {
      unit: "us per token",
      bars: [
        { label: "nginx", value: 10 },
        { label: "tollgate", value: 5 },
      ],
    },
    failures: 0,
    notes: ["200 streams."],
    command: "bun bench/relay-token.ts",
    machine: "2 cores",
    date: "2026-01-01",
  };
  const text = withResults(`before\n${begin}\nold\n${end}\nafter\n`, [result]);
  expect(text).toStartWith(`before\n${begin}\n`);
  expect(text).toEndWith(`${end}\nafter\n`);
  expect(text).not.toContain("old");
  expect(text).toContain("`bun bench/relay-token.ts` · 2 cores · 2026-01-01");
  expect(text).toContain("| nginx | 10.00 |");
  expect(text).toContain(`nginx    ${"█".repeat(40)} 10.0\ntollgate ${"█".repeat(20)} 5.00`);
  expect(withResults(text, [result])).toBe(text);
});

test("a README without markers is refused", () => {
  expect(() => withResults("nothing", [])).toThrow("needs");
});

test("percentiles are nearest ranks", () => {
  const values = [5, 1, 4, 2, 3];
  expect(percentile(values, 0.5)).toBe(3);
  expect(percentile(values, 0.99)).toBe(5);
  expect(spread(values, 1)).toBe("1.0 / 3.0 / 5.0");
});
