// The comparison of gateways as a picture of two bar charts, with colors of its own for light and dark pages.
import { bestFirst, type ComparedWay, type Comparison, dialectWords, duties, isTollgate } from "./comparison-report.ts";

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

// Blue, orange and gray stay apart for every kind of color vision (Okabe and Ito's palette).
const style = `
  text { font: 12px ui-sans-serif, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-size: 15px; font-weight: 600; }
  .muted { fill: #59636e; font-size: 11px; }
  .own { font-weight: 700; }
  .page { fill: #ffffff; stroke: #d1d9e0; }
  .cut { stroke: #ffffff; stroke-width: 3; fill: none; }
  .tollgate { fill: #0072b2; }
  .nginx { fill: #d55e00; }
  .other { fill: #8c959f; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .muted { fill: #9198a1; }
    .page { fill: #0d1117; stroke: #3d444d; }
    .cut { stroke: #0d1117; }
    .tollgate { fill: #56b4e9; }
    .nginx { fill: #e69f00; }
    .other { fill: #6e7681; }
  }`;

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
    parts.push(text(left + 18, top + 10, words));
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
    parts.push(text(margin, top, title, "title"));
    parts.push(text(dutiesLeft, top, "dialects; keys and books in this run", "muted"));
    top += 16;
    parts.push(text(margin, top, "microseconds of CPU time of the proxy, shorter is better", "muted"));
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
    parts.push(text(margin, top, line, "muted"));
  }
  const height = top + margin;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    "<title>CPU time of a stream and of a request through each gateway</title>",
    `<style>${style}\n</style>`,
    `<rect class="page" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
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
    text(labelRight, base, way.label, own, "end"),
    `<rect class="${kind}" x="${barLeft}" y="${top}" width="${length.toFixed(1)}" height="${barHeight}" rx="2"/>`,
    ...(cut
      ? [`<path class="cut" d="M${barLeft + barLongest - 6} ${top + barHeight + 1} l8 -${barHeight + 2}"/>`]
      : []),
    text(barLeft + length + 7, base, figures, own),
    text(dutiesLeft, base, `${dialectWords(way)}; ${duties(way)}`, "muted"),
  ];
}

function text(x: number, y: number, words: string, kind = "", anchor = "start"): string {
  const escaped = words.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const attributes = [
    ...[`x="${x.toFixed(0)}"`, `y="${y}"`, ...(kind === "" ? [] : [`class="${kind}"`])],
    ...(anchor === "start" ? [] : [`text-anchor="${anchor}"`]),
  ];
  return `<text ${attributes.join(" ")}>${escaped}</text>`;
}
