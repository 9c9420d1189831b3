// What happens to a conversation, which is kept as a stored response: in SQLite and PostgreSQL alike, each time to all of its
// text in one transaction. So requests that end at once add one after the other, and everybody sees the same order.
import type { ReadConversationAct } from "../../dialects/responses/conversations.ts";
import { type ConversationAct, conversationNotFound, type Item } from "../../dialects/stored-responses.ts";
import { isRefusal, messageOf, refuse } from "../../core/refusals.ts";
import type { Soon } from "../../core/soon.ts";
import type { AccountId, Ms, Refusal } from "../../core/types.ts";
import { prefixOf } from "./input-items.ts";
import type { KeptResponse } from "./kept-text.ts";

/** Of a stored response what a conversation is kept in. */
export type KeptConversation = Readonly<{ input: string; settings: string }>;

/** `after` is null where nothing changes. */
export type Conversed = Readonly<{ after: KeptConversation | null; reply: string }>;

/** An answer with its input is added once, however often that is tried. */
export type ConversationStep =
  | Exclude<ReadConversationAct, Readonly<{ act: "create" }>>
  | Readonly<{ act: "answer"; items: readonly Item[]; lastId: unknown; stem: string }>;

/** An answer that its conversation did not take, for the log. */
export type NotAdded = Readonly<{ response: string; conversation: string; reason: string }>;

export const conversationFull = refuse("malformed", { reason: "The conversation is too large to take more" });

/** With its empty output. */
export const conversationBytes = ({ input, settings }: KeptConversation): number =>
  Buffer.byteLength(input) + Buffer.byteLength(settings) + "[]".length;

/** `lengthMax`: a conversation that is longer than could be sent as one body takes no more. */
export function conversed(
  id: string,
  before: KeptConversation | null,
  step: ConversationStep,
  lengthMax: number,
): Conversed | Refusal {
  if (before === null) return conversationNotFound(id);
  const { input, settings } = before;
  switch (step.act) {
    case "show":
      return { after: null, reply: settings };
    case "update": {
      const changed = JSON.stringify({ ...(JSON.parse(settings) as Item), metadata: step.metadata });
      return { after: { input, settings: changed }, reply: changed };
    }
    case "answer":
    case "add": {
      if (input.length > lengthMax) return conversationFull;
      const items = JSON.parse(input) as Item[];
      if (step.act === "answer" && items.some((item) => item.id === step.lastId)) return { after: null, reply: "" };
      const added = wholeItems(step.items, new Set(items.map((item) => item.id)), step.stem);
      if (added.length === 0) return { after: null, reply: listOf([]) };
      const text = JSON.stringify(added);
      const whole = input === "[]" ? text : `${input.slice(0, -1)},${text.slice(1)}`;
      return { after: { input: whole, settings }, reply: step.act === "add" ? listOf(added) : "" };
    }
    case "item":
    case "remove": {
      const items = JSON.parse(input) as Item[];
      const item = items.find((one) => one.id === step.itemId);
      if (item === undefined) {
        return refuse("not_found", { reason: `Item with id '${step.itemId}' not found in conversation '${id}'.` });
      }
      if (step.act === "item") return { after: null, reply: JSON.stringify(item) };
      const left = JSON.stringify(items.filter((one) => one !== item));
      return { after: { input: left, settings }, reply: settings };
    }
    default:
      return step satisfies never;
  }
}

const listOf = (items: readonly Item[]): string =>
  JSON.stringify({
    object: "list",
    data: items,
    first_id: items[0]?.id ?? null,
    last_id: items.at(-1)?.id ?? null,
    has_more: false,
  });

/** As OpenAI's own list has them: each with an id that no other has, a type, its parts, and a status where there is one. */
function wholeItems(items: readonly Item[], taken: Set<unknown>, stem: string): readonly Item[] {
  return items.map((item, index) => {
    const type = typeof item.type === "string" ? item.type : "message";
    const own = typeof item.id === "string" && item.id !== "" && !taken.has(item.id);
    const id = own ? item.id : `${prefixOf(type)}_${stem}_in${index}`;
    taken.add(id);
    const status = typesWithStatus.has(type) ? { status: item.status ?? "completed" } : {};
    if (type !== "message" || typeof item.content !== "string") return { ...item, id, type, ...status };
    const part = item.role === "assistant" ? { type: "output_text", annotations: [] } : { type: "input_text" };
    return { ...item, id, type, ...status, content: [{ ...part, text: item.content }] };
  });
}

const typesWithStatus: ReadonlySet<string> = new Set(["message", "function_call", "function_call_output"]);

export const answerOf = ({ id, output }: KeptResponse, input: string): ConversationStep => {
  const written = JSON.parse(output) as Item[];
  const items = [...(JSON.parse(input) as Item[]), ...written];
  return { act: "answer", items, lastId: written.at(-1)?.id, stem: id.slice("resp_".length) };
};

export const notAdded = ({ id, conversation }: KeptResponse, refusal: Refusal): NotAdded => ({
  response: id,
  conversation: conversation!.id,
  reason: messageOf(refusal),
});

/** Where they are kept: the table in SQLite or those in PostgreSQL. */
type Tables = Readonly<{
  keepAll(responses: readonly KeptResponse[], now: Ms): Soon<unknown>;
  converse(account: AccountId, id: string, step: ConversationStep, now: Ms): Soon<string | Refusal>;
}>;

type Order = Readonly<{ account: AccountId; id: string; act: ConversationAct }>;

export async function converse({ account, id, act: given }: Order, tables: Tables, now: Ms): Promise<string | Refusal> {
  // Reading items takes a good part of the dialect, which most of a Worker's lives do without.
  const { readConversationAct } = await import("../../dialects/responses/conversations.ts");
  const act = readConversationAct(given);
  if (isRefusal(act)) return act;
  if (act.act !== "create") return tables.converse(account, id, act, now);
  const { items, metadata, stem } = act;
  const object = { id, object: "conversation", created_at: Math.floor(now / 1000), metadata };
  // Not of the stem of its own id, by which a list would take one for the name of a place.
  const texts = { input: JSON.stringify(wholeItems(items, new Set(), `${stem}0`)), output: "[]" };
  await tables.keepAll([{ account, id, previousId: null, ...texts, settings: JSON.stringify(object) }], now);
  return tables.converse(account, id, { act: "show" }, now);
}
