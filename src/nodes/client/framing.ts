// Parses the bytes of a node's connection into one HTTP/1.1 response after another, strictly: whatever two readers
// could understand differently (both length headers, repeated ones, odd chunk sizes, control bytes) is an error, never
// a guess.

const nodeHeadMaxBytes = 64 * 1024;

/** Lower-case name -> value; repeated headers are joined with ", ". */
export type ResponseHeaders = ReadonlyMap<string, string>;

/** Receives one response; `body` gives views into the read's own buffer, valid during the call only. */
export interface ResponseHandler {
  head(status: number, headers: ResponseHeaders): void;
  body(bytes: Buffer, start: number, end: number): void;
  end(): void;
  /** This is no valid response; nothing more comes. `reason` is for the operator's log. */
  malformed(reason: string): void;
}

const enum State {
  Head,
  FixedBody,
  BodyUntilClose,
  ChunkSize,
  ChunkSizeEnd,
  ChunkBody,
  ChunkBodyCarriageReturn,
  ChunkBodyLineFeed,
  Trailers,
  Done,
  Failed,
}

const carriageReturn = 13;
const lineFeed = 10;
const headStart = Buffer.from("HTTP/");
const headEnd = Buffer.from("\r\n\r\n");
const empty = Buffer.alloc(0);
const statusLine = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const controlByte = /[\x00-\x08\x0a-\x1f\x7f]/;
/** 8 hexadecimal digits, a chunk of 4 GiB: far beyond any node's event. */
const chunkSizeDigitsMax = 8;
const chunkExtensionMaxBytes = 256;

type Head = Readonly<{ code: number; headers: ResponseHeaders; http11: boolean }>;

/** Heads of a node's replies differ only in their date, so each is parsed once a second. */
let lastHead: Readonly<{ bytes: Buffer; read: Head | string }> = { bytes: headEnd, read: "bad status line" };

function isLastHead(bytes: Buffer, start: number): boolean {
  const { bytes: last } = lastHead;
  if (start + last.length > bytes.length) return false;
  for (let at = 0; at < last.length; at++) if (bytes[start + at] !== last[at]) return false;
  return true;
}

function readHead(head: string): Head | string {
  const [first = "", ...lines] = head.split("\r\n");
  const status = statusLine.exec(first);
  if (status === null) return "bad status line";
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (!headerName.test(name) || controlByte.test(value)) return "bad header line";
    const earlier = headers.get(name);
    if (earlier !== undefined && (name === "content-length" || name === "transfer-encoding")) return `repeated ${name}`;
    headers.set(name, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  return { code: Number(status[2]), headers, http11: status[1] === "1" };
}

/** Push parser of the responses on one connection. Feed it each read; call `closed` when the node ends its side. */
export class ResponseParser {
  readonly #handler: ResponseHandler;
  #state = State.Head;
  /** Bytes of an incomplete head or trailer. */
  #kept: Buffer = empty;
  #bodyLeft = 0;
  #chunkDigits = 0;
  #extensionBytes = 0;
  #keepAlive = false;
  #surplus = false;

  constructor(handler: ResponseHandler) {
    this.#handler = handler;
  }

  /** True when the response ended exactly where its framing said, and the node keeps the connection open. */
  get reusable(): boolean {
    return this.#state === State.Done && this.#keepAlive && !this.#surplus;
  }

  reset(): void {
    this.#state = State.Head;
    this.#kept = empty;
    this.#surplus = false;
  }

  feed(bytes: Buffer): void {
    let at = 0;
    const length = bytes.length;
    while (at < length) {
      switch (this.#state) {
        case State.Head:
          at = this.#readHead(bytes, at);
          break;
        case State.FixedBody:
        case State.ChunkBody: {
          const end = Math.min(length, at + this.#bodyLeft);
          this.#bodyLeft -= end - at;
          const last = this.#bodyLeft === 0;
          const chunked = this.#state === State.ChunkBody;
          let next = end;
          if (last && chunked) {
            // Usually both bytes of its end are there.
            if (bytes[end] === carriageReturn && bytes[end + 1] === lineFeed) {
              this.#startChunkSize();
              next += 2;
            } else this.#state = State.ChunkBodyCarriageReturn;
          }
          this.#handler.body(bytes, at, end);
          at = next;
          if (last && !chunked) this.#finish(at < length);
          break;
        }
        case State.BodyUntilClose:
          this.#handler.body(bytes, at, length);
          at = length;
          break;
        case State.ChunkSize: {
          const after = this.#chunkDigits === 0 ? this.#wholeChunkSize(bytes, at) : -1;
          if (after < 0) this.#readChunkSize(bytes[at++]!);
          else at = after;
          break;
        }
        case State.ChunkSizeEnd:
          if (bytes[at++] !== lineFeed) return this.#fail("chunk size without its line end");
          this.#state = this.#bodyLeft === 0 ? State.Trailers : State.ChunkBody;
          break;
        case State.ChunkBodyCarriageReturn:
          if (bytes[at++] !== carriageReturn) return this.#fail("chunk longer than its size");
          this.#state = State.ChunkBodyLineFeed;
          break;
        case State.ChunkBodyLineFeed:
          if (bytes[at++] !== lineFeed) return this.#fail("chunk without its line end");
          this.#startChunkSize();
          break;
        case State.Trailers:
          at = this.#readTrailers(bytes, at);
          break;
        case State.Done:
          this.#surplus = true;
          return;
        case State.Failed:
          return;
      }
    }
  }

  /** The node ended its side: that ends a body without a length, and is an error in the middle of anything else. */
  closed(): void {
    if (this.#state === State.BodyUntilClose) return this.#finish(false);
    if (this.#state === State.Done || this.#state === State.Failed) return;
    this.#fail(
      this.#state === State.Head ? "closed before the end of the headers" : "closed before the end of the body",
    );
  }

  #readHead(bytes: Buffer, start: number): number {
    const before = this.#kept.length;
    if (before === 0 && isLastHead(bytes, start)) {
      const after = start + lastHead.bytes.length;
      this.#takeHead(lastHead.read, after < bytes.length);
      return after;
    }
    const all = before === 0 ? bytes.subarray(start) : Buffer.concat([this.#kept, bytes.subarray(start)]);
    const end = all.indexOf(headEnd, Math.max(0, before - 3));
    if ((end < 0 ? all.length : end) > nodeHeadMaxBytes) {
      this.#fail("headers over 64 KiB");
      return bytes.length;
    }
    if (end < 0) {
      // Another protocol's greeting has no end of headers to wait for.
      if (!all.subarray(0, headStart.length).equals(headStart.subarray(0, all.length))) this.#fail("bad status line");
      this.#kept = all;
      return bytes.length;
    }
    this.#kept = empty;
    const after = start + end + headEnd.length - before;
    const read = readHead(all.toString("latin1", 0, end));
    lastHead = { bytes: Buffer.from(all.subarray(0, end + headEnd.length)), read };
    this.#takeHead(read, after < bytes.length);
    return after;
  }

  #takeHead(read: Head | string, more: boolean): void {
    if (typeof read === "string") return this.#fail(read);
    if (read.code === 101) return this.#fail("protocol switched unasked");
    if (read.code < 200) return; // 100 Continue, 103 Early Hints: the real head follows
    this.#startBody(read.code, read.headers, read.http11, more);
  }

  #startBody(code: number, headers: ResponseHeaders, http11: boolean, more: boolean): void {
    const coding = headers.get("content-encoding");
    if (coding !== undefined && coding.toLowerCase() !== "identity")
      return this.#fail("encoded body, though only identity was accepted");
    const transfer = headers.get("transfer-encoding");
    const length = headers.get("content-length");
    if (transfer !== undefined && length !== undefined) return this.#fail("both content-length and transfer-encoding");
    if (transfer !== undefined && (!http11 || transfer.toLowerCase() !== "chunked"))
      return this.#fail("unknown transfer-encoding");
    if (length !== undefined && !/^[0-9]{1,15}$/.test(length)) return this.#fail("bad content-length");

    const connection = headers.get("connection")?.toLowerCase() ?? "";
    this.#keepAlive = http11 ? !connection.includes("close") : connection.includes("keep-alive");
    const bodyless = code === 204 || code === 304;
    if (transfer !== undefined) this.#startChunkSize();
    else if (length !== undefined || bodyless) {
      this.#bodyLeft = bodyless ? 0 : Number(length);
      this.#state = State.FixedBody;
    } else {
      this.#keepAlive = false;
      this.#state = State.BodyUntilClose;
    }
    this.#handler.head(code, headers);
    if (this.#state === State.FixedBody && this.#bodyLeft === 0) this.#finish(more);
  }

  #startChunkSize(): void {
    this.#state = State.ChunkSize;
    this.#bodyLeft = 0;
    this.#chunkDigits = 0;
    this.#extensionBytes = 0;
  }

  /** The usual case: a complete line with nothing but a size. Returns the index after it, or -1. */
  #wholeChunkSize(bytes: Buffer, start: number): number {
    let size = 0;
    let at = start;
    for (let digit = hexDigit(bytes[at]!); digit >= 0; digit = hexDigit(bytes[at]!)) {
      if (at - start === chunkSizeDigitsMax) return -1;
      size = size * 16 + digit;
      at++;
    }
    if (size === 0 || bytes[at] !== carriageReturn || bytes[at + 1] !== lineFeed) return -1;
    this.#bodyLeft = size;
    this.#state = State.ChunkBody;
    return at + 2;
  }

  #readChunkSize(byte: number): void {
    if (this.#extensionBytes === 0) {
      const digit = hexDigit(byte);
      if (digit >= 0) {
        if (++this.#chunkDigits > chunkSizeDigitsMax) return this.#fail("chunk size too long");
        this.#bodyLeft = this.#bodyLeft * 16 + digit;
        return;
      }
      if (this.#chunkDigits === 0) return this.#fail("chunk without a size");
    }
    if (byte === carriageReturn) {
      this.#state = State.ChunkSizeEnd;
      return;
    }
    // RFC 9112, 7.1.1 allows ";name=value" after the size. It means nothing to us, and its length is bounded.
    const first = this.#extensionBytes === 0 && byte !== 0x3b && byte !== 0x20 && byte !== 0x09;
    if (first || (byte < 0x20 && byte !== 0x09) || ++this.#extensionBytes > chunkExtensionMaxBytes)
      return this.#fail("bad chunk size");
  }

  /** Trailers carry nothing that we use; only their end matters. */
  #readTrailers(bytes: Buffer, start: number): number {
    const before = this.#kept.length;
    if (before === 0 && bytes[start] === carriageReturn && bytes[start + 1] === lineFeed) {
      this.#finish(start + 2 < bytes.length); // none, as usual
      return start + 2;
    }
    const all = before === 0 ? bytes.subarray(start) : Buffer.concat([this.#kept, bytes.subarray(start)]);
    const blank = all.length >= 2 && all[0] === carriageReturn && all[1] === lineFeed;
    const end = blank ? 0 : all.indexOf(headEnd);
    if (!blank && end < 0) {
      this.#kept = all;
      if (all.length > nodeHeadMaxBytes) this.#fail("trailers over 64 KiB");
      return bytes.length;
    }
    this.#kept = empty;
    const after = start + (blank ? 2 : end + headEnd.length) - before;
    if (!blank && controlByte.test(all.toString("latin1", 0, end).replaceAll("\r\n", ""))) this.#fail("bad trailer");
    else this.#finish(after < bytes.length);
    return after;
  }

  #finish(surplus: boolean): void {
    this.#state = State.Done;
    this.#surplus = surplus;
    this.#handler.end();
  }

  #fail(reason: string): void {
    this.#state = State.Failed;
    this.#handler.malformed(reason);
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
