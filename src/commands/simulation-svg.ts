// The picture of a simulation: p90 first tokens of classes and accounts as bars, each configuration beside today's, and below
// them how the mean went over the time.
import type { FirstTokens, Simulation, SimulatedRun } from "../core/simulation.ts";

const width = 860;
const labelWidth = 250;
const barHeight = 14;
const lineHeight = 110;
const colors = { today: "#6b7280", changed: "#2563eb", "one more node": "#16a34a" } as const;

export function simulationSvg({ runs, requests, since, until, changes, verdict }: Simulation): string {
  const groups = groupsOf(runs);
  const most = Math.max(1, ...groups.flatMap(({ bars }) => bars.map(({ p90_ms }) => p90_ms ?? 0)));
  const parts: string[] = [];
  let y = 30;
  const text = (x: number, at: number, words: string, more = ""): void =>
    void parts.push(`<text x="${x}" y="${at}" ${more}>${escaped(words)}</text>`);
  text(16, y, `First tokens of ${requests.toLocaleString("en-US")} requests, p90`, 'font-size="17" font-weight="600"');
  y += 20;
  text(
    16,
    y,
    `${since} to ${until}${changes.length === 0 ? "" : `; changed: ${changes.join(", ")}`}`,
    'fill="#6b7280"',
  );
  y += 24;
  let x = 16;
  for (const { configuration } of runs) {
    parts.push(`<rect x="${x}" y="${y - 10}" width="12" height="12" fill="${colors[configuration]}"/>`);
    text(x + 18, y, configuration);
    x += 150;
  }
  y += 20;
  for (const { name, bars } of groups) {
    text(16, y + barHeight * 0.8, name);
    for (const { configuration, p90_ms } of bars) {
      const length = ((width - labelWidth - 100) * (p90_ms ?? 0)) / most;
      parts.push(
        `<rect x="${labelWidth}" y="${y}" width="${length.toFixed(1)}" height="${barHeight - 2}" fill="${colors[configuration]}"/>`,
      );
      text(labelWidth + length + 6, y + barHeight - 3, p90_ms === null ? "none" : inWords(p90_ms), 'font-size="11"');
      y += barHeight;
    }
    y += 10;
  }
  y += 16;
  text(16, y, "Mean over the time", 'font-weight="600"');
  y += 10;
  const tallest = Math.max(1, ...runs.flatMap(({ over_time_ms }) => over_time_ms.map((ms) => ms ?? 0)));
  for (const { configuration, over_time_ms } of runs) {
    const points = over_time_ms.flatMap((ms, at) => {
      const across = 16 + ((width - 120) * at) / Math.max(1, over_time_ms.length - 1);
      return ms === null ? [] : [`${across.toFixed(1)},${(y + lineHeight - (lineHeight * ms) / tallest).toFixed(1)}`];
    });
    parts.push(
      `<polyline points="${points.join(" ")}" fill="none" stroke="${colors[configuration]}" stroke-width="1.5"/>`,
    );
  }
  text(width - 96, y + 10, inWords(tallest), 'font-size="11"');
  y += lineHeight + 24;
  for (const line of linesOf(verdict, 120)) {
    text(16, y, line);
    y += 18;
  }
  const font = 'font-family="system-ui, sans-serif" font-size="13"';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" ${font}>
<rect width="100%" height="100%" fill="#ffffff"/>
${parts.join("\n")}
</svg>
`;
}

type Bar = FirstTokens & Pick<SimulatedRun, "configuration">;

function groupsOf(runs: readonly SimulatedRun[]): { name: string; bars: Bar[] }[] {
  const named = runs.flatMap(({ configuration, all, classes, accounts, others }) => [
    { name: "all requests", bar: { configuration, ...all } },
    ...classes.map((each) => ({ name: each.class, bar: { configuration, ...each } })),
    ...accounts.map((each) => ({ name: each.account, bar: { configuration, ...each } })),
    ...(others === null ? [] : [{ name: `${others.accounts} others`, bar: { configuration, ...others } }]),
  ]);
  const names = [...new Set(named.map(({ name }) => name))];
  return names.map((name) => ({ name, bars: named.filter((each) => each.name === name).map(({ bar }) => bar) }));
}

function linesOf(words: string, lengthMax: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(" ")) {
    const line = lines.at(-1);
    if (line === undefined || line.length + word.length >= lengthMax) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}

const inWords = (ms: number): string => (ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(2)} s`);
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
