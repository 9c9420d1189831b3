// Bodies of POST /v1/conversations and below, read in the Worker that stores them: items may have 32 MiB.
import { isRecord } from "../../core/is-record.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import type { Model, Refusal } from "../../core/types.ts";
import { malformed } from "../request/field.ts";
import type { ConversationAct, Item } from "../stored-responses.ts";
import { readItems } from "./input.ts";
import { OfferedTools } from "./offered-tools.ts";

/** OpenAI's limits. */
export const conversationItemsMax = 20;
export const metadataLimits = { pairs: 16, keyLength: 64, valueLength: 512 } as const;

/** `ConversationAct` with its body read. */
export type ReadConversationAct =
  | Exclude<ConversationAct, Readonly<{ body: unknown }>>
  | (Readonly<{ act: "create" }> & ReadBody)
  | (Readonly<{ act: "add" | "update" }> & ReadBody);
type ReadBody = Readonly<{ items: readonly Item[]; metadata: Item; stem: string }>;

export function readConversationAct(given: ConversationAct): ReadConversationAct | Refusal {
  if (!("body" in given)) return given;
  const { act, body, stem } = given;
  let read: unknown;
  try {
    read = parseOutsideJson((typeof body === "string" ? body : new TextDecoder().decode(body)) || "{}");
  } catch (thrown) {
    return refuse("unreadable", { reason: `The request body is not valid JSON: ${(thrown as Error).message}` });
  }
  if (!isRecord(read)) return malformed("The request body must be a JSON object");
  const items = act === "update" ? [] : readNewItems(read.items ?? (act === "create" ? [] : undefined));
  if (isRefusal(items)) return items;
  if (act === "update" && read.metadata === undefined) return malformed("metadata is missing");
  const metadata = act === "add" ? {} : readMetadata(read.metadata ?? {});
  return isRefusal(metadata) ? metadata : { act, items, metadata, stem };
}

/** Read as in a request: items that no request could use are refused before they spoil a conversation. */
function readNewItems(given: unknown): readonly Item[] | Refusal {
  if (!Array.isArray(given) || given.length > conversationItemsMax || !given.every(isRecord)) {
    return malformed(`items must be an array of at most ${conversationItemsMax} items`);
  }
  const turns = readItems(given, "items", { model: anyModel, tools: OfferedTools.none, sealer: opensNothing, stored });
  return isRefusal(turns) ? turns : given;
}

/** The model that will be used is unknown here. */
const anyModel: Pick<Model, "id" | "readsImages"> = { id: "", readsImages: true };
const opensNothing = { open: (): null => null };
const stored: ReadonlyMap<string, Item> = new Map();

function readMetadata(given: unknown): Item | Refusal {
  const { pairs, keyLength, valueLength } = metadataLimits;
  const isPair = ([key, value]: [string, unknown]): boolean =>
    key.length <= keyLength && typeof value === "string" && value.length <= valueLength;
  if (isRecord(given) && Object.keys(given).length <= pairs && Object.entries(given).every(isPair)) return given;
  return malformed(
    `metadata must be an object of at most ${pairs} strings of ${valueLength} characters, with keys of ${keyLength}`,
  );
}
