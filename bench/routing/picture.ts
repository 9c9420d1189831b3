// The table and the picture of a routing run: for each trace a bar for each way, to a logarithmic scale.
import { mkdirSync, writeFileSync } from "node:fs";
import { resultsFolder } from "../result.ts";
import { svgPage, svgText } from "../svg.ts";
import type { Summary } from "./summary.ts";

/** `othersWork`: the work of those who are not judged; 0 where there are none. */
export type Measured = Summary & Readonly<{ trace: string; way: string; othersWork: number }>;

export const routingColumns = ["load", "way", "requests", "mean ms", "p50 ms", "p99 ms", "cached", "times", "beside"];

/** What the mean is compared with. */
const isBaseline = ({ way }: Measured): boolean => way === "oracle" || way === "alone";

export function rowsOf(measured: readonly Measured[]): string[][] {
  return measured.map((one, at) => {
    const baseline = measured.find(({ trace, ...other }) => trace === one.trace && isBaseline({ trace, ...other }));
    const times = baseline === undefined || isBaseline(one) ? "" : (one.meanMs / baseline.meanMs).toFixed(2);
    const mostWork = Math.max(...measured.map(({ trace, othersWork }) => (trace === one.trace ? othersWork : 0)));
    const failed = one.failed === 0 ? "" : ` (${one.failed} failed)`;
    return [
      measured[at - 1]?.trace === one.trace ? "" : one.trace,
      one.way,
      `${one.requests}${failed}`,
      ...[one.meanMs, one.p50Ms, one.p99Ms].map((ms) => ms.toFixed(0)),
      `${(100 * one.cachedPart).toFixed(0)} %`,
      times,
      one.othersWork === 0 ? "" : `${((100 * one.othersWork) / mostWork).toFixed(0)} %`,
    ];
  });
}

const width = 920;
const margin = 20;
const rowHeight = 17;
const barHeight = 11;
const labelRight = 300;
const barLeft = 310;
const barLongest = 400;
const leastMs = 10;

function pictureOf(measured: readonly Measured[], title: string): string {
  const longest = Math.log(Math.max(...measured.map(({ meanMs }) => meanMs)) / leastMs);
  const parts = [svgText(margin, 34, title, "title")];
  parts.push(
    svgText(margin, 52, "milliseconds, logarithmic: each step to the right is a multiple; p99 in brackets", "muted"),
  );
  let top = 66;
  let trace = "";
  for (const one of measured) {
    if (one.trace !== trace) {
      top += 8;
      parts.push(svgText(margin, top + barHeight - 1, one.trace));
      trace = one.trace;
    }
    const length = Math.max(1, (barLongest * Math.log(Math.max(one.meanMs, leastMs) / leastMs)) / longest);
    const own = one.way.startsWith("tollgate") ? "own" : "";
    const kind = own === "own" ? "tollgate" : isBaseline(one) ? "nginx" : "other";
    const base = top + barHeight - 1;
    const figures = [one.meanMs, one.p99Ms].map((ms) => Math.round(ms).toLocaleString("en-US"));
    parts.push(svgText(labelRight, base, one.way, own, "end"));
    parts.push(
      `<rect class="${kind}" x="${barLeft}" y="${top}" width="${length.toFixed(1)}" height="${barHeight}" rx="2"/>`,
    );
    parts.push(svgText(barLeft + length + 6, base, `${figures[0]} (${figures[1]})`, own));
    top += rowHeight;
  }
  return svgPage(title, width, top + margin, parts);
}

/** Writes it beside the results, and returns the line that shows it in the README. */
export function keepPicture(measured: readonly Measured[], name: string, title: string): string {
  mkdirSync(resultsFolder, { recursive: true });
  writeFileSync(`${resultsFolder}/${name}.svg`, pictureOf(measured, title));
  return `![${title}](results/${name}.svg)`;
}
