// One generation on one node: request out, bytes in, Pieces to the sink, exactly one Ending. What each failure of
// a node means for the client is a table of 30 rows, which test/nodes/generation.test.ts walks through by number.
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import { lastInTurn, limitAtEndOfTurn } from "../core/end-of-turn.ts";
import type { Ask, Ending, Sink } from "../core/types.ts";
import type { Exchange, ExchangeFault, ExchangeHandler, NodeClient, RequestPart } from "./client/client.ts";
import { EventParser } from "./client/events.ts";
import { ErrorBody } from "./error-body.ts";
import type { EventHandler, KnownEvents } from "./client/events.ts";
import { failureOfStatus, nodeAway, nodeFailed } from "./failure/failure.ts";
import type { Failure } from "./failure/failure.ts";
import type { ResponseHeaders } from "./client/framing.ts";
import type { KnownShapes } from "./fast-path/known-shapes.ts";
import { AnswerReader, type Channel } from "./reader.ts";
import type { Expected } from "./request.ts";

/** Time limits of a generation, in milliseconds; core/limits.ts says where each comes from. */
export type GenerationLimits = Readonly<{ firstPieceMs: number; stallMs: number; afterFinishMs: number }>;

/** How a generation went, for the node's health and the log; the Ending is for the client. */
export type Outcome = Readonly<{
  ending: Ending;
  failure: Failure | null;
  unreachable: boolean;
  /** A status came, and what followed did not break off, as it does long after the node was last there. */
  responded: boolean;
  overloaded: boolean;
  /** It began a stream and ended it in form without an event. */
  wordless: boolean;
}>;

export type GenerationParts = Readonly<{
  ask: Ask;
  /** Head and body, in one or more parts. */
  request: readonly RequestPart[];
  expected: Expected;
  thinkTagOpened: boolean;
  /** What earlier answers of this model on this node taught. */
  shapes: KnownShapes<Channel>;
  client: NodeClient;
  limits: GenerationLimits;
  cancelSignal: AnyCancelSignal;
  sink: Sink;
  /** Called once, when the first pieces are there. */
  began?: () => void;
}>;

/** After an answer that is complete, its connection may take this long to end it in form, to be used again. */
const drainMs = 1_000;

/** Runs the generation; resolves once, never rejects. */
export function generate(parts: GenerationParts): Promise<Outcome> {
  const generation = new Generation(parts);
  generation.start();
  return generation.outcome;
}

class Generation implements ExchangeHandler, EventHandler, KnownEvents, EventListenerObject {
  readonly outcome: Promise<Outcome>;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #parts: GenerationParts;
  readonly #reader: AnswerReader;
  readonly #events: EventParser;
  #exchange: Exchange | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #finishTimer: ReturnType<typeof setTimeout> | null = null;
  #settled = false;
  #status = 0;
  #errorBody: ErrorBody | null = null;
  #begun = false;
  #paused = false;
  /** An event came since the watch last looked. */
  #heard = false;
  /** An event came since the sink was last flushed. */
  #unflushed = false;
  #silentQuarters = 0;
  /** One that was parsed: those that are known by their bytes come later. */
  #anyEvent = false;
  #wordless = false;
  #brokeOff = false;
  /** The body ended while events of it were not read. */
  #ended: (() => void) | null = null;

  constructor(parts: GenerationParts) {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#parts = parts;
    this.#events = new EventParser(this, this);
    const { textNamesCall, stops } = parts.expected;
    const { ask, sink, thinkTagOpened, shapes } = parts;
    this.#reader = new AnswerReader(ask, sink, { textNamesCall, stops, thinkTagOpened, shapes });
  }

  start(): void {
    const { cancelSignal, client, request } = this.#parts;
    if (cancelSignal.aborted) return this.#settle(this.#reader.cancelled());
    cancelSignal.addEventListener("abort", this);
    this.#watch();
    this.#exchange = client.send(request, this);
  }

  mayBeSentAgain(): boolean {
    return this.#parts.ask.generations?.take() !== false;
  }

  /** The client left. */
  handleEvent(): void {
    this.#exchange?.abort();
    this.#settle(this.#reader.cancelled());
  }

  head(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    if (status !== 200) {
      // the body says why, if it comes soon
      this.#finishTimer = this.#later(this.#parts.limits.afterFinishMs, () => this.#fail(this.#failureOfErrorBody()));
      return;
    }
    const type = headers.get("content-type") ?? "";
    if (!/^text\/event-stream(?:$|[;\s])/i.test(type)) this.#fail(nodeFailed("200 without an event stream"));
  }

  body(bytes: Buffer, start: number, end: number): void {
    if (this.#settled) return;
    if (this.#status !== 200) {
      this.#errorBody ??= new ErrorBody();
      if (!this.#errorBody.keep(bytes, start, end)) this.#fail(this.#failureOfErrorBody());
      return;
    }
    this.#events.feed(bytes, start, end);
    this.#readOn();
  }

  /** Reads the events for which an open budget had no room, when there is some, or no more is to be had. */
  #readOn(): void {
    while (this.#events.stopped) {
      if (this.#reader.isFull && this.#grow() !== null) {
        this.#unflushed = true; // the next flush waits for it
        return;
      }
      if (this.#reader.readPostponed()) {
        this.#unflushed = true;
        if (this.#reader.isFull) continue;
      }
      this.#events.goOn();
    }
    if (this.#reader.done) this.#settleByReader();
    else this.#ended?.();
  }

  event(payload: string, namedError: boolean): void {
    this.#anyEvent = true;
    this.#heard = true;
    this.#unflushed = true;
    this.#reader.event(payload, namedError);
    if (this.#reader.isFull) this.#events.stop();
  }

  match(bytes: Buffer, start: number, end: number): number {
    return this.#reader.match(bytes, start, end);
  }

  take(bytes: Buffer): void {
    this.#heard = true;
    this.#unflushed = true;
    this.#reader.take(bytes);
    if (this.#reader.isFull) this.#events.stop();
  }

  tooLong(): void {
    this.#reader.fail(nodeFailed("line over 4 MiB"));
  }

  readEnd(): void {
    if (this.#settled) return;
    if (this.#reader.finished)
      this.#finishTimer ??= this.#later(this.#parts.limits.afterFinishMs, () => this.#settleByReader());
    if (this.#unflushed) lastInTurn(this.#endRead);
  }

  end(): void {
    if (this.#settled) return;
    if (this.#status !== 200) return this.#fail(this.#failureOfErrorBody());
    if (this.#events.stopped) return this.#endLater(() => this.end());
    this.#events.finish();
    this.#wordless = !this.#anyEvent;
    this.#settleByReader();
  }

  fault(fault: ExchangeFault): void {
    if (this.#settled) return;
    if (this.#events.stopped) return this.#endLater(() => this.fault(fault));
    const { kind, cause } = fault;
    if (kind === "unreachable") {
      return this.#settle(this.#reader.fail(nodeAway(this.#parts.ask, cause)), true);
    }
    if (this.#status !== 0 && this.#status !== 200) return this.#fail(this.#failureOfErrorBody());
    // The answer was complete, only its connection was not closed in form: the finish reason decides.
    if (this.#reader.finished) return this.#settleByReader();
    this.#brokeOff = true;
    this.#fail(nodeFailed(cause, kind === "no-reply"));
  }

  /** No read follows at whose end it could be looked for more of an open budget. */
  #endLater(end: () => void): void {
    this.#ended = end;
    lastInTurn(this.#endRead);
  }

  readonly #endRead = (): void => {
    if (this.#settled || this.#paused) return;
    this.#readOn();
    this.#flushRead();
  };

  /** What was read before the node heard that it is to pause waits for the client. */
  readonly #flushRead = (): void => {
    if (this.#settled || this.#paused) return;
    try {
      this.#flush();
    } catch (thrown) {
      this.#fail(nodeFailed((thrown as Error).name));
    }
  };

  /** Gives what one read brought, and stops reading while the client is slow. */
  #flush(): void {
    if (!this.#unflushed) return;
    this.#unflushed = false;
    if (!this.#begun && this.#reader.begun) {
      this.#begun = true;
      this.#parts.began?.();
    }
    const grown = this.#grow();
    const flushed = this.#parts.sink.flush();
    const caughtUp = grown === null || flushed === null ? (grown ?? flushed) : Promise.all([grown, flushed]);
    if (caughtUp === null || this.#settled) return;
    this.#paused = true;
    this.#exchange?.pause();
    const resume = (): void => {
      this.#paused = false;
      this.#heard = true;
      if (this.#settled) return;
      this.#readOn();
      if (this.#settled) return;
      this.#exchange?.resume();
      this.#flushRead();
    };
    caughtUp.then(resume, resume);
  }

  /** An error of ours ends this answer alone. */
  #grow(): Promise<void> | null {
    const failed = (thrown: unknown): void => this.#fail(nodeFailed((thrown as Error).name));
    try {
      return this.#reader.grow()?.catch(failed) ?? null;
    } catch (thrown) {
      failed(thrown);
      return null;
    }
  }

  #failureOfErrorBody(): Failure {
    return failureOfStatus(this.#parts.ask, this.#status, this.#errorBody?.text ?? "");
  }

  #fail(failure: Failure): void {
    this.#exchange?.abort();
    this.#settle(this.#reader.fail(failure));
  }

  /** The reader wants nothing more, or nothing more comes. */
  #settleByReader(): void {
    if (this.#settled) return;
    const ending = this.#reader.ending();
    // After [DONE] the connection is about to end in form; after a failure or a cut the node must be stopped.
    if (ending.kind === "end" && this.#reader.closedByNode) this.#exchange?.release(drainMs);
    else this.#exchange?.abort();
    this.#settle(ending);
  }

  #settle(ending: Ending, unreachable = false): void {
    if (this.#settled) return;
    this.#flushRead();
    if (this.#settled) return; // its sink failed
    this.#settled = true;
    this.#parts.cancelSignal.removeEventListener("abort", this);
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#finishTimer !== null) clearTimeout(this.#finishTimer);
    const { failure } = this.#reader;
    const overloaded = this.#status === 429 || this.#status === 503;
    const responded = this.#status !== 0 && !this.#brokeOff;
    this.#resolve({
      ending,
      failure: ending.kind === "failed" ? failure : null,
      unreachable,
      responded,
      overloaded,
      wordless: this.#wordless && ending.kind === "failed",
    });
  }

  /** Silence is measured in quarters of the limit, so that no token has to read the clock; a paused node is not silent. */
  #watch(): void {
    const { firstPieceMs, stallMs } = this.#parts.limits;
    const limitMs = this.#reader.begun ? stallMs : firstPieceMs;
    this.#timer = this.#later(limitMs / 4, () => {
      this.#silentQuarters = this.#heard || this.#paused ? 0 : this.#silentQuarters + 1;
      this.#heard = false;
      if (this.#silentQuarters < 4) this.#watch();
      else this.#fail(nodeFailed(this.#reader.begun ? "stalled" : "no answer in time"));
    });
  }

  #later(ms: number, work: () => void): ReturnType<typeof setTimeout> {
    return limitAtEndOfTurn(ms, () => {
      if (!this.#settled) work();
    });
  }
}
