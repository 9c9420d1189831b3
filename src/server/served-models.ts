// Which models are served: a shop's own where it names any; else those of the catalogue, and beside them what nodes list.
import { type Catalog, distinctModels } from "../core/catalog.ts";
import { modelOf, nothingTold, type OwnModel, type ToldOfModel, unpricedModel } from "../config/own-models.ts";
import type { NodeConfig } from "../config/config.ts";
import { listedModelsMax, ownModelNameMaxLength } from "../core/limits.ts";
import type { Model, ModelKind } from "../core/types.ts";
import type { Engine } from "../nodes/engine.ts";
import { isNamed, type ModelFacts } from "../nodes/model-facts.ts";

export type ModelSources = Readonly<{
  /** Models of the catalogue's file. */
  catalog: Catalog;
  /** Rows of `[[models]]`; none: the catalogue's models are served. */
  own: readonly OwnModel[];
  nodes: readonly Readonly<{ models: NodeConfig["models"]; engine: Engine }>[];
  /** Output budget of requests that name none, where the shop says one. */
  outputTokens: number | undefined;
  /** What nodes list is served beside the catalogue. Off where strangers can sign up: it has no price. */
  servesListed: boolean;
  /** GET /v1/models has it, too. */
  showsListed: boolean;
}>;

/** Each model once, in the order of lists. */
export function servedModels({
  catalog,
  own,
  nodes,
  outputTokens,
  servesListed,
  showsListed,
}: ModelSources): readonly Model[] {
  const facts = nodes.flatMap(({ engine }) => (engine.kind === "demo" ? [] : engine.models));
  if (own.length > 0) return own.map((model) => modelOf(model, toldOf(facts, model.nodeModel), outputTokens));
  const ofCatalog = distinctModels(catalog);
  if (!servesListed) return ofCatalog;
  const listed = nodes
    .filter(({ models, engine }) => models["*"] === "*" && engine.kind !== "demo")
    .flatMap(({ engine }) => engine.models)
    .filter(({ name }) => /^\S+$/.test(name) && name.length <= ownModelNameMaxLength && !catalog.models.has(name));
  const byName = new Map(listed.slice(0, listedModelsMax).map((model) => [model.name, model]));
  const names = new Set(byName.keys());
  return [
    ...ofCatalog,
    ...[...byName.values()].map((model) => {
      const short = model.name.replace(/:latest$/, "");
      const aliases = short === model.name || names.has(short) || catalog.models.has(short) ? [] : [short];
      const row = { ...unpricedModel(model.name), kind: kindOf(model), hidden: !showsListed, aliases };
      return modelOf(row, toldOf(facts, model.name), outputTokens);
    }),
  ];
}

function kindOf({ name, capabilities }: ModelFacts): ModelKind {
  if (capabilities.rerank === true || /rerank/i.test(name)) return "rerank";
  return capabilities.embeddings === true && capabilities.chat !== true ? "embedding" : "chat";
}

/** The least of what its nodes tell, so that a request goes to any of them. */
function toldOf(facts: readonly ModelFacts[], nodeModel: string): ToldOfModel {
  const told = facts.filter(({ name }) => isNamed(name, nodeModel));
  if (told.length === 0) return nothingTold;
  const contexts = told.flatMap(({ contextTokens }) => contextTokens ?? []);
  const images = told.flatMap(({ capabilities }) => capabilities.images ?? []);
  return {
    contextTokens: contexts.length === 0 ? null : Math.min(...contexts),
    readsImages: images.length === 0 ? null : images.every(Boolean),
  };
}
