// A fourth dialect, as small as one can be, that differs from the three in all that an address, a header and a body can
// say: the model and the stream switch are in the URL, the key has a header of its own, errors have their own form.
import { Type } from "@sinclair/typebox";
import { messageOf, refusals, refuse } from "../../../src/core/refusals.ts";
import type { Ask, Piece, Refusal } from "../../../src/core/types.ts";
import {
  type AnswerEnd,
  defineDialect,
  type DialectRequest,
  type Encoder,
  type ReplyForm,
  type ReplyIdentity,
} from "../../../src/dialects/dialect.ts";
import { LiteralText } from "../../../src/dialects/reply/literal-text.ts";
import { openAiEndUser } from "../../../src/dialects/request/end-user.ts";
import { BodySchema, optional, text, whole } from "../../../src/dialects/request/field.ts";
import { clampBudget } from "../../../src/dialects/request/settings.ts";
import { systemText } from "../../../src/dialects/request/system-text.ts";

const endpoint = "/v2/toys";
const coderBilling = "calls";

const bodySchema = new BodySchema(Type.Object({ words: text, rules: optional(text), budget: optional(whole) }));
type Body = Readonly<{ words: string; rules?: string | null; budget?: number | null }>;

/** `loud`: from the query, and told back with the reply. */
type ToyAsk = Ask & Readonly<{ loud: boolean }>;

function read({ head, body, bodyBytes, catalog }: DialectRequest): ToyAsk | Refusal {
  const { route, id, search, headers } = head;
  const model = catalog.models.get(id);
  if (model === undefined) return refuse("unknown_model", { model: id });
  const wrong = bodySchema.refusal(body);
  if (wrong !== null) return wrong;
  const { words, rules, budget } = body as Body;
  const language = headers.get("x-toy-language");
  const system = systemText([rules ?? "", language === null ? "" : `Speak ${language}.`].join("\n").trim());
  return {
    endpoint,
    coderBilling,
    model,
    turns: [...(system === "" ? [] : [{ role: "system" as const, content: system }]), { role: "user", content: words }],
    tools: [],
    toolChoice: "none",
    parallelToolCalls: null,
    stop: [],
    outputTokensMax: clampBudget(budget, model.outputTokensDefault[coderBilling]),
    effort: null,
    format: null,
    webSearch: null,
    stream: route.endsWith(":stream"),
    sampling: {},
    bodyBytes,
    loud: new URLSearchParams(search).get("loud") === "yes",
  };
}

const toyEvent = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

class ToyEncoder implements Encoder {
  readonly #id: string;
  readonly #loud: boolean;
  readonly #form: ReplyForm;
  readonly #said = new LiteralText();

  constructor({ loud }: ToyAsk, { requestId }: ReplyIdentity, form: ReplyForm) {
    this.#id = `toy-${requestId.slice("req_".length)}`;
    this.#loud = loud;
    this.#form = form;
  }

  keepAlive(): string {
    return ": toy\n\n";
  }

  piece(piece: Piece): string {
    if (piece.kind !== "text") return "";
    if (this.#form === "events") return `data: {"said":${piece.literal}}\n\n`;
    this.#said.push(piece.literal);
    return "";
  }

  end({ usage }: AnswerEnd): string {
    const tokens = usage.inputFresh + usage.inputCached + usage.output;
    const { literal } = this.#said;
    if (this.#form === "events") return toyEvent({ id: this.#id, loud: this.#loud, tokens });
    return `{"id":"${this.#id}","said":${literal},"loud":${this.#loud},"tokens":${tokens}}`;
  }

  failure(refusal: Refusal): string {
    return toyEvent({ oops: messageOf(refusal) });
  }
}

export const toy = defineDialect<ToyAsk>({
  name: "toy",
  endpoint,
  routes: [
    { path: `${endpoint}/*:say` },
    { path: `${endpoint}/*:stream` },
    { path: `${endpoint}/*:count`, counted: (tokens) => ({ counted: tokens }) },
  ],
  modelKind: "chat",
  bodyFields: ["say"],
  coderBilling,
  keyHeaders: ["x-toy-key"],
  clientHeaders: ["x-toy-language"],
  replyIdPrefix: "toy-",
  storesResponses: false,
  capabilities: ({ readsImages }) => ({ pictures: readsImages }),
  endUser: openAiEndUser,
  read,
  encoder: (ask, reply, form) => new ToyEncoder(ask, reply, form),
  statusOf: ({ refusal }) => refusals[refusal].status,
  errorBody: (refusal, requestId) => JSON.stringify({ oops: messageOf(refusal), why: refusal.refusal, of: requestId }),
});
