// What the pictures of the benchmarks have in common: colors for light and dark pages, and texts.

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

/** `parts` on a page of that size. */
export function svgPage(title: string, width: number, height: number, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${title}</title>`,
    `<style>${style}\n</style>`,
    `<rect class="page" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

export function svgText(x: number, y: number, words: string, kind = "", anchor = "start"): string {
  const escaped = words.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const attributes = [
    ...[`x="${x.toFixed(0)}"`, `y="${y}"`, ...(kind === "" ? [] : [`class="${kind}"`])],
    ...(anchor === "start" ? [] : [`text-anchor="${anchor}"`]),
  ];
  return `<text ${attributes.join(" ")}>${escaped}</text>`;
}
