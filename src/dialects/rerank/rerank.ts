// The rerank dialect: POST /v1/rerank and /v2/rerank, for clients of Jina, Cohere and vLLM.
import { jsonStringEnd } from "../../core/outside-json.ts";
import { refusals } from "../../core/refusals.ts";
import type { Ask, Piece } from "../../core/types.ts";
import { type AnswerEnd, defineDialect, type Encoder, type ReplyIdentity } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { openAiEndUser } from "../request/end-user.ts";
import { InputResults } from "../reply/input-results.ts";
import { coderBilling } from "../request/inputs.ts";
import { cohereV2Path, endpoint, read } from "./request.ts";

const replyIdPrefix = "rerank-";

export const rerank = defineDialect<Ask>({
  name: "rerank",
  endpoint,
  routes: [{ path: endpoint }, { path: cohereV2Path }],
  modelKind: "rerank",
  coderBilling,
  bodyFields: ["query", "documents"],
  keyHeaders: [],
  clientHeaders: [],
  replyIdPrefix,
  storesResponses: false,
  endUser: openAiEndUser,
  read,
  encoder: (ask, identity) => new Ranking(ask, identity),
  statusOf: ({ refusal }) => refusals[refusal].status,
  errorBody,
});

/** A reply is one document without events. */
class Ranking implements Encoder {
  readonly #ask: Ask;
  readonly #identity: ReplyIdentity;
  readonly #scores = new InputResults();

  constructor(ask: Ask, identity: ReplyIdentity) {
    this.#ask = ask;
    this.#identity = identity;
  }

  piece(piece: Piece): string {
    return this.#scores.piece(piece);
  }

  keepAlive(): string {
    return "";
  }

  end({ usage: { inputFresh: tokens } }: AnswerEnd): string {
    const { model, inputs } = this.#ask;
    const { best, returnsDocuments } = inputs as Extract<typeof inputs, { kind: "scores" }>;
    const ranked = this.#scores.entries
      .map(([index, score]) => ({ index, score }))
      .sort((one, other) => Number(other.score) - Number(one.score) || one.index - other.index)
      .slice(0, best);
    const documents = returnsDocuments ? documentsOf(this.#ask) : null;
    const results = ranked.map(({ index, score }) => {
      const document = documents === null ? "" : `,"document":{"text":${documents(index)}}`;
      return `{"index":${index},"relevance_score":${score}${document}}`;
    });
    const id = replyIdPrefix + this.#identity.requestId.slice("req_".length);
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    const meta = { billed_units: { input_tokens: tokens }, tokens: { input_tokens: tokens, output_tokens: 0 } };
    const rest = JSON.stringify({ usage, meta });
    return `{"id":"${id}","object":"list","model":${JSON.stringify(model.id)},"results":[${results.join(",")}],${rest.slice(1)}`;
  }

  failure(): string {
    return "";
  }
}

/** The documents' JSON by their index in the request. Those of a large body follow each other. */
function documentsOf({ turns, prepared }: Ask): (index: number) => string {
  if (prepared === undefined) return (index) => JSON.stringify(turns[index]!.content);
  const json = prepared.messages.toString();
  const documents: [number, number][] = [];
  for (let start = 0; start < json.length;) {
    const end = jsonStringEnd(json, start + 1) + 1;
    documents.push([start, end]);
    start = end + 1; // after the comma
  }
  return (index) => json.slice(...documents[index]!);
}
