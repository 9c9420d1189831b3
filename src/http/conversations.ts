// The routes of conversations: /v1/conversations and what is below it. Free, and not counted by flood protection, like those
// of stored responses.
import type { Dialect } from "../dialects/dialect.ts";
import {
  type ConversationAct,
  conversationNotFound,
  conversationPrefix,
  isConversationId,
  type StoredResponses,
} from "../dialects/stored-responses.ts";
import { ByteBudget } from "../core/byte-budget.ts";
import type { Clock } from "../core/clock.ts";
import {
  bodyMaxBytes,
  busyRetrySeconds,
  storedResponsesLookupsWaitingMax,
  storedResponsesWaitingBytesMax,
} from "../core/limits.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import type { AccountId, Principal, Refusal } from "../core/types.ts";
import type { ApiRoutes } from "./api-routes.ts";
import { type RawBody, readBody } from "./incoming.ts";
import type { Connection } from "./inference.ts";
import { jsonReply, refusalReply } from "./reply.ts";
import { requestAddress } from "./request-address.ts";
import { itemPageOf } from "./stored-responses-page.ts";

export type ConversationParts = Readonly<{
  dialect: Dialect;
  /** Null where nothing is kept. */
  conversations: Pick<StoredResponses, "converse" | "delete" | "input"> | null;
  clock: Clock;
  whoseIs(request: Request, connection: Connection | null): Promise<Principal | Refusal>;
}>;

/** Who asks what of which conversation. */
type Asked = Readonly<{
  conversations: NonNullable<ConversationParts["conversations"]>;
  account: AccountId;
  id: string;
  request: Request;
  requestId: string;
}>;
/** The reply's body as JSON text. */
type Action = (asked: Asked) => Promise<string | Refusal>;

const path = "/v1/conversations";

export class ConversationRoutes {
  readonly #parts: ConversationParts;
  /** Bodies that wait for their turn to be written. */
  readonly #bodies = new ByteBudget({
    places: 2 * storedResponsesLookupsWaitingMax,
    bytes: storedResponsesWaitingBytesMax,
    accountPlaces: storedResponsesLookupsWaitingMax,
    accountBytes: bodyMaxBytes,
  });

  constructor(parts: ConversationParts) {
    this.#parts = parts;
  }

  addRoutesTo(api: ApiRoutes): void {
    const about = (action: Action) => (request: Request, connection: Connection | null, id: string) =>
      this.#answer(request, connection, id, action);
    api
      .add("POST", path, (request, connection) =>
        this.#answer(request, connection, `${conversationPrefix}${this.#stem()}`, this.#write("create")),
      )
      .add("GET", `${path}/:id`, about(converse({ act: "show" })))
      .add("POST", `${path}/:id`, about(this.#write("update")))
      .add("DELETE", `${path}/:id`, about(deleteConversation))
      .add("GET", `${path}/:id/items`, about(listItems))
      .add("POST", `${path}/:id/items`, about(this.#write("add")))
      .add("GET", `${path}/:id/items/:item`, about(withItem("item")))
      .add("DELETE", `${path}/:id/items/:item`, about(withItem("remove")));
  }

  #stem(): string {
    return mintRequestId(this.#parts.clock.wall()).slice("req_".length);
  }

  async #answer(request: Request, connection: Connection | null, id: string, action: Action): Promise<Response> {
    const { dialect, conversations, clock, whoseIs } = this.#parts;
    const requestId = mintRequestId(clock.wall());
    const asker = await whoseIs(request, connection);
    let reply: string | Refusal;
    if (isRefusal(asker)) reply = asker;
    else if (conversations === null || !isConversationId(id)) reply = conversationNotFound(id);
    else reply = await action({ conversations, account: asker.account, id, request, requestId });
    return isRefusal(reply) ? refusalReply(dialect, reply, requestId) : jsonReply(reply, requestId);
  }

  /** The body goes on as it came: whoever keeps it reads it, beside this thread. */
  #write(act: "create" | "add" | "update"): Action {
    return async ({ conversations, account, id, request, requestId }) => {
      let body: RawBody = "";
      const read = await readBody(request, account, true, null, (raw) => void (body = raw));
      if (isRefusal(read) && body === "" && read.refusal === "unreadable" && act === "create")
        body = "{}"; // no body
      else if (isRefusal(read)) return read;
      const bytes = body.length;
      if (!this.#bodies.enter(account, bytes)) return refuse("busy", { seconds: busyRetrySeconds });
      try {
        return await conversations.converse(account, id, { act, body, stem: requestId.slice("req_".length) });
      } finally {
        this.#bodies.leave(account, bytes);
      }
    };
  }
}

const converse =
  (act: ConversationAct): Action =>
  ({ conversations, account, id }) =>
    conversations.converse(account, id, act);

/** Its id is the last word of the address: of two words in one, a route is told the first. */
const withItem =
  (act: "item" | "remove"): Action =>
  (asked) => {
    const words = requestAddress(asked.request)
      .pathname.split("/")
      .filter((word) => word !== "");
    return converse({ act, itemId: words.at(-1)! })(asked);
  };

const deleteConversation: Action = async ({ conversations, account, id }) => {
  const deleted = await conversations.delete(account, id);
  if (isRefusal(deleted)) return deleted;
  return deleted ? JSON.stringify({ id, object: "conversation.deleted", deleted }) : conversationNotFound(id);
};

const listItems: Action = async ({ conversations, account, id, request }) => {
  const page = itemPageOf(requestAddress(request).searchParams);
  if (isRefusal(page)) return page;
  return (await conversations.input(account, id, page)) ?? conversationNotFound(id);
};
