// The embeddings dialect: POST /v1/embeddings, in OpenAI's form.
import type { Ask, Model } from "../../core/types.ts";
import { type AnswerEnd, defineDialect } from "../dialect.ts";
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
  replyIdPrefix: "embd-",
  endUser: openAiEndUser,
  read,
  encoder: ({ model }) => new VectorList(model),
  errorBody,
});

class VectorList extends InputResults {
  readonly #model: Model;

  constructor(model: Model) {
    super();
    this.#model = model;
  }

  end(end: AnswerEnd): string {
    return [...this.parts(end)].join("");
  }

  *parts({ usage: { inputFresh } }: AnswerEnd): Generator<string> {
    let before = '{"object":"list","data":[';
    for (const [index, vector] of this.taken()) {
      yield `${before}{"object":"embedding","index":${index},"embedding":`;
      yield vector;
      before = "},";
    }
    const usage = JSON.stringify({ prompt_tokens: inputFresh, total_tokens: inputFresh });
    const close = before === "}," ? "}" : before;
    yield `${close}],"model":${JSON.stringify(this.#model.id)},"usage":${usage}}`;
  }
}
