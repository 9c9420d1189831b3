// Reads which page of a stored response's input items a client wants, with the parameters of the SDKs.
import type { ItemPage } from "../dialects/stored-responses.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { Refusal } from "../core/types.ts";

const limitDefault = 20;
const limitMax = 100;

/** `query`: limit (1 to 100, else 20), order (newest first unless `asc`), after (an item's id). */
export function itemPageOf(query: URLSearchParams): ItemPage | Refusal {
  const limit = readLimit(query.get("limit"));
  if (isRefusal(limit)) return limit;
  const order = query.get("order") ?? "desc";
  if (order !== "asc" && order !== "desc") return refuse("malformed", { reason: "order must be asc or desc" });
  return { limit, order, after: query.get("after") };
}

function readLimit(given: string | null): number | Refusal {
  if (given === null) return limitDefault;
  const limit = /^\d{1,3}$/.test(given) ? Number(given) : 0;
  if (limit >= 1 && limit <= limitMax) return limit;
  return refuse("malformed", { reason: `limit must be a whole number from 1 to ${limitMax}` });
}
