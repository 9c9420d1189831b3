// The outlet of a stream: pieces become server-sent events, and those of one read of a node become one write.
import { type ByteWriter, returnWriter, takeWriter } from "../../core/byte-writer.ts";
import { CancelSignal } from "../../core/cancel-signal.ts";
import type { AnswerEnd, Encoder } from "../../dialects/dialect.ts";
import { literalPiece } from "../../dialects/reply/collected.ts";
import type { Outlet } from "../../gateway.ts";
import type { ActiveHandle } from "../../core/active-set.ts";
import type { Outlook } from "../../core/forecast.ts";
import type { Piece, Refusal } from "../../core/types.ts";
import { type Beating, clientStallBeats, type Heartbeat, keepAliveBeats, streamOpenBeats } from "./heartbeat.ts";
import type { ReplyParts } from "./collect-outlet.ts";
import { brokenReply, refusalReply, streamReply } from "../reply.ts";

/** Where the events go if not into a body of their own: into the frames of a WebSocket. */
export interface EventSink {
  /** How many bytes of the events went out; a promise where the client is behind. 0: none of them is one of its events. */
  write(events: Uint8Array): number | Promise<number>;
  flush(): void;
  end(): void;
  /** Breaks off the connection. */
  close(error: Error): void;
}

/**
 * What comes first decides the HTTP status: the first piece or a short wait opens the stream with 200; a failure before
 * that gets its own status. A later failure is the dialect's error event.
 */
export class StreamOutlet implements Outlet, Beating, EventListenerObject {
  readonly response: Promise<Response>;
  readonly cancelSignal = new CancelSignal();
  opened = false;
  readonly #reply: ReplyParts;
  readonly #encoder: Encoder;
  readonly #heartbeat: Heartbeat;
  readonly #handle: ActiveHandle<Beating>;
  #respond!: (response: Response) => void;
  #state: "waiting" | "open" | "over" = "waiting";
  readonly #sink: EventSink | null;
  #controller: ReadableStreamDirectController | EventSink | null;
  #closed: (() => void) | null = null;
  #unsent: ByteWriter | null = null;
  /** Set while the client's socket is full. */
  #caughtUp: Promise<void> | null = null;
  #delivered = false;
  #age = 0;
  #silentBeats = 0;
  #stalledBeats = 0;
  #forecast: (() => Outlook | null) | null = null;

  /** With a sink, `response` is a failure before the first event, or empty at the end. */
  constructor(reply: ReplyParts, client: AbortSignal, heartbeat: Heartbeat, sink: EventSink | null = null) {
    this.#reply = reply;
    this.#sink = sink;
    this.#controller = sink;
    this.#encoder = reply.encoder;
    this.#heartbeat = heartbeat;
    this.response = new Promise((respond) => (this.#respond = respond));
    this.#handle = heartbeat.join(this);
    if (client.aborted) this.#depart();
    else client.addEventListener("abort", this);
  }

  get delivered(): boolean {
    return this.#delivered;
  }

  /** Whether the reply begins with the count of the request's input. */
  get showsInput(): boolean {
    return this.#encoder.inputCounted !== undefined;
  }

  inputCounted(tokens: number): void {
    this.#encoder.inputCounted?.(tokens);
  }

  piece(piece: Piece): void {
    this.#write(this.#encoder.piece(piece));
    if (!this.#isBytes || piece.kind !== "voice" || this.#state === "over") return;
    this.#unsent ??= takeWriter();
    this.#unsent.bytes(piece.bytes);
  }

  /** Audio as it is: there is no event in it, nor a sign of life. */
  get #isBytes(): boolean {
    return this.#encoder.contentType !== undefined;
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): void {
    if (this.#state === "over") return;
    this.#unsent ??= takeWriter();
    if (this.#encoder.literal?.(kind, bytes, start, end, this.#unsent) === true) return;
    this.piece(literalPiece(kind, bytes, start, end));
  }

  flush(): Promise<void> | null {
    if (this.#state === "over" || this.#unsent === null) return null;
    if (this.#unsent.length === 0) {
      this.#dropUnsent(); // a hidden thought: the client heard nothing, so its next sign of life stays due
      return this.#caughtUp;
    }
    this.#delivered = true;
    if (this.#state === "waiting") this.#open();
    return this.#send();
  }

  end(end: AnswerEnd): void | Promise<void> {
    if (this.#state === "over") return;
    const events = this.#encoder.end(end);
    const keeping = this.#reply.keeping?.();
    if (keeping === undefined) return this.#endWith(events);
    return keeping.then(() => this.#endWith(events));
  }

  #endWith(events: string): void {
    if (this.#state === "over") return; // its client left
    this.#write(events);
    if (this.#state === "waiting") this.#open(); // the client saw nothing of the answer
    this.#finish();
  }

  fail(refusal: Refusal): void {
    if (this.#state === "over") return;
    if (this.#state === "waiting") {
      this.#over();
      const { dialect, requestId, ask } = this.#reply;
      this.#respond(refusalReply(dialect, refusal, requestId, ask));
      return;
    }
    if (this.#isBytes) return this.breakOff();
    this.#write(this.#encoder.failure(refusal));
    this.#finish();
  }

  breakOff(): void {
    if (this.#state === "over") return;
    const wasWaiting = this.#state === "waiting" || this.#sink !== null;
    this.#over();
    this.#dropUnsent();
    if (wasWaiting) this.#respond(brokenReply());
    this.#controller?.close(new Error("the connection is broken off"));
    this.#controller = null;
    this.#closed?.();
  }

  #write(events: string): void {
    if (events === "" || this.#state === "over") return;
    this.#unsent ??= takeWriter();
    this.#unsent.text(events);
  }

  #dropUnsent(): void {
    if (this.#unsent !== null) returnWriter(this.#unsent);
    this.#unsent = null;
  }

  cut(refusal: Refusal): void {
    if (this.#state !== "over") this.cancelSignal.abort(refusal);
  }

  beat(): void {
    this.#age++;
    this.#silentBeats++;
    // A relay's forecast takes a moment to arrive, so it is asked for a beat before it is written.
    if (this.#state === "waiting" && this.#age === streamOpenBeats - 1) this.#forecast?.();
    const opens = this.#age >= streamOpenBeats && this.#sink === null && !this.#isBytes;
    if (this.#state === "waiting" && opens) this.#open();
    if (this.#caughtUp !== null) {
      this.#stalledBeats++;
      if (this.#stalledBeats >= clientStallBeats) this.#depart();
    } else if ((this.#state === "open" || this.#sink !== null) && this.#silentBeats >= keepAliveBeats) {
      this.#write(this.#signOfLife());
      void this.#send();
    }
  }

  waits(forecast: () => Outlook | null): void {
    this.#forecast = forecast;
  }

  /** While the request waits in line, a comment says where; every client's parser skips comments. */
  #signOfLife(): string {
    const forecast = this.#forecast?.() ?? null;
    if (forecast === null || this.#isBytes) return this.#encoder.keepAlive();
    const { position, firstTokenMs } = forecast;
    const seconds = firstTokenMs === null ? "" : `, first token in about ${Math.ceil(firstTokenMs / 1_000)} s`;
    return `${this.#encoder.keepAlive()}: number ${position} in line${seconds}\n\n`;
  }

  #open(): void {
    this.#state = "open";
    if (this.#sink !== null) return;
    // Headers without a body byte would leave in two pieces, so a sign of life goes with them.
    if (this.#unsent === null) this.#write(this.#signOfLife());
    const source: Bun.DirectUnderlyingSource = {
      type: "direct",
      pull: (controller) => {
        this.#controller = controller;
        return new Promise<void>((closed) => {
          this.#closed = closed;
          if (this.#state === "over") this.#close();
          else void this.#send();
        });
      },
      cancel: () => this.#depart(),
    };
    this.#respond(streamReply(new ReadableStream(source), this.#reply.requestId, this.#encoder.contentType?.()));
  }

  #send(): Promise<void> | null {
    const controller = this.#controller;
    const unsent = this.#unsent;
    if (controller === null || unsent === null) return null;
    this.#silentBeats = 0;
    const written = controller.write(unsent.written) as number | Promise<number>;
    void controller.flush();
    // What its client's frames leave out opens nothing: a failure still comes as an error with a status.
    if (this.#sink === null || written !== 0) this.opened = true;
    if (this.opened && this.#state === "waiting") this.#state = "open";
    this.#dropUnsent(); // the controller has copied what the socket did not take
    if (typeof written === "number") return this.#caughtUp;
    this.#stalledBeats = 0;
    const caughtUp: Promise<void> = Promise.resolve(written).then(
      () => this.#resume(caughtUp),
      () => this.#depart(),
    );
    this.#caughtUp = caughtUp;
    return caughtUp;
  }

  #resume(caughtUp: Promise<void>): void {
    if (this.#caughtUp === caughtUp) this.#caughtUp = null;
  }

  #finish(): void {
    this.#over();
    this.#close();
  }

  /** Sends what is left and closes. Before the body was pulled there is no controller yet, and pull comes back here. */
  #close(): void {
    if (this.#controller === null) return;
    void this.#send();
    // A stop cuts what waits in a reply that has ended.
    if (this.#caughtUp === null) this.#endBody();
    else void this.#caughtUp.then(() => this.#endBody());
  }

  #endBody(): void {
    void this.#controller?.end();
    this.#controller = null;
    this.#closed?.();
    if (this.#sink !== null) this.#respond(new Response(null));
  }

  /** The client's signal. */
  handleEvent(): void {
    this.#depart();
  }

  /** The client left, or has read nothing for too long. */
  #depart(): void {
    const wasWaiting = this.#state === "waiting";
    const wasOver = this.#state === "over";
    this.#over();
    this.#dropUnsent();
    if (!wasOver) this.cancelSignal.abort();
    if (wasWaiting) this.#respond(new Response(null, { status: 499 }));
    this.#sink?.close(new Error("the client left or stopped reading"));
    this.#endBody();
  }

  #over(): void {
    this.#state = "over";
    this.#heartbeat.leave(this.#handle);
  }
}
