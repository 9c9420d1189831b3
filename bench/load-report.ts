// What a load test found: as an object (which is also its JSON), as text with bars, and as an SVG.
import { barLines } from "./bars.ts";
import type { Histogram } from "./histogram.ts";
import type { LoadMeasurement, LoadSettings } from "./load-client.ts";
import { textTable } from "./result.ts";

type Percentiles = Readonly<{ p50: number; p90: number; p99: number; longest: number; count: number }> | null;

export type LoadReport = Readonly<{
  url: string;
  model: string;
  dialect: string;
  streaming: boolean;
  streams: number;
  keys: number;
  date: string;
  seconds: number;
  requests: Readonly<{ started: number; complete: number; failed: number; cutOff: number }>;
  requestsPerSecond: number;
  /** Tokens by the usage of complete replies; where none reported any, one for each event. */
  tokensPerSecond: number;
  /** Tokens for each event with text, by the usage of complete replies; null where none reported any. */
  tokensPerEvent: number | null;
  /** From sending a request to the first text; null without streams. */
  firstTokenMs: Percentiles;
  /** Between two arrivals of text in a stream. */
  gapMs: Percentiles;
  /** From sending a request to the end of its reply. */
  wholeMs: Percentiles;
  errors: Readonly<Record<string, number>>;
  client: Readonly<{ cpuSeconds: number; coreShare: number; microsecondsPerEvent: number | null }>;
  /** Events with text, or whole replies where nothing is streamed, in each second. */
  eachSecond: readonly number[];
}>;

/** `cpuSeconds` is the CPU time of this process in the meantime. */
export function reportOf(settings: LoadSettings, seen: LoadMeasurement, cpuSeconds: number): LoadReport {
  const seconds = (performance.now() - seen.startedMs) / 1_000;
  const tokensPerEvent = seen.reportedEvents === 0 ? null : seen.reportedTokens / seen.reportedEvents;
  const tokens = settings.stream ? seen.textEvents * (tokensPerEvent ?? 1) : seen.reportedTokens;
  const events = settings.stream ? seen.textEvents : seen.complete;
  return {
    url: settings.url.href,
    model: settings.model,
    dialect: settings.dialect,
    streaming: settings.stream,
    streams: settings.streams,
    keys: settings.keys.length,
    date: new Date().toISOString(),
    seconds,
    requests: { started: seen.started, complete: seen.complete, failed: seen.failed, cutOff: seen.cutOff },
    requestsPerSecond: seen.complete / seconds,
    tokensPerSecond: tokens / seconds,
    tokensPerEvent,
    firstTokenMs: percentilesOf(seen.firstTokenMs),
    gapMs: percentilesOf(seen.gapMs),
    wholeMs: percentilesOf(seen.wholeMs),
    errors: Object.fromEntries(seen.errors),
    client: {
      cpuSeconds,
      coreShare: cpuSeconds / seconds,
      microsecondsPerEvent: events === 0 ? null : (cpuSeconds * 1e6) / events,
    },
    eachSecond: seen.eachSecond,
  };
}

function percentilesOf(durations: Histogram): Percentiles {
  const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => durations.percentileMs(share));
  if (p50 === null) return null;
  return { p50: p50!, p90: p90!, p99: p99!, longest: durations.longestMs, count: durations.count };
}

/** One line for a terminal while the load runs. */
export function progressLine(settings: LoadSettings, seen: LoadMeasurement, durationSeconds: number): string {
  const seconds = (performance.now() - seen.startedMs) / 1_000;
  // The second that is running is not complete.
  const latest = seen.eachSecond[Math.floor(seconds) - 1] ?? 0;
  const waited = settings.stream ? seen.firstTokenMs : seen.wholeMs;
  const [p50, p99] = [0.5, 0.99].map((share) => milliseconds(waited.percentileMs(share)));
  return (
    `${seconds.toFixed(0)}/${durationSeconds} s, ${seen.complete} complete, ${seen.failed} failed, ` +
    `${latest} ${settings.stream ? "tokens" : "replies"}/s, ${settings.stream ? "first token" : "reply"} ` +
    `p50 ${p50} p99 ${p99} ms`
  );
}

export function textOf(report: LoadReport): string {
  const { requests, client } = report;
  const errors = Object.entries(report.errors).sort(([, left], [, right]) => right - left);
  return [
    `${report.url}, ${report.model}, ${report.dialect}, ${report.streaming ? "streaming" : "not streaming"}`,
    `${report.streams} requests at once for ${report.seconds.toFixed(1)} s, keys: ${report.keys}, ${report.date}`,
    "",
    ...percentileTable(report),
    `${report.requestsPerSecond.toFixed(2)} replies a second, ${report.tokensPerSecond.toFixed(1)} tokens a second` +
      (report.tokensPerEvent === null ? "" : ` (${report.tokensPerEvent.toFixed(2)} tokens an event)`),
    `${requests.complete} complete, ${requests.failed} failed, ${requests.cutOff} cut off at the end of the test`,
    ...errors.map(([error, count]) => `  ${count} x ${error}`),
    ...(errors.some(([error]) => error.startsWith("429")) ? [refusedHint] : []),
    `client: ${client.cpuSeconds.toFixed(2)} s of CPU time, ${(client.coreShare * 100).toFixed(0)} % of a core` +
      (client.microsecondsPerEvent === null
        ? ""
        : `, ${client.microsecondsPerEvent.toFixed(1)} us ${report.streaming ? "an event" : "a reply"}`),
    ...(client.coreShare > busyShare ? [busyHint] : []),
    "",
    ...chart(report),
  ].join("\n");
}

const refusedHint =
  "  429: more keys (--key a,b,c) spread the requests over more accounts, each with limits of its own";
const busyShare = 0.8;
const busyHint = "  the client itself was busy: its figures are too high; run several clients with fewer streams each";

/** What was measured, in the order of a reply. */
function percentilesIn(report: LoadReport) {
  const all = [
    ["to the first token", report.firstTokenMs],
    ["between tokens", report.gapMs],
    ["whole reply", report.wholeMs],
  ] as const;
  return all.flatMap(([name, percentiles]) => (percentiles === null ? [] : [{ name, ...percentiles }]));
}

function percentileTable(report: LoadReport): string[] {
  const rows = percentilesIn(report).map(({ name, p50, p90, p99, longest, count }) => [
    name,
    ...[p50, p90, p99, longest].map(milliseconds),
    `${count}`,
  ]);
  return rows.length === 0 ? [] : [textTable(["ms", "p50", "p90", "p99", "longest", "samples"], rows), ""];
}

function milliseconds(duration: number | null): string {
  return duration === null ? "-" : duration.toFixed(duration < 10 ? 2 : duration < 100 ? 1 : 0);
}

const barsMax = 20;

/** The load over time: a stall shows here and in no percentile. */
function chart(report: LoadReport): string[] {
  const slices = slicesOf(report, barsMax);
  return slices.length === 0 ? [] : [chartTitle(report), ...barLines(slices)];
}

function chartTitle(report: LoadReport): string {
  return report.streaming ? "events with text, a second" : "replies a second";
}

/** Whole seconds, averaged over as many as are needed for at most `slicesMax` slices. */
function slicesOf({ eachSecond, seconds }: LoadReport, slicesMax: number): { label: string; value: number }[] {
  const whole = eachSecond.slice(0, Math.floor(seconds));
  const width = Math.ceil(whole.length / slicesMax);
  const slices: { label: string; value: number }[] = [];
  for (let from = 0; from < whole.length; from += width) {
    const slice = whole.slice(from, from + width);
    slices.push({ label: `${from} s`.padStart(6), value: slice.reduce((sum, count) => sum + count, 0) / slice.length });
  }
  return slices;
}

const svg = { width: 720, chartHeight: 220, left: 60, lineHeight: 20, slicesMax: 120 };

/** The chart and the percentiles as a picture. */
export function svgOf(report: LoadReport): string {
  const slices = slicesOf(report, svg.slicesMax);
  const largest = Math.max(1, ...slices.map(({ value }) => value));
  const step = (svg.width - svg.left - svg.lineHeight) / Math.max(1, slices.length);
  const top = 2 * svg.lineHeight;
  const bottom = top + svg.chartHeight;
  const bars = slices.map(({ label, value }, index) => {
    const height = (value / largest) * svg.chartHeight;
    const x = (svg.left + index * step).toFixed(1);
    return (
      `<rect x="${x}" y="${(bottom - height).toFixed(1)}" width="${(step * 0.9).toFixed(1)}" ` +
      `height="${height.toFixed(1)}" fill="#3b6ea5"><title>${label.trim()}: ${value.toFixed(1)}</title></rect>`
    );
  });
  const text = (x: number, y: number, words: string, anchor = "start") =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}">${escaped(words)}</text>`;
  const lines = percentilesIn(report).map(
    ({ name, p50, p90, p99 }) =>
      `${name}: p50 ${milliseconds(p50)}, p90 ${milliseconds(p90)}, p99 ${milliseconds(p99)} ms`,
  );
  const height = bottom + (lines.length + 2) * svg.lineHeight;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${svg.width}" height="${height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${svg.width}" height="${height}" fill="#ffffff"/>`,
    text(svg.left, svg.lineHeight, `${chartTitle(report)}: ${report.model}, ${report.streams} at once`),
    text(svg.left - 6, top + 10, largest.toPrecision(3), "end"),
    text(svg.left - 6, bottom, "0", "end"),
    ...bars,
    `<line x1="${svg.left}" y1="${bottom}" x2="${svg.width - svg.lineHeight}" y2="${bottom}" stroke="#444444"/>`,
    text(svg.left, bottom + svg.lineHeight - 4, "0 s"),
    text(svg.width - svg.lineHeight, bottom + svg.lineHeight - 4, `${report.seconds.toFixed(0)} s`, "end"),
    ...lines.map((line, index) => text(svg.left, bottom + (index + 2) * svg.lineHeight, line)),
    "</svg>\n",
  ].join("\n");
}

function escaped(words: string): string {
  return words.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
