// Several answers to one request: rounds of their own on any nodes, interleaved into one sink. One hold, one charge: a
// prompt is charged once, every answer's output is charged.
import type { AnyCancelSignal, CancelSignal } from "../core/cancel-signal.ts";
import { answersOf, type SeveralAsk } from "../core/answer-budget.ts";
import { answersAtOnceMax } from "../core/limits.ts";
import {
  type Answers,
  type Ask,
  type Delivered,
  type Ending,
  noUsage,
  type Piece,
  type PreparedTurns,
  type PromptBlocks,
  type Refusal,
  type Sink,
  type Turn,
} from "../core/types.ts";
import { sumOfUsage } from "../core/usage.ts";
import { encodeTexts } from "../tokens/encoded-texts.ts";
import { promptBlocks } from "../nodes/queue/prompt-blocks.ts";
import type { Round } from "./round.ts";

/** `stop` ends all rounds; after a failure, with its Refusal. `round` creates the round of each answer by index. */
export async function severalAnswers(
  ask: SeveralAsk,
  sink: Sink,
  clientSignal: AnyCancelSignal,
  stop: CancelSignal,
  round: (index: number) => Round,
): Promise<Ending> {
  const leave = (): void => stop.abort(clientSignal.reason);
  if (clientSignal.aborted) leave();
  else clientSignal.addEventListener("abort", leave);
  const count = answersOf(ask);
  const askOf = askOfEach(ask);
  const answers: AnswerState[] = [];
  const mixed = new Mixed(sink);
  let failed: Failed | null = null;
  const goOn = async (): Promise<void> => {
    while (answers.length < count && !stop.aborted) {
      const index = answers.length;
      const answer: AnswerState = { ending: null, begun: false };
      answers.push(answer);
      const ending = await round(index)(askOf(index), mixed.of(index, answer));
      answer.ending = ending;
      if (ending.kind === "end") mixed.end(index, ending.reason);
      if (ending.kind !== "failed" || stop.aborted) continue;
      failed = ending;
      stop.abort(ending.refusal);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(count, answersAtOnceMax) }, goOn));
  } finally {
    clientSignal.removeEventListener("abort", leave);
  }
  const delivered = usageOf(answers, ask.answers);
  if (failed !== null) return failedWith(failed, delivered);
  const first = answers[0]?.ending;
  if (stop.aborted || first?.kind !== "end") return { kind: "cancelled", ...delivered };
  return { kind: "end", reason: first.reason, stopSequence: null, ...delivered };
}

type Failed = Extract<Ending, { kind: "failed" }>;

const failedWith = ({ refusal, delivered: own }: Failed, delivered: Delivered): Failed => ({
  kind: "failed",
  refusal,
  elsewhere: false,
  ...(own === undefined ? {} : { delivered }),
});

type AnswerState = { ending: Ending | null; begun: boolean };

/** The usage of all answers. Those without a byte sent before the client left are not charged. */
function usageOf(answers: readonly AnswerState[], { each }: Answers): Delivered {
  let usage = noUsage;
  let estimated = false;
  let last = -1;
  for (const [index, { ending, begun }] of answers.entries()) {
    const used = ending?.kind === "failed" ? ending.delivered : ending;
    if (used == null || (ending?.kind === "cancelled" && !begun)) continue;
    const prompt = Math.floor(index / each);
    usage = sumOfUsage(usage, prompt === last ? { ...used.usage, ...noInput } : used.usage);
    estimated ||= used.estimated;
    last = prompt;
  }
  return { usage, estimated };
}

const noInput = { inputFresh: 0, inputCached: 0, cacheWritten: 0 };

/** Announces whose piece follows, where the previous one was another answer's. */
class Mixed {
  readonly #sink: Sink;
  #current = 0;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  of(index: number, answer: AnswerState): Sink {
    const sink = this.#sink;
    const begun = (): void => {
      answer.begun = true;
      this.#turnTo(index);
    };
    return {
      piece: (piece: Piece) => {
        begun();
        sink.piece(piece);
      },
      ...(sink.literal === undefined
        ? {}
        : {
            literal: (kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number) => {
              begun();
              sink.literal!(kind, bytes, start, end);
            },
          }),
      flush: () => sink.flush(),
    };
  }

  end(index: number, reason: Extract<Ending, { kind: "end" }>["reason"]): void {
    this.#turnTo(index);
    this.#sink.piece({ kind: "answer-end", reason });
    void this.#sink.flush();
  }

  #turnTo(index: number): void {
    if (index === this.#current) return;
    this.#current = index;
    this.#sink.piece({ kind: "answer", index });
  }
}

// ---------------------------------------------------------------- The request of each answer

function askOfEach(ask: SeveralAsk): (index: number) => Ask {
  const { answers, ...one } = ask;
  const { prompts, each } = answers;
  const promptOf = prompts === 1 ? () => one : promptsOf(one);
  const { seed } = one.sampling;
  return (index) => {
    const prompt = promptOf(Math.floor(index / each));
    const again = index % each;
    // With the same seed, all answers to a prompt would be equal.
    return seed === undefined || again === 0
      ? prompt
      : { ...prompt, sampling: { ...one.sampling, seed: seed + again } };
  };
}

function promptsOf(ask: Ask): (prompt: number) => Ask {
  const { turns, prepared } = ask;
  if (prepared !== undefined) {
    const written = linesOf(prepared.messages);
    return (prompt) => {
      const { [prompt]: json = Buffer.alloc(0) } = written;
      return { ...ask, prepared: new PreparedPrompt(json), bodyBytes: json.length };
    };
  }
  return (prompt) => {
    const turn = turns[prompt]!;
    return { ...ask, turns: [turn], bodyBytes: bytesOf(turn) };
  };
}

/** A token is a few bytes of JSON. */
const bytesPerToken = 4;
const bytesOf = (turn: Turn): number =>
  turn.role === "prompt" && turn.tokens !== null
    ? turn.tokens.length * bytesPerToken
    : Buffer.byteLength(typeof turn.content === "string" ? turn.content : "");

const newline = 0x0a;

/** The Worker wrote each prompt's JSON on its own line. */
function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from <= bytes.length;) {
    const found = bytes.indexOf(newline, from);
    const end = found < 0 ? bytes.length : found;
    lines.push(bytes.subarray(from, end));
    from = end + 1;
  }
  return lines;
}

/** One of the prompts of a large body. The request owns the body itself. */
class PreparedPrompt implements PreparedTurns {
  readonly messages: Buffer;
  readonly systemEnd = -1;
  readonly endsOpen = false;
  readonly images = 0;
  readonly imageBytes = 0;
  readonly unready = [];

  constructor(json: Buffer) {
    this.messages = json;
  }

  get blocks(): PromptBlocks {
    return promptBlocks([{ role: "prompt", content: this.messages.toString(), tokens: null }], []);
  }

  get #isText(): boolean {
    return this.messages[0] === 0x22; // a quote
  }

  withMedia(): never {
    throw new Error("a prompt has no media");
  }

  async render(): Promise<Awaited<ReturnType<PreparedTurns["render"]>> | Refusal> {
    const literal = this.#isText ? this.messages.toString() : null;
    if (literal !== null) return { texts: encodeTexts([JSON.parse(literal) as string]), extraTokens: 0 };
    let extraTokens = 1;
    for (const byte of this.messages) if (byte === 0x2c) extraTokens += 1; // commas between tokens
    return { texts: encodeTexts([]), extraTokens };
  }

  [Symbol.dispose](): void {}
}
