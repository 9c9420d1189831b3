// The `input` of a responses request: items -> turns. Items of one step of the model become one assistant turn.
import { isRefusal } from "../../core/refusals.ts";
import { isRecord } from "../../core/is-record.ts";
import { type Call, type Model, type Part, type Refusal, searchFunctionName, type Turn } from "../../core/types.ts";
import { summaryTurn } from "./compaction.ts";
import { inputParameter } from "./custom-tool-input.ts";
import { serverToolName } from "../../core/server-tool-name.ts";
import { malformed, textOrNothing } from "../request/field.ts";
import { readFile, readImage, readStored } from "../request/media-part.ts";
import type { OfferedTools } from "./offered-tools.ts";
import type { Sealer } from "../request/sealed-content.ts";
import { systemText } from "../request/system-text.ts";
import type { Item } from "../stored-responses.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";

/** What reading items needs to know about the rest of the request. */
export type InputContext = Readonly<{
  model: Pick<Model, "id" | "readsImages">;
  tools: OfferedTools;
  sealer: Pick<Sealer, "open">;
  /** Earlier output items by id, for `item_reference`. */
  stored: ReadonlyMap<string, Item>;
  /** Takes the ids of calls, and results must have one of them; absent or null: they need not. */
  calls?: Set<string> | null;
}>;

type Content = string | readonly Part[];

/** Between texts that were parts of one message: what engines insert themselves (vLLM), so prefixes stay equal. */
const betweenParts = "\n";
/** Between messages of one assistant turn. */
const betweenMessages = "\n\n";

/** The turns of `items`; error messages call these `at[0]`, `at[1]`, ... */
export function readItems(items: readonly Item[], at: string, context: InputContext): readonly Turn[] | Refusal {
  const reader = new ItemReader(context);
  for (const [index, item] of items.entries()) {
    const refusal = reader.item(item, `${at}[${index}]`);
    if (refusal !== null) return refusal;
  }
  return reader.turns();
}

class ItemReader {
  readonly #context: InputContext;
  readonly #turns: Turn[] = [];
  #assistant: { messages: string[]; reasoning: string[]; calls: Call[] } | null = null;

  constructor(context: InputContext) {
    this.#context = context;
  }

  turns(): readonly Turn[] {
    this.#closeAssistant();
    return this.#turns;
  }

  item(item: Item, at: string): Refusal | null {
    const type = item.type ?? (item.role === undefined ? undefined : "message");
    switch (type) {
      case "message":
        return this.#message(item, at);
      case "reasoning":
        this.#reasoning(item);
        return null;
      case "function_call":
      case "custom_tool_call":
        return this.#call(item, at);
      case "function_call_output":
      case "custom_tool_call_output":
        if (this.#context.calls?.has(item.call_id as string) === false) {
          return malformed(`${at}: No tool call found for function call output with call_id ${String(item.call_id)}`);
        }
        return this.#output(item, at);
      case "web_search_call":
        return this.#search(item);
      case "mcp_call":
        return this.#serverCall(item, at);
      case "compaction":
        return this.#compaction(item);
      case "item_reference":
        return this.#reference(item, at);
      default:
        if (typeof type !== "string") return malformed(`${at} must have a type or a role`);
        return this.#foreign(item, type, at);
    }
  }

  #message(item: Item, at: string): Refusal | null {
    const content = this.#readContent(item.content ?? "", `${at}.content`);
    if (isRefusal(content)) return content;
    switch (item.role) {
      case "assistant":
        this.#openAssistant().messages.push(textOf(content));
        return null;
      case "user":
        this.#add({ role: "user", content });
        return null;
      case "system":
      case "developer":
        this.#add({ role: "system", content: systemText(textOf(content)) });
        return null;
      default:
        return malformed(`${at}.role must be one of user, assistant, system, developer`);
    }
  }

  /** Our own sealed text, or otherwise the summary. What another server sealed is lost, which is no error. */
  #reasoning(item: Item): void {
    const sealed = item.encrypted_content;
    const text =
      typeof sealed === "string"
        ? this.#context.sealer.open("reasoning", sealed)
        : textsOf(item.content) || textsOf(item.summary);
    if (text !== null && text !== "") this.#openAssistant().reasoning.push(text);
  }

  #call(item: Item, at: string): Refusal | null {
    if (typeof item.call_id !== "string") return malformed(`${at}.call_id must be a string`);
    if (typeof item.name !== "string") return malformed(`${at}.name must be a string`);
    this.#context.calls?.add(item.call_id);
    const namespace = typeof item.namespace === "string" ? item.namespace : null;
    const kind = item.type === "custom_tool_call" ? "custom" : "function";
    const name = this.#context.tools.flatName({ kind, namespace, name: item.name });
    const json =
      kind === "custom" ? JSON.stringify({ [inputParameter]: textOrNothing(item.input) }) : argumentsOf(item.arguments);
    this.#openAssistant().calls.push({ id: item.call_id, name, arguments: json });
    return null;
  }

  #output(item: Item, at: string): Refusal | null {
    if (typeof item.call_id !== "string") return malformed(`${at}.call_id must be a string`);
    const output = item.output ?? "";
    const content =
      typeof output === "string" || Array.isArray(output)
        ? this.#readContent(output, `${at}.output`)
        : JSON.stringify(output);
    if (isRefusal(content)) return content;
    this.#add({ role: "tool", callId: item.call_id, content });
    return null;
  }

  /** A search that the server made: a call and its result, for which the item has the addresses at most. */
  #search(item: Item): null {
    const { query, queries, sources } = (item.action ?? {}) as Item;
    const asked = query ?? (Array.isArray(queries) ? queries[0] : undefined);
    if (typeof asked !== "string") return null; // it opened a page, for example: nothing that a model here could do
    const given = Array.isArray(sources) ? (sources as (Item | null)[]) : [];
    const urls = given.map((source) => source?.url).filter((url) => typeof url === "string");
    const found = urls.length === 0 ? "It was searched; the answer says what was found." : `Found:\n${urls.join("\n")}`;
    this.#ran(item, searchFunctionName, JSON.stringify({ query: asked }), found);
    return null;
  }

  /** A call of an MCP server's tool, under the name that models know. */
  #serverCall(item: Item, at: string): Refusal | null {
    const { name, server_label: server, output, error } = item;
    if (typeof name !== "string") return malformed(`${at}.name must be a string`);
    const result = output ?? error ?? "";
    const text = typeof result === "string" ? result : JSON.stringify(result);
    this.#ran(item, serverToolName({ server: textOrNothing(server), name }), argumentsOf(item.arguments), text);
    return null;
  }

  #ran(item: Item, name: string, json: string, result: string): void {
    const id = typeof item.id === "string" ? item.id : `call_${this.#turns.length}`;
    this.#openAssistant().calls.push({ id, name, arguments: json });
    this.#add({ role: "tool", callId: id, content: result });
  }

  #compaction(item: Item): null {
    const sealed = item.encrypted_content;
    const summary = typeof sealed === "string" ? this.#context.sealer.open("compaction", sealed) : null;
    if (summary !== null) this.#add(summaryTurn(summary));
    return null;
  }

  #reference(item: Item, at: string): Refusal | null {
    const { id } = item;
    if (typeof id !== "string") return malformed(`${at}.id must be a string`);
    const stored = this.#context.stored.get(id);
    if (stored !== undefined && stored.type !== "item_reference") return this.item(stored, at);
    // A thought that cannot be read is left out in any form.
    if (id.startsWith("rs_")) return null;
    return malformed(`${at}: no item ${id} is stored here; send the item itself (in most clients: store: false)`);
  }

  /** Calls of tools that other servers run, and their results, are kept as calls; the rest is left out. */
  #foreign(item: Item, type: string, at: string): Refusal | null {
    if (typeof item.call_id !== "string") return null;
    if (type.endsWith("_output")) {
      const output = item.output ?? item.tools ?? "";
      return this.#output({ ...item, output: typeof output === "string" ? output : JSON.stringify(output) }, at);
    }
    if (!type.endsWith("_call")) return null;
    const name = type.slice(0, -"_call".length);
    const json = JSON.stringify(item.action ?? item.operation ?? item.arguments ?? {});
    this.#context.calls?.add(item.call_id);
    this.#openAssistant().calls.push({ id: item.call_id, name, arguments: argumentsOf(json) });
    return null;
  }

  #openAssistant() {
    return (this.#assistant ??= { messages: [], reasoning: [], calls: [] });
  }

  #add(turn: Turn): void {
    this.#closeAssistant();
    this.#turns.push(turn);
  }

  #closeAssistant(): void {
    if (this.#assistant === null) return;
    const { messages, reasoning, calls } = this.#assistant;
    this.#assistant = null;
    // A thought without a result (the client stopped there) is no turn: engines refuse one without content.
    if (messages.length === 0 && calls.length === 0) return;
    this.#turns.push({
      role: "assistant",
      content: messages.length === 0 ? null : messages.join(betweenMessages),
      reasoning: reasoning.length === 0 ? null : reasoning.join(betweenMessages),
      calls,
    });
  }

  /** Texts become one string, so that a client's choice of form changes no prompt; beside other parts they stay parts. */
  #readContent(content: unknown, at: string): Content | Refusal {
    if (typeof content === "string") return content;
    if (!Array.isArray(content)) return malformed(`${at} must be a string or an array of parts`);
    const parts: Part[] = [];
    for (const [index, part] of (content as unknown[]).entries()) {
      const refusal = this.#readPart(part, `${at}[${index}]`, parts);
      if (refusal !== null) return refusal;
    }
    return parts.every((part) => part.kind === "text") ? textOf(parts) : parts;
  }

  #addPart(read: Part | null | Refusal, parts: Part[]): Refusal | null {
    if (isRefusal(read)) return read;
    if (read !== null) parts.push(read);
    return null;
  }

  /** The request is answered without parts of unknown types. */
  #readPart(value: unknown, at: string, parts: Part[]): Refusal | null {
    if (typeof value !== "object" || value === null) return malformed(`${at} must be an object`);
    const part = value as Item;
    const { model } = this.#context;
    switch (part.type) {
      case "input_image": {
        const url = part.image_url;
        const detail = typeof part.detail === "string" ? part.detail : null;
        if (typeof url !== "string") {
          if (part.file_id == null) return malformed(`${at}.image_url must be a string`);
          return this.#addPart(readStored("image", part.file_id, detail, `${at}.file_id`, model), parts);
        }
        return this.#addPart(readImage(url, detail, at, model), parts);
      }
      case "input_file": {
        const given = part.file_url ?? part.file_data;
        const filename = typeof part.filename === "string" ? part.filename : null;
        if (typeof given !== "string") {
          if (part.file_id == null) return malformed(`${at} needs file_id, file_data or file_url, a string`);
          return this.#addPart(readStored("file", part.file_id, filename, `${at}.file_id`, model), parts);
        }
        return this.#addPart(readFile(given, filename, at), parts);
      }
      case "input_audio":
        return malformed(`${at}: the model ${model.id} does not read audio`);
      case "input_text":
      case "output_text":
        if (typeof part.text !== "string") return malformed(`${at}.text must be a string`);
        break;
      case "refusal":
        if (typeof part.refusal !== "string") return malformed(`${at}.refusal must be a string`);
        break;
      case undefined:
        return malformed(`${at}.type is required`);
      default:
        break;
    }
    const text = part.text ?? part.refusal;
    if (typeof text === "string") parts.push({ kind: "text", text });
    return null;
  }
}

const textOf = (content: Content): string =>
  typeof content === "string"
    ? content
    : content.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join(betweenParts);

/** The texts of a reasoning item's summary or content. */
const textsOf = (parts: unknown): string =>
  (Array.isArray(parts) ? (parts as (Item | null)[]) : [])
    .flatMap((part) => (typeof part?.text === "string" ? [part.text] : []))
    .join(betweenMessages);

/** Arguments as JSON text of an object: some engines answer 500 to a history with anything else (llama-server). */
function argumentsOf(given: unknown): string {
  if (typeof given !== "string") return JSON.stringify(typeof given === "object" && given !== null ? given : {});
  if (given.trim() === "") return "{}";
  try {
    const value: unknown = parseOutsideJson(given);
    if (isRecord(value)) return given;
  } catch {
    // A model's broken call keeps its words, so that the model can see what it did.
  }
  return JSON.stringify({ [inputParameter]: given });
}
