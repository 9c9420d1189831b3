// The messages dialect: POST /v1/messages.
import { refusals } from "../../core/refusals.ts";
import type { Dialect } from "../dialect.ts";
import { errorBody } from "./reply.ts";
import { type MessagesAsk, read } from "./request.ts";
import { MessagesEncoder } from "./stream.ts";

export const messages: Dialect<MessagesAsk> = {
  name: "messages",
  endpoint: "/v1/messages",
  read,
  encoder: (ask, identity, form) => new MessagesEncoder(ask, identity, form),
  statusOf: (refusal) => refusals[refusal.refusal].status,
  errorBody,
};
