// The items of a response's output: the events with which each opens, grows and ends, and its JSON. The events and
// their order are what every client's accumulator expects.
import type { ByteWriter } from "../../core/byte-writer.ts";
import { CustomToolInput } from "./custom-tool-input.ts";
import { DeltaFrame } from "../reply/delta-frame.ts";
import { JsonEnd } from "../../core/json-end.ts";
import { LiteralText } from "../reply/literal-text.ts";
import type { Call, ServerTool, ToolOutcome } from "../../core/types.ts";
import type { ToolOrigin } from "./offered-tools.ts";
import { queryOf } from "../request/search-request.ts";
import type { Sealer } from "../request/sealed-content.ts";

/** Numbers the events of one stream. A reply without a stream is built in the same way and ignores the numbers. */
export class EventNumbers {
  readonly wanted: boolean;
  #next = 0;

  constructor(wanted: boolean) {
    this.wanted = wanted;
  }

  next(): number {
    return this.#next++;
  }

  /** One whole event; `members` are its JSON members after the first two. */
  event(type: string, members: string): string {
    if (!this.wanted) return "";
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#next++},${members}}\n\n`;
  }
}

export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** One output item. Even before `open` it takes fragments, which go out when it opens. */
export abstract class OutputItem {
  abstract readonly kind: "reasoning" | "message" | "refusal" | "call" | "owned";
  readonly #id: string;
  readonly #index: number;
  readonly #numbers: EventNumbers;
  readonly #deltaBegin: string = "";
  readonly #deltaMiddle: string = "";
  readonly #deltaEnd: string;
  /** Parts of the delta event as bytes, created for the first token that comes as bytes. */
  #begin: Uint8Array | null = null;
  #frame: DeltaFrame | null = null;
  protected readonly text = new LiteralText();
  #state: "waiting" | "open" | "done" = "waiting";
  #status: ItemStatus = "in_progress";

  /** `inside`: the JSON members that locate a delta within the item, each with its comma. */
  protected constructor(place: ItemPlace, deltaType: string, inside: string, deltaEnd: string) {
    this.#id = `${place.prefix}_${place.stem}_${place.index}`;
    this.#index = place.index;
    this.#numbers = place.numbers;
    this.#deltaEnd = deltaEnd;
    if (!place.numbers.wanted) return;
    this.#deltaBegin = `event: ${deltaType}\ndata: {"type":"${deltaType}","sequence_number":`;
    this.#deltaMiddle = `,"item_id":"${this.#id}","output_index":${this.#index},${inside}"delta":`;
  }

  get done(): boolean {
    return this.#state === "done";
  }

  /** True if nothing more can come for this item once another one has begun. */
  get complete(): boolean {
    return true;
  }

  get literal(): string {
    return this.text.literal;
  }

  get inside(): string {
    return this.text.inside;
  }

  /** Takes a fragment (a JSON string literal); returns its event if the item is open. */
  push(literal: string): string {
    this.text.push(literal);
    return this.#state === "open" ? this.#delta(literal) : "";
  }

  /** Takes a literal that lies in `bytes` from `start` to `end`, and writes its event, if any; the item must be open. */
  pushBytes(bytes: Uint8Array, start: number, end: number, out: ByteWriter): void {
    this.text.pushBytes(bytes, start, end);
    if (!this.#numbers.wanted) return;
    const frame = (this.#frame ??= new DeltaFrame(this.#deltaMiddle, this.#deltaEnd));
    this.#begin ??= Buffer.from(this.#deltaBegin);
    out.bytes(this.#begin);
    out.number(this.#numbers.next());
    frame.write(bytes, start, end, out);
  }

  /** An event that adds nothing to the open item. */
  emptyDelta(): string {
    return this.#delta('""');
  }

  /** The events that show the item, and the fragments that waited. */
  open(): string {
    this.#state = "open";
    if (!this.#numbers.wanted) return "";
    let events = this.#event("response.output_item.added", this.json("in_progress"));
    events += this.openInside();
    if (!this.text.empty) events += this.#delta(this.text.literal);
    return events;
  }

  /** The events that end the item; nothing may be pushed afterwards. */
  close(status: "completed" | "incomplete"): string {
    const last = this.finish();
    this.#state = "done";
    this.#status = status;
    if (!this.#numbers.wanted) return "";
    return `${last}${this.closeInside()}${this.#event("response.output_item.done", this.result)}`;
  }

  /** The finished item as JSON text. */
  get result(): string {
    return this.json(this.#status);
  }

  /** The item as JSON text; while it is in progress it is shown empty. */
  protected abstract json(status: ItemStatus): string;
  /** Events between `output_item.added` and the first delta. */
  protected openInside(): string {
    return "";
  }

  /** Events between the last delta and `output_item.done`. */
  protected abstract closeInside(): string;

  /** No more fragments will come: returns the last delta, if something was held back. Also called for replies without events. */
  protected finish(): string {
    return "";
  }

  protected get id(): string {
    return this.#id;
  }

  protected get isOpen(): boolean {
    return this.#state === "open";
  }

  /** An event about this item; `members` are its further JSON members, if any. */
  protected event(type: string, members: string | null): string {
    const rest = members === null ? "" : `,${members}`;
    return this.#numbers.event(type, `"item_id":"${this.#id}","output_index":${this.#index}${rest}`);
  }

  #event(type: string, item: string): string {
    return this.#numbers.event(type, `"output_index":${this.#index},"item":${item}`);
  }

  #delta(literal: string): string {
    if (!this.#numbers.wanted) return "";
    return this.#deltaBegin + this.#numbers.next() + this.#deltaMiddle + literal + this.#deltaEnd;
  }
}

/** An item's position: its id is `<prefix>_<stem>_<index>`, unique in the service. */
export type ItemPlace = Readonly<{ prefix: string; stem: string; index: number; numbers: EventNumbers }>;
type Place = Omit<ItemPlace, "prefix">;

const plainDeltaEnd = "}\n\n";

/** Reasoning goes out only as its summary: each of the event names for raw reasoning breaks some client. */
export class ReasoningItem extends OutputItem {
  readonly kind = "reasoning";
  readonly #sealer: Sealer | null;
  /** Sealed once, because the item must be the same in each event. */
  #sealed = "";

  /** `sealer` is null if the client did not ask for sealed reasoning. */
  constructor(place: Place, sealer: Sealer | null) {
    super({ ...place, prefix: "rs" }, "response.reasoning_summary_text.delta", '"summary_index":0,', plainDeltaEnd);
    this.#sealer = sealer;
  }

  protected json(status: ItemStatus): string {
    if (status === "in_progress") return `{"id":"${this.id}","type":"reasoning","summary":[]}`;
    return `{"id":"${this.id}","type":"reasoning","summary":[${summaryPart(this.literal)}]${this.#sealed}}`;
  }

  protected override openInside(): string {
    return this.event("response.reasoning_summary_part.added", `"summary_index":0,"part":${summaryPart('""')}`);
  }

  protected override finish(): string {
    if (this.#sealer !== null) {
      this.#sealed = `,"encrypted_content":"${this.#sealer.seal("reasoning", JSON.parse(this.literal) as string)}"`;
    }
    return "";
  }

  protected closeInside(): string {
    const { literal } = this;
    const done = this.event("response.reasoning_summary_text.done", `"summary_index":0,"text":${literal}`);
    return (
      done + this.event("response.reasoning_summary_part.done", `"summary_index":0,"part":${summaryPart(literal)}`)
    );
  }
}

export class MessageItem extends OutputItem {
  readonly kind: "message" | "refusal";
  /** JSON texts, in order; those already shown went out as events. */
  readonly #annotations: string[] = [];
  #shown = 0;

  constructor(place: Place, kind: "message" | "refusal") {
    const { event, deltaEnd } = messageParts[kind];
    super({ ...place, prefix: "msg" }, `response.${event}.delta`, '"content_index":0,', deltaEnd);
    this.kind = kind;
  }

  protected json(status: ItemStatus): string {
    const content = status === "in_progress" ? "" : this.#part(this.literal);
    return `{"id":"${this.id}","type":"message","status":"${status}","role":"assistant","content":[${content}]}`;
  }

  protected override openInside(): string {
    return this.event("response.content_part.added", `"content_index":0,"part":${this.#part('""')}`);
  }

  /** Takes an annotation of the text so far; its event goes out at once, or with the text if the item waits. */
  annotate(annotation: string): string {
    this.#annotations.push(annotation);
    return this.isOpen ? this.#showAnnotations() : "";
  }

  override open(): string {
    return super.open() + this.#showAnnotations();
  }

  protected closeInside(): string {
    const { literal } = this;
    const { event, done } = messageParts[this.kind];
    const ended = this.event(`response.${event}.done`, `"content_index":0,${done(literal)}`);
    return ended + this.event("response.content_part.done", `"content_index":0,"part":${this.#part(literal)}`);
  }

  #part(literal: string): string {
    return messageParts[this.kind].part(literal, this.#annotations);
  }

  #showAnnotations(): string {
    let events = "";
    for (; this.#shown < this.#annotations.length; this.#shown++) {
      const members = `"content_index":0,"annotation_index":${this.#shown},"annotation":${this.#annotations[this.#shown]}`;
      events += this.event("response.output_text.annotation.added", members);
    }
    return events;
  }
}

export class FunctionCallItem extends OutputItem {
  readonly kind = "call";
  readonly #called: string;
  readonly #name: string;
  #end: JsonEnd | null = null;

  constructor(place: Place, callId: string, origin: ToolOrigin) {
    super({ ...place, prefix: "fc" }, "response.function_call_arguments.delta", "", plainDeltaEnd);
    this.#called = calledMembers(callId, origin);
    this.#name = origin.name;
  }

  /** Called only while a later call waits: from then on the arguments are read for their end. */
  override get complete(): boolean {
    if (this.#end === null) {
      this.#end = new JsonEnd();
      this.#end.push(JSON.parse(this.literal) as string);
    }
    return this.#end.reached;
  }

  override push(literal: string): string {
    this.#end?.push(JSON.parse(literal) as string);
    return super.push(literal);
  }

  protected json(status: ItemStatus): string {
    const json = status === "in_progress" ? '""' : this.literal;
    return `{"id":"${this.id}","type":"function_call","status":"${status}",${this.#called},"arguments":${json}}`;
  }

  /** With the name, which the official clients' types had until openai 7 and Python's 3. */
  protected closeInside(): string {
    const members = `"name":${JSON.stringify(this.#name)},"arguments":${this.literal}`;
    return this.event("response.function_call_arguments.done", members);
  }
}

/** A call of a custom tool, which the model made as a function call around the input. */
export class CustomCallItem extends OutputItem {
  readonly kind = "call";
  readonly #called: string;
  readonly #input = new CustomToolInput();
  readonly #end = new JsonEnd();

  constructor(place: Place, callId: string, origin: ToolOrigin) {
    super({ ...place, prefix: "ctc" }, "response.custom_tool_call_input.delta", "", plainDeltaEnd);
    this.#called = calledMembers(callId, origin);
  }

  override get complete(): boolean {
    return this.#end.reached;
  }

  override push(literal: string): string {
    const fragment = JSON.parse(literal) as string;
    this.#end.push(fragment);
    return this.#pushInput(this.#input.push(fragment));
  }

  protected override finish(): string {
    return this.#pushInput(this.#input.finish());
  }

  protected json(status: ItemStatus): string {
    const input = status === "in_progress" ? '""' : this.literal;
    return `{"id":"${this.id}","type":"custom_tool_call","status":"${status}",${this.#called},"input":${input}}`;
  }

  protected closeInside(): string {
    return this.event("response.custom_tool_call_input.done", `"input":${this.literal}`);
  }

  #pushInput(input: string): string {
    return input === "" ? "" : super.push(JSON.stringify(input));
  }
}

/** A call that the gateway runs itself: it stays open until its result is known. */
export abstract class OwnedItem extends OutputItem {
  readonly kind = "owned";
  protected readonly call: Call;
  protected outcome: ToolOutcome | null = null;

  protected constructor(place: ItemPlace, call: Call, deltaType: string) {
    super(place, deltaType, "", plainDeltaEnd);
    this.call = call;
  }

  override get complete(): boolean {
    return this.outcome !== null;
  }

  resolve(outcome: ToolOutcome): void {
    this.outcome = outcome;
  }

  /** Nothing of it grows, but its state can be repeated, even when it is done and the model reads the result. */
  override emptyDelta(): string {
    return this.outcome === null ? this.running() : this.ended();
  }

  /** The events that say that it runs, and that it ended. */
  protected abstract running(): string;
  protected abstract ended(): string;

  /** A failed call is an item like any other: the answer continues. */
  protected statusOf(status: ItemStatus): string {
    return status === "completed" && this.outcome?.failed === true ? "failed" : status;
  }
}

export class WebSearchItem extends OwnedItem {
  readonly #showsSources: boolean;

  /** `showsSources`: the client wants all addresses that were found, beside those that the answer cites. */
  constructor(place: Place, call: Call, showsSources: boolean) {
    super({ ...place, prefix: "ws" }, call, "");
    this.#showsSources = showsSources;
  }

  protected json(status: ItemStatus): string {
    const query = queryOf(this.call);
    const found = this.outcome?.sources.map(({ url }) => ({ type: "url", url })) ?? [];
    const sources = this.#showsSources ? found : undefined;
    const action = JSON.stringify({ type: "search", query, queries: [query], sources });
    return `{"id":"${this.id}","type":"web_search_call","status":"${this.statusOf(status)}","action":${action}}`;
  }

  protected override openInside(): string {
    return this.event("response.web_search_call.in_progress", null) + this.running();
  }

  protected running(): string {
    return this.event("response.web_search_call.searching", null);
  }

  protected closeInside(): string {
    return this.ended();
  }

  protected ended(): string {
    return this.event("response.web_search_call.completed", null);
  }
}

/** A call of an MCP server's tool. Its arguments are complete from the start, so they go out as one delta. */
export class McpCallItem extends OwnedItem {
  readonly #tool: ServerTool;

  constructor(place: Place, call: Call, tool: ServerTool) {
    super({ ...place, prefix: "mcp" }, call, "response.mcp_call_arguments.delta");
    this.#tool = tool;
    this.text.push(JSON.stringify(call.arguments));
  }

  protected json(status: ItemStatus): string {
    const inProgress = status === "in_progress";
    const { text = "", failed = false } = this.outcome ?? {};
    const item = {
      id: this.id,
      type: "mcp_call",
      status: this.statusOf(status),
      server_label: this.#tool.server,
      name: this.#tool.name,
      arguments: inProgress ? "" : this.call.arguments,
      approval_request_id: null,
      output: inProgress || failed ? null : text,
      error: failed ? { type: "mcp_tool_execution_error", content: [{ type: "text", text }] } : null,
    };
    return JSON.stringify(item);
  }

  protected override openInside(): string {
    return this.running();
  }

  protected running(): string {
    return this.event("response.mcp_call.in_progress", null);
  }

  protected closeInside(): string {
    return this.event("response.mcp_call_arguments.done", `"arguments":${this.literal}`) + this.ended();
  }

  protected ended(): string {
    return this.event(`response.mcp_call.${this.outcome?.failed === true ? "failed" : "completed"}`, null);
  }
}

/** The one item of a compaction; it has no events of its own. */
export function compactionItem(stem: string, sealed: string): string {
  return `{"id":"cmp_${stem}","type":"compaction","encrypted_content":"${sealed}"}`;
}

/** The one part of a message: the name of its events, how a delta ends, what `done` says, and the part itself. */
const messageParts = {
  message: {
    event: "output_text",
    deltaEnd: ',"logprobs":[]}\n\n',
    done: (literal: string) => `"text":${literal},"logprobs":[]`,
    part: (literal: string, annotations: readonly string[]) =>
      `{"type":"output_text","text":${literal},"annotations":[${annotations.join(",")}],"logprobs":[]}`,
  },
  refusal: {
    event: "refusal",
    deltaEnd: plainDeltaEnd,
    done: (literal: string) => `"refusal":${literal}`,
    part: (literal: string) => `{"type":"refusal","refusal":${literal}}`,
  },
};
const summaryPart = (literal: string): string => `{"type":"summary_text","text":${literal}}`;

function calledMembers(callId: string, { name, namespace }: ToolOrigin): string {
  const members = `"call_id":${JSON.stringify(callId)},"name":${JSON.stringify(name)}`;
  return namespace === null ? members : `${members},"namespace":${JSON.stringify(namespace)}`;
}
