// The bytes around the literal in a token's event: created once, copied for each token.
import type { ByteWriter } from "../../core/byte-writer.ts";

export class DeltaFrame {
  readonly #begin: Uint8Array;
  readonly #end: Uint8Array;

  constructor(begin: string, end: string) {
    this.#begin = Buffer.from(begin);
    this.#end = Buffer.from(end);
  }

  write(bytes: Uint8Array, start: number, end: number, out: ByteWriter): void {
    out.bytes(this.#begin);
    out.slice(bytes, start, end);
    out.bytes(this.#end);
  }
}
