// The responses dialect: POST /v1/responses and POST /v1/responses/compact.
import { isRecord } from "../../core/is-record.ts";
import { refusals } from "../../core/refusals.ts";
import type { Clock } from "../../core/clock.ts";
import type { Ask, Refusal } from "../../core/types.ts";
import { CompactionEncoder } from "./compaction-stream.ts";
import type { Dialect } from "../dialect.ts";
import { packRequest, readRequest, type ResponsesAsk, unpackRequest } from "./request.ts";
import type { ReplyContext } from "./lifecycle.ts";
import { ResponsesEncoder } from "./stream.ts";
import { errorBody } from "../reply/error-object.ts";
import { Sealer } from "../request/sealed-content.ts";
import { referencesOf } from "../stored-responses.ts";

export type ResponsesOptions = Readonly<{
  /** `sealingKeyBytes` random bytes, the same in every process and after every restart. */
  sealingKey: Uint8Array;
  clock: Clock;
  /** True if something keeps responses (see `StoredResponses`); else `store` is echoed as false. */
  storesResponses: boolean;
}>;

export type ResponsesDialect = Dialect<ResponsesAsk> & Required<Pick<Dialect<ResponsesAsk>, "references" | "keeping">>;

/** POST /v1/responses. */
export const responsesDialect = (options: ResponsesOptions): ResponsesDialect => dialectOf(options, false);

/** POST /v1/responses/compact: the same body, never streamed; the reply is a `response.compaction` object. */
export const compactionDialect = (options: ResponsesOptions): ResponsesDialect => dialectOf(options, true);

function dialectOf({ sealingKey, clock, storesResponses }: ResponsesOptions, compacts: boolean): ResponsesDialect {
  const sealer = new Sealer(sealingKey);
  return dialectWith({ sealer, clock, keep: null });

  /** `context.keep` belongs to one request. */
  function dialectWith(context: ReplyContext): ResponsesDialect {
    return {
      name: compacts ? "compaction" : "responses",
      endpoint: "/v1/responses",
      pack: packRequest,
      unpack: unpackRequest,
      references: referencesOf,
      keeping: (ask, keep) => dialectWith(ask.store ? { ...context, keep } : context),
      read(body, bodyBytes, catalog, earlier) {
        return readRequest(compacts ? compactBody(body) : body, bodyBytes, {
          catalog,
          sealer,
          earlier,
          storesResponses,
          compacts,
        });
      },
      encoder: (ask, identity, form) =>
        ask.compacts
          ? new CompactionEncoder(ask, identity, context, form, compacts)
          : new ResponsesEncoder(ask, identity, context, form),
      statusOf,
      errorBody,
    };
  }
}

/** A compact body may leave `input` out, and a stream of one is not known. */
const compactBody = (body: unknown): unknown =>
  isRecord(body) ? { ...body, input: body.input ?? [], stream: false } : body;

/** The spec's one exception: an unreadable balance is a 500 here, for first-party tiers. */
function statusOf({ refusal }: Refusal, ask: Ask | null): number {
  return refusal === "quota_unverified" && ask?.model.tier === "first-party" ? 500 : refusals[refusal].status;
}
