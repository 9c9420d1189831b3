// One request for vectors or scores to one node, and its answer: a single document, not a stream.
import type { AnyCancelSignal } from "../../core/cancel-signal.ts";
import type { InputsAsk } from "../../core/inputs.ts";
import { limitAtEndOfTurn } from "../../core/end-of-turn.ts";
import { inputsAnswerTurnBytes } from "../../core/limits.ts";
import { type Ending, noUsage, type Sink } from "../../core/types.ts";
import type { Exchange, ExchangeFault, ExchangeHandler, NodeClient, RequestPart } from "../client/client.ts";
import { ErrorBody } from "../error-body.ts";
import { type Failure, failureOfStatus, nodeAway, nodeFailed } from "../failure/failure.ts";
import type { GenerationLimits, Outcome } from "../generation.ts";
import { InputsAnswer } from "./inputs-answer.ts";

export type InputsParts = Readonly<{
  ask: InputsAsk;
  /** Head and body. */
  request: readonly RequestPart[];
  client: NodeClient;
  limits: GenerationLimits;
  cancelSignal: AnyCancelSignal;
  sink: Sink;
  /** Called once, when the first item is there. */
  began: () => void;
}>;

/** `unrouted`: it knows no such address, so that it may know another. */
export type InputsOutcome = Outcome & Readonly<{ unrouted: boolean }>;

/** Resolves once, never rejects. */
export function askForInputs(parts: InputsParts): Promise<InputsOutcome> {
  const exchange = new InputsExchange(parts);
  exchange.start();
  return exchange.outcome;
}

class InputsExchange implements ExchangeHandler, EventListenerObject {
  readonly #settled = Promise.withResolvers<InputsOutcome>();
  readonly #parts: InputsParts;
  readonly #answer: InputsAnswer;
  #exchange: Exchange | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #status = 0;
  #errorBody: ErrorBody | null = null;
  #begun = false;
  #heard = false;
  #silentQuarters = 0;
  #over = false;
  #brokeOff = false;
  /** Bytes of this turn of the event loop. */
  #turnBytes = 0;
  #resting = false;

  constructor(parts: InputsParts) {
    this.#parts = parts;
    this.#answer = new InputsAnswer(parts.ask, parts.sink);
  }

  get outcome(): Promise<InputsOutcome> {
    return this.#settled.promise;
  }

  start(): void {
    const { cancelSignal, client, request } = this.#parts;
    if (cancelSignal.aborted) return this.#settle(cancelled);
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
    this.#settle(cancelled);
  }

  head(status: number): void {
    this.#status = status;
    this.#heard = true;
  }

  body(bytes: Buffer, start: number, end: number): void {
    if (this.#over) return;
    this.#heard = true;
    if (this.#status !== 200) {
      this.#errorBody ??= new ErrorBody();
      if (!this.#errorBody.keep(bytes, start, end)) this.#fail(this.#failureOfErrorBody());
      return;
    }
    this.#turnBytes += end - start;
    this.#answer.push(bytes, start, end);
    if (!this.#begun && this.#answer.begun) {
      this.#begun = true;
      this.#parts.began();
    }
    if (this.#answer.failure !== null) this.#fail(this.#answer.failure);
  }

  /** A node that is quick has 6 MB ready at once, which would keep everybody else waiting for a quarter of a second. */
  readEnd(): void {
    if (this.#over || this.#resting || this.#turnBytes < inputsAnswerTurnBytes) return;
    this.#resting = true;
    this.#exchange?.pause();
    setImmediate(() => {
      this.#resting = false;
      this.#turnBytes = 0;
      if (!this.#over) this.#exchange?.resume();
    });
  }

  end(): void {
    if (this.#over) return;
    this.#settle(this.#status === 200 ? this.#answer.end() : this.#answer.fail(this.#failureOfErrorBody()));
  }

  fault({ kind, cause }: ExchangeFault): void {
    if (this.#over) return;
    if (kind === "unreachable") return this.#settle(this.#answer.fail(nodeAway(this.#parts.ask, cause)), true);
    if (this.#status !== 0 && this.#status !== 200) return this.#fail(this.#failureOfErrorBody());
    this.#brokeOff = true;
    this.#fail(nodeFailed(cause, !this.#answer.begun));
  }

  #failureOfErrorBody(): Failure {
    return failureOfStatus(this.#parts.ask, this.#status, this.#errorBody?.text ?? "");
  }

  #fail(failure: Failure): void {
    this.#exchange?.abort();
    this.#settle(this.#answer.fail(failure));
  }

  #settle(ending: Ending, unreachable = false): void {
    if (this.#over) return;
    this.#over = true;
    this.#parts.cancelSignal.removeEventListener("abort", this);
    if (this.#timer !== null) clearTimeout(this.#timer);
    const { failure } = this.#answer;
    this.#settled.resolve({
      ending,
      failure: ending.kind === "failed" ? failure : null,
      unreachable,
      responded: this.#status !== 0 && !this.#brokeOff,
      overloaded: this.#status === 429 || this.#status === 503,
      wordless: false,
      unrouted: this.#status === 404 && failure?.lacksModel !== true,
    });
  }

  /** As of a generation: silence is measured in quarters of the limit. */
  #watch(): void {
    const { firstPieceMs, stallMs } = this.#parts.limits;
    const limitMs = this.#status === 0 ? firstPieceMs : stallMs;
    this.#timer = limitAtEndOfTurn(limitMs / 4, () => {
      if (this.#over) return;
      this.#silentQuarters = this.#heard ? 0 : this.#silentQuarters + 1;
      this.#heard = false;
      if (this.#silentQuarters < 4) this.#watch();
      else this.#fail(nodeFailed(this.#status === 0 ? "no answer in time" : "stalled", this.#status === 0));
    });
  }
}

/** Nothing of it went out. */
const cancelled: Ending = { kind: "cancelled", usage: noUsage, estimated: false };
