// What a node's engine reports about the models that requests use, and which of the catalog's promises it lacks.
import type { NodeConfig } from "../config/config.ts";
import { distinctModels } from "../core/catalog.ts";
import type { Model } from "../core/types.ts";
import { type Engine, factsOf } from "./engine.ts";
import { modelNameOn, servesAmong } from "./model-routes.ts";
import type { Capability, ModelFacts } from "./model-facts.ts";

export type ServedModel = Readonly<{
  name: string;
  contextTokens: number | null;
  /** Abilities that the engine reports as present or absent. It may report nothing about the rest. */
  can: readonly Capability[];
  cannot: readonly Capability[];
}>;

export type Abilities = Readonly<{
  models: readonly ServedModel[];
  below: readonly string[];
}>;

/** The model names that requests use on a node; "*" stands for those that no node names. */
export function modelsOn<Node extends Pick<NodeConfig, "models"> & Readonly<{ engine?: Engine | null }>>(
  nodes: readonly Node[],
  models: ReadonlyMap<string, Model>,
): (node: Node) => readonly Model[] {
  const serves = servesAmong(
    () => nodes.map(knownOf),
    (id) => models.get(id)?.nodeModel ?? null,
  );
  return (node) => distinctModels({ models }).filter(({ id }) => serves(knownOf(node), id));
}

const knownOf = ({ models, engine = null }: Pick<NodeConfig, "models"> & Readonly<{ engine?: Engine | null }>) => ({
  models,
  engine,
});

/** The smallest context of the models that requests use; null where the engine reports none. */
export function leastContext({ models }: Abilities): number | null {
  const contexts = models.flatMap(({ contextTokens }) => contextTokens ?? []);
  return contexts.length === 0 ? null : Math.min(...contexts);
}

type ModelsAndFacts = Readonly<{ facts: ModelFacts; models: Model[] }>;

/** `served`: the catalog's models that requests use on this node. */
export function abilitiesOf(
  engine: Engine,
  { models }: Pick<NodeConfig, "models">,
  served: readonly Model[],
): Abilities {
  if (engine.kind === "demo") return { models: [], below: [] };
  const inUse = new Map<string, ModelsAndFacts>();
  for (const model of served) {
    const facts = factsOf(engine, modelNameOn(models, model, engine));
    if (facts === null) continue;
    const known = inUse.get(facts.name);
    if (known === undefined) inUse.set(facts.name, { facts, models: [model] });
    else known.models.push(model);
  }
  return {
    models: [...inUse.values()].map(({ facts }) => servedModel(facts)),
    below: [...inUse.values()].flatMap(below),
  };
}

/** Abilities that every model has are left out. */
function servedModel({ name, contextTokens, capabilities }: ModelFacts): ServedModel {
  const reported = Object.entries(capabilities) as [Capability, boolean][];
  const only = (wanted: boolean) =>
    reported.filter(([capability, has]) => has === wanted && capability !== "chat").map(([capability]) => capability);
  return { name, contextTokens, can: only(true), cannot: only(false) };
}

/** What a node's model lacks of what `model` promises, in a few words each. */
export function lackOf({ contextTokens, capabilities }: ModelFacts, model: Model): string[] {
  if (model.kind !== "chat") return [];
  return [
    ...(contextTokens !== null && model.contextTokens > contextTokens ? [`a context of ${contextTokens} tokens`] : []),
    ...(capabilities.images === false && model.readsImages ? ["no images"] : []),
    ...(capabilities.tools === false ? ["no tools"] : []),
    ...(capabilities.chat === false ? ["no answers"] : []),
  ];
}

function below({ facts: { name, contextTokens, capabilities }, models: asked }: ModelsAndFacts): string[] {
  const models = asked.filter(({ kind }) => kind === "chat"); // the others promise no answers
  if (models.length === 0) return [];
  const larger = contextTokens === null ? [] : models.filter((model) => model.contextTokens > contextTokens);
  const most = Math.max(...larger.map((model) => model.contextTokens));
  const reading = capabilities.images === false ? models.filter(({ readsImages }) => readsImages) : [];
  return [
    ...(larger.length > 0 ? [`${name} has a context of ${contextTokens} tokens: ${promised(larger, most)}`] : []),
    ...(reading.length > 0 ? [`${name} reads no images: ${promised(reading)}`] : []),
    ...(capabilities.tools === false ? [`${name} calls no tools: ${promised(models)}`] : []),
    ...(capabilities.chat === false ? [`${name} gives no answers: ${promised(models)}`] : []),
  ];
}

/** `most`: caps what is counted. */
function promised(models: readonly Model[], most?: number): string {
  if (models.length === 1) return `${models[0]!.id} promises ${most ?? "that"}`;
  return `${models.length} models of the catalog promise ${most === undefined ? "that" : `up to ${most}`}`;
}

/** A model's abilities in a few words; empty where its engine reports none. */
export const abilitiesInWords = ({ can, cannot }: Pick<ServedModel, "can" | "cannot">): string =>
  [...can, ...cannot.filter((each) => shownAbsent.has(each)).map((each) => `no ${each}`)].join(", ");

export const isReported = (model: ServedModel): boolean =>
  model.contextTokens !== null || abilitiesInWords(model) !== "";

export function modelInWords(model: ServedModel): string {
  const { contextTokens } = model;
  const context = contextTokens === null ? "" : `context of ${contextTokens} tokens`;
  return [context, abilitiesInWords(model)].filter((words) => words !== "").join(", ");
}

const shownAbsent: ReadonlySet<Capability> = new Set(["tools", "thinking", "images"]);
