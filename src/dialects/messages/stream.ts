// What the messages dialect streams: pieces -> events. Every event has an `event:` line, without which the dialect's
// own client library sees nothing.
//
//   message_start, then blocks 0, 1, 2... one open at a time, then message_delta, message_stop
//   a block: content_block_start, content_block_delta*, content_block_stop
import type { ByteWriter } from "../../core/byte-writer.ts";
import { JsonEnd } from "../../core/json-end.ts";
import { DeltaFrame } from "../reply/delta-frame.ts";
import type { Piece, Refusal } from "../../core/types.ts";
import type { AnswerEnd, Encoder, ReplyIdentity } from "../dialect.ts";
import { callBlock, citationBody, continuesCited, resultBlock, shownCall, type ShownCall } from "./blocks.ts";
import { argumentsObject } from "../reply/call-arguments.ts";
import { errorBody, messageHead, stemOf, stopOf, usageBody } from "./reply.ts";
import type { MessagesAsk } from "./request.ts";
import { signatureOf } from "./thinking-signature.ts";

type BlockKind = "thinking" | "text" | "tool_use" | "owned-call" | "owned-result";

/** A content block of the answer, in the order in which the blocks were first seen. */
type Block = {
  readonly kind: BlockKind;
  /** The `content_block` with which it starts, as JSON text. */
  readonly start: string;
  /** Index of the client's call that a tool_use block is, else null. */
  readonly callIndex: number | null;
  /**
   * What waits to be written; of a tool_use block all of its arguments, which tell whether it is complete, and of
   * omitted thinking all of it, for the signature.
   */
  readonly literals: string[];
  /** Of a text block: JSON texts of its citations, those that wait to be written too. */
  readonly citations: string[];
  /** Of a tool_use block whose end was looked for. */
  end: ArgumentsEnd | null;
};

/** How far a block's arguments were read for their end; `whole`: null until it was found. */
type ArgumentsEnd = { readonly json: JsonEnd; read: number; whole: boolean | null };

const event = (name: string, data: string): string => `event: ${name}\ndata: ${data}\n\n`;
const deltaEnd = "}}\n\n";

const blockAtStart = {
  thinking: '{"type":"thinking","thinking":"","signature":""}',
  text: '{"type":"text","text":""}',
} as const;
const deltaFields: Readonly<Record<BlockKind, string>> = {
  thinking: '{"type":"thinking_delta","thinking":',
  text: '{"type":"text_delta","text":',
  tool_use: '{"type":"input_json_delta","partial_json":',
  "owned-call": '{"type":"input_json_delta","partial_json":',
  "owned-result": "", // it starts complete
};

const newBlock = (kind: BlockKind, start: string, literals: string[] = [], callIndex: number | null = null): Block => ({
  kind,
  start,
  callIndex,
  literals,
  citations: [],
  end: null,
});

/**
 * The first of `#blocks` is open, the others wait. A text or thinking block ends when another block begins. A tool_use
 * block ends when its arguments are a whole object: nodes mix the fragments of parallel calls, and this dialect cannot,
 * so what belongs to a later block is held until the one before is complete or the answer has ended. What the gateway
 * did by itself is known whole, and its blocks end at once.
 */
export class MessagesEncoder implements Encoder {
  readonly #ask: MessagesAsk;
  readonly #reply: ReplyIdentity;
  readonly #blocks: Block[] = [];
  /** Index of the open block; without one, of the next. */
  #index = 0;
  #started = false;
  /** An estimate until the input is counted, which takes less time than a model's first token. */
  #inputTokens: number;
  /** What the gateway ran by itself: the last call, how many there were, and how many searches gave an answer. */
  #shown: ShownCall | null = null;
  #ownedCalls = 0;
  #searches = 0;
  /** The open block's delta event up to the literal: a token costs one concatenation. */
  #delta = "";
  /** The same as bytes, made for the block's first token that comes as bytes. */
  #frame: DeltaFrame | null = null;

  constructor(ask: MessagesAsk, reply: ReplyIdentity) {
    this.#ask = ask;
    this.#reply = reply;
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
      case "call":
        return this.#begin(newBlock("tool_use", toolUseAtStart(piece), [], piece.index));
      case "call-arguments":
        return this.#addArguments(piece.index, piece.literal);
      case "owned-call":
        this.#shown = shownCall(piece, stemOf(this.#reply), this.#ownedCalls++);
        return this.#begin(
          newBlock("owned-call", callBlock(piece, this.#shown, "{}"), [JSON.stringify(piece.call.arguments)]),
        );
      case "owned-result":
        if (this.#shown!.isSearch && !piece.outcome.failed) this.#searches++;
        return this.#begin(newBlock("owned-result", resultBlock(piece.outcome, this.#shown!)));
      case "citation":
        return this.#cite(citationBody(piece.source));
      default:
        return piece satisfies never;
    }
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean {
    const block = this.#blocks[0];
    const goesOn = block?.kind === (kind === "text" ? "text" : "thinking") && this.#blocks.length === 1;
    if (!goesOn || block.citations.length > 0 || this.#omits(block)) return false;
    this.#frame ??= new DeltaFrame(this.#delta, deltaEnd);
    this.#frame.write(bytes, start, end, out);
    return true;
  }

  end(end: AnswerEnd): string {
    let events = "";
    // A client that reads the first block's text must find one, also when the answer is empty.
    if (this.#index === 0 && this.#blocks.length === 0) events += this.#begin(newBlock("text", blockAtStart.text));
    while (this.#blocks.length > 0) {
      events += this.#closeFirst();
      // A call that the budget cut before its turn came is not begun.
      while (end.reason === "length" && this.#blocks[0] !== undefined && !isComplete(this.#blocks[0]))
        this.#blocks.shift();
      events += this.#openFirst();
    }
    const delta = {
      type: "message_delta",
      delta: stopOf(end),
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
    return literal === '""' ? "" : this.#begin(newBlock(kind, blockAtStart[kind], [literal]));
  }

  #cite(citation: string): string {
    const last = this.#blocks.at(-1)!;
    last.citations.push(citation);
    return last === this.#blocks[0] ? this.#citation(citation) : "";
  }

  #addArguments(index: number, literal: string): string {
    const open = this.#blocks[0];
    if (open?.callIndex === index) {
      open.literals.push(literal);
      return this.#delta + literal + deltaEnd + this.#advance();
    }
    // Not found: its block is closed, and after a whole object only white space can follow.
    this.#blocks.find(({ callIndex }) => callIndex === index)?.literals.push(literal);
    return "";
  }

  #append(block: Block, literal: string): string {
    const open = block === this.#blocks[0];
    if (!open || this.#omits(block)) block.literals.push(literal);
    return open ? this.#write(block, literal) : "";
  }

  #begin(block: Block): string {
    this.#blocks.push(block);
    const opened = this.#blocks.length === 1 ? this.#openFirst() : "";
    return opened + this.#advance();
  }

  /** Closes what is complete while something waits behind it, or nothing can be added to it. */
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
    let events = this.#started ? "" : this.#start();
    events += event(
      "content_block_start",
      `{"type":"content_block_start","index":${this.#index},"content_block":${block.start}}`,
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
    const signature = signatureOf(this.#omits(block) ? JSON.parse(joined(block.literals)) : "");
    const delta = `{"type":"signature_delta","signature":"${signature}"}`;
    return event("content_block_delta", `{"type":"content_block_delta","index":${this.#index},"delta":${delta}}`);
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

  /** The node has not counted yet: the input is our count, and message_delta overwrites it with the true numbers. */
  #start(): string {
    this.#started = true;
    const { model } = this.#ask;
    const usage = usageBody(model, { inputFresh: this.#inputTokens, inputCached: 0, output: 1, reasoning: 0 });
    const message = `${messageHead(model, this.#reply)},"content":[],"stop_reason":null,"stop_sequence":null,"usage":${JSON.stringify(usage)}}`;
    return event("message_start", `{"type":"message_start","message":${message}}`);
  }
}

const toolUseAtStart = ({ id, name }: Extract<Piece, { kind: "call" }>): string =>
  `{"type":"tool_use","id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"input":{}}`;

const isWhole = ({ kind }: Block): boolean => kind === "owned-call" || kind === "owned-result";

/** Asked only while another block waits: then, and from then on, each fragment is read once, and the whole parsed once. */
function isComplete(block: Block): boolean {
  if (block.kind !== "tool_use") return true;
  const { literals } = block;
  const end = (block.end ??= { json: new JsonEnd(), read: 0, whole: null });
  while (end.read < literals.length && !end.json.reached) end.json.push(JSON.parse(literals[end.read++]!) as string);
  if (end.json.reached) end.whole ??= argumentsObject(joined(literals)) !== null;
  return end.whole === true;
}

/** The insides of string literals, put together, are again the inside of one. */
const joined = (literals: readonly string[]): string => `"${literals.map((literal) => literal.slice(1, -1)).join("")}"`;
