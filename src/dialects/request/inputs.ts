// Makes an Ask without a conversation: each input is a user turn, and the reply has only the inputs' results.
import type { Ask, Endpoint, Inputs, Model, Turn, Voice } from "../../core/types.ts";

export const coderBilling = "tokens";

export function askOfInputs(
  endpoint: Endpoint,
  model: Model,
  asked: Readonly<{ inputs: Inputs } | { voice: Voice }>,
  texts: readonly string[],
  bodyBytes: number,
): Ask {
  return {
    endpoint,
    coderBilling,
    model,
    turns: texts.map((content): Turn => ({ role: "user", content })),
    ...asked,
    tools: [],
    toolChoice: "none",
    parallelToolCalls: null,
    stop: [],
    outputTokensMax: 0,
    effort: null,
    format: null,
    webSearch: null,
    stream: false,
    sampling: {},
    bodyBytes,
  };
}
