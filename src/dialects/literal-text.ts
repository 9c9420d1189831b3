// A text that grows by JSON string literals. Their insides are joined without decoding: two of them put together are
// again the inside of one, also where an escaped surrogate pair was split between them.

/** A slice keeps the whole string alive that it was cut from; joining makes a copy that does not. */
const slicesMax = 64;

export class LiteralText {
  #joined = "";
  #slices: string[] = [];

  push(literal: string): void {
    this.#slices.push(literal.slice(1, -1));
    if (this.#slices.length === slicesMax) this.#join();
  }

  get empty(): boolean {
    return this.#joined === "" && this.#slices.every((slice) => slice === "");
  }

  /** Everything so far as one literal, quotes included. */
  get literal(): string {
    this.#join();
    return `"${this.#joined}"`;
  }

  #join(): void {
    if (this.#slices.length === 0) return;
    this.#joined += this.#slices.join("");
    this.#slices = [];
  }
}
