// What the plain-completions dialect reads: a request body -> CompletionAsk.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { stopSequencesMax } from "../../core/limits.ts";
import { isRefusal } from "../../core/refusals.ts";
import type { Ask, PlainCompletion, Refusal, Sampling, Turn } from "../../core/types.ts";
import type { DialectRequest } from "../dialect.ts";
import { BodySchema, flag, malformed, numberBetween, optional, text, whole, wholeBetween } from "../request/field.ts";
import { namedModel } from "../request/named-model.ts";
import { samplingFields, samplingNames } from "../request/sampling.ts";
import { clampBudget, stopSequences } from "../request/settings.ts";

export const endpoint = "/v1/completions";
/** The same as Mistral and clients of its Codestral have it: it is answered in the form of a chat. */
export const fimPath = "/v1/fim/completions";
/** An editor asks at every pause of its user: an account's calls would not last an hour. */
export const coderBilling = "tokens";
/** As clients know it of OpenAI. */
export const completionTokensDefault = 16;
/** There, an answer goes on to its own end. */
const fimTokensDefault = 1_024;

// Fields that are not named here are accepted and ignored: clients send what other servers know.

/** Engines read it into 32 bits. */
const token = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 });
const one = Type.Literal(1, { description: "1: one request gives one choice; send several requests for more" });

const Body = Type.Object({
  model: text,
  prompt: Type.Union([Type.String(), Type.Array(Type.String()), Type.Array(token), Type.Array(Type.Array(token))], {
    description: "a string, or a list of tokens",
  }),
  suffix: optional(text),
  max_tokens: optional(whole),
  stream: optional(flag),
  stream_options: optional(
    Type.Object({ include_usage: optional(flag) }, { description: "an object of options, such as include_usage" }),
  ),
  echo: optional(flag),
  n: optional(one),
  best_of: optional(one),
  stop: optional(
    Type.Union([Type.String(), Type.Array(Type.String())], { description: "a string or an array of strings" }),
  ),
  ...samplingFields,
  logprobs: optional(wholeBetween(0, 20)),
});
type Body = Static<typeof Body>;
/** For the description of the API. */
export const completionsBody: TSchema = Body;

const bodySchema = new BodySchema(Body);

/**
 * `usageApart`: the stream's usage comes in a chunk of its own, without choices, since the client asked for that.
 * `asChat`: it came to Mistral's address.
 */
export type CompletionAsk = Ask & Readonly<{ plain: PlainCompletion; usageApart: boolean; asChat: boolean }>;

export function read({ head, body, bodyBytes, catalog }: DialectRequest): CompletionAsk | Refusal {
  const wrong = bodySchema.refusal(body);
  if (wrong !== null) return wrong;
  const request = body as Body;
  const asChat = head.route === fimPath;
  const echo = request.echo === true && !asChat;
  const model = namedModel(catalog, request.model);
  if (isRefusal(model)) return model;
  const prompt = readPrompt(request.prompt);
  if (isRefusal(prompt)) return prompt;
  const stop = stopSequences(request.stop, model, "stop");
  if (isRefusal(stop)) return stop;
  // Those beyond are looked for here, and would be found in the prompt.
  if (echo && stop.length > stopSequencesMax) {
    return malformed(`stop must have at most ${stopSequencesMax} sequences with echo`);
  }

  const sampling: Record<string, unknown> = {};
  for (const name of samplingNames) if (request[name] != null) sampling[name] = request[name];
  if (request.logprobs != null && !asChat) Object.assign(sampling, { logprobs: true, top_logprobs: request.logprobs });

  return {
    endpoint,
    coderBilling,
    model,
    turns: [prompt],
    // An empty suffix is what editors send at the end of a file.
    plain: {
      suffix: request.suffix == null || request.suffix === "" ? null : request.suffix.toWellFormed(),
      echo,
    },
    tools: [],
    toolChoice: "none",
    parallelToolCalls: null,
    stop,
    outputTokensMax: clampBudget(request.max_tokens, asChat ? fimTokensDefault : completionTokensDefault),
    effort: null,
    format: null,
    webSearch: null,
    stream: request.stream === true,
    sampling: sampling as Sampling,
    bodyBytes,
    usageApart: request.stream_options?.include_usage === true,
    asChat,
  };
}

/** An editor may cut a file in the middle of a character, which not every engine reads. */
const textTurn = (content: string): Turn => ({ role: "prompt", content: content.toWellFormed(), tokens: null });

/** One prompt, or a list of one. */
function readPrompt(given: Body["prompt"]): Turn | Refusal {
  if (typeof given === "string") return textTurn(given);
  const [first] = given;
  if (typeof first === "number") return { role: "prompt", content: "", tokens: given as number[] };
  if (given.length > 1) return malformed("prompt must be one prompt: send a request for each of several");
  if (typeof first === "string") return textTurn(first);
  if (first === undefined || first.length === 0) return malformed("prompt must not be an empty list");
  return { role: "prompt", content: "", tokens: first };
}
