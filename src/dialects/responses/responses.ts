// The responses dialect: POST /v1/responses, and POST /v1/responses/compact with a `response.compaction` object.
import { refusals } from "../../core/refusals.ts";
import type { Ask, Refusal } from "../../core/types.ts";
import { CompactionEncoder } from "./compaction-stream.ts";
import { type Dialect, defineDialect, type DialectContext } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { openAiEndUser } from "../request/end-user.ts";
import { Sealer } from "../request/sealed-content.ts";
import { referencesOf } from "../stored-responses.ts";
import { coderBilling, compactPath, endpoint, packRequest, readRequest, unpackRequest } from "./request.ts";
import type { ResponsesAsk } from "./body.ts";
import { ResponsesEncoder } from "./stream.ts";

export function responsesDialect({ sealingKey, clock, storesResponses }: DialectContext): Dialect {
  const sealer = new Sealer(sealingKey);
  return defineDialect<ResponsesAsk>({
    name: "responses",
    endpoint,
    routes: [
      { path: endpoint },
      { path: compactPath },
      {
        path: "/v1/responses/input_tokens",
        counted: (tokens) => ({ object: "response.input_tokens", input_tokens: tokens }),
      },
    ],
    coderBilling,
    bodyFields: ["input", "instructions"],
    replyIdPrefix: "resp_",
    hasSockets: true,
    storesResponses: true,
    references: referencesOf,
    endUser: openAiEndUser,
    read: (request) => readRequest(request, { sealer, storesResponses }),
    pack: packRequest,
    unpack: unpackRequest,
    encoder(ask, identity, form, keep) {
      const context = { sealer, clock, keep: ask.store || ask.conversationId !== null ? keep : null };
      return ask.compacts === null
        ? new ResponsesEncoder(ask, identity, context, form)
        : new CompactionEncoder(ask, identity, context, form);
    },
    statusOf,
    errorBody,
  });
}

/** The spec's one exception: an unreadable balance is a 500 here, for first-party tiers. */
function statusOf({ refusal }: Refusal, ask: Ask | null): number {
  return refusal === "quota_unverified" && ask?.model.tier === "first-party" ? 500 : refusals[refusal].status;
}
