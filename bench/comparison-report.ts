// What the comparison of gateways found: kept as JSON, and from that the picture, the headline and a section of
// bench/README.md.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type Bar } from "./bars.ts";
import { comparisonSvg } from "./comparison-svg.ts";
import type { DialectName } from "./dialect.ts";
import type { PeerProfile } from "./peers.ts";
import { type KeptResult, resultsFolder } from "./result.ts";

export type ComparedWay = PeerProfile &
  Readonly<{
    /** "nginx", "tollgate messages", "litellm". */
    name: string;
    /** Those in which it answers in front of a node that speaks chat-completions alone. */
    dialects: readonly DialectName[];
    refusesUnknownKeys: boolean;
    /** Microseconds of CPU time, medians; null what could not be measured. */
    streamUs: number | null;
    streamTimesNginx: number | null;
    firstTokenMs: number | null;
    /** Of the larger burst; null without one. */
    manyFirstTokenMs: number | null;
    requestUs: number | null;
    requestTimesNginx: number | null;
    perSecond: number | null;
    failed: number;
  }>;

export type Comparison = Readonly<{
  command: string;
  /** "Tollgate 0.1.0". */
  tollgate: string;
  machine: string;
  date: string;
  streams: number;
  many: number;
  tokens: number;
  intervalMs: number;
  connections: number;
  rounds: number;
  /** The cheapest stream first. */
  ways: readonly ComparedWay[];
  /** Those that were not measured, and why. */
  skipped: readonly string[];
  loadShares: string;
}>;

export const comparisonFile = `${resultsFolder}/comparison.json`;
export const comparisonPicture = `${resultsFolder}/comparison.svg`;

export function keepComparison(comparison: Comparison): void {
  mkdirSync(resultsFolder, { recursive: true });
  writeFileSync(comparisonFile, `${JSON.stringify(comparison, null, 2)}\n`);
  writeFileSync(comparisonPicture, comparisonSvg(comparison));
}

export function keptComparison(): Comparison | null {
  return existsSync(comparisonFile) ? (JSON.parse(readFileSync(comparisonFile, "utf8")) as Comparison) : null;
}

/** The smallest value first, what could not be measured last. */
export function bestFirst(ways: readonly ComparedWay[], by: "streamUs" | "requestUs"): ComparedWay[] {
  return ways.toSorted((one, other) => (one[by] ?? Infinity) - (other[by] ?? Infinity));
}

export const isTollgate = ({ name }: ComparedWay): boolean => name.startsWith("tollgate");

const whole = (value: number | null): string => (value === null ? "-" : Math.round(value).toLocaleString("en-US"));
const decimal = (value: number | null, places: number): string => (value === null ? "-" : value.toFixed(places));

/** "one key, usage rows": what was found by asking, and what its configuration keeps. */
export function duties({ refusesUnknownKeys, keys, books }: ComparedWay): string {
  return `${refusesUnknownKeys ? keys : "no keys"}, ${books}`;
}

export const dialectWords = ({ dialects }: ComparedWay): string =>
  dialects.length === 3 ? "all 3" : dialects.join(", ") || "none";

/** As the other benchmarks' results, for bench/README.md and the terminal. */
export function comparisonResult(comparison: Comparison): KeptResult {
  const { ways, streams, many, tokens, intervalMs, connections, rounds } = comparison;
  const bars: Bar[] = ways.flatMap(({ label, streamUs }) => (streamUs === null ? [] : [{ label, value: streamUs }]));
  const withMany = ways.some(({ manyFirstTokenMs }) => manyFirstTokenMs !== null);
  return {
    bench: "comparison",
    variant: "",
    command: comparison.command,
    machine: `${comparison.machine}, ${comparison.tollgate}`,
    date: comparison.date,
    question: "Tollgate beside other gateways and routers: a stream, a burst of streams, a short request",
    columns: [
      ...["way", "written in", "keys, books", "dialects", "us a stream", "x nginx"],
      ...[`first token of ${streams} at once, p50 ms`, ...(withMany ? [`of ${whole(many)}`] : [])],
      ...["us a request", "x nginx", "requests/s", "failed"],
    ],
    rows: ways.map((way) => [
      ...[way.label, way.writtenIn, duties(way), dialectWords(way)],
      ...[whole(way.streamUs), decimal(way.streamTimesNginx, 2), decimal(way.firstTokenMs, 1)],
      ...(withMany ? [decimal(way.manyFirstTokenMs, 1)] : []),
      ...[decimal(way.requestUs, 1), decimal(way.requestTimesNginx, 2), whole(way.perSecond), `${way.failed}`],
    ]),
    chart: { unit: "us of the proxy's CPU time per stream, median", bars },
    failures: 0,
    notes: [
      `CPU time of the proxy, medians of ${rounds} runs of each in random order (2 for a stream that costs more than 25 ms). ` +
        `A stream: ${tokens} tokens, one every ${intervalMs} ms; ${streams} begin in the same moment on open connections, ` +
        `twice in a row. A request: 1 KB in, 1 KB out, not streamed, ${connections} connections with one open at a time. ` +
        "Each proxy is one process on the same core in its turn.",
      "Dialects: those in which it answers in front of a node that speaks chat-completions alone; keys: whether it refuses " +
        "an unknown one. Both were found by asking. Books: what its configuration here keeps, without another server or a paid part. " +
        "Exact books: reserved before, settled after, on disk before the reply ends. Usage rows: written after the reply, " +
        "and without a balance that is held.",
      comparison.loadShares,
      ...comparison.skipped,
    ],
  };
}

const beginMarker = "<!-- comparison: written by bench/report.ts -->";
const endMarker = "<!-- end of comparison -->";

/** bench/README.md with the picture and the headline between its markers. Throws when one is missing. */
export function withComparison(text: string, comparison: Comparison): string {
  const begin = text.indexOf(beginMarker);
  const end = text.indexOf(endMarker);
  if (begin < 0 || end < begin) throw new Error(`bench/README.md needs "${beginMarker}" and "${endMarker}"`);
  const block = `![CPU time through each gateway](results/comparison.svg)\n\n${headline(comparison)} ${comparison.date}.`;
  return `${text.slice(0, begin + beginMarker.length)}\n\n${block}\n\n${text.slice(end)}`;
}

/** Who is cheaper stands first. */
export function headline({ ways }: Comparison): string {
  const chat = ways.find(({ name }) => name === "tollgate chat");
  if (chat === undefined) throw new Error("Tollgate was not measured");
  const cheaper = (by: "streamUs" | "requestUs"): string => {
    const names = bestFirst(ways, by)
      .filter((way) => !isTollgate(way) && (way[by] ?? Infinity) < (chat[by] ?? 0))
      .map(({ label }) => label.replace(/ [\d.]+\w*$/, ""));
    return names.length === 0 ? "none" : names.join(", ");
  };
  // Without nginx on the machine there is nothing that it would be so many times of.
  const times =
    chat.streamTimesNginx === null || chat.requestTimesNginx === null
      ? ""
      : `A stream takes ${decimal(chat.streamTimesNginx, 2)} times nginx's CPU, a short request ` +
        `${decimal(chat.requestTimesNginx, 1)} times (chat), with keys and exact books. `;
  return `${times}Cheaper for a stream: ${cheaper("streamUs")}; for a request: ${cheaper("requestUs")}.`;
}
