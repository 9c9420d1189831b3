// The plain-completions dialect: POST /v1/completions, with which editors have a model fill in the middle of a file.
import { defineDialect } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { openAiEndUser } from "../request/end-user.ts";
import { completionEncoder } from "./encoder.ts";
import { coderBilling, type CompletionAsk, endpoint, fimPath, read } from "./request.ts";

export const completions = defineDialect<CompletionAsk>({
  name: "completions",
  endpoint,
  routes: [{ path: endpoint }, { path: fimPath }],
  coderBilling,
  bodyFields: ["prompt"],
  replyIdPrefix: "cmpl-",
  endUser: openAiEndUser,
  read,
  encoder: completionEncoder,
  errorBody,
});
