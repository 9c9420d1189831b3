// The stream of a response: pieces -> events. One item is open at a time; pieces for later ones wait.
import type { ByteWriter } from "../../core/byte-writer.ts";
import type { Piece, Refusal, ToolOutcome } from "../../core/types.ts";
import type { AnswerEnd, BackgroundEncoder, Encoder, ReplyForm, ReplyIdentity } from "../dialect.ts";
import {
  CustomCallItem,
  FunctionCallItem,
  McpCallItem,
  MessageItem,
  type OutputItem,
  type OwnedItem,
  ReasoningItem,
  WebSearchItem,
} from "./output-items.ts";
import { type ReplyContext, ResponseLifecycle } from "./lifecycle.ts";
import { incompleteReason, keptOf, type ResponseText, stemOf } from "./response-object.ts";
import type { StoredResponse } from "../stored-responses.ts";
import type { ResponsesAsk } from "./body.ts";
import type { Sealer } from "../request/sealed-content.ts";

export class ResponsesEncoder implements Encoder {
  readonly #ask: ResponsesAsk;
  readonly #sealer: Sealer | null;
  readonly #keep: ReplyContext["keep"];
  readonly background: BackgroundEncoder = {
    begin: () => this.#start(),
    stored: (status) => this.#stored(null, this.#lifecycle.soFar(status)),
    cancelled: () => (this.#queue.length > 0 ? this.#closeAll(true) : "") + this.#failed(null),
  };
  readonly #stem: string;
  readonly #lifecycle: ResponseLifecycle;
  /** Unfinished items: the first is open, the others wait for their turn. */
  readonly #queue: OutputItem[] = [];
  readonly #done: OutputItem[] = [];
  readonly #calls: OutputItem[] = [];
  /** The gateway's own call that runs now, or ran last. */
  #owned: OwnedItem | null = null;
  #started = false;
  /** Finished items before every text that can still be cited, and the length of their texts. */
  #measured = 0;
  #measuredLength = 0;

  constructor(ask: ResponsesAsk, identity: ReplyIdentity, { sealer, clock, keep }: ReplyContext, form: ReplyForm) {
    this.#ask = ask;
    this.#sealer = ask.sealsReasoning ? sealer : null;
    this.#keep = keep;
    this.#stem = stemOf(identity);
    this.#lifecycle = new ResponseLifecycle(ask, identity, clock, form);
  }

  /** Must be sent when it is read: some are events, which are numbered. */
  keepAlive(): string {
    // Without an open item a model reads a tool's result, or nothing came yet.
    return this.#lifecycle.signOfLife(this.#queue[0] ?? this.#owned ?? undefined);
  }

  piece(piece: Piece): string {
    const started = this.#started ? "" : this.#start();
    switch (piece.kind) {
      case "text":
        return started + this.#write("message", piece.literal);
      case "reasoning":
      case "refusal":
        return started + this.#write(piece.kind, piece.literal);
      case "call":
        return started + this.#addCall(piece.index, piece.id, piece.name);
      case "call-arguments":
        return started + this.#writeArguments(this.#calls[piece.index]!, piece.literal);
      case "owned-call":
        return started + this.#beginOwned(piece);
      case "owned-result":
        return started + this.#endOwned(piece.outcome);
      case "citation":
        return started + this.#cite(piece);
      case "input": // from requests that hold no conversation
      case "voice":
      case "answer": // from those that may ask for several
      case "answer-end":
        return "";
      default:
        return piece satisfies never;
    }
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean {
    const item = this.#queue[0];
    if (item?.kind !== (kind === "text" ? "message" : "reasoning") || this.#queue.length > 1) return false;
    item.pushBytes(bytes, start, end, out);
    return true;
  }

  end(end: AnswerEnd): string {
    const started = this.#start();
    const items = this.#closeAll(incompleteReason(end.reason) !== null);
    const ended = this.#lifecycle.ended(this.#output(), this.#outputText(), end);
    if (this.#keep !== null) {
      const { conversationId, store } = this.#ask;
      const conversation = conversationId === null ? null : { id: conversationId, only: !store };
      this.#keep(this.#stored(conversation, this.#lifecycle.response!));
    }
    return started + items + ended;
  }

  failure(refusal: Refusal): string {
    return this.#failed(refusal);
  }

  /** One that went on without its client is stored, as its client must learn of its end; no conversation takes it. */
  #failed(refusal: Refusal | null): string {
    const events = this.#lifecycle.failed(this.#output(), refusal);
    if (this.#ask.background === true) this.#keep?.(this.#stored(null, this.#lifecycle.response!));
    return events;
  }

  #stored(conversation: StoredResponse["conversation"], response: ResponseText): StoredResponse {
    const { previousResponseId, input } = this.#ask;
    return { id: `resp_${this.#stem}`, previousResponseId, conversation, input, ...keptOf(response) };
  }

  #start(): string {
    this.#started = true;
    return this.#lifecycle.start();
  }

  #output(): readonly string[] {
    return this.#done.map((item) => item.result);
  }

  /** Text after text continues the same message, and so does reasoning; anything else begins a new item. */
  #write(kind: "message" | "reasoning" | "refusal", literal: string): string {
    const last = this.#queue[this.#queue.length - 1];
    if (last !== undefined && last.kind === kind) return last.push(literal);
    const place = this.#place();
    const item = kind === "reasoning" ? new ReasoningItem(place, this.#sealer) : new MessageItem(place, kind);
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

  #beginOwned({ call, tool }: Extract<Piece, { kind: "owned-call" }>): string {
    const place = this.#place();
    this.#owned =
      tool === null ? new WebSearchItem(place, call, this.#ask.showsSources) : new McpCallItem(place, call, tool);
    return this.#append(this.#owned);
  }

  /** Nothing more can come for it, so it is done at once where its turn has come. */
  #endOwned(outcome: ToolOutcome): string {
    const owned = this.#owned!;
    owned.resolve(outcome);
    return this.#advance() + (this.#queue[0] === owned ? this.#close("completed") : "");
  }

  /** Positions count in the item's text; those of the piece count in all texts of the answer. */
  #cite({ source: { url, title }, start, end }: Extract<Piece, { kind: "citation" }>): string {
    const cited = this.#queue.findLast(isText) ?? this.#done.findLast(isText)!;
    // An answer may have a hundred thousand citations: finished items are measured once.
    while (this.#measured < this.#done.length && this.#done[this.#measured] !== cited) {
      this.#measuredLength += textLengthOf(this.#done[this.#measured++]!);
    }
    let before = this.#measuredLength;
    for (const item of this.#queue) if (item !== cited) before += textLengthOf(item);
    const annotation = { type: "url_citation", url, title, start_index: start - before, end_index: end - before };
    return cited.annotate(JSON.stringify(annotation));
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

  #close(status: "completed" | "incomplete"): string {
    const item = this.#queue.shift()!;
    this.#done.push(item);
    return item.close(status) + (this.#queue[0]?.open() ?? "");
  }

  /** The answer is over; `cut`: before it was complete. */
  #closeAll(cut: boolean): string {
    let events = "";
    // A client that gets neither a text nor a call asks again, up to its own limit.
    if (this.#calls.length === 0 && !this.#hasMessage() && this.#ask.warms !== true)
      events += this.#write("message", '""');
    while (this.#queue.length > 0) {
      const item = this.#queue[0]!;
      // Half a call must not run, and clients run finished calls: it stays open and is not in the output.
      if (cut && item.kind === "call" && !item.complete) break;
      const last = this.#queue.length === 1 && isMessage(item);
      events += this.#close(cut && last ? "incomplete" : "completed");
    }
    return events;
  }

  #hasMessage(): boolean {
    return this.#queue.some(isMessage) || this.#done.some(isMessage);
  }

  #outputText(): string {
    let texts = "";
    for (const item of this.#done) if (item.kind === "message") texts += item.inside;
    return `"${texts}"`;
  }

  #place() {
    return { stem: this.#stem, index: this.#done.length + this.#queue.length, numbers: this.#lifecycle.numbers };
  }
}

const isMessage = (item: OutputItem): item is MessageItem => item instanceof MessageItem;
const isText = (item: OutputItem): item is MessageItem => item.kind === "message";
const textLengthOf = (item: OutputItem): number => (isText(item) ? (JSON.parse(item.literal) as string).length : 0);
