// Finds the model that a request for an answer names.
import type { KnownModels } from "../../core/catalog.ts";
import { refuse } from "../../core/refusals.ts";
import type { Model, Refusal } from "../../core/types.ts";
import { malformed } from "./field.ts";

/** By its id or an alias; a refusal where there is none, or where it gives no answers. */
export function namedModel({ models }: KnownModels, name: string): Model | Refusal {
  const model = models.get(name);
  if (model === undefined) return refuse("unknown_model", { model: name });
  if (model.kind === "chat") return model;
  return malformed(`model must be one that gives answers: ${model.id} is for ${uses[model.kind]}`);
}

const uses = { embedding: "embeddings", rerank: "reranking" } as const;
