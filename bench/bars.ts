// Bars of text, drawn to one scale.

const barWidth = 40;

export type Bar = Readonly<{ label: string; value: number }>;

/** One line for each bar: its label, the bar, and its value with three digits. */
export function barLines(bars: readonly Bar[]): string[] {
  const longest = Math.max(...bars.map((bar) => bar.value));
  const labelWidth = Math.max(...bars.map((bar) => bar.label.length));
  return bars.map(({ label, value }) => {
    const length = longest > 0 && value > 0 ? Math.max(1, Math.round((value / longest) * barWidth)) : 0;
    return `${label.padEnd(labelWidth)} ${"█".repeat(length)} ${value.toPrecision(3)}`;
  });
}
