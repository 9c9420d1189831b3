// The plain-completions dialect: POST /v1/completions, with which editors have a model fill in the middle of a file.
import { refusals } from "../../core/refusals.ts";
import { defineDialect } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { openAiEndUser } from "../request/end-user.ts";
import { completionEncoder } from "./encoder.ts";
import { coderBilling, type CompletionAsk, endpoint, fimPath, read } from "./request.ts";

export const completions = defineDialect<CompletionAsk>({
  name: "completions",
  endpoint,
  routes: [{ path: endpoint }, { path: fimPath }],
  modelKind: "chat",
  coderBilling,
  bodyFields: ["prompt"],
  keyHeaders: [],
  clientHeaders: [],
  replyIdPrefix: "cmpl-",
  storesResponses: false,
  endUser: openAiEndUser,
  read,
  encoder: completionEncoder,
  statusOf: ({ refusal }) => refusals[refusal].status,
  errorBody,
});
