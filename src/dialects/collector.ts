// Collects a stream into an Answer: the one way in which a non-streaming reply comes to be.
import type { Piece } from "../types.ts";
import type { Answer } from "./dialect.ts";

/**
 * Literals are joined without decoding: the insides of two JSON string literals, put together, are again the inside
 * of one, also where an escaped surrogate pair was split between them.
 */
export class Collector {
  readonly #reasoning: string[] = [];
  readonly #text: string[] = [];
  readonly #logprobs: string[] = [];
  readonly #calls: { id: string; name: string; arguments: string[] }[] = [];

  piece(piece: Piece): void {
    switch (piece.kind) {
      case "reasoning":
        this.#reasoning.push(inside(piece.literal));
        return;
      case "text":
        this.#text.push(inside(piece.literal));
        if (piece.logprobs !== null) this.#logprobs.push(piece.logprobs);
        return;
      case "call":
        this.#calls[piece.index] = { id: piece.id, name: piece.name, arguments: [] };
        return;
      case "call-arguments":
        this.#calls[piece.index]!.arguments.push(inside(piece.literal));
        return;
      default:
        piece satisfies never;
    }
  }

  answer(): Answer {
    return {
      reasoning: joined(this.#reasoning),
      text: joined(this.#text),
      logprobs: this.#logprobs,
      calls: this.#calls.map((call) => ({ id: call.id, name: call.name, arguments: joined(call.arguments) ?? '""' })),
    };
  }
}

const inside = (literal: string): string => literal.slice(1, -1);
const joined = (insides: readonly string[]): string | null => (insides.length === 0 ? null : `"${insides.join("")}"`);
