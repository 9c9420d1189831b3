// Log probabilities in the form of plain completions, also from llama-server's form of chat-completions.
import { isRecord } from "../../core/is-record.ts";

type Lists = Readonly<{
  tokens: unknown[];
  token_logprobs: unknown[];
  top_logprobs: unknown[];
  text_offset: unknown[];
}>;

export class CompletionLogprobs {
  /** Characters of the tokens so far (Unicode code points, as Python counts). */
  #offset = 0;

  /** The lists of one event, from the node's JSON text. */
  lists(given: string): Lists {
    const object = JSON.parse(given) as Readonly<Record<string, unknown>>;
    const { content } = object;
    if (Array.isArray(content)) return this.#listsOf(content.filter(isRecord));
    const list = (name: string): unknown[] => (Array.isArray(object[name]) ? object[name] : []);
    return {
      tokens: list("tokens"),
      token_logprobs: list("token_logprobs"),
      top_logprobs: list("top_logprobs"),
      text_offset: list("text_offset"),
    };
  }

  #listsOf(tokens: readonly Readonly<Record<string, unknown>>[]): Lists {
    return {
      tokens: tokens.map(({ token }) => token),
      token_logprobs: tokens.map(({ logprob }) => logprob),
      top_logprobs: tokens.map(({ top_logprobs: top }) => (Array.isArray(top) ? likelihoods(top) : null)),
      text_offset: tokens.map(({ token }) => {
        const at = this.#offset;
        if (typeof token === "string") this.#offset += [...token].length;
        return at;
      }),
    };
  }
}

/** Each token that was possible there, with its log probability. */
function likelihoods(top: readonly unknown[]): Record<string, unknown> {
  const found = Object.create(null) as Record<string, unknown>;
  for (const each of top)
    if (isRecord(each) && typeof each["token"] === "string") found[each["token"]] = each["logprob"];
  return found;
}

/** The lists of all events as one. */
export function joined(all: readonly Lists[]): Lists {
  return {
    tokens: all.flatMap(({ tokens }) => tokens),
    token_logprobs: all.flatMap(({ token_logprobs }) => token_logprobs),
    top_logprobs: all.flatMap(({ top_logprobs }) => top_logprobs),
    text_offset: all.flatMap(({ text_offset }) => text_offset),
  };
}

/** The mean over all tokens with a value; the lowest possible where none has one. */
export function meanLogprob(all: readonly Lists[]): number {
  let sum = 0;
  let count = 0;
  for (const { token_logprobs: given } of all) {
    for (const logprob of given) {
      if (typeof logprob !== "number") continue;
      sum += logprob;
      count += 1;
    }
  }
  return count === 0 ? Number.NEGATIVE_INFINITY : sum / count;
}
