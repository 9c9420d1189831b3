// What an engine cannot do, whatever the gateway asks of it, and why: the one list of it. Cells of the matrix that are
// named here and fail read `cannot`; those that hold all the same are told, so that the list stays true.
import type { CheckName } from "./checks.ts";
import type { EngineName } from "./engines.ts";

type Reasons = Partial<Record<CheckName, string>>;

export const cannot: Partial<Record<EngineName, Reasons>> = {
  ollama: {
    "cached tokens": "it reports none",
    "exact counts": "it has no route that counts",
  },
  transformers: {
    "cached tokens": "it reports none",
    "forced tool": "it forces none, and the tiny model does not do what it is told in words: an error says so",
    "any of two tools": "the same",
    "JSON schema":
      "it holds no answer to a schema, and the tiny model writes none that it is told in words: an error says so",
    "odd JSON schemas": "the same",
    "exact counts": "it has no route that counts",
    "prompt too long": "it names no context and refuses no prompt",
    models: "it names no context",
  },
  "llama-cpp-python": {
    "no blank before an answer": "it reads no calls out of this model's answers: they are text",
    "no thoughts": "it has no switch for them",
    usage: "it reports none for a stream: what is charged is an estimate, and marked as one",
    "30 at once": "the same: all are whole, one after the other",
    "cached tokens": "it reports none",
    tools: "it reads no calls out of this model's answers: they are text",
    "two calls at once": "the same",
    "one call where one is wanted": "the same",
    "exact counts": "it has no route that counts a chat",
    models: "it names no context",
  },
  "sglang-router": {
    "exact counts": "it has no route that counts",
    "comes back with another model": "it names no model, so that the configuration names one",
    models: "it lists one model, unknown, without a context",
  },
  litellm: {
    "no thoughts":
      "what switches them off depends on the engines behind it, which it does not name: [nodes.depth] says it",
    "JSON schema":
      "the engine behind it is not known to hold answers to it: told in words too, the tiny model writes nonsense that fits",
    "odd JSON schemas": "the same",
    "exact counts": "it has no route that counts a chat as the engine behind it does",
  },
};
