// The stream of a response: pieces -> events. Items open one after the other, never two at a time; what comes for a
// later item while an earlier one is not complete waits there.
import type { Clock } from "../clock.ts";
import type { Piece, Refusal } from "../types.ts";
import type { AnswerEnd, Encoder, ReplyIdentity } from "./dialect.ts";
import {
  CustomCallItem,
  EventNumbers,
  FunctionCallItem,
  MessageItem,
  type OutputItem,
  ReasoningItem,
} from "./output-items.ts";
import { incompleteReason, responseEnded, responseFailed, responseInProgress, stemOf } from "./response-object.ts";
import type { ResponsesAsk } from "./responses-request.ts";
import type { Sealer } from "./sealed-content.ts";

export type ReplyContext = Readonly<{ sealer: Sealer; clock: Clock }>;

/** Seconds since 1970, as the response object counts. */
export const secondsOf = (clock: Clock): number => Math.floor(clock.wall() / 1000);

export class ResponsesEncoder implements Encoder {
  readonly keepAlive = ": waiting\n\n";
  readonly #ask: ResponsesAsk;
  readonly #identity: ReplyIdentity;
  readonly #context: ReplyContext;
  readonly #stem: string;
  readonly #numbers = new EventNumbers();
  /** Items that are not done: the first is open, the others wait for their turn. */
  readonly #queue: OutputItem[] = [];
  readonly #done: OutputItem[] = [];
  readonly #calls: OutputItem[] = [];
  #started = false;
  #response: string | null = null;

  constructor(ask: ResponsesAsk, identity: ReplyIdentity, context: ReplyContext) {
    this.#ask = ask;
    this.#identity = identity;
    this.#context = context;
    this.#stem = stemOf(identity);
  }

  /** The finished response object as JSON text, for whoever keeps responses; null before the end. */
  get response(): string | null {
    return this.#response;
  }

  piece(piece: Piece): string {
    const started = this.#started ? "" : this.#start();
    switch (piece.kind) {
      case "text":
        return started + this.#write("message", piece.literal);
      case "reasoning":
        return started + this.#write("reasoning", piece.literal);
      case "call":
        return started + this.#addCall(piece.index, piece.id, piece.name);
      case "call-arguments":
        return started + this.#writeArguments(this.#calls[piece.index]!, piece.literal);
      default:
        return piece satisfies never;
    }
  }

  end({ reason, usage }: AnswerEnd): string {
    const started = this.#started ? "" : this.#start();
    const cut = incompleteReason(reason) !== null;
    const items = this.#closeAll(cut);
    const output = this.#done.map((item) => item.result);
    const ended = { reason, usage, nowSeconds: secondsOf(this.#context.clock) };
    this.#response = responseEnded(this.#ask, this.#identity, output, this.#outputText(), ended);
    const type = cut ? "response.incomplete" : "response.completed";
    return `${started}${items}${this.#numbers.event(type, `"response":${this.#response}`)}data: [DONE]\n\n`;
  }

  failure(refusal: Refusal): string {
    const started = this.#started ? "" : this.#start();
    const output = this.#done.map((item) => item.result);
    const response = responseFailed(this.#ask, this.#identity, output, refusal);
    return started + this.#numbers.event("response.failed", `"response":${response}`);
  }

  #start(): string {
    this.#started = true;
    return startEvents(this.#numbers, this.#ask, this.#identity);
  }

  /** Text after text goes on in the same message, reasoning likewise; anything else begins a new item. */
  #write(kind: "message" | "reasoning", literal: string): string {
    const last = this.#queue[this.#queue.length - 1];
    if (last !== undefined && last.kind === kind) return last.push(literal);
    const item = kind === "message" ? new MessageItem(this.#place()) : new ReasoningItem(this.#place(), this.#sealer());
    return this.#append(item) + item.push(literal);
  }

  #addCall(index: number, callId: string, flatName: string): string {
    const origin = this.#ask.offered.origin(flatName);
    const Item = origin.kind === "custom" ? CustomCallItem : FunctionCallItem;
    const item = new Item(this.#place(), callId, origin);
    this.#calls[index] = item;
    return this.#append(item);
  }

  #writeArguments(item: OutputItem, literal: string): string {
    if (item.done) return ""; // the arguments had ended: this is white space
    return item.push(literal) + this.#advance();
  }

  #append(item: OutputItem): string {
    this.#queue.push(item);
    return this.#queue.length === 1 ? item.open() : this.#advance();
  }

  /** Closes the open item if it is complete and another waits, and so on. */
  #advance(): string {
    let events = "";
    while (this.#queue.length > 1 && this.#queue[0]!.complete) events += this.#close("completed");
    return events;
  }

  /** Closes the open item and opens the next. */
  #close(status: "completed" | "incomplete"): string {
    const item = this.#queue.shift()!;
    this.#done.push(item);
    return item.close(status) + (this.#queue[0]?.open() ?? "");
  }

  /** The answer is over; `cut` if before it was whole. */
  #closeAll(cut: boolean): string {
    let events = "";
    // A client that gets neither a text nor a call asks again, up to its own limit.
    if (this.#calls.length === 0 && !this.#hasMessage()) events += this.#write("message", '""');
    while (this.#queue.length > 0) {
      const item = this.#queue[0]!;
      // Half a call must not be run, and clients run what is done: it stays open and is not in the output.
      if (cut && item.kind === "call" && !item.complete) break;
      const last = this.#queue.length === 1 && item.kind === "message";
      events += this.#close(cut && last ? "incomplete" : "completed");
    }
    return events;
  }

  #hasMessage(): boolean {
    return [...this.#done, ...this.#queue].some((item) => item.kind === "message");
  }

  #outputText(): string {
    const messages = this.#done.filter((item) => item.kind === "message");
    return `"${messages.map((item) => item.literal.slice(1, -1)).join("")}"`;
  }

  #sealer(): Sealer | null {
    return this.#ask.sealsReasoning ? this.#context.sealer : null;
  }

  #place() {
    return { stem: this.#stem, index: this.#done.length + this.#queue.length, numbers: this.#numbers };
  }
}

/** The first events of every stream. */
export function startEvents(numbers: EventNumbers, ask: ResponsesAsk, identity: ReplyIdentity): string {
  const members = `"response":${responseInProgress(ask, identity)}`;
  return numbers.event("response.created", members) + numbers.event("response.in_progress", members);
}
