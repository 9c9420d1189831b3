// Responses stored for later requests to refer to by id. The store looks these up before a request is read.
import { isRecord } from "../core/is-record.ts";
import { refuse } from "../core/refusals.ts";
import type { AccountId, Refusal } from "../core/types.ts";

/** An input or output item exactly as in a request or reply. */
export type Item = Readonly<Record<string, unknown>>;

/** The ids by which a request refers to earlier ones; a conversation's id takes the place of a response's. */
export type References = Readonly<{ previousResponseId: string | null; itemIds: readonly string[] }>;

/** On a WebSocket's message, whose input already holds the items of the response that it names. */
export const continuesHeader = "x-tollgate-continues";

/** A conversation is stored like a response: its items are the input, its object is the settings. */
export const conversationPrefix = "conv_";
export const isConversationId = (id: string): boolean => id.startsWith(conversationPrefix);
export const conversationNotFound = (id: string): Refusal =>
  refuse("not_found", { reason: `Conversation with id '${id}' not found.` });

/** What to do with a conversation. `body`: a request's JSON, not parsed yet; items without an id get one made from `stem`. */
export type ConversationAct =
  | Readonly<{ act: "create" | "add" | "update"; body: string | Uint8Array; stem: string }>
  | Readonly<{ act: "show" }>
  | Readonly<{ act: "item" | "remove"; itemId: string }>;

/** What was found for a request's references. */
export type Earlier = Readonly<{
  /** The input and output items of the conversation that ended with `previous_response_id`, oldest first, or null. */
  conversation: readonly Item[] | null;
  /** A response of that conversation that is missing, if any. */
  missingId?: string | null;
  /** The items that were found, by id. */
  items: ReadonlyMap<string, Item>;
  /** The size of all that as JSON, which becomes part of the request's input like its body. */
  bytes: number;
}>;

/** The same as JSON texts. `itemsBytes`: what the references stand for, each item as often as it is referred to. */
export type EarlierTexts = Readonly<{
  conversation: string | null;
  missingId?: string | null;
  items: string;
  itemsBytes: number;
}>;

/** The size of their JSON: some scripts have three bytes a character, and as many tokens. */
export const bytesOf = ({ conversation, itemsBytes }: Pick<EarlierTexts, "conversation" | "itemsBytes">): number =>
  (conversation === null ? 0 : Buffer.byteLength(conversation)) + itemsBytes;

export function earlierOf(texts: EarlierTexts): Earlier {
  const { conversation, missingId = null, items } = texts;
  return {
    missingId,
    conversation: conversation === null ? null : (JSON.parse(conversation) as Item[]),
    items: new Map((JSON.parse(items) as Item[]).map((item) => [item.id as string, item])),
    bytes: bytesOf(texts),
  };
}

export const nothingEarlier: Earlier = { conversation: null, items: new Map(), bytes: 0 };

/** Which items of a list are wanted: those after the item `after`, or from the beginning. */
export type ItemPage = Readonly<{ limit: number; order: "asc" | "desc"; after: string | null }>;

export type StoredResponse = Readonly<{
  id: string;
  previousResponseId: string | null;
  /** The conversation that its input and output join; `only`: the response itself is not stored. */
  conversation?: Readonly<{ id: string; only: boolean }> | null;
  /** The items of this request's own input, or their JSON text. */
  input: readonly Item[] | string;
  /** The output items as the JSON text of an array, and the response object without these and `output_text`. */
  output: string;
  settings: string;
}>;

/** The response object as JSON text. Earlier versions stored the answer's text at the end of `settings`. */
export function responseText({ settings, output }: Pick<StoredResponse, "settings" | "output">): string {
  const whole = `${settings.slice(0, -1)},"output":${output}`;
  return settings.endsWith('"}') ? `${whole}}` : `${whole},"output_text":${JSON.stringify(outputText(output))}}`;
}

/** Where a response that goes on without its client is noted, until the response itself is stored. */
export const noteIdOf = (responseId: string): string => responseId.replace("resp_", "bg_");

/** What a note says of a response whose gateway has stopped; JSON texts. */
export function interrupted(note: string): string {
  const message = "The gateway stopped before this response was complete. Nothing was charged.";
  return JSON.stringify({ ...(JSON.parse(note) as Item), status: "failed", error: { code: "server_error", message } });
}

type Part = Readonly<{ type: string; text: string }>;

/** Each message has one part, which is its text. */
function outputText(output: string): string {
  let text = "";
  for (const { type, content } of JSON.parse(output) as Item[]) {
    if (type === "message") for (const part of content as Part[]) text += part.text;
  }
  return text;
}

/** An account never finds another's. Nothing rejects: what cannot be read is refused as internal, not as lost. */
export interface StoredResponses {
  /** Refused as body_too_large where a conversation has grown beyond what one body may have. */
  find(account: AccountId, references: References): Promise<EarlierTexts | Refusal>;
  /** Visible to later calls here, and elsewhere once the promise resolves, which never rejects. Failures are silent. */
  keep(account: AccountId, response: StoredResponse): void | Promise<void>;
  /** The response object as JSON text; null where the account has none with that id. */
  response(account: AccountId, id: string): Promise<string | null | Refusal>;
  /** A page of the items of the request that led to the response, as JSON text; null where the account has none with that id. */
  input(account: AccountId, id: string, page: ItemPage): Promise<string | null | Refusal>;
  /** False where the account has none with that id. */
  delete(account: AccountId, id: string): Promise<boolean | Refusal>;
  /** Returns the reply for the client, as JSON text. */
  converse(account: AccountId, id: string, act: ConversationAct): Promise<string | Refusal>;
}

/** The response of an item: of its output or, if the number says `in`, of its input. Null for a foreign id. */
export function responseIdOf(itemId: string): string | null {
  const stem = /^[a-z]+_([0-9A-Za-z]+)_(?:in)?\d+$/.exec(itemId)?.[1];
  return stem === undefined ? null : `resp_${stem}`;
}

/** Whether this is the id under which an input item without an id is listed. */
export const isOfInput = (itemId: string): boolean => /_in\d+$/.test(itemId);

/** Of a request's `conversation`: an id or an object with one. */
export function conversationIdOf(given: unknown): string | null {
  const id: unknown = isRecord(given) ? given.id : given;
  return typeof id === "string" ? id : null;
}

/** What `body`, an unchecked request, refers to; null for nearly all requests. */
export function referencesOf(body: unknown): References | null {
  if (typeof body !== "object" || body === null) return null;
  const { previous_response_id: id, conversation, input } = body as Record<string, unknown>;
  const previousResponseId = typeof id === "string" ? id : conversationIdOf(conversation);
  const itemIds: string[] = [];
  for (const item of Array.isArray(input) ? (input as unknown[]) : []) {
    const { type, id } = (item ?? {}) as Record<string, unknown>;
    if (type === "item_reference" && typeof id === "string") itemIds.push(id);
  }
  return previousResponseId === null && itemIds.length === 0 ? null : { previousResponseId, itemIds };
}
