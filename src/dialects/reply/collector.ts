// Collects a stream into an Answer: the one way in which a non-streaming reply comes to be.
import type { Piece } from "../../core/types.ts";
import type { Answer } from "../dialect.ts";
import { LiteralText } from "./literal-text.ts";

/** A piece that grows by literals, or one that is whole. */
type Collected =
  | Readonly<{ kind: "text" | "reasoning"; text: LiteralText }>
  | Readonly<{ kind: "call"; index: number; id: string; name: string; text: LiteralText }>
  | Exclude<Piece, { kind: "text" | "reasoning" | "call" | "call-arguments" }>;

export class Collector {
  readonly #collected: Collected[] = [];
  readonly #logprobs: string[] = [];
  /** By index: where a call's arguments go. */
  readonly #calls: LiteralText[] = [];

  piece(piece: Piece): void {
    switch (piece.kind) {
      case "text":
        if (piece.logprobs !== null) this.#logprobs.push(piece.logprobs);
        this.#grow("text", piece.literal);
        return;
      case "reasoning":
        this.#grow("reasoning", piece.literal);
        return;
      case "call": {
        const text = new LiteralText();
        this.#calls[piece.index] = text;
        this.#collected.push({ ...piece, text });
        return;
      }
      case "call-arguments":
        this.#calls[piece.index]!.push(piece.literal);
        return;
      default:
        this.#collected.push(piece);
    }
  }

  /** A piece of text or reasoning whose literal lies in `bytes` from `start` to `end`. */
  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): void {
    if (end - start > 2) this.#growing(kind).pushBytes(bytes, start, end);
  }

  answer(): Answer {
    const pieces: Piece[] = [];
    for (const collected of this.#collected) addPieces(pieces, collected);
    return { pieces, logprobs: this.#logprobs };
  }

  #grow(kind: "text" | "reasoning", literal: string): void {
    if (literal !== '""') this.#growing(kind).push(literal);
  }

  #growing(kind: "text" | "reasoning"): LiteralText {
    let last = this.#collected.at(-1);
    if (last?.kind !== kind) this.#collected.push((last = { kind, text: new LiteralText() }));
    return last.text;
  }
}

function addPieces(pieces: Piece[], collected: Collected): void {
  switch (collected.kind) {
    case "text":
      pieces.push({ kind: "text", literal: collected.text.literal, logprobs: null });
      return;
    case "reasoning":
      pieces.push({ kind: "reasoning", literal: collected.text.literal });
      return;
    case "call": {
      const { kind, index, id, name, text } = collected;
      pieces.push({ kind, index, id, name }, { kind: "call-arguments", index, literal: text.literal });
      return;
    }
    default:
      pieces.push(collected);
  }
}

/** The calls of the client's tools; their arguments are JSON string literals. */
export function callsOf({ pieces }: Answer): readonly Readonly<{ id: string; name: string; arguments: string }>[] {
  const calls = [];
  for (const [at, piece] of pieces.entries()) {
    const next = pieces[at + 1];
    if (piece.kind !== "call" || next?.kind !== "call-arguments") continue;
    calls.push({ id: piece.id, name: piece.name, arguments: next.literal });
  }
  return calls;
}
