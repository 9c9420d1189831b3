// What the rerank dialect reads: a request body in the form of Jina, Cohere and vLLM -> Ask.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { inputsMax } from "../../core/limits.ts";
import { isRefusal } from "../../core/refusals.ts";
import type { Ask, Refusal } from "../../core/types.ts";
import type { DialectRequest } from "../dialect.ts";
import { BodySchema, flag, malformed, optional, text, wholeBetween } from "../request/field.ts";
import { askOfInputs } from "../request/inputs.ts";
import { namedModel } from "../request/named-model.ts";

export const endpoint = "/v1/rerank";
/** The address of Cohere's ClientV2, also in vLLM; requests and replies are the same. */
export const cohereV2Path = "/v2/rerank";

const Body = Type.Object({
  model: text,
  query: Type.String({ minLength: 1, description: "a string that is not empty" }),
  documents: Type.Array(
    Type.Union([Type.String(), Type.Object({ text: Type.String() })], {
      description: "a string, or an object with text",
    }),
    {
      minItems: 1,
      maxItems: inputsMax,
      description: `an array of 1 to ${inputsMax} strings, or of objects with text`,
    },
  ),
  top_n: optional(wholeBetween(1, Number.MAX_SAFE_INTEGER)),
  return_documents: optional(flag),
});
type Body = Static<typeof Body>;
export const rerankBody: TSchema = Body;

const bodySchema = new BodySchema(Body);

export function read({ body, bodyBytes, catalog }: DialectRequest): Ask | Refusal {
  const wrong = bodySchema.refusal(body);
  if (wrong !== null) return wrong;
  const { documents, query, ...request } = body as Body;
  const model = namedModel(catalog, request.model, "rerank");
  if (isRefusal(model)) return model;
  const texts = documents.map((document) => (typeof document === "string" ? document : document.text));
  const empty = texts.indexOf("");
  if (empty >= 0) return malformed(`documents[${empty}] must not be empty`);
  const best = Math.min(request.top_n ?? texts.length, texts.length);
  const returnsDocuments = request.return_documents === true;
  const inputs = { kind: "scores", count: texts.length, query, best, returnsDocuments } as const;
  return askOfInputs(endpoint, model, { inputs }, texts, bodyBytes);
}
