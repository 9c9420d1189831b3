// The report puts each result between the markers, with its command, machine and date.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { benches, flagWords, fullName, withResults } from "../../bench/report.ts";
import { percentile, spread } from "../../bench/statistics.ts";

const begin = "<!-- results: written by bench/report.ts -->";
const end = "<!-- end of results -->";

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

test("a section stands between the markers, with its command, machine and day", () => {
  const text = withResults(`before\n${begin}\nold\n${end}\nafter\n`, new Map([["relay-token", result]]));
  expect(text).toStartWith(`before\n${begin}\n`);
  expect(text).toEndWith(`${end}\nafter\n`);
  expect(text).not.toContain("old");
  expect(text).toContain("`bun bench/relay-token.ts` · 2 cores · 2026-01-01");
  expect(text).toContain("| nginx | 10.00 |");
  expect(text).toContain(`nginx    ${"█".repeat(40)} 10.0\ntollgate ${"█".repeat(20)} 5.00`);
});

test("a benchmark that was not run keeps its section, in the order of the list", () => {
  const later = { ...result, question: "Latency", command: "bun bench/latency.ts" };
  const before = withResults(`${begin}\n${end}`, new Map([["latency", later]]));
  const both = withResults(before, new Map([["relay-token", result]]));
  expect(both).toMatch(/### CPU time per relayed token\n[^]*### Latency\n/);
  expect(withResults(both, new Map())).toBe(both);
  const anew = withResults(both, new Map([["latency", { ...later, date: "2026-01-02" }]]));
  expect(anew).toBe(both.replace(/2026-01-01(?![^]*2026-01-01)/, "2026-01-02"));
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
  expect(() => withResults("nothing", new Map())).toThrow("needs");
});

test("percentiles are nearest ranks", () => {
  const values = [5, 1, 4, 2, 3];
  expect(percentile(values, 0.5)).toBe(3);
  expect(percentile(values, 0.99)).toBe(5);
  expect(spread(values, 1)).toBe("1.0 / 3.0 / 5.0");
});
