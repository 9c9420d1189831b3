// The comparison of gateways as a picture of two bar charts, with colors of its own for light and dark pages.
import { bestFirst, type ComparedWay, type Comparison, dialectWords, duties, isTollgate } from "./comparison-report.ts";
import { svgPage, svgText } from "./svg.ts";

const width = 920;
const margin = 20;
const rowHeight = 23;
const barHeight = 15;
const labelRight = 186;
const barLeft = 196;
const barLongest = 312;
const dutiesLeft = 676;
const lineHeight = 17;
/** Bars of more than so many times Tollgate's longest are cut, so that the others can be told apart. */
const cutTimes = 2.5;

export function comparisonSvg(comparison: Comparison): string {
  const { ways, tokens, streams } = comparison;
  const parts: string[] = [];
  let top = margin;
  const legend = [
    { kind: "tollgate", words: "Tollgate" },
    { kind: "nginx", words: "nginx, plain proxying" },
    { kind: "other", words: "other gateways and routers" },
  ];
  let left = margin;
  for (const { kind, words } of legend) {
    parts.push(`<rect class="${kind}" x="${left.toFixed(0)}" y="${top}" width="12" height="12" rx="2"/>`);
    parts.push(svgText(left + 18, top + 10, words));
    left += 42 + words.length * 6.3;
  }
  top += 24;
  const charts = [
    { by: "streamUs", times: "streamTimesNginx", title: `A stream of ${tokens} tokens, ${streams} at once` },
    { by: "requestUs", times: "requestTimesNginx", title: "A request of 1 KB, not streamed" },
  ] as const;
  for (const { by, times, title } of charts) {
    const measured = bestFirst(ways, by).filter((way) => way[by] !== null);
    const own = Math.max(0, ...measured.filter(isTollgate).map((way) => way[by]!));
    const values = measured.map((way) => way[by]!);
    const within = own > 0 ? values.filter((value) => value <= own * cutTimes) : values;
    const longest = Math.max(...within);
    top += 26;
    parts.push(svgText(margin, top, title, "title"));
    parts.push(svgText(dutiesLeft, top, "dialects; keys and books in this run", "muted"));
    top += 16;
    parts.push(svgText(margin, top, "microseconds of CPU time of the proxy, shorter is better", "muted"));
    top += 10;
    for (const way of measured) {
      parts.push(...row(way, way[by]!, way[times], longest, top));
      top += rowHeight;
    }
  }
  top += 8;
  const words = [
    `${comparison.tollgate}, ${comparison.date}. ${comparison.machine}.`,
    "Each proxy is one process on the same core in its turn. A bar with a cut is longer than it is drawn.",
    "Dialects: chat, messages and responses, those of them in which it answers in front of a node that speaks chat alone.",
    "Exact books: reserved before, settled after, on disk before the reply ends. Usage rows: written after the reply.",
  ];
  for (const line of words) {
    top += lineHeight;
    parts.push(svgText(margin, top, line, "muted"));
  }
  const height = top + margin;
  return svgPage("CPU time of a stream and of a request through each gateway", width, height, parts);
}

function row(way: ComparedWay, value: number, times: number | null, longest: number, top: number): string[] {
  const kind = isTollgate(way) ? "tollgate" : way.name === "nginx" ? "nginx" : "other";
  const cut = value > longest;
  const length = cut ? barLongest + 20 : Math.max(1, (value / longest) * barLongest);
  const base = top + barHeight - 3;
  const beside = times === null || kind === "nginx" ? "" : `  (${times.toFixed(times < 10 ? 2 : 0)} x nginx)`;
  const figures = `${Math.round(value).toLocaleString("en-US")}${beside}`;
  const own = kind === "other" ? "" : "own";
  return [
    svgText(labelRight, base, way.label, own, "end"),
    `<rect class="${kind}" x="${barLeft}" y="${top}" width="${length.toFixed(1)}" height="${barHeight}" rx="2"/>`,
    ...(cut
      ? [`<path class="cut" d="M${barLeft + barLongest - 6} ${top + barHeight + 1} l8 -${barHeight + 2}"/>`]
      : []),
    svgText(barLeft + length + 7, base, figures, own),
    svgText(dutiesLeft, base, `${dialectWords(way)}; ${duties(way)}`, "muted"),
  ];
}
