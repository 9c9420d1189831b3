// Measures the time between the reads of one answer on its way to the client. Few answers pass through it, so the
// others read no clock per token.
import type { Clock } from "../core/clock.ts";
import type { Ms, Piece, Sink } from "../core/types.ts";

export class GapSink implements Sink {
  readonly literal?: Sink["literal"];
  readonly #sink: Sink;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #gap: (gapMs: Ms) => void;
  #lastAt: Ms | null = null;
  #hasPieces = false;

  constructor(sink: Sink, clock: Pick<Clock, "monotonic">, gap: (gapMs: Ms) => void) {
    this.#sink = sink;
    this.#clock = clock;
    this.#gap = gap;
    if (sink.literal === undefined) return;
    this.literal = (kind, bytes, start, end) => {
      this.#hasPieces = true;
      sink.literal!(kind, bytes, start, end);
    };
  }

  piece(piece: Piece): void {
    this.#hasPieces = true;
    this.#sink.piece(piece);
  }

  flush(): Promise<void> | null {
    if (this.#hasPieces) this.#measure();
    return this.#sink.flush();
  }

  /** The wait for the first read is no gap. */
  #measure(): void {
    this.#hasPieces = false;
    const now = this.#clock.monotonic();
    if (this.#lastAt !== null) this.#gap(now - this.#lastAt);
    this.#lastAt = now;
  }
}
