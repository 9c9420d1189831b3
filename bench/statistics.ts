// Summaries of measurements.

/** The value below which `share` (0..1) of the values lie: nearest rank, no interpolation. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new Error("a percentile of nothing");
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))]!;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** "min / median / max" with so many decimals. */
export function spread(values: readonly number[], decimals: number): string {
  return [percentile(values, 0), median(values), percentile(values, 1)]
    .map((value) => value.toFixed(decimals))
    .join(" / ");
}
