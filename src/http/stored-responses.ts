// The routes of one stored response: GET and DELETE /v1/responses/{id}, POST .../cancel, GET .../input_items.
import type { StoredResponses } from "../dialects/stored-responses.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { AccountId, Ms, Refusal } from "../core/types.ts";
import type { Dialect } from "../dialects/dialect.ts";
import type { Files } from "../files/files.ts";
import type { Backgrounds } from "./backgrounds.ts";
import type { Connection } from "./peer-address.ts";
import { streamReply } from "./reply.ts";
import { requestAddress } from "./request-address.ts";
import { itemPageOf } from "./stored-responses-page.ts";

/** A request about something that the account stored earlier. `responses` or `files` is null where nothing is stored. */
export type StoredAsked = Readonly<{
  responses: StoredResponses | null;
  backgrounds: Backgrounds | null;
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

const showResponse: StoredAction = async ({ responses, backgrounds, account, id, request, stem }) => {
  const { searchParams } = requestAddress(request);
  const run = backgrounds?.find(account, id) ?? null;
  const object =
    backgrounds?.object(account, id) ??
    (await responses?.response(account, id)) ??
    (await backgrounds?.elsewhere(account, id)) ??
    unknown(id);
  if (searchParams.get("stream") !== "true" || isRefusal(object)) return object;
  const after = searchParams.get("starting_after") ?? "-1";
  if (!/^(?:-1|\d{1,9})$/.test(after)) return refuse("malformed", { reason: "starting_after must be a whole number" });
  const events = run?.events(Number(after)) ?? null;
  if (events !== null) return streamReply(events, `req_${stem}`);
  return refuse("malformed", {
    reason: "stream: the events of this response are not held here; ask for it without stream",
  });
};

const deleteResponse: StoredAction = async ({ responses, backgrounds, account, id }) => {
  const discarded = (await backgrounds?.discard(account, id)) ?? false;
  if (isRefusal(discarded)) return discarded;
  const deleted = (await responses?.delete(account, id)) ?? false;
  if (isRefusal(deleted)) return deleted;
  return deleted || discarded ? JSON.stringify({ id, object: "response", deleted: true }) : unknown(id);
};

/** Only one that goes on without its client can be cancelled; one that was, or has ended, is shown again for a while. */
const cancelResponse: StoredAction = async ({ responses, backgrounds, account, id }) => {
  if ((backgrounds?.find(account, id) ?? null) === null) {
    const ended = await responses?.response(account, id);
    if (isRefusal(ended)) return ended;
    if (typeof ended === "string") {
      const how = "Only background responses can be cancelled; to stop another, close its connection";
      return refuse("malformed", { reason: `This response has ended. ${how}` });
    }
  }
  return (await backgrounds?.cancel(account, id)) ?? unknown(id);
};

const listInputItems: StoredAction = async ({ responses, account, id, request }) => {
  const page = itemPageOf(requestAddress(request).searchParams);
  if (isRefusal(page)) return page;
  return (await responses?.input(account, id, page)) ?? unknown(id);
};

/** Conversations and notes are stored beside responses and are none of them. */
const ofResponse =
  (action: StoredAction): StoredAction =>
  async (asked) =>
    asked.id.startsWith("resp_") ? action(asked) : unknown(asked.id);

export const actions: Readonly<Record<string, StoredAction>> = {
  "GET /:id": ofResponse(showResponse),
  "DELETE /:id": ofResponse(deleteResponse),
  "POST /:id/cancel": ofResponse(cancelResponse),
  "GET /:id/input_items": ofResponse(listInputItems),
};
