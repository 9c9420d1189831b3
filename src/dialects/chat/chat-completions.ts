// The chat-completions dialect: POST /v1/chat/completions.
import { refusals } from "../../core/refusals.ts";
import type { Dialect } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { ChatEncoder } from "./encoder.ts";
import { type ChatAsk, read } from "./request.ts";

export const chatCompletions: Dialect<ChatAsk> = {
  name: "chat-completions",
  endpoint: "/v1/chat/completions",
  read,
  encoder: (ask, identity, form) => new ChatEncoder(ask, identity, form),
  statusOf: (refusal) => refusals[refusal.refusal].status,
  errorBody,
};
