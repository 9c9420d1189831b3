// The payloads of a node's chat-completion stream -> Pieces and one Ending. No I/O and no time: payloads in, Pieces out.
//
//   (1) the fast way: a learned Template knows the event's bytes  -> one Piece
//   (2) [DONE]                                                     -> done
//   (3) not JSON, an error, a choice with deltas, a usage report   -> Pieces, finish reason, usage, failure
//
// The first finish reason wins, and the first usage report after it; everything later is ignored. All output counts toward
// the budget, or toward the context where no budget limits the answer: text, reasoning, names and arguments of calls.
import { AnswerText } from "./answer-text.ts";
import { budgetLimitsAnswer } from "../core/answer-budget.ts";
import type { Ask, Ending, FinishReason, Sink } from "../core/types.ts";
import type { KnownEvents } from "./client/events.ts";
import { finishReason, isError, isFirst, isNothing, isPresent, isText, reasoningOf } from "./event-fields.ts";
import { failed, failureOfEvent, nodeFailed } from "./failure/failure.ts";
import type { Failure } from "./failure/failure.ts";
import { parseNodeJson, record } from "./json.ts";
import { NamedCall } from "./named-call.ts";
import { KnownShapes } from "./fast-path/known-shapes.ts";
import type { RunningNumbers, Simple, Template } from "./fast-path/template.ts";
import { mayBeginThought, ThinkTags } from "./think-tags.ts";
import { ToolCalls } from "./tool-calls.ts";
import { charactersPerTokenMax, reportedCacheWrites, reportedUsage, runningCount, tokensIn, usageOf } from "./usage.ts";

/** UTF-16 units of one answer, which is collected in memory. The catalog's largest context has a million characters. */
const answerMaxLength = 8 * 1024 * 1024;
/** UTF-16 units of the log probabilities, as JSON, of an answer that is not streamed. */
const answerLogprobsMaxLength = 64 * 1024 * 1024;

/** What a string of an event is: text, reasoning, a refusal, or the arguments of the call with the node's index. */
export type Channel = "text" | "reasoning" | "refusal" | number;

/** Simple events to parse before a lesson, which costs as much as eight of them. */
const eventsBeforeLesson = 4;
/** For a node whose running count stands still: no engine splits a token into more events. */
const deltasPerTokenMax = 8;

export type ReaderOptions = Readonly<{
  /** The text is the answer's only call and names its tool. */
  textNamesCall?: boolean;
  /** The answer's text begins inside a thought (see think-tags.ts). */
  thinkTagOpened?: boolean;
  /** Stop sequences that the node does not know. */
  stops?: readonly string[];
  /** What is known about the node's events; null parses each one, for tests that compare both ways. */
  shapes?: KnownShapes<Channel> | null;
}>;

export type Pieces = Pick<Sink, "piece" | "literal">;

/** Reads one answer. Feed `event` each payload that `match` does not recognize, until `done`; then ask for the Ending. */
export class AnswerReader implements KnownEvents {
  readonly #ask: Ask;
  readonly #pieces: Pieces;
  readonly #calls: ToolCalls;
  readonly #text: AnswerText;
  readonly #namedCall: NamedCall | null;
  readonly #thinkTagOpened: boolean;
  /** False once the answer's start was seen, so that a usual token costs one comparison. */
  #mayThink: boolean;
  /** Created for an answer that begins like a thought. */
  #tags: ThinkTags | null = null;
  /** Tokens that the answer may have, and UTF-16 units, for a node that sends many tokens in one event. */
  #outputMax = 0;
  /** The tokens that the node was given. */
  #budget = 0;
  #mayGrow: boolean;
  /** An event that exceeds an open budget, by the node's running count. */
  #postponed: Readonly<{ payload: string; output: number }> | null = null;
  #charactersMax = 0;
  readonly #shapes: KnownShapes<Channel> | null;
  /** The shape of the last recognized event. */
  #likely: Template<Channel> | null = null;
  #matchedAt = 0;

  #begun = false;
  #finish: FinishReason | null = null;
  #stopSequence: string | null = null;
  #failure: Failure | null = null;
  #done = false;
  #doneMarker = false;

  #deltas = 0;
  #characters = 0;
  #reasoningDeltas = 0;
  #reasoningCharacters = 0;
  #logprobsLength = 0;
  /** The latest report while the answer runs, then the final one. */
  #reported: RunningNumbers | null = null;
  #cacheWritten = 0;
  /** Recognized events write their running reports into these by turns, so that a postponed one does not overwrite the last. */
  #running: RunningNumbers = {};
  #spare: RunningNumbers = {};
  #reportIsFinal = false;
  #reportedAtEnd = false;
  /** The first half of a surrogate pair that was split between two events. */
  #highSurrogate: Readonly<{ channel: Channel; unit: string }> | null = null;

  constructor(ask: Ask, pieces: Pieces, options: ReaderOptions = {}) {
    const { thinkTagOpened = false, stops = [], shapes = new KnownShapes<Channel>() } = options;
    this.#namedCall = options.textNamesCall === true ? new NamedCall() : null;
    this.#ask = ask;
    this.#pieces = pieces;
    this.#thinkTagOpened = thinkTagOpened;
    this.#shapes = shapes;
    this.#allow();
    this.#mayGrow = ask.growing !== undefined;
    this.#mayThink = ask.plain === undefined;
    this.#calls = new ToolCalls(ask.tools, ask.parallelToolCalls !== false, pieces);
    this.#text = new AnswerText(stops, pieces, () => ({
      deltas: this.#deltas,
      characters: this.#characters,
      output: this.#reported?.output,
    }));
  }

  /** The held part of an open budget is used up: read no event before `grow` has found more, or that there is none. */
  get isFull(): boolean {
    if (!this.#mayGrow || this.#done || this.#finish !== null) return false;
    return (this.#postponed?.output ?? 0) > this.#outputMax || this.#isOverBudget();
  }

  /** Holds more of an open budget where the answer will need it. Read no event until a returned promise settles. */
  grow(): Promise<void> | null {
    const { growing } = this.#ask;
    if (growing === undefined || !this.#mayGrow || this.#done || this.#finish !== null) return null;
    const written = this.#postponed?.output ?? this.#runningCount(this.#reported);
    const grown = growing.grow(written ?? tokensIn(this.#deltas, this.#characters));
    // What was requested earlier may be less than what is used by now.
    if (grown !== null) return grown.then(() => this.grow() ?? undefined);
    this.#allow();
    if (this.isFull) this.#mayGrow = false; // cuts the next event
    return null;
  }

  /** Reads the postponed event; false where there is none. */
  readPostponed(): boolean {
    const postponed = this.#postponed;
    this.#postponed = null;
    if (postponed !== null) this.event(postponed.payload);
    return postponed !== null;
  }

  /** Whether an event must wait for more of an open budget: engines that write several tokens at once can exceed what is held. */
  #postpones(reported: RunningNumbers | null, payload: () => string): boolean {
    if (!this.#mayGrow || this.#finish !== null) return false;
    const output = this.#runningCount(reported);
    if (output === undefined || output <= this.#outputMax) return false;
    this.#postponed = { payload: payload(), output };
    return true;
  }

  #allow(): void {
    const { growing, model, outputTokensMax, plain } = this.#ask;
    const { contextTokens } = model;
    this.#budget = budgetLimitsAnswer(this.#ask) ? Math.min(outputTokensMax, contextTokens) : contextTokens;
    this.#outputMax = Math.min(this.#budget, growing?.outputTokens ?? this.#budget);
    // A repeated prompt does not count toward the budget.
    const tokensMax = plain?.echo === true ? contextTokens : this.#outputMax;
    this.#charactersMax = Math.min(tokensMax * charactersPerTokenMax, answerMaxLength);
  }

  get begun(): boolean {
    return this.#begun;
  }
  /** The finish reason came; usage and [DONE] may follow. */
  get finished(): boolean {
    return this.#finish !== null;
  }
  /** Nothing more is needed from the node: [DONE], a failure, or a cut at the budget or context. */
  get done(): boolean {
    return this.#done;
  }
  /** The node itself sent [DONE]. */
  get closedByNode(): boolean {
    return this.#doneMarker;
  }
  get failure(): Failure | null {
    return this.#failure;
  }

  /** Reads one event. `namedError`: the stream called it `event: error`. */
  event(payload: string, namedError = false): void {
    if (this.#done) return;
    if (payload === "[DONE]" || payload.trim() === "[DONE]") {
      this.#done = true;
      this.#doneMarker = true;
      return;
    }
    const event = record(parseNodeJson(payload));
    if (event === null) {
      // After the finish reason only the usage is missing, and our own count replaces it.
      if (this.#finish === null) this.#fail(nodeFailed("event is not JSON"));
      return;
    }
    if (namedError || isError(event)) {
      if (this.#finish !== null) return;
      const failure = failureOfEvent(this.#ask, payload, this.#begun);
      // The context was full before the answer was complete.
      if (failure.overflow !== undefined && this.#begun) this.#cut();
      else this.#fail(failure);
      return;
    }
    if (this.#mayGrow && this.#postpones(reportedUsage(event), () => payload)) return;
    const simple = this.#finish === null ? this.#simple(event) : null;
    if (simple !== null && this.#highSurrogate === null) {
      this.#takeReport(simple.usage, false);
      this.#takeText(simple.channel, simple.text, null);
      this.#learn(payload, simple);
      return;
    }
    this.#readWhole(event);
  }

  /** Recognizes an event whose shape was learned, and takes nothing yet. */
  match(bytes: Buffer, start: number, end: number): number {
    if (this.#shapes === null || this.#done || this.#finish !== null || this.#highSurrogate !== null) return -1;
    this.#matchedAt = start;
    const after = this.#likely === null ? -1 : this.#likely.match(bytes, start, end);
    if (after >= 0) return after;
    const found = this.#shapes.find(bytes, start, end);
    // These are arguments of a call that this answer did not begin: only a full parse can tell what they are.
    if (found === null || (typeof found.channel === "number" && this.#calls.sentIndex(found.channel) < 0)) return -1;
    this.#likely = found;
    return found.end;
  }

  take(bytes: Buffer): void {
    const template = this.#likely!;
    const { channel, literalStart, literalEnd, characters } = template;
    this.#shapes!.met();
    const next = this.#spare;
    if (template.writeNumbers(next)) {
      if (this.#postpones(next, () => bytes.toString("utf8", this.#matchedAt, template.end))) return;
      this.#spare = this.#running;
      this.#reported = this.#running = next;
    }
    if (characters === 0) return;
    const isPlain = channel === "text" || channel === "reasoning";
    const plain = isPlain && this.#pieces.literal !== undefined && channel === this.#text.plain && !this.#mayThink;
    if (!plain || characters > this.#charactersMax - this.#characters) {
      const literal = bytes.toString("utf8", literalStart, literalEnd);
      return this.#takeLiteral(channel, literal, characters, null);
    }
    if (!this.#count(characters)) return;
    if (channel === "reasoning") this.#countReasoning(characters);
    this.#pieces.literal!(channel, bytes, literalStart, literalEnd);
  }

  /** The Ending when the body ended or nothing more is expected. A stream without a finish reason is a failure. */
  ending(): Ending {
    if (this.#failure !== null) return failed(this.#failure);
    if (this.#finish === null) return this.fail(nodeFailed("stream ended without a finish reason"));
    return { kind: "end", reason: this.#finish, stopSequence: this.#stopSequence, ...this.#usage() };
  }

  /** The Ending when the client left: what was produced so far is charged. */
  cancelled(): Ending {
    this.#mayGrow = false; // a finished answer holds no more
    return { kind: "cancelled", ...this.#usage() };
  }

  /** Ends the answer with a failure found outside of its events. The first failure stays. */
  fail(failure: Failure): Ending {
    this.#fail(failure);
    return failed(this.#failure!);
  }

  #fail(failure: Failure): void {
    this.#failure ??= failure;
    this.#done = true;
  }

  #usage() {
    return usageOf(this.#ask, this.#reported, {
      reportedAtEnd: this.#reportedAtEnd,
      cacheWritten: this.#cacheWritten,
      outputMax: this.#outputMax,
      budget: this.#budget,
      deltas: this.#deltas,
      characters: this.#characters,
      reasoningDeltas: this.#reasoningDeltas,
      reasoningCharacters: this.#reasoningCharacters,
    });
  }

  #learn(payload: string, simple: Simple<Channel>): void {
    if (this.#shapes === null || this.#deltas <= eventsBeforeLesson) return;
    const template = this.#shapes.learn(payload, simple, (other) => {
      const event = record(parseNodeJson(other));
      return event === null || isError(event) ? null : this.#simple(event);
    });
    if (template !== null) this.#likely = template;
  }

  /** The event's meaning where it is one string on one channel and nothing else that matters. */
  #simple(event: Record<string, unknown>): Simple<Channel> | null {
    const choices = event["choices"];
    if (!Array.isArray(choices) || choices.length !== 1) return null;
    const choice = record(choices[0]);
    if (choice === null || !isFirst(choice)) return null;
    if (isPresent(choice["finish_reason"]) || isPresent(choice["logprobs"])) return null;
    if (this.#ask.plain !== undefined) {
      const { text } = choice;
      return isText(text) ? { channel: "text", text, usage: reportedUsage(event) } : null;
    }
    const delta = record(choice["delta"]);
    if (delta === null) return null;
    const { tool_calls: calls, content, refusal } = delta;
    if (isText(refusal)) return null;
    const reasoning = reasoningOf(delta);
    const usage = reportedUsage(event);
    const single = Array.isArray(calls) && calls.length === 1 ? record(calls[0]) : null;
    if (isText(content) && reasoning === "" && isNothing(calls)) return { channel: "text", text: content, usage };
    if (!isText(content) && reasoning !== "" && isNothing(calls)) {
      // An event with both reasoning fields has two holes.
      return isText(delta["reasoning_content"]) && isText(delta["reasoning"])
        ? null
        : { channel: "reasoning", text: reasoning, usage };
    }
    if (isText(content) || reasoning !== "" || single === null) return null;
    const called = record(single["function"]);
    const key = single["index"];
    const isContinuation = typeof key === "number" && !isPresent(single["id"]) && !isPresent(called?.["name"]);
    if (!isContinuation || !isText(called?.["arguments"]) || this.#calls.sentIndex(key) < 0) return null;
    return { channel: key, text: called["arguments"], usage };
  }

  #readWhole(event: Record<string, unknown>): void {
    const choices = Array.isArray(event["choices"]) ? event["choices"] : [];
    const choice = choices.map(record).find((one) => one !== null && isFirst(one)) ?? null;
    if (this.#finish === null) this.#takeReport(reportedUsage(event), false);
    const delta = record(choice?.["delta"]);
    if (choice !== null && this.#finish === null) {
      if (this.#ask.plain !== undefined) this.#takePlain(choice);
      else if (delta !== null) this.#takeDelta(delta, choice["logprobs"]);
      if (this.#done) return; // cut at the budget
      if (isText(choice["finish_reason"])) this.#takeFinish(choice["finish_reason"], choice);
    }
    // A separate report after the finish chunk may say more (cached tokens) than the running one on it.
    if (this.#finish === null) return;
    this.#takeReport(reportedUsage(event), choices.length === 0);
    this.#cacheWritten = Math.max(this.#cacheWritten, reportedCacheWrites(event));
  }

  /** A choice of a plain completion. Tokens without text, such as half a character, have log probabilities too. */
  #takePlain({ text, logprobs }: Record<string, unknown>): void {
    const given = isPresent(logprobs) ? this.#logprobs(logprobs) : null;
    if (isText(text)) this.#takeText("text", text, given);
    else if (given !== null) this.#takeLiteral("text", '""', 0, given);
  }

  #takeDelta(delta: Record<string, unknown>, logprobs: unknown): void {
    const reasoning = reasoningOf(delta);
    if (reasoning !== "") this.#takeText("reasoning", reasoning, null);
    const { content, refusal } = delta;
    const given = isPresent(logprobs) && (isText(content) || isText(refusal)) ? this.#logprobs(logprobs) : null;
    if (isText(content)) this.#takeText("text", content, given);
    if (isText(refusal)) this.#takeText("refusal", refusal, isText(content) ? null : given);
    const calls = delta["tool_calls"];
    if (!Array.isArray(calls) || this.#done) return;
    if (calls.length > 0) {
      this.#endTags();
      this.#text.call();
    }
    if (this.#done) return; // a held text ended with a stop sequence
    for (const [position, call] of calls.entries()) {
      if (this.#isOverBudget()) return this.#cut();
      const before = this.#calls.count;
      const room = this.#charactersMax - this.#characters;
      const characters = this.#calls.delta(call, position, room);
      this.#begun ||= this.#calls.count > before;
      if (characters < 0) return this.#cutCalls();
      if (characters === 0) continue;
      this.#deltas++;
      this.#characters += Math.min(characters, room);
      if (characters > room) return this.#cut();
    }
  }

  #logprobs(given: unknown): string {
    const logprobs = JSON.stringify(given);
    if (!this.#ask.stream) this.#logprobsLength += logprobs.length; // a stream keeps none of them
    return logprobs;
  }

  #takeFinish(reason: string, choice: Record<string, unknown>): void {
    if (/^(abort|aborted|error|cancelled|canceled)$/i.test(reason)) return this.#fail(nodeFailed("node gave up"));
    this.#flushSurrogate();
    this.#endText();
    if (this.#done) return; // a held text ended with a stop sequence
    if (!this.#calls.finish()) return this.#fail(nodeFailed("tool call without a name"));
    this.#begun ||= this.#calls.count > 0;
    this.#finish = finishReason(reason, this.#calls.count > 0);
    const matched = choice["stop_reason"] ?? choice["matched_stop"]; // vLLM, SGLang; a number is a token id
    if (this.#finish === "stop" && typeof matched === "string" && this.#ask.stop.includes(matched))
      this.#stopSequence = matched;
  }

  #takeReport(reported: RunningNumbers | null, isFinal: boolean): void {
    if (reported === null || this.#reportIsFinal) return;
    this.#reported = reported;
    this.#reportedAtEnd = this.#finish !== null;
    this.#reportIsFinal = isFinal;
  }

  /** Decoded text from a full parse. Half a surrogate pair at its end waits for the other half. */
  #takeText(channel: Channel, given: string, logprobs: string | null): void {
    let text = given;
    if (this.#highSurrogate !== null) {
      if (this.#highSurrogate.channel === channel) {
        text = this.#highSurrogate.unit + text;
        this.#highSurrogate = null;
      } else this.#flushSurrogate();
    }
    const last = text.charCodeAt(text.length - 1);
    if (last >= 0xd800 && last <= 0xdbff) {
      this.#highSurrogate = { channel, unit: text.slice(-1) };
      text = text.slice(0, -1);
    }
    if (text !== "") this.#takeLiteral(channel, JSON.stringify(text.toWellFormed()), text.length, logprobs);
  }

  #flushSurrogate(): void {
    const held = this.#highSurrogate;
    this.#highSurrogate = null;
    if (held !== null) this.#takeLiteral(held.channel, '"\ufffd"', 1, null);
  }

  #takeLiteral(channel: Channel, literal: string, characters: number, logprobs: string | null): void {
    const room = this.#charactersMax - this.#characters;
    if (!this.#count(Math.min(characters, room))) return;
    if (characters <= room) return this.#giveLiteral(channel, literal, characters, logprobs);
    const begin = (JSON.parse(literal) as string).slice(0, room).toWellFormed();
    this.#giveLiteral(channel, JSON.stringify(begin), room, logprobs);
    this.#cut();
  }

  #giveLiteral(channel: Channel, literal: string, characters: number, logprobs: string | null): void {
    if (channel === "text") {
      if (this.#mayThink) this.#splitThought(literal, logprobs);
      else this.#giveText(literal, logprobs);
    } else if (channel === "reasoning") {
      this.#endTags(); // the node has its own reasoning parser
      this.#giveReasoning(literal, characters);
    } else if (channel === "refusal") {
      this.#endTags();
      this.#text.refusal(literal, logprobs);
    } else {
      this.#text.call();
      this.#calls.more(channel, literal);
    }
  }

  /** False where the budget was already used up: the answer is cut. */
  #count(characters: number): boolean {
    if (this.#isOverBudget()) {
      this.#cut();
      return false;
    }
    this.#begun = true;
    this.#deltas++;
    this.#characters += characters;
    return true;
  }

  #countReasoning(characters: number): void {
    this.#reasoningDeltas++;
    this.#reasoningCharacters += characters;
  }

  #splitThought(literal: string, logprobs: string | null): void {
    if (this.#tags === null) {
      if (!this.#thinkTagOpened && !mayBeginThought(literal)) {
        this.#mayThink = false;
        return this.#giveText(literal, logprobs);
      }
      const parts = {
        text: (given: string, givenLogprobs: string | null) => this.#giveText(given, givenLogprobs),
        reasoning: (given: string, characters: number) => this.#giveReasoning(given, characters),
      };
      this.#tags = new ThinkTags(parts, this.#thinkTagOpened);
    }
    this.#tags.text(literal, logprobs);
    if (this.#tags.over) this.#mayThink = false;
  }

  /** Sends what was held back as a possible tag, and looks for no more tags. */
  #endTags(): void {
    if (!this.#mayThink) return;
    this.#mayThink = false;
    this.#tags?.flush();
  }

  #endText(): void {
    this.#endTags();
    this.#text.end();
    if (this.#text.stopped !== null) this.#stop(this.#text.stopped);
  }

  #giveText(literal: string, logprobs: string | null): void {
    if (this.#namedCall !== null) return this.#takeNamedCall(this.#namedCall, literal);
    this.#text.text(literal, logprobs);
    if (this.#text.stopped !== null) this.#stop(this.#text.stopped);
  }

  #giveReasoning(literal: string, characters: number): void {
    this.#countReasoning(characters);
    this.#text.reasoning(literal);
  }

  /** Drops text that is no call. The client that demanded one gets an error. */
  #takeNamedCall(call: NamedCall, literal: string): void {
    const json = call.push(JSON.parse(literal) as string);
    if (json === "" || call.name === null) return;
    if (this.#calls.sentIndex(0) >= 0) this.#calls.more(0, JSON.stringify(json.toWellFormed()));
    else this.#calls.delta({ index: 0, function: { name: call.name, arguments: json } }, 0, json.length);
  }

  #runningCount(reported: RunningNumbers | null): number | undefined {
    return runningCount(this.#ask, reported?.output, this.#deltas, this.#characters);
  }

  /** Whether the output already fills the budget, by the node's running count or else by our own. */
  #isOverBudget(): boolean {
    const running = this.#runningCount(this.#reported);
    if (running !== undefined && running > this.#outputMax) return true;
    if (this.#deltas >= (running === undefined ? this.#outputMax : this.#outputMax * deltasPerTokenMax)) return true;
    return this.#characters >= this.#charactersMax || this.#logprobsLength > answerLogprobsMaxLength;
  }

  /** Too many calls for one answer: the earlier ones are whole. */
  #cutCalls(): void {
    this.#calls.finish();
    this.#begun ||= this.#calls.count > 0;
    this.#cut();
  }

  /** The text reached a stop sequence that the node does not know, so nothing after it is wanted. */
  #stop(sequence: string): void {
    if (this.#done) return;
    this.#finish = "stop";
    this.#stopSequence = sequence;
    this.#done = true;
    const { deltas, characters, output } = this.#text.mark;
    this.#deltas = deltas;
    this.#characters = characters;
    if (this.#reported?.output !== undefined) this.#reported = { ...this.#reported, output: output ?? deltas };
    this.#reportedAtEnd = false;
  }

  /** The node continues after the budget: ends the answer here and stops the node. */
  #cut(): void {
    this.#endText();
    if (this.#done) return; // a held text ended with a stop sequence
    this.#finish = "length";
    this.#done = true;
    // Its running count includes what was not passed on.
    if (this.#reported?.output !== undefined)
      this.#reported = { ...this.#reported, output: Math.min(this.#reported.output, this.#outputMax) };
  }
}
