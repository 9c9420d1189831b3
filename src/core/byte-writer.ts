// A growing buffer of bytes: output about to be sent, or a text being collected. Copying a token's bytes costs a tenth
// of turning them into a string and back.

const textEncoder = new TextEncoder();
const zero = 0x30;
/** Up to this length a loop is faster than the encoder, which needs a view of the target for each call. */
const shortTextLength = 256;

export class ByteWriter {
  #bytes: Buffer;
  #length = 0;

  constructor(capacityBytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(capacityBytes);
  }

  get length(): number {
    return this.#length;
  }

  /** A view that the next call may overwrite. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** The written bytes, which must be UTF-8. */
  toString(): string {
    return this.#bytes.toString("utf8", 0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  text(text: string): void {
    const rest = text.length <= shortTextLength ? this.#asciiStart(text) : text;
    if (rest === "") return;
    this.#reserve(rest.length * 3); // UTF-8 takes at most 3 bytes for a UTF-16 unit
    this.#length += textEncoder.encodeInto(rest, this.#bytes.subarray(this.#length)).written;
  }

  /** Writes the characters before the first non-ASCII one, and returns the rest. */
  #asciiStart(text: string): string {
    this.#reserve(text.length);
    const target = this.#bytes;
    const start = this.#length;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code >= 0x80) {
        this.#length = start + at;
        return text.slice(at);
      }
      target[start + at] = code;
    }
    this.#length = start + text.length;
    return "";
  }

  bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Part of a larger array; for a few bytes a loop is faster than a view and `set`. */
  slice(bytes: Uint8Array, start: number, end: number): void {
    this.#reserve(end - start);
    const target = this.#bytes;
    let length = this.#length;
    for (let at = start; at < end; at++) target[length++] = bytes[at]!;
    this.#length = length;
  }

  /** A whole number >= 0 in decimal digits. */
  number(value: number): void {
    if (value >= 10) this.number(Math.floor(value / 10));
    this.#reserve(1);
    this.#bytes[this.#length++] = zero + (value % 10);
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}

const spareWriters: ByteWriter[] = [];
const spareWritersMax = 64;
const writerBytes = 4_096;
/** Writers that grew beyond this are not kept. */
const spareWriterMaxBytes = 64 * 1024;

/** An empty writer, for an answer. */
export const takeWriter = (): ByteWriter => spareWriters.pop() ?? new ByteWriter(writerBytes);

/** The caller must not write afterwards. */
export function returnWriter(writer: ByteWriter): void {
  if (spareWriters.length === spareWritersMax || writer.length > spareWriterMaxBytes) return;
  writer.clear();
  spareWriters.push(writer);
}
