// One generation on one node: bytes in, Pieces out, one Ending. test/nodes/generation.test.ts has its 30 failures.
import { lastInTurn } from "../core/end-of-turn.ts";
import type { Ending, Sink } from "../core/types.ts";
import type { ExchangeFault } from "./client/exchange.ts";
import { EventParser } from "./client/events.ts";
import type { EventHandler, KnownEvents } from "./client/events.ts";
import { nodeFailed } from "./failure/failure.ts";
import type { ResponseHeaders } from "./client/framing.ts";
import type { KnownShapes } from "./fast-path/known-shapes.ts";
import { type ExchangeParts, NodeExchange, type ExchangeOutcome } from "./node-exchange.ts";
import { AnswerReader, type Channel } from "./reader.ts";
import type { Expected } from "./request.ts";

export type GenerationParts = ExchangeParts &
  Readonly<{
    expected: Expected;
    thinkTagOpened: boolean;
    /** What earlier answers of this model taught about this node. */
    shapes: KnownShapes<Channel>;
  }>;

/** A complete answer's connection has this long to end properly and be used again. */
const drainMs = 1_000;

/** Runs the generation; resolves once, never rejects. */
export const askForStream = (parts: GenerationParts): Promise<ExchangeOutcome> => new Generation(parts).start();

class Generation extends NodeExchange<AnswerReader> implements EventHandler, KnownEvents {
  readonly #sink: Sink;
  readonly #events: EventParser;
  #unflushed = false;
  /** An event was parsed. Events recognized by their bytes only come later. */
  #anyEvent = false;
  /** Runs when the body ended before all of its events were read. */
  #ended: (() => void) | null = null;

  constructor(parts: GenerationParts) {
    const { ask, sink, thinkTagOpened, shapes, expected } = parts;
    const { textNamesCall, stops } = expected;
    super(parts, new AnswerReader(ask, sink, { textNamesCall, stops, thinkTagOpened, shapes }));
    this.#sink = sink;
    this.#events = new EventParser(this, this);
  }

  protected override get hasBegun(): boolean {
    return this.answer.begun;
  }

  protected override answerHead(headers: ResponseHeaders): void {
    const type = headers.get("content-type") ?? "";
    if (!/^text\/event-stream(?:$|[;\s])/i.test(type)) this.fail(nodeFailed("200 without an event stream"));
  }

  protected override answerBody(bytes: Buffer, start: number, end: number): void {
    this.#events.feed(bytes, start, end);
    this.#readOn();
  }

  /** Reads events that an open budget had no room for, once it has grown or cannot grow any more. */
  #readOn(): void {
    while (this.#events.stopped) {
      if (this.answer.isFull && this.#grow() !== null) {
        this.#unflushed = true; // the next flush waits for it
        return;
      }
      if (this.answer.readPostponed()) {
        this.#unflushed = true;
        if (this.answer.isFull) continue;
      }
      this.#events.goOn();
    }
    if (this.answer.done) this.#settleByReader();
    else this.#ended?.();
  }

  event(payload: string, namedError: boolean): void {
    this.#anyEvent = true;
    this.heard = true;
    this.#unflushed = true;
    this.answer.event(payload, namedError);
    if (this.answer.isFull) this.#events.stop();
  }

  match(bytes: Buffer, start: number, end: number): number {
    return this.answer.match(bytes, start, end);
  }

  take(bytes: Buffer): void {
    this.heard = true;
    this.#unflushed = true;
    this.answer.take(bytes);
    if (this.answer.isFull) this.#events.stop();
  }

  tooLong(): void {
    this.answer.fail(nodeFailed("line over 4 MiB"));
  }

  override readEnd(): void {
    if (this.settled) return;
    if (this.answer.finished) this.finishWithin(() => this.#settleByReader());
    if (this.#unflushed) lastInTurn(this.#endRead);
  }

  protected override answerEnd(): void {
    if (this.#events.stopped) return this.#endLater(() => this.end());
    this.#events.finish();
    this.wordless = !this.#anyEvent;
    this.#settleByReader();
  }

  override fault(fault: ExchangeFault): void {
    if (this.settled) return;
    if (this.#events.stopped) return this.#endLater(() => this.fault(fault));
    // The answer was complete and only its connection ended improperly: the finish reason decides.
    if (this.answer.finished) return this.#settleByReader();
    super.fault(fault);
  }

  protected override isUnanswered(kind: ExchangeFault["kind"] | "silent"): boolean {
    return kind === "no-reply";
  }

  /** No further read will come to look for more of an open budget. */
  #endLater(end: () => void): void {
    this.#ended = end;
    lastInTurn(this.#endRead);
  }

  readonly #endRead = (): void => {
    if (this.settled || this.paused) return;
    this.#readOn();
    this.#flushRead();
  };

  /** What was read before the node learned of the pause waits for the client. */
  readonly #flushRead = (): void => {
    if (this.settled || this.paused) return;
    try {
      this.#flush();
    } catch (thrown) {
      this.fail(nodeFailed((thrown as Error).name));
    }
  };

  /** Passes on what one read brought, and pauses reading while the client is slow. */
  #flush(): void {
    if (!this.#unflushed) return;
    this.#unflushed = false;
    this.noteBegun();
    const grown = this.#grow();
    const flushed = this.#sink.flush();
    const caughtUp = grown === null || flushed === null ? (grown ?? flushed) : Promise.all([grown, flushed]);
    if (caughtUp === null || this.settled) return;
    this.paused = true;
    this.exchange?.pause();
    const resume = (): void => {
      this.paused = false;
      this.heard = true;
      if (this.settled) return;
      this.#readOn();
      if (this.settled) return;
      this.exchange?.resume();
      this.#flushRead();
    };
    caughtUp.then(resume, resume);
  }

  /** An error of our own ends only this answer. */
  #grow(): Promise<void> | null {
    const failed = (thrown: unknown): void => this.fail(nodeFailed((thrown as Error).name));
    try {
      return this.answer.grow()?.catch(failed) ?? null;
    } catch (thrown) {
      failed(thrown);
      return null;
    }
  }

  /** The reader needs nothing more, or nothing more will come. */
  #settleByReader(): void {
    if (this.settled) return;
    const ending = this.answer.ending();
    // After [DONE] the connection is about to end properly. After a failure or a cut the node must be stopped.
    if (ending.kind === "end" && this.answer.closedByNode) this.exchange?.release(drainMs);
    else this.exchange?.abort();
    this.settle(ending);
  }

  protected override settle(ending: Ending, unreachable = false): void {
    if (this.settled) return;
    this.#flushRead(); // fails the exchange where its sink fails
    super.settle(ending, unreachable);
  }
}
