// The body of a node's error response; its beginning says what is wrong.

const nodeErrorBodyMaxBytes = 64 * 1024;

export class ErrorBody {
  readonly #parts: Buffer[] = [];
  #room = nodeErrorBodyMaxBytes;

  /** False: no more is needed. */
  keep(bytes: Buffer, start: number, end: number): boolean {
    const part = Buffer.from(bytes.subarray(start, Math.min(end, start + this.#room)));
    this.#parts.push(part);
    this.#room -= part.length;
    return this.#room > 0;
  }

  get text(): string {
    return Buffer.concat(this.#parts).toString("utf8");
  }
}
