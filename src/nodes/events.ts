// Bytes of a response body -> the payloads of its server-sent events, at any split of the bytes. Text is decoded only in
// whole lines, so that a character that is split over two reads stays whole.
import { nodeLineMaxBytes } from "../limits.ts";

/** Receives the events of one body. */
export interface EventHandler {
  /** The joined `data:` lines of one event; `named` is true for `event: error` (LM Studio). */
  event(payload: string, namedError: boolean): void;
  /** A line, or the data of one event, over nodeLineMaxBytes. Nothing more comes. */
  tooLong(): void;
}

const lineFeed = 10;
const empty = Buffer.alloc(0);
const keptMinBytes = 4_096;

/** Push parser of one event stream (text/event-stream, WHATWG HTML 9.2), lenient on what engines send. */
export class EventParser {
  readonly #handler: EventHandler;
  #started = false;
  #failed = false;
  /** The beginning of a line that is not complete yet: the first #keptBytes bytes of a buffer that doubles. */
  #kept = empty;
  #keptBytes = 0;
  /** Data lines of the event that is being read; null before its first one. */
  #payload: string | null = null;
  #namedError = false;

  constructor(handler: EventHandler) {
    this.#handler = handler;
  }

  feed(bytes: Buffer, start: number, end: number): void {
    if (this.#failed || start === end) return;
    // The usual read holds whole events: its last byte ends a line, and nothing was kept from before.
    if (this.#keptBytes === 0 && bytes[end - 1] === lineFeed) return this.#lines(bytes.toString("utf8", start, end));
    const newline = lastLineFeed(bytes, start, end);
    if (newline < 0) return this.#keep(bytes, start, end);
    if (this.#keptBytes === 0) this.#lines(bytes.toString("utf8", start, newline + 1));
    else {
      this.#keep(bytes, start, newline + 1);
      this.#lines(this.#takeKept());
    }
    if (!this.#failed && newline + 1 < end) this.#keep(bytes, newline + 1, end);
  }

  /** The body ended: a last line and a last event count also without the line ends that should follow. */
  finish(): void {
    if (this.#failed) return;
    if (this.#keptBytes > 0) this.#lines(`${this.#takeKept()}\n`);
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

  #takeKept(): string {
    const text = this.#kept.toString("utf8", 0, this.#keptBytes);
    this.#kept = empty;
    this.#keptBytes = 0;
    return text;
  }

  /** `text` ends with a line feed. */
  #lines(text: string): void {
    let at = 0;
    if (!this.#started) {
      this.#started = true;
      if (text.charCodeAt(0) === 0xfeff) at = 1; // a byte order mark may stand at the very start
    }
    while (at < text.length) {
      const newline = text.indexOf("\n", at);
      if (newline - at > nodeLineMaxBytes) return this.#fail();
      const end = newline > at && text.charCodeAt(newline - 1) === 13 ? newline - 1 : newline;
      if (end === at) this.#dispatch();
      else this.#line(text, at, end);
      if (this.#failed) return;
      at = newline + 1;
    }
  }

  #line(text: string, start: number, end: number): void {
    if (text.startsWith("data:", start)) {
      const from = text.charCodeAt(start + 5) === 32 ? start + 6 : start + 5;
      const data = text.slice(from, end);
      if (this.#payload === null) this.#payload = data;
      else if (this.#payload.length + data.length > nodeLineMaxBytes) this.#fail();
      else this.#payload += `\n${data}`;
    } else if (text.startsWith("event:", start)) {
      this.#namedError = text.slice(start + 6, end).trim() === "error";
    }
    // comments (":"), id, retry and anything else mean nothing here
  }

  #dispatch(): void {
    const payload = this.#payload;
    const namedError = this.#namedError;
    this.#payload = null;
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

function lastLineFeed(bytes: Buffer, start: number, end: number): number {
  for (let at = end - 1; at >= start; at--) if (bytes[at] === lineFeed) return at;
  return -1;
}
