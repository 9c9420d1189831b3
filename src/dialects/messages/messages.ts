// The messages dialect: POST /v1/messages.
import { defineDialect } from "../dialect.ts";
import { messagesEndUser } from "../request/end-user.ts";
import { capabilities } from "./capabilities.ts";
import { errorBody } from "./reply.ts";
import { coderBilling, endpoint, type MessagesAsk, read } from "./request.ts";
import { MessagesEncoder } from "./stream.ts";

export const messages = defineDialect<MessagesAsk>({
  name: "messages",
  endpoint,
  routes: [{ path: endpoint }, { path: "/v1/messages/count_tokens", counted: (tokens) => ({ input_tokens: tokens }) }],
  coderBilling,
  bodyFields: ["messages", "system"],
  keyHeaders: ["x-api-key"],
  /** Its SDKs announce their version. */
  clientHeaders: ["anthropic-version"],
  rateHeaders: (unit, { limit, remaining, resetMs }, at) => [
    [`anthropic-ratelimit-${unit}-limit`, String(limit)],
    [`anthropic-ratelimit-${unit}-remaining`, String(remaining)],
    [`anthropic-ratelimit-${unit}-reset`, new Date(at + resetMs).toISOString()],
  ],
  replyIdPrefix: "msg_",
  capabilities,
  endUser: messagesEndUser,
  read,
  encoder: (ask, identity, form) => new MessagesEncoder(ask, identity, form),
  errorBody,
});
