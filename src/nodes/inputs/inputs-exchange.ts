// One request for vectors or scores to one node, and its answer: a single document, not a stream.
import type { InputsAsk } from "../../core/inputs.ts";
import { type ExchangeParts, NodeExchange, type ExchangeOutcome } from "../node-exchange.ts";
import { InputsAnswer } from "./inputs-answer.ts";

/** What is read of one answer before others have their turn: 10 ms where numbers become base64. */
export const inputsAnswerTurnBytes = 512 * 1024;

type InputsParts = ExchangeParts & Readonly<{ ask: InputsAsk }>;

/** Resolves once, never rejects. */
export const askForInputs = (parts: InputsParts): Promise<ExchangeOutcome> => new InputsExchange(parts).start();

class InputsExchange extends NodeExchange<InputsAnswer> {
  #turnBytes = 0;
  #resting = false;

  constructor(parts: InputsParts) {
    super(parts, new InputsAnswer(parts.ask, parts.sink));
  }

  /** A single document comes all at once, so it begins with its head. */
  protected override get hasBegun(): boolean {
    return this.status !== 0;
  }

  protected override answerHead(): void {
    this.heard = true;
  }

  protected override answerBody(bytes: Buffer, start: number, end: number): void {
    this.heard = true;
    this.#turnBytes += end - start;
    this.answer.push(bytes, start, end);
    this.noteBegun();
    if (this.answer.failure !== null) this.fail(this.answer.failure);
  }

  /** A quick node has 6 MB ready at once, which would stop every other stream for a quarter of a second. */
  override readEnd(): void {
    if (this.settled || this.#resting || this.#turnBytes < inputsAnswerTurnBytes) return;
    this.#resting = true;
    this.exchange?.pause();
    setImmediate(() => {
      this.#resting = false;
      this.#turnBytes = 0;
      if (!this.settled) this.exchange?.resume();
    });
  }

  protected override answerEnd(): void {
    this.settle(this.answer.end());
  }

  protected override isUnanswered(): boolean {
    return !this.answer.begun;
  }
}
