// One request to one node in any form: the watch for silence, faults, error statuses and the single outcome.
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import { limitAtEndOfTurn } from "../core/end-of-turn.ts";
import type { Ask, Ending, Sink } from "../core/types.ts";
import type { NodeClient } from "./client/client.ts";
import type { Exchange, ExchangeFault, ExchangeHandler, RequestPart } from "./client/exchange.ts";
import type { ResponseHeaders } from "./client/framing.ts";
import { ErrorBody } from "./error-body.ts";
import { failureOfStatus, nodeAway, nodeFailed } from "./failure/failure.ts";
import type { Failure } from "./failure/failure.ts";

/** Time limits of a generation, in milliseconds; node-endpoint.ts says why. */
export type GenerationLimits = Readonly<{ firstPieceMs: number; stallMs: number; afterFinishMs: number }>;

/** How a generation went, for the node's health and the log; the Ending is for the client. */
export type ExchangeOutcome = Readonly<{
  ending: Ending;
  failure: Failure | null;
  unreachable: boolean;
  /** A status came and the response did not break off later, so the node was reachable. */
  responded: boolean;
  overloaded: boolean;
  /** It began a stream and properly ended it without an event. */
  wordless: boolean;
  /** The node does not route the path, so another path may work. */
  unrouted: boolean;
}>;

export type ExchangeParts = Readonly<{
  ask: Ask;
  /** Head and body, in one or more parts. */
  request: readonly RequestPart[];
  client: NodeClient;
  limits: GenerationLimits;
  cancelSignal: AnyCancelSignal;
  sink: Sink;
  /** Called once, when the first pieces are there. */
  began?: () => void;
}>;

/** Reads the answer. Its first failure stays. */
interface AnswerSource {
  readonly begun: boolean;
  readonly failure: Failure | null;
  fail(failure: Failure): Ending;
  cancelled(): Ending;
}

/** Resolves `outcome` once and never rejects. */
export abstract class NodeExchange<Answer extends AnswerSource> implements ExchangeHandler, EventListenerObject {
  readonly outcome: Promise<ExchangeOutcome>;
  readonly #resolve: (outcome: ExchangeOutcome) => void;
  readonly #parts: ExchangeParts;
  protected readonly answer: Answer;
  protected exchange: Exchange | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #finishTimer: ReturnType<typeof setTimeout> | null = null;
  protected settled = false;
  protected status = 0;
  #errorBody: ErrorBody | null = null;
  #brokeOff = false;
  #begun = false;
  /** The node said something since the watch last looked. */
  protected heard = false;
  protected paused = false;
  #silentQuarters = 0;
  protected wordless = false;

  constructor(parts: ExchangeParts, answer: Answer) {
    const { promise, resolve } = Promise.withResolvers<ExchangeOutcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#parts = parts;
    this.answer = answer;
  }

  /** Whether the stall limit applies rather than the limit for the first piece. */
  protected abstract get hasBegun(): boolean;
  /** Handle the head, body and end of a response with status 200. */
  protected abstract answerHead(headers: ResponseHeaders): void;
  protected abstract answerBody(bytes: Buffer, start: number, end: number): void;
  protected abstract answerEnd(): void;
  abstract readEnd(): void;

  start(): Promise<ExchangeOutcome> {
    const { cancelSignal, client, request } = this.#parts;
    if (cancelSignal.aborted) this.settle(this.answer.cancelled());
    else {
      cancelSignal.addEventListener("abort", this);
      this.#watch();
      this.exchange = client.send(request, this);
    }
    return this.outcome;
  }

  mayBeSentAgain(): boolean {
    return this.#parts.ask.generations?.take() !== false;
  }

  /** The client left. */
  handleEvent(): void {
    this.exchange?.abort();
    this.settle(this.answer.cancelled());
  }

  head(status: number, headers: ResponseHeaders): void {
    this.status = status;
    if (status === 200) return this.answerHead(headers);
    // The body says why, if it comes soon.
    this.finishWithin(() => this.fail(this.#failureOfErrorBody()));
  }

  body(bytes: Buffer, start: number, end: number): void {
    if (this.settled) return;
    if (this.status === 200) return this.answerBody(bytes, start, end);
    this.#errorBody ??= new ErrorBody();
    if (!this.#errorBody.keep(bytes, start, end)) this.fail(this.#failureOfErrorBody());
  }

  end(): void {
    if (this.settled) return;
    if (this.status === 200) this.answerEnd();
    else this.fail(this.#failureOfErrorBody());
  }

  fault({ kind, cause }: ExchangeFault): void {
    if (this.settled) return;
    if (kind === "unreachable") return this.settle(this.answer.fail(nodeAway(this.#parts.ask, cause)), true);
    if (this.status !== 0 && this.status !== 200) return this.fail(this.#failureOfErrorBody());
    this.#brokeOff = true;
    this.fail(nodeFailed(cause, this.isUnanswered(kind)));
  }

  /** Whether another node may be asked after this fault. */
  protected abstract isUnanswered(kind: ExchangeFault["kind"] | "silent"): boolean;

  protected fail(failure: Failure): void {
    this.exchange?.abort();
    this.settle(this.answer.fail(failure));
  }

  protected settle(ending: Ending, unreachable = false): void {
    if (this.settled) return;
    this.settled = true;
    this.#parts.cancelSignal.removeEventListener("abort", this);
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#finishTimer !== null) clearTimeout(this.#finishTimer);
    const { status } = this;
    const failure = ending.kind === "failed" ? this.answer.failure : null;
    this.#resolve({
      ending,
      failure,
      unreachable,
      responded: status !== 0 && !this.#brokeOff,
      overloaded: status === 429 || status === 503,
      wordless: this.wordless && failure !== null,
      unrouted: status === 404 && failure?.lacksModel !== true,
    });
  }

  protected noteBegun(): void {
    if (this.#begun || !this.answer.begun) return;
    this.#begun = true;
    this.#parts.began?.();
  }

  /** Runs `finish` unless the exchange has settled by then. Only the first call counts. */
  protected finishWithin(finish: () => void): void {
    this.#finishTimer ??= this.#later(this.#parts.limits.afterFinishMs, finish);
  }

  #failureOfErrorBody(): Failure {
    return failureOfStatus(this.#parts.ask, this.status, this.#errorBody?.text ?? "");
  }

  /** Measures silence in quarters of the limit, so that no token has to read the clock. A paused node is not silent. */
  #watch(): void {
    const { firstPieceMs, stallMs } = this.#parts.limits;
    const limitMs = this.hasBegun ? stallMs : firstPieceMs;
    this.#timer = this.#later(limitMs / 4, () => {
      this.#silentQuarters = this.heard || this.paused ? 0 : this.#silentQuarters + 1;
      this.heard = false;
      if (this.#silentQuarters < 4) this.#watch();
      else
        this.fail(this.hasBegun ? nodeFailed("stalled") : nodeFailed("no answer in time", this.isUnanswered("silent")));
    });
  }

  #later(ms: number, work: () => void): ReturnType<typeof setTimeout> {
    return limitAtEndOfTurn(ms, () => {
      if (!this.settled) work();
    });
  }
}
