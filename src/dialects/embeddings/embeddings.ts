// The embeddings dialect: POST /v1/embeddings, in OpenAI's form.
import { refusals } from "../../core/refusals.ts";
import type { Ask, Model, Piece } from "../../core/types.ts";
import { type AnswerEnd, defineDialect, type Encoder } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { openAiEndUser } from "../request/end-user.ts";
import { InputResults } from "../reply/input-results.ts";
import { coderBilling } from "../request/inputs.ts";
import { endpoint, read } from "./request.ts";

export const embeddings = defineDialect<Ask>({
  name: "embeddings",
  endpoint,
  routes: [{ path: endpoint }],
  modelKind: "embedding",
  coderBilling,
  bodyFields: ["input"],
  keyHeaders: [],
  clientHeaders: [],
  replyIdPrefix: "embd-",
  storesResponses: false,
  endUser: openAiEndUser,
  read,
  encoder: ({ model }) => new VectorList(model),
  statusOf: ({ refusal }) => refusals[refusal].status,
  errorBody,
});

/** A reply is one document without events. */
class VectorList implements Encoder {
  readonly #model: Model;
  readonly #vectors = new InputResults();

  constructor(model: Model) {
    this.#model = model;
  }

  piece(piece: Piece): string {
    return this.#vectors.piece(piece);
  }

  keepAlive(): string {
    return "";
  }

  end(end: AnswerEnd): string {
    return [...this.parts(end)].join("");
  }

  *parts({ usage: { inputFresh } }: AnswerEnd): Generator<string> {
    let before = '{"object":"list","data":[';
    for (const [index, vector] of this.#vectors.taken()) {
      yield `${before}{"object":"embedding","index":${index},"embedding":`;
      yield vector;
      before = "},";
    }
    const usage = JSON.stringify({ prompt_tokens: inputFresh, total_tokens: inputFresh });
    const close = before === "}," ? "}" : before;
    yield `${close}],"model":${JSON.stringify(this.#model.id)},"usage":${usage}}`;
  }

  failure(): string {
    return "";
  }
}
