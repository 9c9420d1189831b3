// Responses that were kept so that later requests may refer to them by id instead of repeating them. The dialect says
// what a request refers to; whoever keeps responses looks it up before the request is read.
import { isRecord } from "../core/is-record.ts";
import { refuse } from "../core/refusals.ts";
import type { AccountId, Refusal } from "../core/types.ts";

/** An input or output item as it stands in a request or reply. */
export type Item = Readonly<Record<string, unknown>>;

/** The ids by which a request refers to what came earlier; a conversation's stands in the place of a response's. */
export type References = Readonly<{ previousResponseId: string | null; itemIds: readonly string[] }>;

/** A conversation is kept as a response is: its items are that one's input, its object that one's settings. */
export const conversationPrefix = "conv_";
export const isConversationId = (id: string): boolean => id.startsWith(conversationPrefix);
export const conversationNotFound = (id: string): Refusal =>
  refuse("not_found", { reason: `Conversation with id '${id}' not found.` });

/** What is asked of a conversation. `body`: a request's JSON, not parsed yet; items without an id get one of `stem`. */
export type ConversationAct =
  | Readonly<{ act: "create" | "add" | "update"; body: string | Uint8Array; stem: string }>
  | Readonly<{ act: "show" }>
  | Readonly<{ act: "item" | "remove"; itemId: string }>;

/** What was found for a request's references. */
export type Earlier = Readonly<{
  /** The input and output items of the conversation that ended with `previous_response_id`, oldest first, or null. */
  conversation: readonly Item[] | null;
  /** The response of that conversation that is not there, if one is not. */
  missingId?: string | null;
  /** The items that were found, by id. */
  items: ReadonlyMap<string, Item>;
  /** Size of all that as JSON: it becomes input of the request like its body. */
  bytes: number;
}>;

/**
 * The same as JSON texts: `conversation` an array or null, `items` an array. `itemsBytes`: of what the
 * request's references stand for, an item as often as it is referred to.
 */
export type EarlierTexts = Readonly<{
  conversation: string | null;
  missingId?: string | null;
  items: string;
  itemsBytes: number;
}>;

/** Of their JSON: some scripts have three bytes a character, and as many tokens. */
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

/** Which items of a list are wanted: those behind the item `after`, or from the beginning. */
export type ItemPage = Readonly<{ limit: number; order: "asc" | "desc"; after: string | null }>;

/** A finished response to be kept. */
export type StoredResponse = Readonly<{
  id: string;
  previousResponseId: string | null;
  /** To which its input and output are added; `only`: the response itself is not kept. */
  conversation?: Readonly<{ id: string; only: boolean }> | null;
  /** The items of this request's own input, or their JSON text. */
  input: readonly Item[] | string;
  /** The items of the output as the JSON text of an array, and the response object without these and `output_text`. */
  output: string;
  settings: string;
}>;

/** The response object as JSON text. Where earlier versions kept it, the text of the answer stands in `settings`, at its end. */
export function responseText({ settings, output }: Pick<StoredResponse, "settings" | "output">): string {
  const whole = `${settings.slice(0, -1)},"output":${output}`;
  return settings.endsWith('"}') ? `${whole}}` : `${whole},"output_text":${JSON.stringify(outputText(output))}}`;
}

type Part = Readonly<{ type: string; text: string }>;

/** All messages have one part, which is their text. */
function outputText(output: string): string {
  let text = "";
  for (const { type, content } of JSON.parse(output) as Item[]) {
    if (type === "message") for (const part of content as Part[]) text += part.text;
  }
  return text;
}

/**
 * Accounts' responses; one account never finds another's. Nothing here rejects: what cannot be read now is refused as
 * internal, so that nobody takes it for lost.
 */
export interface StoredResponses {
  /** Refused as body_too_large where a conversation has grown beyond what could be sent as one body. */
  find(account: AccountId, references: References): Promise<EarlierTexts | Refusal>;
  /**
   * Found by every call that comes later; where another gateway may be asked, when the promise resolves, which never rejects.
   * Fails in silence for the client: its reply is whole without.
   */
  keep(account: AccountId, response: StoredResponse): void | Promise<void>;
  /** The response object as JSON text; null where the account has none of that id. */
  response(account: AccountId, id: string): Promise<string | null | Refusal>;
  /** A page of the items of the request that led to the response, as JSON text; null where the account has none of that id. */
  input(account: AccountId, id: string, page: ItemPage): Promise<string | null | Refusal>;
  /** False where the account has none of that id. */
  delete(account: AccountId, id: string): Promise<boolean | Refusal>;
  /** Gives what a client is told of it, as JSON text. */
  converse(account: AccountId, id: string, act: ConversationAct): Promise<string | Refusal>;
}

/** The response to which an item belongs: to its output or, if the number says `in`, its input. Null for an id that is not ours. */
export function responseIdOf(itemId: string): string | null {
  const stem = /^[a-z]+_([0-9A-Za-z]+)_(?:in)?\d+$/.exec(itemId)?.[1];
  return stem === undefined ? null : `resp_${stem}`;
}

/** Whether it is the id under which an item is listed that came without one, in a request's input. */
export const isOfInput = (itemId: string): boolean => /_in\d+$/.test(itemId);

/** Of a request's `conversation`: an id or an object with one. */
export function conversationIdOf(given: unknown): string | null {
  const id: unknown = isRecord(given) ? given.id : given;
  return typeof id === "string" ? id : null;
}

/** What `body`, a request not checked yet, refers to; null for nearly all requests. */
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
