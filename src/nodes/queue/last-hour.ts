// Sums of the last hour by key, in slices of a minute. Its memory is bounded: keys beyond the most of a minute share one sum.
import type { Ms } from "../../core/types.ts";

const minuteMs = 60_000;
const slices = 60;
/** 60 slices of so many take about 10 MB. */
const keysUsualMax = 1_000;

type Slice<Key, Sum> = { minute: number; readonly byKey: Map<Key, Sum>; others: Sum | null };

export class LastHour<Key, Sum> {
  readonly #slices: Slice<Key, Sum>[] = [];
  /** The newest, and when it ends. */
  #slice: Slice<Key, Sum> | null = null;
  #ends: Ms = -Infinity;

  /** `plus` adds the second sum to the first. */
  constructor(
    readonly zero: () => Sum,
    readonly plus: (sum: Sum, more: Sum) => void,
    readonly keysMax = keysUsualMax,
  ) {}

  /** The key's sum of this minute, to add to. */
  of(key: Key, now: Ms): Sum {
    const slice = now < this.#ends ? this.#slice! : this.#begin(Math.floor(now / minuteMs));
    let sum = slice.byKey.get(key);
    if (sum !== undefined) return sum;
    if (slice.byKey.size >= this.keysMax) return (slice.others ??= this.zero());
    slice.byKey.set(key, (sum = this.zero()));
    return sum;
  }

  /** Null is the key of what has none of its own. Walks all slices. */
  sums(now: Ms): Map<Key | null, Sum> {
    const oldest = Math.floor(now / minuteMs) - slices;
    const sums = new Map<Key | null, Sum>();
    const add = (key: Key | null, more: Sum): void => {
      let sum = sums.get(key);
      if (sum === undefined) sums.set(key, (sum = this.zero()));
      this.plus(sum, more);
    };
    for (const { minute, byKey, others } of this.#slices) {
      if (minute <= oldest) continue;
      for (const [key, sum] of byKey) add(key, sum);
      if (others !== null) add(null, others);
    }
    return sums;
  }

  #begin(minute: number): Slice<Key, Sum> {
    if (this.#slices.length === slices) this.#slices.shift();
    this.#slice = { minute, byKey: new Map(), others: null };
    this.#slices.push(this.#slice);
    this.#ends = (minute + 1) * minuteMs;
    return this.#slice;
  }
}
