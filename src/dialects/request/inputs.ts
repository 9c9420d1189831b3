// Makes an Ask of a request whose model holds no conversation: each of its inputs is a turn of the user, and nothing is
// written but what the inputs came to.
import type { Ask, Endpoint, Inputs, Model, Turn } from "../../core/types.ts";

export const coderBilling = "tokens";

export function askOfInputs(
  endpoint: Endpoint,
  model: Model,
  inputs: Inputs,
  texts: readonly string[],
  bodyBytes: number,
): Ask {
  return {
    endpoint,
    coderBilling,
    model,
    turns: texts.map((content): Turn => ({ role: "user", content })),
    inputs,
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
