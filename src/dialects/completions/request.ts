// What the plain-completions dialect reads: a request body -> CompletionAsk.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { answersMax, stopSequencesMax } from "../../core/limits.ts";
import { isRefusal } from "../../core/refusals.ts";
import type { Ask, PlainCompletion, Refusal, Sampling, Turn } from "../../core/types.ts";
import type { DialectRequest } from "../dialect.ts";
import { answersField, readAnswers } from "../request/answers.ts";
import { engineFieldsOf, readEngineFields } from "../request/engine-fields.ts";
import { BodySchema, flag, malformed, optional, text, whole, wholeBetween } from "../request/field.ts";
import { namedModel } from "../request/named-model.ts";
import { samplingFields, samplingNames } from "../request/sampling.ts";
import { clampBudget, stopSequences } from "../request/settings.ts";

export const endpoint = "/v1/completions";
/** The same for Mistral and clients of its Codestral; the answer has the form of a chat. */
export const fimPath = "/v1/fim/completions";
/** An editor asks at every pause of its user: an account's calls would not last an hour. */
export const coderBilling = "tokens";
/** OpenAI's default, which clients expect. */
export const completionTokensDefault = 16;
/** There, an answer continues to its natural end. */
const fimTokensDefault = 1_024;

// Other fields are accepted and ignored, because clients send fields that other servers know.

/** Engines store it in 32 bits. */
const token = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 });

const Body = Type.Object({
  model: text,
  prompt: Type.Union([Type.String(), Type.Array(Type.String()), Type.Array(token), Type.Array(Type.Array(token))], {
    description: "a string, a list of tokens, or a list of these",
  }),
  suffix: optional(text),
  max_tokens: optional(whole),
  stream: optional(flag),
  stream_options: optional(
    Type.Object({ include_usage: optional(flag) }, { description: "an object of options, such as include_usage" }),
  ),
  echo: optional(flag),
  n: answersField,
  best_of: answersField,
  stop: optional(
    Type.Union([Type.String(), Type.Array(Type.String())], { description: "a string or an array of strings" }),
  ),
  ...samplingFields,
  logprobs: optional(wholeBetween(0, 20)),
});
type Body = Static<typeof Body>;
export const completionsBody: TSchema = Body;

const bodySchema = new BodySchema(Body);
const ownFields = new Set(Object.keys(Body.properties));

/**
 * `usageApart`: the client wants the stream's usage in a separate chunk without choices. `asChat`: it came to Mistral's
 * address. `best`: how many of each prompt's answers to show; null: all. `hidesLogprobs`: the client did not ask for
 * the log probabilities that decide the best.
 */
export type CompletionAsk = Ask &
  Readonly<{
    plain: PlainCompletion;
    usageApart: boolean;
    asChat: boolean;
    best: Readonly<{ of: number; shown: number }> | null;
    hidesLogprobs: boolean;
  }>;

export function read({ head, body, bodyBytes, catalog }: DialectRequest): CompletionAsk | Refusal {
  const wrong = bodySchema.refusal(body);
  if (wrong !== null) return wrong;
  const request = body as Body;
  const asChat = head.route === fimPath;
  const echo = request.echo === true && !asChat;
  const model = namedModel(catalog, request.model);
  if (isRefusal(model)) return model;
  const prompts = readPrompts(request.prompt);
  if (isRefusal(prompts)) return prompts;
  const n = request.n ?? 1;
  const bestOf = request.best_of ?? n;
  if (bestOf < n) return malformed(`best_of must be at least n, ${n}`);
  const best = bestOf > n ? { of: bestOf, shown: n } : null;
  const answers = readAnswers(model, prompts.length, bestOf, best === null ? "n" : "best_of");
  if (isRefusal(answers)) return answers;
  if (best !== null && request.stream === true) return malformed("best_of must not be above n in a stream");
  const stop = stopSequences(request.stop, model, "stop");
  if (isRefusal(stop)) return stop;
  // The gateway itself looks for further ones, and would find them in the prompt.
  if (echo && stop.length > stopSequencesMax) {
    return malformed(`stop must have at most ${stopSequencesMax} sequences with echo`);
  }

  const beside = readEngineFields(request, model, ownFields, false);
  if (isRefusal(beside)) return beside;

  const sampling: Record<string, unknown> = {};
  for (const name of samplingNames) if (request[name] != null) sampling[name] = request[name];
  const logprobs = asChat ? null : (request.logprobs ?? null);
  if (logprobs !== null || best !== null) Object.assign(sampling, { logprobs: true, top_logprobs: logprobs ?? 1 });

  return {
    endpoint,
    coderBilling,
    model,
    turns: prompts,
    ...(answers === undefined ? {} : { answers }),
    // Editors send an empty suffix at the end of a file.
    plain: {
      suffix: request.suffix == null || request.suffix === "" ? null : request.suffix.toWellFormed(),
      echo,
      // Evaluations want only the log probabilities of a prompt. Elsewhere a budget of 0 becomes 1, like every budget
      // that is too small.
      ...(echo && request.max_tokens === 0 && model.tier === "own" ? { echoAlone: true } : {}),
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
    ...engineFieldsOf(beside),
    bodyBytes,
    usageApart: request.stream_options?.include_usage === true,
    asChat,
    best,
    hidesLogprobs: logprobs === null,
  };
}

/** An editor may cut a file in the middle of a character, which not every engine can read. */
const textTurn = (content: string): Turn => ({ role: "prompt", content: content.toWellFormed(), tokens: null });

function readPrompts(given: Body["prompt"]): readonly Turn[] | Refusal {
  if (typeof given === "string") return [textTurn(given)];
  const [first] = given;
  if (first === undefined) return malformed("prompt must not be an empty list");
  if (typeof first === "number") return [tokensTurn(given as number[])];
  if (given.length > answersMax) {
    return malformed(`prompt: a request may have ${answersMax} prompts, not ${given.length}`);
  }
  const turns: Turn[] = [];
  for (const prompt of given as readonly (string | number[])[]) {
    if (prompt.length === 0 && typeof prompt !== "string") return malformed("prompt must not be an empty list");
    turns.push(typeof prompt === "string" ? textTurn(prompt) : tokensTurn(prompt));
  }
  return turns;
}

const tokensTurn = (tokens: readonly number[]): Turn => ({ role: "prompt", content: "", tokens });
