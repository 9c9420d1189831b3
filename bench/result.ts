// What a benchmark found: printed as a table, kept as JSON for the report.
import { mkdirSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { nginxVersion } from "./nginx.ts";
import { placementLine } from "./placement.ts";

export type Result = Readonly<{
  /** Name of the benchmark, also of its file. */
  bench: string;
  /** What sets this run apart from others of the same benchmark that are reported beside it, or "". */
  variant: string;
  question: string;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
  /** One bar each, drawn to one scale. */
  chart: Readonly<{ unit: string; bars: readonly Readonly<{ label: string; value: number }>[] }> | null;
  /** Replies that did not arrive whole, or books that do not add up; the numbers of such a run mean nothing. */
  failures: number;
  /** What the numbers mean, and what was left out and why. */
  notes: readonly string[];
}>;

/** A result with where and when it came about. */
export type KeptResult = Result & Readonly<{ command: string; machine: string; date: string }>;

export const resultsFolder = `${import.meta.dir}/results`;

/**
 * Prints the result and writes it to results/<bench>[-<variant>].json, unless it came about with `--quick`, whose numbers mean
 * nothing. Throws after that when something failed.
 */
export async function keepResult(result: Result): Promise<void> {
  const flags = Bun.argv.slice(2);
  const kept: KeptResult = {
    ...result,
    command: ["bun", `bench/${result.bench}.ts`, ...flags].join(" "),
    machine: machineLine(),
    date: new Date().toISOString().slice(0, 10),
  };
  console.log(`\n${result.question}\n${textTable(result.columns, result.rows)}`);
  for (const note of result.notes) console.log(note);
  console.log(`${kept.machine}; ${kept.date}\n`);
  if (!flags.includes("--quick")) {
    mkdirSync(resultsFolder, { recursive: true });
    const name = result.variant === "" ? result.bench : `${result.bench}-${result.variant}`;
    await Bun.write(`${resultsFolder}/${name}.json`, `${JSON.stringify(kept, null, 2)}\n`);
  }
  if (result.failures > 0) throw new Error(`${result.failures} failures: see the lines above`);
}

export function machineLine(): string {
  const gibibytes = Math.round(totalmem() / 2 ** 30);
  const processor = cpus()[0]?.model ?? "unknown processor";
  return (
    `${processor}, ${availableParallelism()} cores, ${gibibytes} GiB, Bun ${Bun.version}, ${nginxVersion()}, ` +
    placementLine()
  );
}

/** Columns padded with spaces: the first to the left, numbers to the right. */
export function textTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [columns, ...rows];
  const widths = columns.map((_name, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join("  "),
    )
    .join("\n");
}
