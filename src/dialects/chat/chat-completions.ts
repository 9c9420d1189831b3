// The chat-completions dialect: POST /v1/chat/completions.
import { defineDialect } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { openAiEndUser } from "../request/end-user.ts";
import { chatEncoder } from "./encoder.ts";
import { type ChatAsk, coderBilling, endpoint, read } from "./request.ts";

export const chatCompletions = defineDialect<ChatAsk>({
  name: "chat-completions",
  endpoint,
  routes: [{ path: endpoint }],
  coderBilling,
  bodyFields: ["messages"],
  replyIdPrefix: "chatcmpl-",
  endUser: openAiEndUser,
  read,
  encoder: chatEncoder,
  errorBody,
});
