// The rerank dialect: POST /v1/rerank and /v2/rerank, for clients of Jina, Cohere and vLLM.
import { jsonStringEnd } from "../../core/outside-json.ts";
import type { Ask } from "../../core/types.ts";
import { type AnswerEnd, defineDialect, type ReplyIdentity } from "../dialect.ts";
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
  replyIdPrefix,
  endUser: openAiEndUser,
  read,
  encoder: (ask, identity) => new Ranking(ask, identity),
  errorBody,
});

class Ranking extends InputResults {
  readonly #ask: Ask;
  readonly #identity: ReplyIdentity;

  constructor(ask: Ask, identity: ReplyIdentity) {
    super();
    this.#ask = ask;
    this.#identity = identity;
  }

  end({ usage: { inputFresh: tokens } }: AnswerEnd): string {
    const { model, inputs } = this.#ask;
    const { best, returnsDocuments } = inputs as Extract<typeof inputs, { kind: "scores" }>;
    const ranked = [...this.results]
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
