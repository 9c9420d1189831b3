// Rewrites the results in bench/README.md, between its markers, from bench/results/*.json
// with its picture.
//
//   npm run bench -- report
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { barLines } from "./bars.ts";
import {
  comparisonFile,
  comparisonPicture,
  comparisonResult,
  keptComparison,
  withComparison,
} from "./comparison-report.ts";
import { comparisonSvg } from "./comparison-svg.ts";
import { bun } from "./process.ts";
import type { KeptResult } from "./result.ts";
import { resultsFolder } from "./result.ts";

/** Runs by default, or is asked for because it takes long or needs what is not installed with us. */
export type Suite = "default" | "large" | "peers" | "soak";
type Flags = Readonly<Record<string, string | number | true>>;
type Bench = Readonly<{ suite: Suite; name: string; variant: string; flags: Flags }>;

const benchOf =
  (suite: Suite) =>
  (name: string, variant = "", flags: Flags = {}): Bench => ({ suite, name, variant, flags });
const bench = benchOf("default");
const large = benchOf("large");
const peers = benchOf("peers");
const soak = benchOf("soak");

/** What a variant is compared with; `direct` is in the results without variant. */
const beside = { only: "nginx,tollgate", runs: 5 };
const warmUps = { "warm-ups": 2 };

/** The benchmarks in the order in which they run and are reported. */
export const benches: readonly Bench[] = [
  bench("relay-token"),
  bench("relay-token", "messages", { dialect: "messages", ...beside }),
  bench("relay-token", "responses", { dialect: "responses", ...beside }),
  bench("relay-token", "2000-streams", { streams: 2_000, "interval-ms": 200, tokens: 100, ...beside, ...warmUps }),
  peers("comparison"),
  bench("request"),
  bench("request", "messages", { dialect: "messages", ...beside }),
  bench("request", "responses", { dialect: "responses", ...beside }),
  bench("request", "all-cores", { placement: "free", ...beside }),
  bench("burst"),
  bench("latency", "", { runs: 2 }),
  bench("memory"),
  bench("memory", "10000-streams", { streams: 10_000, "interval-ms": 1_000, tokens: 20, "spread-ms": 10_000 }),
  bench("start"),
  large("start", "10000000-rows", { accounts: 1_000_000, rows: 10_000_000 }),
  bench("layers"),
  bench("growth"),
  bench("ledger"),
  bench("threads"),
  bench("usage", "", { replies: 3_000_000 }),
  bench("tokens"),
  bench("count-beside-streams"),
  bench("large-body"),
  bench("routing", "virtual", { virtual: true }),
  peers("routing"),
  bench("auto-slots"),
  bench("cluster"),
  large("cluster-growth"),
  soak("soak"),
];

/** The command line's words; numbers are sizes, which `--quick` sets by itself. */
export function flagWords({ flags }: Bench, quick: boolean): string[] {
  const words = Object.entries(flags).flatMap(([name, value]) => {
    if (value === true) return [`--${name}`];
    return quick && typeof value === "number" ? [] : [`--${name}`, `${value}`];
  });
  return quick ? [...words, "--quick"] : words;
}

export const fullName = ({ name, variant }: Pick<Bench, "name" | "variant">): string =>
  variant === "" ? name : `${name}-${variant}`;

const beginMarker = "<!-- results: written by bench/report.ts -->";
const endMarker = "<!-- end of results -->";

const nameMarker = /^<!-- (\S+) -->$/m;

/**
 * The text with the sections of these results between the markers, by the name of each. A section whose benchmark was
 * not run stays: it says from which day and machine it is. Throws when a marker is missing.
 */
export function withResults(text: string, results: ReadonlyMap<string, KeptResult>): string {
  const begin = text.indexOf(beginMarker);
  const end = text.indexOf(endMarker);
  if (begin < 0 || end < begin) throw new Error(`the README needs "${beginMarker}" and "${endMarker}"`);
  const [, ...parts] = text.slice(begin + beginMarker.length, end).split(nameMarker);
  const sections = new Map<string, string>();
  for (let part = 0; part + 1 < parts.length; part += 2) sections.set(parts[part]!, parts[part + 1]!.trim());
  for (const [name, result] of results) sections.set(name, section(result));
  const lines = benches.map(fullName).flatMap((name) => {
    const found = sections.get(name);
    return found === undefined ? [] : [`<!-- ${name} -->\n\n${found}\n`];
  });
  return `${text.slice(0, begin + beginMarker.length)}\n\n${lines.join("\n")}\n${text.slice(end)}`;
}

function section(result: KeptResult): string {
  return [
    `### ${result.question}`,
    "",
    `\`${result.command}\` · ${result.machine} · ${result.date}`,
    "",
    tableRow(result.columns),
    tableRow(result.columns.map((_name, column) => (column === 0 ? "---" : "---:"))),
    ...result.rows.map(tableRow),
    "",
    ...chartLines(result),
    ...result.notes.map((note) => `${note}\n`),
  ]
    .join("\n")
    .trim();
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function chartLines({ chart }: KeptResult): string[] {
  if (chart === null || chart.bars.length === 0) return [];
  return ["```text", chart.unit, ...barLines(chart.bars), "```", ""];
}

/** Rewrites bench/README.md and the picture from the results at hand of these benchmarks. */
export function writeReport(names: readonly string[] = benches.map(fullName)): void {
  const results = new Map<string, KeptResult>();
  for (const name of names) {
    const file = `${resultsFolder}/${name}.json`;
    if (existsSync(file) && name !== "comparison") {
      results.set(name, JSON.parse(readFileSync(file, "utf8")) as KeptResult);
    }
  }
  const comparison = names.includes("comparison") ? keptComparison() : null;
  if (comparison !== null) {
    results.set("comparison", comparisonResult(comparison));
    writeFileSync(comparisonPicture, comparisonSvg(comparison));
    format(comparisonFile);
  }
  rewrite(join(import.meta.dir, "README.md"), (text) =>
    withResults(comparison === null ? text : withComparison(text, comparison), results),
  );
}

function rewrite(file: string, edit: (text: string) => string): void {
  writeFileSync(file, edit(readFileSync(file, "utf8")));
  format(file);
}

/** In the project's format, so that the check of it passes after a run. */
function format(file: string): void {
  const formatted = Bun.spawnSync([bun, "fmt", "--no-script", file], { stdio: ["ignore", "ignore", "inherit"] });
  if (!formatted.success) throw new Error(`${file} could not be formatted`);
}

if (import.meta.main) writeReport();
