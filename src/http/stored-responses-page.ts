// The input items of a stored response as a list of the form in which SDKs page through them.
import type { Item } from "../dialects/stored-responses.ts";
import { isRefusal, refuse } from "../refusals.ts";
import type { Refusal } from "../types.ts";

type ListedItem = Item & Readonly<{ id: string; type: string }>;
export type ItemPage = Readonly<{
  object: "list";
  data: readonly ListedItem[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}>;

const limitDefault = 20;
const limitMax = 100;

const prefixes: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
};

/** `query`: limit (1 to 100, else 20), order (newest first unless `asc`), after (an item's id). */
export function inputItemPage(responseId: string, input: readonly Item[], query: URLSearchParams): ItemPage | Refusal {
  const limit = readLimit(query.get("limit"));
  if (isRefusal(limit)) return limit;
  const order = query.get("order") ?? "desc";
  if (order !== "asc" && order !== "desc") return refuse("malformed", { reason: "order must be asc or desc" });
  const items = input.map((item, index) => listed(item, `${responseId.slice("resp_".length)}_in${index}`));
  if (order === "desc") items.reverse();
  const after = query.get("after");
  const from = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (after !== null && from === 0) return refuse("malformed", { reason: `after: '${after}' is not in this list` });
  const data = items.slice(from, from + limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + data.length < items.length,
  };
}

function readLimit(given: string | null): number | Refusal {
  if (given === null) return limitDefault;
  const limit = /^\d{1,3}$/.test(given) ? Number(given) : 0;
  if (limit >= 1 && limit <= limitMax) return limit;
  return refuse("malformed", { reason: `limit must be a whole number from 1 to ${limitMax}` });
}

/** Clients may leave out an item's id and type, and write a text for its parts; readers of the list want all three. */
function listed(item: Item, place: string): ListedItem {
  const { content } = item;
  const type = typeof item.type === "string" ? item.type : "message";
  const id = typeof item.id === "string" ? item.id : `${prefixes[type] ?? "item"}_${place}`;
  if (type !== "message" || typeof content !== "string") return { ...item, id, type };
  const part = item.role === "assistant" ? { type: "output_text", annotations: [] } : { type: "input_text" };
  return { ...item, id, type, content: [{ ...part, text: content }] };
}
