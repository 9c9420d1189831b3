// Structured output: checks the finished answer of the round below against the client's format. An answer that does not fit
// is requested again where nothing of it was sent. In a stream the text has already gone out, so a misfit is the end, and
// what was delivered is charged: a format that nothing fits would otherwise make every answer free.
//
//   (1) the format cannot be used                                 -> 400 before a node is asked
//   (2) cut by its budget, a stop string or a filter; a tool
//       call; a refusal                                           -> unchanged: it does not claim to be what was asked for
//   (3) it fits                                                   -> unchanged
//   (4) a stream                                                  -> an error event, what was delivered is charged
//   (5) the last repeat, or no generation is left                 -> 500, nothing is charged
//   (6) otherwise                                                 -> the same again, with what did not fit
import { mayAskAgain } from "../../core/generation-budget.ts";
import type { Log } from "../../core/log.ts";
import { refusals, refuse } from "../../core/refusals.ts";
import { forcedTool } from "../../core/sent-tools.ts";
import type { AccountId, Ask, Ending, Piece, Refusal, Sink, Turn } from "../../core/types.ts";
import { billedRepeat } from "../../core/usage.ts";
import { isBeginning } from "../../nodes/request-messages.ts";
import type { Checker, CheckResult } from "./answer-checker.ts";
import type { Round } from "../round.ts";

/** How often an answer that does not fit is requested again: neither billed nor counted in usage. */
const answerRepeatsMax = 2;

export type StructuredOutputParts = Readonly<{
  checker: Checker;
  account: AccountId;
  log: Log;
  /** Called for each answer that is requested again. */
  repeated?: () => void;
}>;

type Ended = Extract<Ending, { kind: "end" }>;
type Failed = Extract<Ending, { kind: "failed" }>;

/** What must fit: the answer's text, or the arguments of a tool that the client forces as a form to fill in. */
type Form = Readonly<{ tool: string | null; schema: string | null }>;

/** True for requests whose answers must be checked; the others need only their own round. */
export const wantsForm = (ask: Ask): boolean => ask.format !== null || formTool(ask) !== null;

/** A round whose answers fit the format of their Ask; an Ask without one goes straight to `round`. */
export function structuredOutput(round: Round, parts: StructuredOutputParts): Round {
  return async (ask, sink) => {
    const form = formOf(ask);
    if (form === null) return round(ask, sink);
    const { checker, account } = parts;
    if (form.schema !== null) {
      const unusable = refusalOf(await checker.check({ schema: form.schema, text: null }, account), ask);
      if (unusable !== null) return failed(unusable);
    }
    return ask.stream ? once(round, ask, sink, form, parts) : repeatedly(round, ask, sink, form, parts);
  };
}

async function once(round: Round, ask: Ask, sink: Sink, form: Form, parts: StructuredOutputParts): Promise<Ending> {
  const answer = new FormText(form);
  const ending = await round(ask, {
    piece(piece) {
      answer.piece(piece);
      sink.piece(piece);
    },
    flush: () => sink.flush(),
  });
  if (!isComplete(ending, answer)) return ending;
  const result = await checked(answer.text, ask, form, parts);
  const refusal = refusalOf(result, ask);
  if (refusal === null) return ending;
  parts.log("warn", "structured output did not fit", { model: ask.model.id, streamed: true });
  // A check that is too slow is the schema's fault; a check that cannot run is ours.
  if (result.verdict === "failed") return failed(refusal);
  return { ...failed(refusal), delivered: { usage: ending.usage, estimated: ending.estimated } };
}

async function repeatedly(
  round: Round,
  ask: Ask,
  sink: Sink,
  form: Form,
  parts: StructuredOutputParts,
): Promise<Ending> {
  const { log, repeated } = parts;
  let asked = ask;
  let first: Ended | null = null;
  for (let repeats = 0; ; repeats++) {
    const pieces: Piece[] = [];
    const answer = new FormText(form);
    const ending = await round(asked, {
      piece(piece) {
        pieces.push(piece);
        answer.piece(piece);
      },
      flush: () => null,
    });
    if (first !== null && isTooLong(ending)) return failed(refuse("answer_misfit"));
    if (ending.kind === "failed") return ending;
    const result = isComplete(ending, answer) ? await checked(answer.text, asked, form, parts) : fits;
    const refusal = refusalOf(result, ask);
    if (refusal === null) {
      for (const piece of pieces) sink.piece(piece);
      await sink.flush();
      return first === null ? ending : billedRepeat(first, ending);
    }
    log("warn", "structured output did not fit", { model: ask.model.id, streamed: false, repeats });
    const mayRepeat = repeats < answerRepeatsMax && mayAskAgain(ask);
    if (result.verdict !== "misfit" || !mayRepeat || ending.kind !== "end") return failed(refusal);
    repeated?.();
    first ??= ending;
    asked = { ...ask, turns: [...ask.turns, ...correction(answer.text, form, result.reason)] };
  }
}

/** Where the client began the answer, some engines write only the rest, and others all of it. */
async function checked(
  text: string,
  { turns }: Ask,
  { tool, schema }: Form,
  { checker, account }: StructuredOutputParts,
): Promise<CheckResult> {
  const alone = await checker.check({ schema, text }, account);
  const begun = turns.at(-1);
  if (alone.verdict !== "misfit" || tool !== null || !isBeginning(begun)) return alone;
  const whole = await checker.check({ schema, text: begun.content + text }, account);
  return whole.verdict === "misfit" ? alone : whole;
}

const fits: CheckResult = { verdict: "fits" };
const failed = (refusal: Refusal): Failed => ({ kind: "failed", refusal, elsewhere: false });

/** The model's own answer and what is wrong with it, because at temperature 0 the same question gets the same answer. */
function correction(text: string, { tool }: Form, reason: string): readonly Turn[] {
  const again = tool === null ? "Give the whole answer again as JSON alone." : `Call ${tool} again.`;
  return [
    { role: "assistant", content: text, reasoning: null, calls: [] },
    { role: "user", content: `That does not fit the required format: ${reason}. ${again}` },
  ];
}

/** Whether the model presents this as its complete answer. */
function isComplete(ending: Ending, answer: FormText): ending is Ended {
  return ending.kind === "end" && ending.stopSequence === null && answer.isIn(ending);
}

/** The prompt with the misfit does not fit the node, although the client's own prompt did. */
const isTooLong = (ending: Ending): boolean =>
  ending.kind === "failed" && refusals[ending.refusal.refusal].code === "context_length_exceeded";

function refusalOf(result: CheckResult, ask: Ask): Refusal | null {
  switch (result.verdict) {
    case "fits":
      return null;
    case "misfit":
      return refuse("answer_misfit");
    // A tool's parameters are no format: servers have always accepted unreadable ones.
    case "unusable":
      return ask.format === null
        ? null
        : refuse("malformed", { reason: `The JSON Schema cannot be used: ${result.reason}` });
    case "slow":
      return ask.format === null
        ? null
        : refuse("malformed", { reason: "The JSON Schema is too complex: checking against it takes too long" });
    case "failed":
      return refuse("internal");
    default:
      return result satisfies never;
  }
}

// ---------------------------------------------------------------- Forms

function formOf(ask: Ask): Form | null {
  const tool = formTool(ask);
  if (tool !== null) return { tool: tool.name, schema: JSON.stringify(tool.parameters) };
  if (ask.format === null) return null;
  return { tool: null, schema: ask.format.kind === "json_object" ? null : JSON.stringify(ask.format.schema) };
}

/** The tool that the client forces, whose parameters are the form. The gateway's own wish for a call does not count. */
function formTool({ tools, toolChoice, ...ask }: Ask): Ask["tools"][number] | null {
  const isWish = typeof toolChoice === "object" && toolChoice.mayAnswer === true;
  return isWish ? null : forcedTool({ ...ask, tools, toolChoice });
}

class FormText {
  readonly #tool: string | null;
  readonly #insides: string[] = [];
  #calls = 0;
  #refused = false;

  constructor({ tool }: Form) {
    this.#tool = tool;
  }

  piece(piece: Piece): void {
    if (piece.kind === "call") this.#calls++;
    this.#refused ||= piece.kind === "refusal";
    const isForm = this.#tool === null ? piece.kind === "text" : piece.kind === "call-arguments" && piece.index === 0;
    if (isForm) this.#insides.push((piece as Extract<Piece, { literal: string }>).literal.slice(1, -1));
  }

  /** A tool as a form needs its call; a text as a form ends without any. */
  isIn({ reason }: Ended): boolean {
    if (this.#refused) return false;
    return this.#tool === null ? reason === "stop" && this.#calls === 0 : reason === "tool_calls" && this.#calls === 1;
  }

  get text(): string {
    return JSON.parse(`"${this.#insides.join("")}"`) as string;
  }
}
