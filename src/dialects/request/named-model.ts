// Finds the model that a request names.
import type { KnownModels } from "../../core/catalog.ts";
import { refuse } from "../../core/refusals.ts";
import type { Model, ModelKind, Refusal } from "../../core/types.ts";
import { malformed } from "./field.ts";

/** Finds a model by id or alias; refuses where there is none, or where its kind is not `kind`. */
export function namedModel({ models }: KnownModels, name: string, kind: ModelKind = "chat"): Model | Refusal {
  const model = models.get(name);
  if (model === undefined) return refuse("unknown_model", { model: name });
  if (model.kind === kind) return model;
  return malformed(`model must be one ${wanted[kind]}: ${model.id} ${uses[model.kind]}`);
}

const wanted = {
  chat: "that gives answers",
  embedding: "that makes embeddings",
  rerank: "that reranks",
  transcription: "that hears",
  speech: "that speaks",
} as const satisfies Record<ModelKind, string>;
const uses = {
  chat: "gives answers",
  embedding: "is for embeddings",
  rerank: "is for reranking",
  transcription: "is for transcriptions",
  speech: "is for speech",
} as const satisfies Record<ModelKind, string>;
