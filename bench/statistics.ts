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

/**
 * The exponent e of the best fit of value = c * size^e (least squares of the logarithms): 0 for what stays the same, 1
 * for what grows in proportion.
 */
export function growthExponent(points: readonly Readonly<{ size: number; value: number }>[]): number {
  const logarithms = points.map(({ size, value }) => [Math.log(size), Math.log(value)] as const);
  const mean = (index: 0 | 1) => logarithms.reduce((sum, pair) => sum + pair[index], 0) / logarithms.length;
  const [meanSize, meanValue] = [mean(0), mean(1)];
  const covariance = logarithms.reduce((sum, [size, value]) => sum + (size - meanSize) * (value - meanValue), 0);
  return covariance / logarithms.reduce((sum, [size]) => sum + (size - meanSize) ** 2, 0);
}
