// How fast a node was recently, for operators: summed in slices, so that a reply costs a few additions.
import { durationBucket, durationBuckets, percentile } from "../../core/activity.ts";
import type { Ms } from "../../core/types.ts";

/** Tokens cover the last minute. */
const sliceMs = 5_000;
const slices = 12;
/** Times to the first piece cover the last ten minutes: a minute has too few for the 99th percentile. */
const longSliceMs = 60_000;
const longSlices = 10;

export type Quickness = Readonly<{
  /** Times to the first piece of an answer; null where no answer ended in the last ten minutes. */
  firstPieceP50: Ms | null;
  firstPieceP99: Ms | null;
  /** Output tokens of all answers that ended in the last minute, per second. */
  tokensPerSecond: number;
}>;

type Slice = { number: number; outputTokens: number };
type LongSlice = { number: number; readonly firstPieces: Uint32Array };

export class RecentReplies {
  readonly #slices: Slice[] = Array.from({ length: slices }, () => ({ number: -1, outputTokens: 0 }));
  /** Allocated with the first reply: 3 KB. */
  #longSlices: LongSlice[] | null = null;

  /** An answer ended; times are monotonic. */
  add(firstPieceMs: Ms, outputTokens: number, now: Ms): void {
    const number = Math.floor(now / sliceMs);
    const slice = this.#slices[number % slices]!;
    if (slice.number !== number) {
      slice.number = number;
      slice.outputTokens = 0;
    }
    slice.outputTokens += outputTokens;
    this.#firstPiecesAt(Math.floor(now / longSliceMs))[durationBucket(firstPieceMs)]! += 1;
  }

  quickness(now: Ms): Quickness {
    const oldest = Math.floor(now / sliceMs) - slices;
    const outputTokens = this.#slices.reduce((sum, slice) => sum + (slice.number > oldest ? slice.outputTokens : 0), 0);
    const firstPieces = this.#firstPieces(Math.floor(now / longSliceMs) - longSlices);
    return {
      firstPieceP50: percentile(firstPieces, 0.5),
      firstPieceP99: percentile(firstPieces, 0.99),
      tokensPerSecond: Math.round((outputTokens * 10) / ((slices * sliceMs) / 1000)) / 10,
    };
  }

  #firstPiecesAt(number: number): Uint32Array {
    this.#longSlices ??= Array.from({ length: longSlices }, () => ({
      number: -1,
      firstPieces: new Uint32Array(durationBuckets),
    }));
    const slice = this.#longSlices[number % longSlices]!;
    if (slice.number !== number) {
      slice.number = number;
      slice.firstPieces.fill(0);
    }
    return slice.firstPieces;
  }

  #firstPieces(oldest: number): readonly number[] {
    const sums = new Array<number>(durationBuckets).fill(0);
    for (const { number, firstPieces } of this.#longSlices ?? []) {
      if (number > oldest)
        for (let bucket = 0; bucket < durationBuckets; bucket += 1) sums[bucket]! += firstPieces[bucket]!;
    }
    return sums;
  }
}
