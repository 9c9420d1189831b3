// A non-streaming reply: the dialect's encoder keeps the pieces' content and returns the whole reply at the end.
import { ByteWriter } from "../../core/byte-writer.ts";
import type { Piece } from "../../core/types.ts";
import type { AnswerEnd, Encoder } from "../dialect.ts";

/** Always empty. */
const noEvents = new ByteWriter(0);

export class Collected {
  readonly #encoder: Encoder;

  /** `encoder`: in the form "whole". */
  constructor(encoder: Encoder) {
    this.#encoder = encoder;
  }

  piece(piece: Piece): void {
    // An empty fragment adds nothing, so nothing begins with it.
    if ((piece.kind === "text" && piece.logprobs === null) || piece.kind === "reasoning") {
      if (piece.literal === '""') return;
    }
    this.#encoder.piece(piece);
  }

  /** A piece of text or reasoning whose literal lies in `bytes` from `start` to `end`. */
  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): void {
    if (end - start <= 2 || this.#encoder.literal?.(kind, bytes, start, end, noEvents) === true) return;
    this.#encoder.piece(literalPiece(kind, bytes, start, end));
  }

  /** The reply as JSON text. */
  end(end: AnswerEnd): string {
    return this.#encoder.end(end);
  }

  parts(end: AnswerEnd): Iterator<string> {
    return this.#encoder.parts?.(end) ?? [this.end(end)].values();
  }
}

/** The same as a piece with its own string. */
export function literalPiece(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): Piece {
  const literal = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
  return kind === "text" ? { kind, literal, logprobs: null } : { kind, literal };
}
