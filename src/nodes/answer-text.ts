// Decides which of an answer's text and thoughts go out. White space that engines leave around thoughts and before calls is
// dropped, and so is everything from a stop sequence on that the node did not know.
//
//   nothing yet:        white space waits; text: it goes out as written; a thought or a call: it is dropped
//   after a thought,
//   after a call:       white space is dropped until text comes
//
// Once nothing needs watching any more, `plain` says so and literals may pass as bytes.
import type { Sink } from "../core/types.ts";
import { mayBeginBlank } from "./think-tags.ts";
import { StopSequences } from "./stop-sequences.ts";

/** The counts when a piece came. A client pays up to here when it gets nothing after it. */
export type Mark = Readonly<{ deltas: number; characters: number; output: number | undefined }>;

export type AnswerTextSink = Pick<Sink, "piece">;

const atStart: Mark = { deltas: 0, characters: 0, output: undefined };
/** Most answers hold nothing back and share this list. */
const none: never[] = [];

type Held = Readonly<{ literal: string; logprobs: string | null }>;
type Pending = Held & Readonly<{ text: string; mark: Mark }>;

export class AnswerText {
  readonly #sink: AnswerTextSink;
  readonly #stops: StopSequences | null;
  readonly #markNow: () => Mark;
  /** White space before anything else. */
  #blanks: Held[] = none;
  /** Pieces that may hold the beginning of a stop sequence. */
  readonly #pending: Pending[];
  #before: "nothing" | "text" | "thought" | "call" = "nothing";
  /** Part of the current thought has gone out. */
  #thinks = false;
  #mark: Mark = atStart;
  #stopped: string | null = null;

  /** Calls `markNow` only where there are stop sequences. */
  constructor(stops: readonly string[], sink: AnswerTextSink, markNow: () => Mark) {
    this.#sink = sink;
    this.#markNow = markNow;
    this.#stops = stops.length === 0 ? null : new StopSequences(stops);
    this.#pending = this.#stops === null ? none : [];
  }

  /** The channel whose literals go out unchanged until something comes on another one. */
  get plain(): "text" | "reasoning" | null {
    if (this.#stops !== null) return null;
    if (this.#before === "text") return "text";
    return this.#thinks ? "reasoning" : null;
  }

  /** The stop sequence that ended the text; nothing follows it. */
  get stopped(): string | null {
    return this.#stopped;
  }

  get mark(): Mark {
    return this.#mark;
  }

  text(literal: string, logprobs: string | null): void {
    if (this.#before === "text") return this.#pass(literal, logprobs);
    const trimmed = trimmedStart(literal);
    if (trimmed === null) {
      if (this.#before === "nothing") this.#keepBlank({ literal, logprobs });
      return;
    }
    const kept = this.#before === "nothing" ? literal : trimmed;
    this.#before = "text";
    this.#thinks = false;
    for (const blank of this.#blanks) this.#pass(blank.literal, blank.logprobs);
    this.#blanks = none;
    this.#pass(kept, logprobs);
  }

  reasoning(literal: string): void {
    this.#interrupt("thought");
    if (this.#thinks) this.#sink.piece({ kind: "reasoning", literal });
    else {
      const trimmed = trimmedStart(literal);
      if (trimmed === null) return;
      this.#thinks = true;
      this.#sink.piece({ kind: "reasoning", literal: trimmed });
    }
  }

  call(): void {
    this.#interrupt("call");
    this.#thinks = false;
  }

  refusal(literal: string, logprobs: string | null): void {
    this.call();
    if (this.#stopped === null) this.#sink.piece({ kind: "refusal", literal, logprobs });
  }

  /** Nothing follows: what waited goes out as text. */
  end(): void {
    for (const { literal, logprobs } of this.#blanks) this.#pass(literal, logprobs);
    this.#blanks = none;
    this.#release();
  }

  #interrupt(by: "thought" | "call"): void {
    this.#blanks = none;
    this.#before = by;
    if (this.#stops === null) return;
    this.#release();
    this.#mark = this.#markNow();
  }

  #pass(literal: string, logprobs: string | null): void {
    if (this.#stopped !== null) return;
    if (this.#stops === null) return this.#sink.piece({ kind: "text", literal, logprobs });
    const text = JSON.parse(literal) as string;
    const found = this.#stops.find(text);
    this.#pending.push({ literal, logprobs, text, mark: this.#markNow() });
    if (found !== null) return this.#stop(found.sequence, text.length - found.end);
    let waiting = this.#stops.pending;
    let kept = this.#pending.length;
    while (waiting > 0) waiting -= this.#pending[--kept]!.text.length;
    for (const piece of this.#pending.splice(0, kept)) this.#give(piece);
  }

  /** The text so far ends with the sequence and `rest` more units. */
  #stop(sequence: string, rest: number): void {
    this.#stopped = sequence;
    let room = -sequence.length - rest;
    for (const { text } of this.#pending) room += text.length;
    for (const piece of this.#pending.splice(0)) {
      if (room <= 0) break;
      const whole = room >= piece.text.length;
      const begin = whole ? piece : { ...piece, literal: JSON.stringify(piece.text.slice(0, room)), logprobs: null };
      this.#give(begin);
      room -= piece.text.length;
    }
  }

  #keepBlank(blank: Held): void {
    if (this.#blanks.length === 0) this.#blanks = [blank];
    else this.#blanks.push(blank);
  }

  #release(): void {
    if (this.#stops === null) return;
    for (const piece of this.#pending.splice(0)) this.#give(piece);
    this.#stops.restart();
  }

  #give({ literal, logprobs, mark }: Held & Readonly<{ mark: Mark }>): void {
    this.#mark = mark;
    this.#sink.piece({ kind: "text", literal, logprobs });
  }
}

/** The literal without leading white space; null where it holds nothing else. */
function trimmedStart(literal: string): string | null {
  if (!mayBeginBlank(literal)) return literal;
  const text = JSON.parse(literal) as string;
  const kept = text.trimStart();
  if (kept === "") return null;
  return kept.length === text.length ? literal : JSON.stringify(kept);
}
