// Asks once more, in words, for what a node did not enforce: a JSON schema that it refuses, or a call that `tool_choice`
// demands and that it left out. Nothing of the first answer goes out, so nothing of it is charged.
//
//   (1) the schema is refused                              -> the same without it, its text in the prompt
//   (2) a call is demanded: output waits for it
//       (a) it comes, or the model refuses                 -> everything flows
//       (b) the answer ends without one, or with another   -> the same again, the demand in the prompt
//       (c) it ends otherwise: budget, stop string, filter -> unchanged
//   (3) (b) a second time, or no generation is left        -> an error that says so
import { mayAskAgain } from "../core/generation-budget.ts";
import type { Log } from "../core/log.ts";
import { refuse } from "../core/refusals.ts";
import type { Ask, Ending, Piece, Sink } from "../core/types.ts";
import { billedRepeat } from "../core/usage.ts";
import type { Round } from "./round.ts";

export type RetriedInWordsParts = Readonly<{
  log: Log;
  /** Called for each answer that is requested again. */
  repeated?: () => void;
}>;

export function retriedInWords(round: Round, { log, repeated }: RetriedInWordsParts): Round {
  const again = (model: string, what: string): void => {
    log("warn", "repeating a request in words, because the node did not enforce it", { model, what });
    repeated?.();
  };
  return (ask, sink) => {
    if (ask.tools.length === 0 && ask.format === null) return round(ask, sink); // there is nothing to enforce
    let refused = false;
    /** (1) */
    const held: Round = async (asked, sink) => {
      const described: Ask = { ...asked, inWords: { ...asked.inWords, schema: true } };
      if (refused) return round(described, sink);
      const ending = await round(asked, sink);
      if (ending.kind !== "failed" || ending.ofSchema !== true || asked.inWords?.schema === true) return ending;
      if (!mayAskAgain(asked)) return ending;
      refused = true;
      again(asked.model.id, "schema");
      const second = await round(described, sink);
      return isRefused(second) ? ending : second; // the added words may exceed the model's context
    };
    return demandsCall(ask) ? called(held, ask, sink, () => again(ask.model.id, "call")) : held(ask, sink);
  };
}

/** (2) and (3) */
async function called(round: Round, ask: Ask, sink: Sink, again: () => void): Promise<Ending> {
  const names = namesDemanded(ask);
  const waiting = new UntilCall(sink, names);
  const first = await round(ask, waiting);
  if (!waiting.endsWithout(first)) return waiting.released(first);
  if (!mayAskAgain(ask)) return notCalled;
  again();
  const second = new UntilCall(sink, names);
  const last = await round({ ...ask, inWords: { ...ask.inWords, call: true } }, second);
  if (isRefused(last) || second.endsWithout(last)) return notCalled;
  const ending = second.released(last);
  return ending.kind === "failed" ? ending : billedRepeat(first, ending);
}

const notCalled: Ending = { kind: "failed", refusal: refuse("not_called"), elsewhere: false };
const isRefused = (ending: Ending): boolean => ending.kind === "failed" && ending.ofRequest === true;

/** Whether the client has a right to a call. The gateway's own wish for one is no demand. */
function demandsCall({ tools, toolChoice }: Ask): boolean {
  if (toolChoice === "auto" || toolChoice === "none" || tools.length === 0) return false;
  return toolChoice === "required" || toolChoice.mayAnswer !== true;
}

/** Models that are not held to a tool write calls of tools that do not exist. */
const namesDemanded = ({ tools, toolChoice }: Ask): ReadonlySet<string> =>
  new Set(typeof toolChoice === "object" ? [toolChoice.named] : tools.map(({ name }) => name));

type Ended = Extract<Ending, { kind: "end" }>;

/** Holds everything back until the first call of one of the names, or a refusal, which is an answer. */
class UntilCall implements Sink {
  readonly #sink: Sink;
  readonly #names: ReadonlySet<string>;
  #waiting: Piece[] | null = [];

  constructor(sink: Sink, names: ReadonlySet<string>) {
    this.#sink = sink;
    this.#names = names;
  }

  piece(piece: Piece): void {
    if (piece.kind === "refusal" || (piece.kind === "call" && this.#names.has(piece.name))) this.#release();
    if (this.#waiting === null) this.#sink.piece(piece);
    else this.#waiting.push(piece);
  }

  flush(): Promise<void> | null {
    return this.#waiting === null ? this.#sink.flush() : null;
  }

  /** Whether the model presents its answer as complete and it contains no call. */
  endsWithout(ending: Ending): ending is Ended {
    if (this.#waiting === null || ending.kind !== "end" || ending.stopSequence !== null) return false;
    return ending.reason === "stop" || ending.reason === "tool_calls";
  }

  /** The ending of what goes out now. A client that left has received nothing of what was held back. */
  released(ending: Ending): Ending {
    if (this.#waiting === null || ending.kind === "failed") return ending;
    if (ending.kind === "cancelled") return { ...ending, usage: { ...ending.usage, output: 0, reasoning: 0 } };
    this.#release();
    return ending;
  }

  #release(): void {
    for (const piece of this.#waiting ?? []) this.#sink.piece(piece);
    this.#waiting = null;
  }
}
