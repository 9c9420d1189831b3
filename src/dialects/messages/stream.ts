// What the messages dialect writes: pieces -> content blocks, as events while they come, or all of them in one message.
// Every event has an `event:` line, without which the dialect's own client library sees nothing.
//
//   message_start, then blocks 0, 1, 2... one open at a time, then message_delta, message_stop
//   a block: content_block_start, content_block_delta*, content_block_stop
import type { ByteWriter } from "../../core/byte-writer.ts";
import { DeltaFrame } from "../reply/delta-frame.ts";
import type { Piece, Refusal, ToolOutcome } from "../../core/types.ts";
import type { AnswerEnd, Encoder, ReplyForm, ReplyIdentity } from "../dialect.ts";
import {
  callBlock,
  citationBody,
  continuesCited,
  resultBlock,
  shownCall,
  type ShownCall,
  textBlock,
  thinkingBlock,
  toolUseBlock,
} from "./blocks.ts";
import { CallInput } from "./call-input.ts";
import { LiteralText } from "../reply/literal-text.ts";
import { errorBody, messageBody, notStopped, stemOf, stopOf, usageBody } from "./reply.ts";
import type { MessagesAsk } from "./request.ts";
import { signatureOf } from "./thinking-signature.ts";

type BlockKind = "thinking" | "text" | "tool_use" | "owned-call" | "owned-result";

/** A content block of the answer; blocks are in the order of their first piece. */
type Block = {
  readonly kind: BlockKind;
  /** The block as JSON text; `content` is a literal or, for a call, the JSON text of its input. */
  readonly json: (content: string) => string;
  /** Index of the client's call in a tool_use block; otherwise null. */
  readonly callIndex: number | null;
  /** Literals that wait to be written; omitted thinking keeps all of them. */
  readonly literals: string[];
  /** All of its text, where the reply is whole; of a call always, as the model wrote it. */
  readonly text: LiteralText;
  /** A text block's citations as JSON texts, including those that wait. */
  readonly citations: string[];
  /** Of a tool_use block. */
  readonly input: CallInput | null;
};

const event = (name: string, data: string): string => `event: ${name}\ndata: ${data}\n\n`;
const deltaEnd = "}}\n\n";

/** The content of a starting block. */
const nothingYet: Readonly<Record<BlockKind, string>> = {
  thinking: '""',
  text: '""',
  tool_use: "{}",
  "owned-call": "{}",
  "owned-result": "",
};
const deltaFields: Readonly<Record<BlockKind, string>> = {
  thinking: '{"type":"thinking_delta","thinking":',
  text: '{"type":"text_delta","text":',
  tool_use: '{"type":"input_json_delta","partial_json":',
  "owned-call": '{"type":"input_json_delta","partial_json":',
  "owned-result": "",
};

const newBlock = (kind: BlockKind, json: Block["json"], callIndex: number | null = null): Block => ({
  kind,
  json,
  callIndex,
  literals: [],
  text: new LiteralText(),
  citations: [],
  input: kind === "tool_use" ? new CallInput() : null,
});

/**
 * The first of `#blocks` is open, the others wait. A text or thinking block ends when another block begins. A tool_use
 * block ends when its arguments are a complete object: nodes interleave the fragments of parallel calls, which this
 * dialect cannot express, so fragments of a later block wait until the earlier one is complete or the answer has ended.
 * What the gateway did itself is complete from the start, so its blocks end at once. A whole reply keeps all blocks
 * until its end.
 */
export class MessagesEncoder implements Encoder {
  readonly #ask: MessagesAsk;
  readonly #reply: ReplyIdentity;
  readonly #isWhole: boolean;
  readonly #blocks: Block[] = [];
  /** The client's calls by their index. */
  readonly #calls: Block[] = [];
  /** Index of the open block, or of the next one if none is open. */
  #index = 0;
  #started = false;
  /** An estimate until the input is counted, which takes less time than a model's first token. */
  #inputTokens: number;
  /** What the gateway ran itself: the last call, the number of calls, and how many searches succeeded. */
  #shown: ShownCall | null = null;
  #ownedCalls = 0;
  #searches = 0;
  /** What the model said where it refused. */
  readonly #refusal = new LiteralText();
  /** The open block's delta event up to the literal: a token costs one concatenation. */
  #delta = "";
  /** The same as bytes, created for the block's first token that comes as bytes. */
  #frame: DeltaFrame | null = null;

  constructor(ask: MessagesAsk, reply: ReplyIdentity, form: ReplyForm) {
    this.#ask = ask;
    this.#reply = reply;
    this.#isWhole = form === "whole";
    this.#inputTokens = ask.inputTokensEstimate;
  }

  keepAlive(): string {
    return event("ping", '{"type":"ping"}');
  }

  piece(piece: Piece): string {
    switch (piece.kind) {
      case "text":
        return this.#add("text", piece.literal);
      case "reasoning":
        return this.#ask.thinking === "hidden" ? "" : this.#add("thinking", piece.literal);
      case "refusal":
        this.#refusal.push(piece.literal);
        // Clients read every text as what they asked for.
        return this.#ask.format === null ? this.#add("text", piece.literal) : this.#begun();
      case "call":
        return this.#begin(
          (this.#calls[piece.index] = newBlock("tool_use", (input) => toolUseBlock(piece, input), piece.index)),
        );
      case "call-arguments":
        return this.#addArguments(piece.index, piece.literal);
      case "owned-call": {
        const shown = (this.#shown = shownCall(piece, stemOf(this.#reply), this.#ownedCalls++));
        const block = newBlock("owned-call", (input) => callBlock(piece, shown, input));
        this.#keep(block, JSON.stringify(piece.call.arguments));
        return this.#begin(block);
      }
      case "owned-result":
        if (this.#shown!.isSearch && !piece.outcome.failed) this.#searches++;
        return this.#begin(newBlock("owned-result", resultOf(piece.outcome, this.#shown!)));
      case "citation":
        return this.#cite(citationBody(piece.source));
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
    if (kind === "reasoning" && this.#ask.thinking === "hidden") return true; // nothing to write
    const block = this.#blocks.at(-1);
    if (block?.kind !== (kind === "text" ? "text" : "thinking") || block.citations.length > 0) return false;
    if (this.#isWhole) {
      block.text.pushBytes(bytes, start, end);
      return true;
    }
    if (this.#blocks.length > 1 || this.#omits(block)) return false;
    this.#frame ??= new DeltaFrame(this.#delta, deltaEnd);
    this.#frame.write(bytes, start, end, out);
    return true;
  }

  end(end: AnswerEnd): string {
    if (this.#isWhole) return this.#message(end);
    let events = "";
    // Clients that read the first block's text must find one, even when the answer is empty.
    if (this.#index === 0 && this.#blocks.length === 0 && this.#refusal.empty)
      events += this.#begin(newBlock("text", textBlock));
    for (let first = this.#blocks[0]; first !== undefined; first = this.#blocks[0]) {
      const rest = end.reason === "length" ? undefined : first.input?.rest(first.text.literal);
      if (rest) events += this.#write(first, JSON.stringify(rest));
      events += this.#closeFirst();
      // A call that the budget cut before its turn is not begun.
      while (end.reason === "length" && this.#blocks[0] !== undefined && !isComplete(this.#blocks[0]))
        this.#blocks.shift();
      events += this.#openFirst();
    }
    const delta = {
      type: "message_delta",
      delta: stopOf(end, this.#refusal),
      usage: usageBody(this.#ask.model, end.usage, this.#searches),
    };
    return events + event("message_delta", JSON.stringify(delta)) + event("message_stop", '{"type":"message_stop"}');
  }

  /** A text block is closed, so that clients keep it; a tool_use block is not, because they would run it. */
  failure(refusal: Refusal): string {
    const closed = this.#blocks[0]?.kind === "text" ? this.#closeFirst() : "";
    return closed + event("error", errorBody(refusal, this.#reply.requestId));
  }

  #add(kind: "text" | "thinking", literal: string): string {
    const last = this.#blocks.at(-1);
    const goesOn = last?.kind === kind && (last.citations.length === 0 || continuesCited(literal));
    if (goesOn) return this.#append(last, literal);
    if (literal === '""') return "";
    const block = kind === "text" ? newBlock(kind, textBlock) : newBlock(kind, thinkingBlock);
    return this.#begin(block) + this.#append(block, literal);
  }

  #cite(citation: string): string {
    const last = this.#blocks.at(-1)!;
    last.citations.push(citation);
    return last === this.#blocks[0] && !this.#isWhole ? this.#citation(citation) : "";
  }

  #addArguments(index: number, literal: string): string {
    const block = this.#calls[index]!;
    block.text.push(literal);
    if (this.#isWhole || block.input!.complete) return "";
    const fragment = JSON.parse(literal) as string;
    const input = block.input!.push(fragment);
    const shown = input === fragment ? literal : JSON.stringify(input);
    if (block === this.#blocks[0]) return (input === "" ? "" : this.#write(block, shown)) + this.#advance();
    if (input !== "") block.literals.push(shown);
    return "";
  }

  #append(block: Block, literal: string): string {
    const open = block === this.#blocks[0] && !this.#isWhole;
    if (!open || this.#omits(block)) this.#keep(block, literal);
    return open ? this.#write(block, literal) : "";
  }

  #keep(block: Block, literal: string): void {
    if (this.#isWhole) block.text.push(literal);
    else block.literals.push(literal);
  }

  #begin(block: Block): string {
    this.#blocks.push(block);
    if (this.#isWhole) return "";
    const opened = this.#blocks.length === 1 ? this.#openFirst() : "";
    return opened + this.#advance();
  }

  /** Closes complete blocks while others wait or nothing can be added to them. */
  #advance(): string {
    let events = "";
    for (let first = this.#blocks[0]; first !== undefined; first = this.#blocks[0]) {
      const over = isWhole(first) || (this.#blocks.length > 1 && isComplete(first));
      if (!over) break;
      events += this.#closeFirst() + this.#openFirst();
    }
    return events;
  }

  #openFirst(): string {
    const [block] = this.#blocks;
    if (block === undefined) return "";
    let events = this.#begun();
    events += event(
      "content_block_start",
      `{"type":"content_block_start","index":${this.#index},"content_block":${block.json(nothingYet[block.kind])}}`,
    );
    this.#delta = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":${deltaFields[block.kind]}`;
    this.#frame = null;
    if (block.kind === "tool_use") events += this.#write(block, '""'); // the dialect's own servers begin like this
    for (const literal of block.literals) events += this.#write(block, literal);
    for (const citation of block.citations) events += this.#citation(citation);
    return events;
  }

  #closeFirst(): string {
    const block = this.#blocks.shift()!;
    const signature = block.kind === "thinking" ? this.#signature(block) : "";
    return signature + event("content_block_stop", `{"type":"content_block_stop","index":${this.#index++}}`);
  }

  #signature(block: Block): string {
    const delta = `{"type":"signature_delta","signature":"${this.#signatureOf(block)}"}`;
    return event("content_block_delta", `{"type":"content_block_delta","index":${this.#index},"delta":${delta}}`);
  }

  #signatureOf(block: Block): string {
    if (!this.#omits(block)) return signatureOf("");
    const literal = this.#isWhole ? block.text.literal : joined(block.literals);
    return signatureOf(JSON.parse(literal) as string);
  }

  #citation(citation: string): string {
    const delta = `{"type":"citations_delta","citation":${citation}}`;
    return event("content_block_delta", `{"type":"content_block_delta","index":${this.#index},"delta":${delta}}`);
  }

  #omits(block: Block): boolean {
    return block.kind === "thinking" && this.#ask.thinking === "omitted";
  }

  #write(block: Block, literal: string): string {
    return this.#omits(block) ? "" : this.#delta + literal + deltaEnd;
  }

  inputCounted(tokens: number): void {
    this.#inputTokens = tokens;
  }

  /** The node has not counted yet: the input is our count, and message_delta replaces it with the real numbers. */
  #begun(): string {
    if (this.#started || this.#isWhole) return "";
    this.#started = true;
    const { model } = this.#ask;
    const usage = usageBody(model, { inputFresh: this.#inputTokens, inputCached: 0, output: 1, reasoning: 0 });
    const message = messageBody(model, this.#reply, [], notStopped, usage);
    return event("message_start", `{"type":"message_start","message":${message}}`);
  }

  /** The collected stream. */
  #message(end: AnswerEnd): string {
    const content = this.#blocks.map((block) => this.#whole(block, end)).filter((block) => block !== null);
    if (content.length === 0 && this.#refusal.empty) content.push(textBlock('""'));
    const usage = usageBody(this.#ask.model, end.usage, this.#searches);
    return messageBody(this.#ask.model, this.#reply, content, stopOf(end, this.#refusal), usage);
  }

  /** The block with all its content; null where it is no block. */
  #whole(block: Block, { reason }: AnswerEnd): string | null {
    const { literal } = block.text;
    switch (block.kind) {
      case "text":
        return textBlock(literal, block.citations);
      case "thinking":
        return thinkingBlock(this.#omits(block) ? '""' : literal, this.#signatureOf(block));
      case "tool_use": {
        const input = block.input!.push(JSON.parse(literal) as string);
        if (block.input!.complete) return block.json(input);
        // cut by the budget in the middle: this call must not run
        return reason === "length" ? null : block.json(new CallInput().rest(literal) || "{}");
      }
      case "owned-call":
        return block.json(JSON.parse(literal) as string);
      case "owned-result":
        return block.json("");
      default:
        return block.kind satisfies never;
    }
  }
}

/** It is complete at its start. */
const resultOf = (outcome: ToolOutcome, shown: ShownCall): Block["json"] => {
  const result = resultBlock(outcome, shown);
  return () => result;
};

const isWhole = ({ kind }: Block): boolean => kind === "owned-call" || kind === "owned-result";

const isComplete = ({ input }: Block): boolean => input === null || input.complete;

/** The contents of string literals, joined, are again the content of one. */
const joined = (literals: readonly string[]): string => `"${literals.map((literal) => literal.slice(1, -1)).join("")}"`;
