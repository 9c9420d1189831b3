// The automatic tool loop: the model is offered tools that the gateway runs itself, beside the client's. The gateway runs its
// calls of them and feeds the results back for the next round. The client sees one answer: text and reasoning of all rounds
// as they come, and the sum of their usage.
//
// What follows the end of a round:
//
//   (0) the node refused it for what it is, after others    -> the answer ends with length, as where a context is full
//   (1) it failed otherwise, or the client left             -> so does the answer
//   (2) it called no tool of ours                           -> the answer ends as the round did
//   (3) the budget or a filter cut it                       -> the answer ends so: a call that may be cut is not run
//   (4) it was the last round, without tools to call        -> the answer ends
//   (5) the budget of all rounds is used up, or the request
//       may cost its nodes no further generation            -> the answer ends with length
//   (6) it called the client's tools too                    -> ours are run and shown; the client runs its own
//   (7) the account's open requests use up its balance      -> ours are run and shown; the answer ends with length
//   (8) anything else                                       -> ours are run, and the next round follows
import type { Clock } from "../core/clock.ts";
import { mayAskAgain } from "../core/generation-budget.ts";
import type { Log } from "../core/log.ts";
import { toolNameMaxLength } from "../core/server-tool-name.ts";
import type { Soon } from "../core/soon.ts";
import {
  type AccountId,
  type Ask,
  type Call,
  type Ending,
  type Ms,
  searchFunctionName,
  type Sink,
  type Tool,
  type ToolOutcome,
  type Turn,
  type Usage,
  noUsage,
} from "../core/types.ts";
import { sumOfUsage } from "../core/usage.ts";
import { Sources } from "./search/citations.ts";
import type { OwnedTool } from "./owned-tool.ts";
import type { Round } from "./round.ts";
import { type CalledTool, RoundSink } from "./round-sink.ts";
import type { SearchProvider } from "./search/search-provider.ts";
import { madeSafe, resultText } from "./untrusted-text.ts";
import { type SearchCalls, WebSearchTool } from "./search/web-search-tool.ts";

/** Generations of one request (spec, per-request limits). */
export const toolRoundsMax = 10;
export const ownedCallsAtOnceMax = 8;
/** Further calls of a round are not run, and the model learns so. */
export const ownedCallsPerRoundMax = 32;

export type ToolLoopParts = Readonly<{
  /** Null where there is no search. */
  provider: SearchProvider | null;
  /** Searches of the day; one that is taken but not kept goes back on dispose. Throws StoreUnavailable. */
  searches: { take(account: AccountId, now: Ms): Soon<(Disposable & SearchCalls & { keep(): void }) | null> };
  /** The tools of MCP servers that the request may use. */
  serverTools(ask: Ask, account: AccountId): readonly OwnedTool[];
  clock: Pick<Clock, "wall">;
  log: Log;
}>;

/** The request that a loop serves. `cancelSignal` aborts when its client leaves. */
export type LoopContext = Readonly<{
  account: AccountId;
  cancelSignal: AbortSignal;
  /** Called when a call of our tools begins. The function that it returns is called when the call has ended. */
  called?: (isSearch: boolean) => (failed: boolean) => void;
  /** Whether another round may begin after `spent`, with this input; absent: always. Throws StoreUnavailable. */
  goesOn?: (spent: Usage, inputTokens: number) => Soon<boolean>;
}>;

/** The JSON sizes of tools, which stay the same from request to request. */
const sizes = new WeakMap<OwnedTool, number>();

function sizeOf(owned: OwnedTool): number {
  const known = sizes.get(owned);
  if (known !== undefined) return known;
  const bytes = Buffer.byteLength(JSON.stringify(owned.tool));
  sizes.set(owned, bytes);
  return bytes;
}

export class ToolLoop {
  readonly #parts: ToolLoopParts;

  constructor(parts: ToolLoopParts) {
    this.#parts = parts;
  }

  /** Answers in as many rounds as calls of our tools take. Throws StoreUnavailable if the searches cannot be read. */
  async answer(ask: Ask, context: LoopContext, sink: Sink, round: Round): Promise<Ending> {
    if (ask.toolChoice === "none") return round(ask, sink);
    const serverTools = this.#serverTools(ask, context.account);
    const { provider, searches, clock, log } = this.#parts;
    if (ask.webSearch === null || provider === null) {
      return this.#answer(ask, serverTools, null, context, sink, round);
    }
    const taken = searches.take(context.account, clock.wall());
    using hold = taken instanceof Promise ? await taken : taken;
    const clientsTool = ask.webSearch.asFunction ? functionNamed(ask.tools, searchFunctionName) : null;
    const rest = clientsTool === null ? ask : { ...ask, tools: ask.tools.filter((tool) => tool !== clientsTool) };
    // None left: the answer comes without search and without error, and the model is not offered one.
    if (hold === null) {
      return await this.#answer({ ...rest, toolChoice: possibleChoice(rest) }, serverTools, null, context, sink, round);
    }
    const search = new WebSearchTool(ask.webSearch, clientsTool, provider, hold, log);
    const forced = ask.webSearch.forced || isOneShot(rest) ? search : null;
    const ending = await this.#answer(rest, [search, ...serverTools], forced, context, sink, round);
    if (search.found && (ending.kind !== "failed" || ending.delivered !== undefined)) hold.keep();
    return ending;
  }

  offers(ask: Ask, account: AccountId): boolean {
    if (ask.toolChoice === "none") return false;
    return (ask.webSearch !== null && this.#parts.provider !== null) || this.#serverTools(ask, account).length > 0;
  }

  /** The size of the operator's tools, which the model reads beside the request, in bytes. */
  offeredBytes(ask: Ask, account: AccountId): number {
    if (ask.toolChoice === "none") return 0;
    let bytes = 0;
    for (const tool of this.#serverTools(ask, account)) bytes += sizeOf(tool);
    return bytes;
  }

  #answer(
    ask: Ask,
    owned: readonly OwnedTool[],
    forced: OwnedTool | null,
    context: LoopContext,
    sink: Sink,
    round: Round,
  ): Promise<Ending> {
    if (owned.length === 0) return round(ask, sink);
    return new AnswerInRounds(ask, owned, forced, { ...context, sink, round, log: this.#parts.log }).run();
  }

  /** Not offered beside a format: engines either hold a model to a format or give it tools, never both. */
  #serverTools(ask: Ask, account: AccountId): readonly OwnedTool[] {
    return ask.format === null ? this.#parts.serverTools(ask, account) : [];
  }
}

/**
 * Engines either hold a model to a format or offer it tools in one round. So the model searches in the first round and
 * answers in the second, which is held to the format. With the client's own tools the two rounds would be
 * indistinguishable.
 */
const isOneShot = ({ format, tools }: Ask): boolean => format !== null && tools.length === 0;

const functionNamed = (tools: readonly Tool[], name: string): Tool | null =>
  tools.find((tool) => tool.name === name) ?? null;

/** Only an offered tool can be forced, and without tools none can. */
function possibleChoice({ tools, toolChoice }: Ask): Ask["toolChoice"] {
  if (toolChoice === "required") return tools.length > 0 ? toolChoice : "auto";
  if (typeof toolChoice === "string") return toolChoice;
  return functionNamed(tools, toolChoice.named) === null ? "auto" : toolChoice;
}

type AnswerContext = LoopContext & Readonly<{ sink: Sink; round: Round; log: Log }>;

class AnswerInRounds {
  readonly #context: AnswerContext;
  readonly #owned = new Map<string, OwnedTool>();
  readonly #sources = new Sources();
  #ask: Ask;
  readonly #budget: number;
  readonly #isOneShot: boolean;
  #rounds = 0;
  #usage: Usage = noUsage;
  #inputTokens = 0;
  #estimated = false;
  /** In the answer so far: the client's calls, and UTF-16 units of text. */
  #clientCalls = 0;
  #textLength = 0;

  constructor(ask: Ask, owned: readonly OwnedTool[], forced: OwnedTool | null, context: AnswerContext) {
    this.#context = context;
    this.#budget = ask.outputTokensMax;
    this.#isOneShot = isOneShot(ask);
    const tools = [...ask.tools];
    let { toolChoice } = ask;
    for (const tool of owned) {
      const name = freeName(tool.tool.name, tools);
      this.#owned.set(name, tool);
      tools.push({ ...tool.tool, name });
      // Where the search is only our way to a format, a model may answer at once.
      if (tool === forced) toolChoice = { named: name, ...(ask.webSearch?.forced === true ? {} : { mayAnswer: true }) };
    }
    this.#ask = { ...ask, tools, toolChoice };
  }

  async run(): Promise<Ending> {
    for (;;) {
      this.#rounds += 1;
      const round = this.#newRound();
      const ending = await this.#context.round(this.#ask, round);
      if (ending.kind !== "failed") this.#inputTokens = ending.usage.inputFresh + ending.usage.inputCached;
      round.ended();
      const over = this.#afterRound(ending, round);
      if (over !== null) {
        round.release();
        return over;
      }
      const outcomes = await this.#runCalls(round.ownedCalls);
      if (outcomes === null) return this.#left();
      if (round.clientCalls > 0) return this.#end("tool_calls");
      const asked = this.#ask.bodyBytes;
      this.#ask = this.#nextAsk(round, outcomes);
      const added = this.#ask.bodyBytes - asked; // a token has at least one byte
      const inputTokens = Math.min(this.#inputTokens + added, this.#ask.model.contextTokens);
      const goesOn = this.#context.goesOn?.(this.#usage, inputTokens);
      if ((goesOn instanceof Promise ? await goesOn : goesOn) === false) return this.#end("length"); // (7)
    }
  }

  #newRound(): RoundSink {
    const sources = this.#sources.any && this.#cites ? this.#sources : null;
    return new RoundSink({
      sink: this.#context.sink,
      owned: this.#owned,
      sources,
      clientCallsBefore: this.#clientCalls,
      textLengthBefore: this.#textLength,
      holdsText: this.#isOneShot && this.#rounds === 1, // "I search." would spoil the JSON that follows
    });
  }

  /** Citation marks would end up inside an answer that must be JSON. */
  get #cites(): boolean {
    return this.#ask.format === null;
  }

  /** The answer's ending, or null where our calls must run: see the table above. */
  #afterRound(ending: Ending, round: RoundSink): Ending | null {
    if (ending.kind === "failed") {
      // (1) A client that left while it waited for a node is charged for the earlier rounds.
      if (this.#rounds > 1 && this.#context.cancelSignal.aborted) return this.#left();
      if (ending.delivered === undefined) return this.#rounds > 1 && ending.ofRequest ? this.#end("length") : ending; // (0)
      const usage = sumOfUsage(this.#usage, ending.delivered.usage);
      return { ...ending, delivered: { usage, estimated: this.#estimated || ending.delivered.estimated } };
    }
    this.#usage = sumOfUsage(this.#usage, ending.usage);
    this.#estimated ||= ending.estimated;
    this.#clientCalls += round.clientCalls;
    this.#textLength = round.textLengthAfter;
    if (ending.kind === "cancelled") return this.#left();
    const { reason, stopSequence } = ending;
    if (round.ownedCalls.length === 0) return this.#end(reason, stopSequence); // (2)
    if (reason === "length" || reason === "content_filter") return this.#end(reason); // (3)
    if (this.#ask.toolChoice === "none") return this.#end(round.clientCalls > 0 ? "tool_calls" : "stop"); // (4)
    const mayGoOn = this.#budgetLeft() >= 1 && mayAskAgain(this.#ask);
    if (!mayGoOn && round.clientCalls === 0) return this.#end("length"); // (5)
    return null; // (6) to (8)
  }

  /** Where the budget does not limit an answer's length, it does not limit that of all rounds either. */
  #budgetLeft(): number {
    return this.#ask.model.budgetLimitsAnswer ? this.#budget - this.#usage.output : this.#budget;
  }

  /** Runs the calls concurrently and shows them one after the other; null when the client left. */
  async #runCalls(calls: readonly CalledTool[]): Promise<readonly ToolOutcome[] | null> {
    const { cancelSignal, sink } = this.#context;
    const left = Promise.withResolvers<null>();
    const leave = (): void => left.resolve(null);
    cancelSignal.addEventListener("abort", leave, { once: true });
    if (cancelSignal.aborted) leave();
    const turns = new Turns(ownedCallsAtOnceMax);
    const running = calls.map((called, place) =>
      place < ownedCallsPerRoundMax ? turns.run(() => this.#runCall(called)) : Promise.resolve(tooMany),
    );
    const outcomes: ToolOutcome[] = [];
    try {
      for (const [place, { call, tool }] of calls.entries()) {
        if (cancelSignal.aborted) return null;
        sink.piece({ kind: "owned-call", call, tool: tool.serverTool });
        await sink.flush();
        const raw = await Promise.race([running[place]!, left.promise]);
        if (raw === null) return null;
        const outcome = madeSafe(raw, calls.length);
        sink.piece({ kind: "owned-result", outcome });
        await sink.flush();
        outcomes.push(outcome);
      }
      return outcomes;
    } finally {
      cancelSignal.removeEventListener("abort", leave);
    }
  }

  async #runCall({ call, tool, valid }: CalledTool): Promise<ToolOutcome> {
    const { account, cancelSignal, log, called } = this.#context;
    if (!valid) return failure("The arguments must be a JSON object.");
    if (cancelSignal.aborted) return failure("The client left."); // no one reads it: a call that waited for its turn is not begun
    const ended = called?.(tool.serverTool === null);
    try {
      const outcome = await tool.run(call, { account, cancelSignal });
      ended?.(outcome.failed);
      return outcome;
    } catch (error) {
      ended?.(true);
      log("error", "a tool of the gateway failed", { tool: call.name, error: String(error) });
      return failure("The tool failed.");
    }
  }

  /** The next request to the model: the same, with its calls and their results. */
  #nextAsk({ text, reasoning, ownedCalls }: RoundSink, outcomes: readonly ToolOutcome[]): Ask {
    const last = this.#rounds + 1 === toolRoundsMax || this.#isOneShot;
    const results = outcomes.map((outcome) => resultText(outcome, this.#sources, this.#cites));
    // Inside a result, because not every chat template allows a user or system turn after one.
    if (last) results[results.length - 1] += `\n\n${answerNow}`;
    const calls = ownedCalls.map(({ call, offeredName }): Call => ({ ...call, name: offeredName }));
    const added: Turn[] = [
      {
        role: "assistant",
        content: text === "" ? null : text,
        reasoning: reasoning === "" ? null : reasoning,
        calls,
      },
      ...calls.map(({ id }, place): Turn => ({ role: "tool", callId: id, content: results[place]! })),
    ];
    return {
      ...this.#ask,
      turns: [...this.#ask.turns, ...added],
      toolChoice: last ? "none" : "auto", // a tool is forced only once
      outputTokensMax: this.#budgetLeft(),
      bodyBytes: this.#ask.bodyBytes + Buffer.byteLength(JSON.stringify(added)),
    };
  }

  #end(reason: Extract<Ending, { kind: "end" }>["reason"], stopSequence: string | null = null): Ending {
    return { kind: "end", reason, stopSequence, usage: this.#usage, estimated: this.#estimated };
  }

  #left(): Ending {
    return { kind: "cancelled", usage: this.#usage, estimated: this.#estimated };
  }
}

const answerNow = "No more tools can be called. Answer now with what is known, and say what could not be found out.";

const failure = (text: string): ToolOutcome => ({ text, failed: true, sources: [] });
const tooMany = failure("Too many calls at once: this one was not run.");

/** The name, with a number added where the client has a tool of that name. */
function freeName(name: string, taken: readonly Tool[]): string {
  let free = name;
  for (let number = 2; functionNamed(taken, free) !== null; number++) {
    const suffix = `_${number}`;
    free = name.slice(0, toolNameMaxLength - suffix.length) + suffix;
  }
  return free;
}

/** Lets N run at once; the others wait for their turn. */
class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
