// Splits the bytes of a response body into the payloads of its server-sent events, however the bytes are cut. A line
// ends with a line feed, a carriage return or both. Text is decoded only in whole lines, so that a character split over
// two reads stays whole. Most events are recognized by their bytes and never decoded.

export const nodeLineMaxBytes = 4 * 1024 * 1024;
/** Data lines of one event; engines write one. Each takes 60 bytes of memory, however short it is. */
export const nodeEventLinesMax = 50_000;

export interface EventHandler {
  event(payload: string, namedError: boolean): void;
  /** A line or the data of one event exceeds nodeLineMaxBytes, or an event has too many lines. Nothing more comes. */
  tooLong(): void;
}

/** Recognizes events by their bytes alone, so that no string is made of them. */
export interface KnownEvents {
  /** If a known payload begins at `start`, the index after it, else -1. */
  match(bytes: Buffer, start: number, end: number): number;
  /** The payload that matched last is a whole event. `bytes` is what was given to `match`. */
  take(bytes: Buffer): void;
}

const lineFeed = 10;
const carriageReturn = 13;
const space = 32;
const byteOrderMark = Buffer.from("\ufeff");
const dataField = Buffer.from("data:");
const eventField = Buffer.from("event:");
const empty = Buffer.alloc(0);
const keptMinBytes = 4_096;
/** Shorter parts are searched here: the runtime would search to the end of the read for each of its chunks. */
const shortBytes = 256;

/** Push parser of one event stream (text/event-stream, WHATWG HTML 9.2), lenient about what engines send. */
export class EventParser {
  readonly #handler: EventHandler;
  readonly #known: KnownEvents | null;
  #started = false;
  #failed = false;
  #stopped = false;
  /** The beginning of an incomplete line: the first #keptBytes bytes of a buffer that doubles. */
  #kept = empty;
  #keptBytes = 0;
  /** Data lines of the current event; null before its first one. */
  #payload: string | null = null;
  /** How many follow the first. */
  #moreLines = 0;
  #namedError = false;
  /** The last byte was a carriage return: a line feed right after it ends the same line. */
  #returned = false;
  /** The next of each at or after the current line; an earlier value means: search again. */
  #nextReturn = -1;
  #nextFeed = -1;

  constructor(handler: EventHandler, known: KnownEvents | null = null) {
    this.#handler = handler;
    this.#known = known;
  }

  feed(bytes: Buffer, start: number, end: number): void {
    if (this.#failed || start === end) return;
    if (this.#stopped) return this.#keep(bytes, start, end);
    let at = start;
    this.#nextReturn = this.#nextFeed = -1;
    if (this.#returned) {
      this.#returned = false;
      if (bytes[at] === lineFeed) at++;
    }
    if (this.#keptBytes > 0) {
      const lineEnd = this.#lineEnd(bytes, at, end);
      if (lineEnd < 0) return this.#keep(bytes, at, end);
      this.#keep(bytes, at, lineEnd);
      if (this.#failed) return;
      const line = this.#takeKept();
      this.#line(line, 0, line.length);
      at = this.#afterLine(bytes, lineEnd, end);
    }
    at = this.#lines(bytes, at, end);
    if (!this.#failed && at < end) this.#keep(bytes, at, end);
  }

  /** Called from within an event: what follows it is kept until `goOn`. */
  stop(): void {
    this.#stopped = true;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  goOn(): void {
    this.#stopped = false;
    const kept = this.#takeKept();
    this.#nextReturn = this.#nextFeed = -1;
    const at = this.#lines(kept, 0, kept.length);
    if (!this.#failed && at < kept.length) this.#keep(kept, at, kept.length);
  }

  /** The body ended: a last line and a last event count even without their line ends. */
  finish(): void {
    if (this.#failed) return;
    if (this.#keptBytes > 0) {
      const line = this.#takeKept();
      this.#line(line, 0, line.length);
    }
    this.#dispatch();
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    const needed = this.#keptBytes + end - start;
    if (needed > nodeLineMaxBytes) return this.#fail();
    if (needed > this.#kept.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#kept.length, keptMinBytes));
      this.#kept.copy(larger, 0, 0, this.#keptBytes);
      this.#kept = larger;
    }
    bytes.copy(this.#kept, this.#keptBytes, start, end);
    this.#keptBytes = needed;
  }

  #takeKept(): Buffer {
    const kept = this.#kept.subarray(0, this.#keptBytes);
    this.#kept = empty;
    this.#keptBytes = 0;
    return kept;
  }

  /** Reads whole lines and returns where an incomplete one begins. */
  #lines(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end && !this.#failed && !this.#stopped) {
      const after = this.#knownEvent(bytes, at, end);
      if (after > 0) {
        at = after;
        continue;
      }
      const lineEnd = this.#lineEnd(bytes, at, end);
      if (lineEnd < 0) break;
      if (lineEnd - at > nodeLineMaxBytes) this.#fail();
      else this.#line(bytes, at, lineEnd);
      at = this.#afterLine(bytes, lineEnd, end);
    }
    return at;
  }

  /** Where the line that begins at `start` ends; -1: not in these bytes. Lines must be requested in order. */
  #lineEnd(bytes: Buffer, start: number, end: number): number {
    if (end - start <= shortBytes) {
      for (let at = start; at < end; at++) if (bytes[at] === lineFeed || bytes[at] === carriageReturn) return at;
      return -1;
    }
    if (this.#nextReturn < start) this.#nextReturn = indexOr(end, bytes.indexOf(carriageReturn, start));
    if (this.#nextFeed < start) this.#nextFeed = indexOr(end, bytes.indexOf(lineFeed, start));
    const lineEnd = Math.min(this.#nextReturn, this.#nextFeed);
    return lineEnd < end ? lineEnd : -1;
  }

  #afterLine(bytes: Buffer, lineEnd: number, end: number): number {
    const after = lineEnd + 1;
    if (bytes[lineEnd] === lineFeed) return after;
    if (after === end) this.#returned = true;
    return after < end && bytes[after] === lineFeed ? after + 1 : after;
  }

  #knownEvent(bytes: Buffer, at: number, end: number): number {
    if (this.#known === null || this.#payload !== null || this.#namedError) return -1;
    if (!startsWith(dataField, bytes, at, end) || bytes[at + 5] !== space) return -1;
    const after = this.#known.match(bytes, at + 6, end);
    if (after < 0 || after + 1 >= end || bytes[after] !== lineFeed || bytes[after + 1] !== lineFeed) return -1;
    this.#known.take(bytes);
    return after + 2;
  }

  #line(bytes: Buffer, lineStart: number, end: number): void {
    let start = lineStart;
    if (!this.#started) {
      this.#started = true;
      if (startsWith(byteOrderMark, bytes, start, end)) start += byteOrderMark.length; // at the very start only
    }
    if (end === start) return this.#dispatch();
    if (startsWith(dataField, bytes, start, end)) {
      const from = bytes[start + 5] === space && start + 5 < end ? start + 6 : start + 5;
      const data = bytes.toString("utf8", from, end);
      if (this.#payload === null) this.#payload = data;
      else if (this.#payload.length + data.length > nodeLineMaxBytes) this.#fail();
      else if (++this.#moreLines >= nodeEventLinesMax) this.#fail();
      else this.#payload += `\n${data}`;
    } else if (startsWith(eventField, bytes, start, end)) {
      this.#namedError = bytes.toString("utf8", start + eventField.length, end).trim() === "error";
    }
    // comments (":"), id, retry and anything else have no meaning here
  }

  #dispatch(): void {
    const payload = this.#payload;
    const namedError = this.#namedError;
    this.#payload = null;
    this.#moreLines = 0;
    this.#namedError = false;
    if (payload !== null) this.#handler.event(payload, namedError);
  }

  #fail(): void {
    this.#failed = true;
    this.#kept = empty;
    this.#keptBytes = 0;
    this.#payload = null;
    this.#handler.tooLong();
  }
}

function startsWith(text: Uint8Array, bytes: Uint8Array, at: number, end: number): boolean {
  if (at + text.length > end) return false;
  for (let index = 0; index < text.length; index++) if (bytes[at + index] !== text[index]) return false;
  return true;
}

const indexOr = (other: number, index: number): number => (index < 0 ? other : index);
