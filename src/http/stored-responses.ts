// The routes of one stored response: GET and DELETE /v1/responses/{id}, POST .../cancel, GET .../input_items.
import type { StoredResponses } from "../dialects/stored-responses.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { AccountId, Refusal } from "../core/types.ts";
import { itemPageOf } from "./stored-responses-page.ts";

/** The reply's body as JSON text. `responses` is null where nothing is stored. */
export type StoredResponseAction = (
  responses: StoredResponses | null,
  account: AccountId,
  id: string,
  query: URLSearchParams,
) => Promise<Readonly<{ body: string }> | Refusal>;

/** Another account's id is answered like one that never was. */
const unknown = (id: string): Refusal => refuse("not_found", { reason: `Response with id '${id}' not found.` });

export const showResponse: StoredResponseAction = async (responses, account, id, query) => {
  if (query.get("stream") === "true") {
    return refuse("malformed", { reason: "stream: a stored response is not streamed again; ask for it without" });
  }
  const response = (await responses?.response(account, id)) ?? unknown(id);
  return isRefusal(response) ? response : { body: response };
};

export const deleteResponse: StoredResponseAction = async (responses, account, id) => {
  const deleted = (await responses?.delete(account, id)) ?? false;
  if (isRefusal(deleted)) return deleted;
  return deleted ? { body: JSON.stringify({ id, object: "response", deleted: true }) } : unknown(id);
};

/** What is stored has ended, and requests are not run in the background. */
export const cancelResponse: StoredResponseAction = async (responses, account, id) => {
  const response = (await responses?.response(account, id)) ?? unknown(id);
  if (isRefusal(response)) return response;
  return refuse("malformed", {
    reason:
      "This response has ended. Only background responses can be cancelled; to stop one here, close its connection",
  });
};

export const listInputItems: StoredResponseAction = async (responses, account, id, query) => {
  const page = itemPageOf(query);
  if (isRefusal(page)) return page;
  const body = (await responses?.input(account, id, page)) ?? unknown(id);
  return isRefusal(body) ? body : { body };
};
