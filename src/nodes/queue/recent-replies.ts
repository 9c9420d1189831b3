// How fast a node was in the last minute, for operators: summed in slices, so that a reply costs a few additions.
import type { Ms } from "../../core/types.ts";

const sliceMs = 5_000;
const slices = 12;

export type Quickness = Readonly<{
  /** Mean time to the first piece of an answer; null where no answer ended in the last minute. */
  firstPieceMs: Ms | null;
  /** Output tokens of all answers that ended in the last minute, per second. */
  tokensPerSecond: number;
}>;

type Slice = { number: number; answers: number; firstPieceMs: Ms; outputTokens: number };

export class RecentReplies {
  readonly #slices: Slice[] = Array.from({ length: slices }, () => emptySlice(-1));

  /** An answer ended; times are monotonic. */
  add(firstPieceMs: Ms, outputTokens: number, now: Ms): void {
    const number = Math.floor(now / sliceMs);
    let slice = this.#slices[number % slices]!;
    if (slice.number !== number) this.#slices[number % slices] = slice = emptySlice(number);
    slice.answers += 1;
    slice.firstPieceMs += firstPieceMs;
    slice.outputTokens += outputTokens;
  }

  quickness(now: Ms): Quickness {
    const oldest = Math.floor(now / sliceMs) - slices;
    const recent = this.#slices.filter(({ number }) => number > oldest);
    const sum = (of: (slice: Slice) => number) => recent.reduce((total, slice) => total + of(slice), 0);
    const answers = sum((slice) => slice.answers);
    return {
      firstPieceMs: answers === 0 ? null : Math.round(sum((slice) => slice.firstPieceMs) / answers),
      tokensPerSecond: Math.round((sum((slice) => slice.outputTokens) * 10) / ((slices * sliceMs) / 1000)) / 10,
    };
  }
}

const emptySlice = (number: number): Slice => ({ number, answers: 0, firstPieceMs: 0, outputTokens: 0 });
