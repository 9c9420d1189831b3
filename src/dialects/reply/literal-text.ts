// A text of JSON string literals, joined without decoding: even a surrogate pair split between two stays whole.
import { type ByteWriter, returnWriter, takeWriter } from "../../core/byte-writer.ts";

export class LiteralText {
  #inside = "";
  /** Bytes that came since then: a string for each token would keep alive all that it was cut from. */
  #bytes: ByteWriter | null = null;

  push(literal: string): void {
    this.#takeBytes();
    this.#inside += literal.slice(1, -1);
  }

  /** A literal that lies in `bytes` from `start` to `end`, quotes included. */
  pushBytes(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes ??= takeWriter();
    this.#bytes.slice(bytes, start + 1, end - 1);
  }

  get empty(): boolean {
    return this.#inside === "" && (this.#bytes === null || this.#bytes.length === 0);
  }

  /** Everything so far as one literal, quotes included. */
  get literal(): string {
    return `"${this.inside}"`;
  }

  get inside(): string {
    this.#takeBytes();
    return this.#inside;
  }

  #takeBytes(): void {
    if (this.#bytes === null) return;
    this.#inside += this.#bytes.toString();
    returnWriter(this.#bytes);
    this.#bytes = null;
  }
}
