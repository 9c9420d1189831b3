// The outlet of a response that goes on without its client: it keeps the events, and readers take them from any place on.
import { type ByteWriter, returnWriter, takeWriter } from "../../core/byte-writer.ts";
import { CancelSignal } from "../../core/cancel-signal.ts";
import type { AnswerEnd, Encoder } from "../../dialects/dialect.ts";
import { literalPiece } from "../../dialects/reply/collected.ts";
import { responseText, type StoredResponse } from "../../dialects/stored-responses.ts";
import type { Outlet } from "../../gateway.ts";
import { jsonReply, refusalReply, streamReply } from "../reply.ts";
import type { ReplyParts } from "./collect-outlet.ts";
import { keepAliveIntervalMs } from "../../core/limits.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import { type Piece, type Refusal, StoreUnavailable } from "../../core/types.ts";

/** Whole events, and how many they are. */
type Chunk = Readonly<{ bytes: Uint8Array; events: number }>;

export type BackgroundParts = Readonly<{
  reply: Omit<ReplyParts, "encoder">;
  encoder: Encoder;
  /** Stores what the encoder made of the end; the end waits for a promise. */
  store(response: StoredResponse): void | Promise<void>;
  /** So many more bytes are held; false: there is no room for them. */
  hold(bytes: number): boolean;
}>;

export class BackgroundOutlet implements Outlet {
  /** To the request that began it. */
  readonly response: Promise<Response>;
  readonly cancelSignal = new CancelSignal();
  /** What is kept for a client is delivered to it: from the first piece on a cancelled answer is paid. */
  opened = false;
  /** A failed response is free, whatever came of it. */
  readonly delivered = false;
  readonly #parts: BackgroundParts;
  readonly #noted: Promise<Refusal | null>;
  /** Null: there was no room for them. */
  #chunks: Chunk[] | null = [];
  #bytes = 0;
  #unsent: ByteWriter | null = null;
  #last: StoredResponse | null = null;
  #keeping: void | Promise<void> = undefined;
  /** It has its last word, which readers get when it is stored. */
  #hasLast = false;
  #isOver = false;
  #next = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();

  /** `noted` resolves when a restart would know of it, with a refusal where it does not go on. */
  constructor(parts: BackgroundParts, noted: Promise<Refusal | null>) {
    this.#parts = parts;
    this.#noted = noted;
    this.#add(this.#background.begin());
    this.response = noted.then((refusal) => this.#begun(refusal));
  }

  /** Resolves with its last word. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Bytes of the events that are held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The response object as JSON text. */
  get object(): string {
    return responseText(this.#last ?? this.#background.stored(this.opened ? "in_progress" : "queued"));
  }

  get #background() {
    return this.#parts.encoder.background!;
  }

  /** Called by the encoder at its end. */
  store(response: StoredResponse): void {
    this.#last = response;
    this.#keeping = this.#parts.store(response);
  }

  piece(piece: Piece): void {
    if (this.#hasLast) return;
    this.opened = true;
    this.#writer.text(this.#parts.encoder.piece(piece));
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): void {
    if (this.#hasLast) return;
    this.opened = true;
    if (this.#parts.encoder.literal?.(kind, bytes, start, end, this.#writer) === true) return;
    this.piece(literalPiece(kind, bytes, start, end));
  }

  flush(): null {
    if (this.#unsent === null) return null;
    if (this.#unsent.length > 0) this.#append(new Uint8Array(this.#unsent.written)); // a copy: the writer is used again
    returnWriter(this.#unsent);
    this.#unsent = null;
    return null;
  }

  /** One whose request was refused is free, however soon it was answered. */
  async keep(): Promise<void> {
    if ((await this.#noted) !== null) throw new StoreUnavailable("a background response was not noted");
  }

  end(end: AnswerEnd): void | Promise<void> {
    return this.#endWith(() => this.#parts.encoder.end(end));
  }

  fail(refusal: Refusal): void {
    // Its place in line ends with a refusal, too.
    const isCancelled = this.cancelSignal.aborted && !isRefusal(this.cancelSignal.reason);
    void this.#endWith(() => (isCancelled ? this.#background.cancelled() : this.#parts.encoder.failure(refusal)));
  }

  breakOff(): void {
    this.fail(refuse("quota_unverified"));
  }

  cut(refusal: Refusal): void {
    this.cancelSignal.abort(refusal);
  }

  /** Its request was served. One that was cancelled in the middle has had no last word. Resolves when it is stored. */
  async served(): Promise<void> {
    void this.#endWith(() => this.#background.cancelled());
    await this.#keeping;
  }

  /** The events from the one with the number `after` + 1 on, as they come; null where they are not held. */
  events(after: number): ReadableStream<Uint8Array> | null {
    if (this.#chunks === null) return null;
    let place = 0;
    let skipped = after + 1;
    return new ReadableStream({
      pull: async (controller) => {
        for (;;) {
          const chunk = this.#chunks?.[place];
          if (this.#chunks === null) return controller.error(new Error("the events are no longer held"));
          if (chunk !== undefined) {
            place += 1;
            const bytes = behind(chunk, skipped);
            skipped = Math.max(0, skipped - chunk.events);
            if (bytes.length === 0) continue;
            return controller.enqueue(bytes);
          }
          if (this.#isOver) return controller.close();
          if (!(await this.#grows())) return controller.enqueue(signOfLife);
        }
      },
    });
  }

  /** Lets go of the events; what reads them breaks off. */
  drop(): void {
    this.#chunks = null;
    this.#parts.hold(-this.#bytes);
    this.#bytes = 0;
    this.#wake();
  }

  #begun(refusal: Refusal | null): Response {
    const { dialect, requestId, ask } = this.#parts.reply;
    if (refusal !== null) {
      this.cut(refusal);
      return refusalReply(dialect, refusal, requestId, ask);
    }
    const events = ask.stream ? this.events(-1) : null;
    return events === null ? jsonReply(this.object, requestId) : streamReply(events, requestId);
  }

  get #writer(): ByteWriter {
    return (this.#unsent ??= takeWriter());
  }

  #endWith(events: () => string): void | Promise<void> {
    if (this.#hasLast) return;
    this.flush();
    this.#hasLast = true;
    const last = events();
    const over = (): void => {
      this.#isOver = true;
      this.#add(last);
      this.#wake();
      this.#ended.resolve();
    };
    if (this.#keeping === undefined) return over();
    return this.#keeping.then(over);
  }

  #add(events: string): void {
    if (events !== "") this.#append(Buffer.from(events));
  }

  #append(bytes: Uint8Array): void {
    if (this.#chunks === null) return;
    if (!this.#parts.hold(bytes.length)) return this.drop();
    this.#bytes += bytes.length;
    let events = 0;
    for (let at = ending(bytes, 0); at !== -1; at = ending(bytes, at)) events += 1;
    this.#chunks.push({ bytes, events });
    this.#wake();
  }

  #wake(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  /** False where nothing came for a while. */
  async #grows(): Promise<boolean> {
    const late = Promise.withResolvers<false>();
    const timer = setTimeout(() => late.resolve(false), keepAliveIntervalMs);
    try {
      return (await Promise.race([this.#next.promise, late.promise])) !== false;
    } finally {
      clearTimeout(timer);
    }
  }
}

const signOfLife = new TextEncoder().encode(": waiting\n\n");

/** Where the event ends that begins at `from`; -1: none does. An event's data has no line's end. */
function ending(bytes: Uint8Array, from: number): number {
  const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf("\n\n", from);
  return at === -1 ? -1 : at + 2;
}

/** Without its first events. */
function behind({ bytes, events }: Chunk, skipped: number): Uint8Array {
  if (skipped >= events) return skipped === 0 ? bytes : new Uint8Array();
  let from = 0;
  for (let left = skipped; left > 0; left--) from = ending(bytes, from);
  return bytes.subarray(from);
}
