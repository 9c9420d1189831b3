// Takes the answer of a line: it is on disk before its charge is made.
import { CancelSignal } from "../core/cancel-signal.ts";
import { busyRetrySeconds } from "../core/limits.ts";
import { refuse } from "../core/refusals.ts";
import type { Ending, Piece, Refusal, Usage } from "../core/types.ts";
import type { AnswerEnd, Encoder } from "../dialects/dialect.ts";
import { Collected } from "../dialects/reply/collected.ts";
import type { Outlet } from "../gateway.ts";

type Ended = Extract<Ending, { kind: "end" }>;

export type LineOutletParts = Readonly<{
  encoder: Encoder;
  /** Called with each piece. */
  begins(): void;
  /** Of an answer's pieces that may be large; false: there is no room for it now. */
  takeRoom(bytes: number): boolean;
  keep(end: Ended, reply: string): Promise<void>;
}>;

export class LineOutlet implements Outlet {
  readonly cancelSignal = new CancelSignal();
  readonly opened = false;
  readonly delivered = false;
  /** It could not be written. */
  isUnkept = false;
  /** What was charged. */
  charged: Usage | null = null;
  /** Null where it is charged, or where it is unknown whether it is. */
  failure: Refusal | null = null;
  readonly #collected: Collected;
  readonly #parts: LineOutletParts;

  constructor(parts: LineOutletParts) {
    this.#parts = parts;
    this.#collected = new Collected(parts.encoder);
  }

  piece(piece: Piece): void {
    if (this.cancelSignal.aborted) return;
    this.#parts.begins();
    if (piece.kind === "input" && !this.#parts.takeRoom(piece.json.length)) {
      return this.cancelSignal.abort(refuse("busy", { seconds: busyRetrySeconds }));
    }
    this.#collected.piece(piece);
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): void {
    this.#parts.begins();
    this.#collected.literal(kind, bytes, start, end);
  }

  flush(): null {
    return null;
  }

  async keep(end: Ended): Promise<void> {
    this.isUnkept = true;
    await this.#parts.keep(end, this.#collected.end(end));
    this.isUnkept = false;
  }

  end({ usage }: AnswerEnd): void {
    this.charged = usage;
  }

  fail(refusal: Refusal): void {
    this.failure = refusal;
  }

  breakOff(): void {}
}
