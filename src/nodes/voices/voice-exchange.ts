// One request for a transcription or for speech to one node, and its answer.
import { lastInTurn } from "../../core/end-of-turn.ts";
import type { Sink, Voice } from "../../core/types.ts";
import type { ResponseHeaders } from "../client/framing.ts";
import { type ExchangeOutcome, type ExchangeParts, NodeExchange } from "../node-exchange.ts";
import { VoiceAnswer } from "./voice-answer.ts";

/** Resolves once, never rejects. */
export const askForVoice = (parts: ExchangeParts, voice: Voice): Promise<ExchangeOutcome> =>
  new VoiceExchange(parts, voice).start();

class VoiceExchange extends NodeExchange<VoiceAnswer> {
  readonly #sink: Sink;
  #unflushed = false;

  constructor(parts: ExchangeParts, voice: Voice) {
    super(parts, new VoiceAnswer(parts.ask, voice, parts.sink));
    this.#sink = parts.sink;
  }

  protected override get hasBegun(): boolean {
    return this.status !== 0;
  }

  protected override answerHead(headers: ResponseHeaders): void {
    this.heard = true;
    this.answer.head(headers);
    if (this.answer.failure !== null) this.fail(this.answer.failure);
  }

  protected override answerBody(bytes: Buffer, start: number, end: number): void {
    this.heard = true;
    this.#unflushed = true;
    this.answer.push(bytes, start, end);
    this.noteBegun();
    if (this.answer.failure !== null) this.fail(this.answer.failure);
  }

  override readEnd(): void {
    if (this.#unflushed) lastInTurn(this.#flush);
  }

  /** Audio comes faster than it is played: the node waits while the client does. */
  readonly #flush = (): void => {
    if (this.settled || this.paused || !this.#unflushed) return;
    this.#unflushed = false;
    const caughtUp = this.#sink.flush();
    if (caughtUp === null) return;
    this.paused = true;
    this.exchange?.pause();
    const resume = (): void => {
      this.paused = false;
      this.heard = true;
      if (this.settled) return;
      this.exchange?.resume();
      this.#flush();
    };
    caughtUp.then(resume, resume);
  };

  protected override answerEnd(): void {
    const ending = this.answer.end();
    this.noteBegun();
    void this.#sink.flush();
    this.settle(ending);
  }

  protected override isUnanswered(): boolean {
    return !this.answer.begun;
  }
}
