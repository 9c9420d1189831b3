// Durations counted in buckets that are 1 % wide: any number of them in 17 KB, percentiles right to 1 %.

const narrowestMs = 0.001;
const bucketRatio = 1.01;
/** Up to 1,000,000 s; what is longer is counted in the last bucket. */
const buckets = Math.ceil(Math.log(1e12) / Math.log(bucketRatio));

export class Histogram {
  readonly #counts = new Float64Array(buckets);
  #count = 0;
  #longestMs = 0;

  add(durationMs: number): void {
    const index = Math.floor(Math.log(Math.max(1, durationMs / narrowestMs)) / Math.log(bucketRatio));
    this.#counts[Math.min(index, buckets - 1)]! += 1;
    this.#count += 1;
    if (durationMs > this.#longestMs) this.#longestMs = durationMs;
  }

  get count(): number {
    return this.#count;
  }

  /** Exact; 0 when nothing was counted. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** Milliseconds below which `share` (0..1) of the durations lie, or null when there are none. */
  percentileMs(share: number): number | null {
    if (this.#count === 0) return null;
    const rank = Math.max(1, Math.ceil(share * this.#count));
    let passed = 0;
    for (let index = 0; index < buckets; index++) {
      passed += this.#counts[index]!;
      if (passed >= rank) return Math.min(this.#longestMs, narrowestMs * bucketRatio ** (index + 0.5));
    }
    return this.#longestMs;
  }
}
