// The routes of conversations: /v1/conversations and below.
import {
  type ConversationAct,
  conversationNotFound,
  conversationPrefix,
  isConversationId,
} from "../dialects/stored-responses.ts";
import { ByteBudget } from "../core/byte-budget.ts";
import {
  bodyMaxBytes,
  busyRetrySeconds,
  storedResponsesLookupsWaitingMax,
  storedResponsesWaitingBytesMax,
} from "../core/limits.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import { decoded } from "./api-routes.ts";
import { type RawBody, readBody } from "./incoming.ts";
import { requestAddress } from "./request-address.ts";
import type { StoredAction } from "./stored-responses.ts";
import { itemPageOf } from "./stored-responses-page.ts";

/** Bodies that wait for their turn to be read and written. */
const waiting = new ByteBudget({
  places: 2 * storedResponsesLookupsWaitingMax,
  bytes: storedResponsesWaitingBytesMax,
  accountPlaces: storedResponsesLookupsWaitingMax,
  accountBytes: bodyMaxBytes,
});

/** The body passes on unchanged: the store reads it, beside this thread. */
const write =
  (act: "create" | "add" | "update"): StoredAction =>
  async ({ responses, account, id: named, request, stem }) => {
    const id = act === "create" ? conversationPrefix + stem : named;
    if (responses === null) return refuse("malformed", { reason: "Conversations are not kept here" });
    if (!isConversationId(id)) return conversationNotFound(id);
    let body: RawBody = "";
    const read = await readBody(request, account, true, null, (raw) => void (body = raw));
    const isEmpty = isRefusal(read) && read.refusal === "unreadable" && body === "";
    if (isRefusal(read) && !(isEmpty && act === "create")) return read;
    const bytes = body.length;
    if (!waiting.enter(account, bytes)) return refuse("busy", { seconds: busyRetrySeconds });
    try {
      return await responses.converse(account, id, { act, body, stem });
    } finally {
      waiting.leave(account, bytes);
    }
  };

const converse =
  (act: ConversationAct): StoredAction =>
  async ({ responses, account, id }) =>
    responses === null || !isConversationId(id) ? conversationNotFound(id) : responses.converse(account, id, act);

/** Its id is the last part of the address: a route gets only the first of two ids. */
const withItem =
  (act: "item" | "remove"): StoredAction =>
  (asked) => {
    const words = requestAddress(asked.request)
      .pathname.split("/")
      .filter((word) => word !== "");
    return converse({ act, itemId: decoded(words.at(-1)!) })(asked);
  };

const deleteConversation: StoredAction = async ({ responses, account, id }) => {
  const deleted = isConversationId(id) && ((await responses?.delete(account, id)) ?? false);
  if (isRefusal(deleted)) return deleted;
  return deleted ? JSON.stringify({ id, object: "conversation.deleted", deleted }) : conversationNotFound(id);
};

const listItems: StoredAction = async ({ responses, account, id, request }) => {
  const page = itemPageOf(requestAddress(request).searchParams);
  if (isRefusal(page)) return page;
  return (isConversationId(id) ? await responses?.input(account, id, page) : null) ?? conversationNotFound(id);
};

export const actions: Readonly<Record<string, StoredAction>> = {
  "POST ": write("create"),
  "GET /:id": converse({ act: "show" }),
  "POST /:id": write("update"),
  "DELETE /:id": deleteConversation,
  "GET /:id/items": listItems,
  "POST /:id/items": write("add"),
  "GET /:id/items/:item": withItem("item"),
  "DELETE /:id/items/:item": withItem("remove"),
};
