// Responses that were kept so that later requests may refer to them by id instead of repeating them. The dialect says
// what a request refers to; whoever keeps responses looks it up before the request is read.
import type { AccountId } from "../types.ts";

/** An input or output item as it stands in a request or reply. */
export type Item = Readonly<Record<string, unknown>>;

/** The ids by which a request refers to what came earlier. */
export type References = Readonly<{ previousResponseId: string | null; itemIds: readonly string[] }>;

/** What was found for a request's references. */
export type Earlier = Readonly<{
  /** The input and output items of the conversation that ended with `previous_response_id`, oldest first, or null. */
  conversation: readonly Item[] | null;
  /** The output items that were found, by id. */
  items: ReadonlyMap<string, Item>;
}>;

export const nothingEarlier: Earlier = { conversation: null, items: new Map() };

/** A finished response to be kept. */
export type StoredResponse = Readonly<{
  id: string;
  previousResponseId: string | null;
  /** The items of this request's own input. */
  input: readonly Item[];
  /** The response object as JSON text, as the client got it. */
  response: string;
}>;

/** An account's responses; one account never finds another's. */
export interface StoredResponses {
  find(account: AccountId, references: References): Promise<Earlier>;
  keep(account: AccountId, response: StoredResponse): void;
}

/** What `body`, a request not checked yet, refers to; null for nearly all requests. */
export function referencesOf(body: unknown): References | null {
  if (typeof body !== "object" || body === null) return null;
  const { previous_response_id: id, input } = body as Record<string, unknown>;
  const previousResponseId = typeof id === "string" ? id : null;
  const itemIds: string[] = [];
  for (const item of Array.isArray(input) ? (input as unknown[]) : []) {
    const { type, id } = (item ?? {}) as Record<string, unknown>;
    if (type === "item_reference" && typeof id === "string") itemIds.push(id);
  }
  return previousResponseId === null && itemIds.length === 0 ? null : { previousResponseId, itemIds };
}
