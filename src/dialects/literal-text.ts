// A text that grows by JSON string literals. Their insides are joined without decoding: two of them put together are
// again the inside of one, also where an escaped surrogate pair was split between them.
import { ByteWriter } from "../byte-writer.ts";

/** What a short answer takes; kept as bytes, because a string for each token would keep all that it was cut from. */
const firstBytes = 256;

export class LiteralText {
  readonly #inside = new ByteWriter(firstBytes);

  push(literal: string): void {
    this.#inside.text(literal.slice(1, -1));
  }

  /** A literal that lies in `bytes` from `start` to `end`, quotes included. */
  pushBytes(bytes: Uint8Array, start: number, end: number): void {
    this.#inside.slice(bytes, start + 1, end - 1);
  }

  get empty(): boolean {
    return this.#inside.length === 0;
  }

  /** Everything so far as one literal, quotes included. */
  get literal(): string {
    return `"${this.#inside.toString()}"`;
  }
}
