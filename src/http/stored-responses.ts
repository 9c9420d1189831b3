// The routes of one stored response: GET and DELETE /v1/responses/{id}, POST .../cancel, GET .../input_items.
import { isConversationId, type StoredResponses } from "../dialects/stored-responses.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { AccountId, Ms, Refusal } from "../core/types.ts";
import type { Dialect } from "../dialects/dialect.ts";
import type { Files } from "../files/files.ts";
import type { Connection } from "./peer-address.ts";
import { requestAddress } from "./request-address.ts";
import { itemPageOf } from "./stored-responses-page.ts";

/** A request about something that the account stored earlier. `responses` or `files` is null where nothing is stored. */
export type StoredAsked = Readonly<{
  responses: StoredResponses | null;
  files: Files | null;
  account: AccountId;
  /** The id in the address; "" where there is none. */
  id: string;
  request: Request;
  connection: Connection | null;
  dialect: Dialect;
  now: () => Ms;
  /** Asks again whether the caller may; null: yes. */
  isStillAllowed: () => Promise<Refusal | null>;
  /** The stem of the request's id. */
  stem: string;
}>;

/** Returns the reply, or its body as JSON text. */
export type StoredAction = (asked: StoredAsked) => Promise<string | Response | Refusal>;

/** Another account's id is answered like an unknown one. */
const unknown = (id: string): Refusal => refuse("not_found", { reason: `Response with id '${id}' not found.` });

const showResponse: StoredAction = async ({ responses, account, id, request }) => {
  if (requestAddress(request).searchParams.get("stream") === "true") {
    return refuse("malformed", { reason: "stream: a stored response is not streamed again; ask for it without" });
  }
  return (await responses?.response(account, id)) ?? unknown(id);
};

const deleteResponse: StoredAction = async ({ responses, account, id }) => {
  const deleted = (await responses?.delete(account, id)) ?? false;
  if (isRefusal(deleted)) return deleted;
  return deleted ? JSON.stringify({ id, object: "response", deleted: true }) : unknown(id);
};

/** A stored response has ended, and requests do not run in the background. */
const cancelResponse: StoredAction = async ({ responses, account, id }) => {
  const response = (await responses?.response(account, id)) ?? unknown(id);
  if (isRefusal(response)) return response;
  return refuse("malformed", {
    reason:
      "This response has ended. Only background responses can be cancelled; to stop one here, close its connection",
  });
};

const listInputItems: StoredAction = async ({ responses, account, id, request }) => {
  const page = itemPageOf(requestAddress(request).searchParams);
  if (isRefusal(page)) return page;
  return (await responses?.input(account, id, page)) ?? unknown(id);
};

/** A conversation is stored beside responses and is none of them. */
const ofResponse =
  (action: StoredAction): StoredAction =>
  async (asked) =>
    isConversationId(asked.id) ? unknown(asked.id) : action(asked);

export const actions: Readonly<Record<string, StoredAction>> = {
  "GET /:id": ofResponse(showResponse),
  "DELETE /:id": ofResponse(deleteResponse),
  "POST /:id/cancel": ofResponse(cancelResponse),
  "GET /:id/input_items": ofResponse(listInputItems),
};
