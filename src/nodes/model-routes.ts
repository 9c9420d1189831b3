// Which nodes serve a model, and their name for it. A node's configuration names models, or uses "*" for those that no node
// names. Of a shop's own models, "*" covers those that its engine lists.
//
//   the node names it                                        -> serves it
//   another node names it, or this one has no "*"            -> does not
//   its name on nodes is not configured                      -> serves it
//   the engine lists it                                      -> serves it
//   the engine lists nothing, or takes any name              -> serves it where no engine lists it
import type { NodeConfig } from "../config/config.ts";
import type { Model } from "../core/types.ts";
import { answersToAnyName, type Engine, factsOf, listedAs } from "./engine.ts";

/** The nodes' name for a model; null where none is configured. */
export type NodeModelOf = (modelId: string) => string | null;

type RoutedModel = Pick<Model, "id" | "nodeModel">;
type Known = Readonly<{ models: NodeConfig["models"]; engine: Engine | null }>;

export function modelNameOn(
  models: NodeConfig["models"],
  { id, nodeModel }: RoutedModel,
  engine: Engine | null,
): string {
  const name = Object.hasOwn(models, id) ? models[id]! : (models["*"] ?? id);
  if (name !== "*") return name;
  if (nodeModel !== null) return (engine === null ? null : factsOf(engine, nodeModel))?.name ?? nodeModel;
  const listed = engine?.chatModels ?? [];
  return listed.includes(id) ? id : (listed[0] ?? id);
}

/** Whether a node, one of `nodes()`, serves a model. Reads the nodes anew each time. */
export function servesAmong(
  nodes: () => readonly Known[],
  nodeModelOf: NodeModelOf,
): (node: Known, modelId: string) => boolean {
  const named = new Set(nodes().flatMap(({ models }) => Object.keys(models)));
  return ({ models, engine }, modelId) => {
    if (Object.hasOwn(models, modelId)) return true;
    if (!Object.hasOwn(models, "*") || named.has(modelId)) return false;
    const nodeModel = nodeModelOf(modelId);
    if (nodeModel === null || models["*"] !== "*") return true;
    if (lists(engine, nodeModel)) return true;
    return mayHave(engine) && !nodes().some((other) => lists(other.engine, nodeModel));
  };
}

const lists = (engine: Engine | null, nodeModel: string): boolean =>
  engine !== null && listedAs(engine, nodeModel) !== null;

const mayHave = (engine: Engine | null): boolean =>
  engine === null ||
  engine.models.length === 0 ||
  engine.kind === "demo" ||
  (answersToAnyName.has(engine.kind) && engine.models.length === 1);
