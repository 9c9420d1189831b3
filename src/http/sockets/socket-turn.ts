// The events of one response on their way into a WebSocket: each becomes the text of one frame.
import type { EventSink } from "../outlets/stream-outlet.ts";

/** Input that steers a response, as JSON, and its items as the text inside an array. `id` is null where it was refused. */
export type Steer = Readonly<{ id: string | null; input: string; items: string }>;

/** How a client's WebSocket takes frames. */
export type FrameWriter = Readonly<{
  /** Sends them as one write; a promise where the client is behind. 0: there were none, or it has left. */
  send(frames: readonly string[]): number | Promise<number>;
  fail(): void;
}>;

const ends = ["completed", "incomplete", "failed"].map((name) => `{"type":"response.${name}"`);
const created = '{"type":"response.created"';
const createdId = '"response":{"id":"';
const numberAt = '"sequence_number":';
const done = "[DONE]";

export class SocketTurn implements EventSink {
  readonly #frames: FrameWriter;
  readonly #streamId: string | null;
  /** Bytes of an event that is not complete yet: a reply that is passed on is cut anywhere. */
  #rest: Buffer | null = null;
  /** The number of the next event, and how far it is ahead of the encoder's, which knows of no steering. */
  #number = 0;
  #ahead = 0;
  /** Known from the first event on. */
  responseId: string | null = null;
  /** The last event, once it was sent. */
  last: string | null = null;
  readonly steers: Steer[] = [];

  constructor(frames: FrameWriter, streamId: string | null) {
    this.#frames = frames;
    this.#streamId = streamId;
  }

  write(events: Uint8Array): number | Promise<number> {
    const given = Buffer.from(events.buffer, events.byteOffset, events.byteLength);
    const bytes = this.#rest === null ? given : Buffer.concat([this.#rest, given]);
    const frames: string[] = [];
    let at = 0;
    for (let end = bytes.indexOf("\n\n"); end >= 0; end = bytes.indexOf("\n\n", at)) {
      const frame = this.#frameOf(bytes, at, end);
      if (frame !== null) frames.push(frame);
      at = end + 2;
    }
    this.#rest = at === bytes.length ? null : Buffer.from(bytes.subarray(at));
    return frames.length === 0 ? 0 : this.#frames.send(frames);
  }

  /** An event of the socket's own, among the response's; `members` follow the number. */
  say(type: string, members: string): void {
    this.#ahead += 1;
    const event = `{"type":"${type}","sequence_number":${this.#number++},${members}}`;
    void this.#frames.send([inStream(event, this.#streamId)]);
  }

  flush(): void {}

  end(): void {}

  close(): void {
    this.#frames.fail();
  }

  /** Null for comments and the terminator. */
  #frameOf(bytes: Buffer, start: number, end: number): string | null {
    const line = bytes[start] === 0x65 ? bytes.indexOf("\n", start) + 1 : start; // after `event: ...`
    if (bytes[line] !== 0x64) return null; // no `data: ...`
    const event = bytes.toString("utf8", line + "data: ".length, end);
    if (event === done) return null;
    if (this.responseId === null && event.startsWith(created)) {
      const from = event.indexOf(createdId) + createdId.length;
      this.responseId = event.slice(from, event.indexOf('"', from));
    }
    if (ends.some((start) => event.startsWith(start))) this.last = event;
    const number = this.#number++;
    return inStream(this.#ahead === 0 ? event : renumbered(event, number), this.#streamId);
  }
}

export const inStream = (event: string, streamId: string | null): string =>
  streamId === null ? event : `{"stream_id":"${streamId}",${event.slice(1)}`;

function renumbered(event: string, number: number): string {
  const from = event.indexOf(numberAt) + numberAt.length;
  return event.slice(0, from) + number + event.slice(event.indexOf(",", from));
}
