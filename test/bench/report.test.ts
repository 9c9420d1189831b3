// The report puts each result between the markers, with its command, machine and date.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { benches, flagWords, fullName, withResults } from "../../bench/report.ts";
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

test("every benchmark of the report is there, under a name of its own", () => {
  expect(benches.filter(({ name }) => !existsSync(`${import.meta.dir}/../../bench/${name}.ts`))).toEqual([]);
  expect(new Set(benches.map(fullName)).size).toBe(benches.length);
});

test("--quick leaves out what says how much, and keeps what says what", () => {
  const bench = benches.find((each) => fullName(each) === "relay-token-messages")!;
  expect(flagWords(bench, false)).toEqual(["--dialect", "messages", "--only", "nginx,tollgate", "--runs", "5"]);
  expect(flagWords(bench, true)).toEqual(["--dialect", "messages", "--only", "nginx,tollgate", "--quick"]);
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
