// The chat-completions dialect: POST /v1/chat/completions.
import { refusals } from "../../core/refusals.ts";
import { defineDialect } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { openAiEndUser } from "../request/end-user.ts";
import { chatEncoder } from "./encoder.ts";
import { type ChatAsk, coderBilling, endpoint, read } from "./request.ts";

export const chatCompletions = defineDialect<ChatAsk>({
  name: "chat-completions",
  endpoint,
  routes: [{ path: endpoint }],
  modelKind: "chat",
  coderBilling,
  bodyFields: ["messages"],
  keyHeaders: [],
  clientHeaders: [],
  replyIdPrefix: "chatcmpl-",
  storesResponses: false,
  endUser: openAiEndUser,
  read,
  encoder: chatEncoder,
  statusOf: ({ refusal }) => refusals[refusal].status,
  errorBody,
});
