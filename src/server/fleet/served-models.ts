// Which models are served: a shop's own where it names any; else those of the catalog, and beside them what nodes list.
import { type Catalog, distinctModels, type LiveCatalog, modelsByName } from "../../core/catalog.ts";
import {
  modelOf,
  nothingTold,
  type OwnModel,
  shopBudgetOf,
  type ToldOfModel,
  unpricedModel,
} from "../../config/models.ts";
import type { Config, NodeConfig } from "../../config/config.ts";
import { offeredPlans } from "../../config/configured-catalog.ts";
import type { Derived } from "../../config/running.ts";
import { ownModelNameMaxLength } from "../../core/limits.ts";
import type { Model, ModelKind, Plan } from "../../core/types.ts";
import { type Engine, factsOf } from "../../nodes/engine.ts";
import type { EngineKind } from "../../nodes/engine-kind.ts";
import { type Capability, isNamedOtherwise, type ModelFacts, voiceNamed, withoutTag } from "../../nodes/model-facts.ts";
import { modelNameOn, servesAmong } from "../../nodes/model-routes.ts";
import { engineTraits } from "../../nodes/engine-traits.ts";

/** Models that nodes list without configuration; a hosted catalog of everything has some 500. */
const listedModelsMax = 1_000;

export type ModelSources = Readonly<{
  catalog: Catalog;
  /** Rows of `[[models]]`; none: the catalog's models are served. */
  own: readonly OwnModel[];
  nodes: readonly Readonly<{ models: NodeConfig["models"]; engine: Engine }>[];
  /** Output budget of requests that name none, where the shop says one. */
  outputTokens: number | null;
  /** What nodes list is served beside the catalog. Off where strangers can sign up: it has no price. */
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
  if (own.length > 0) {
    const factsOfOwn = ownFacts(own, nodes);
    return own.map((model) => modelOf(model, toldOf(factsOfOwn(model)), outputTokens));
  }
  const facts = Map.groupBy(
    nodes.flatMap(({ engine: { kind, models } }) => (kind === "demo" ? [] : models.map((model) => ({ kind, model })))),
    ({ model: { name } }) => withoutTag(name),
  );
  const ofCatalog = distinctModels(catalog);
  if (!servesListed) return ofCatalog;
  const listed = nodes
    .filter(({ models, engine }) => models["*"] === "*" && engine.kind !== "demo")
    .flatMap(({ engine }) => engine.models)
    .filter(({ name }) => isName(name) && name.length <= ownModelNameMaxLength && !catalog.models.has(name));
  const byName = new Map(listed.slice(0, listedModelsMax).map((model) => [model.name, model]));
  const names = new Set(byName.keys());
  return [
    ...ofCatalog,
    ...[...byName.values()].map((model) => {
      const short = withoutTag(model.name);
      const aliases = short === model.name || names.has(short) || catalog.models.has(short) ? [] : [short];
      const row = { ...unpricedModel(model.name), kind: kindOf(model), hidden: !showsListed, aliases };
      return modelOf(row, toldOf(facts.get(withoutTag(model.name)) ?? []), outputTokens);
    }),
  ];
}

/** A router may list a pattern such as `openai/*`, which is no model. What `[[models]]` could not say is none either. */
const isName = (name: string): boolean =>
  name !== "" && !name.includes("*") && name.isWellFormed() && !/[\s\p{Cc}]/u.test(name);

export function kindOf({ name, capabilities }: ModelFacts): ModelKind {
  if (capabilities.rerank === true || name.toLowerCase().includes("rerank")) return "rerank";
  if (capabilities.transcription === true) return "transcription";
  if (capabilities.speech === true) return "speech";
  if (capabilities.chat === true) return "chat";
  const voice = voiceNamed(name);
  if (voice !== null) return voice;
  return capabilities.embeddings === true || isNamedOtherwise(name) ? "embedding" : "chat";
}

/** What an engine of this kind tells of a model. */
type Facts = Readonly<{ kind: EngineKind; model: ModelFacts }>;

/** What the nodes that serve a model tell of it, each under the name by which it is asked for it. */
function ownFacts(own: readonly OwnModel[], nodes: ModelSources["nodes"]): (model: OwnModel) => readonly Facts[] {
  const nodeModels = new Map(own.map(({ id, nodeModel }) => [id, nodeModel]));
  const serves = servesAmong(
    () => nodes,
    (id) => nodeModels.get(id) ?? null,
  );
  return (model) =>
    nodes.flatMap((node) => {
      const { models, engine } = node;
      if (engine.kind === "demo" || !serves(node, model.id)) return [];
      const found = factsOf(engine, modelNameOn(models, model, engine));
      return found === null ? [] : { kind: engine.kind, model: found };
    });
}

/** The least of what its nodes tell, so that a request goes to any of them. */
function toldOf(facts: readonly Facts[]): ToldOfModel {
  if (facts.length === 0) return nothingTold;
  const contexts = facts.flatMap(({ model }) => model.contextTokens ?? []);
  const all = (capability: Capability): boolean | null => {
    const said = facts.flatMap(({ model }) => model.capabilities[capability] ?? []);
    return said.length === 0 ? null : said.every(Boolean);
  };
  return {
    contextTokens: contexts.length === 0 ? null : Math.min(...contexts),
    readsImages: all("images"),
    readsAudio: all("audio"),
    callsTools: all("tools"),
    keepsFormats: facts.every(({ kind }) => kind !== "unknown" && engineTraits[kind].formats),
  };
}

type Parts = Readonly<{
  /** What all of the server looks models up in. */
  live: LiveCatalog;
  catalog: Catalog;
  config: Pick<Config, "models" | "plans" | "listNodeModels" | "outputTokensDefault" | "signUp">;
  nodes: Readonly<{
    states(): ModelSources["nodes"];
    /** Called when other models are served, or the same ones otherwise. */
    modelsChanged(): void;
  }>;
}>;

/** Keeps the live catalog to what is configured and what the nodes tell. */
export class ServedModels {
  onChange: () => void = () => {};
  readonly #live: LiveCatalog;
  readonly #nodes: Parts["nodes"];
  readonly #servesListed: boolean;
  #catalog: Catalog;
  #own: readonly OwnModel[];
  /** Of the shop; none: the file's. */
  #plans: readonly Plan[];
  #showsListed: boolean;
  #budget: number;

  constructor({ live, catalog, config, nodes }: Parts) {
    this.#live = live;
    this.#catalog = catalog;
    this.#nodes = nodes;
    this.#own = config.models;
    this.#plans = config.plans;
    this.#showsListed = config.listNodeModels;
    this.#budget = config.outputTokensDefault;
    this.#servesListed = !config.signUp;
  }

  get areOwn(): boolean {
    return this.#own.length > 0;
  }

  get catalog(): Catalog {
    return this.#catalog;
  }

  /** All at once: models name plans, and plans models. */
  offer({ catalog, models, plans }: Derived): void {
    this.#catalog = catalog;
    this.#own = models;
    this.#plans = plans;
    this.update();
  }

  /** `catalog`: with that budget. */
  useBudget(budget: number, catalog: Catalog): void {
    this.#catalog = catalog;
    this.#budget = budget;
    this.update();
  }

  showListed(shows: boolean): void {
    this.#showsListed = shows;
    this.update();
  }

  /** After the nodes may tell something else. */
  update(): void {
    const { creditPacksTokens } = this.#catalog;
    const plans = offeredPlans(this.#plans, this.#catalog);
    const models = servedModels({
      catalog: this.#catalog,
      own: this.#own,
      nodes: this.#nodes.states(),
      outputTokens: shopBudgetOf(this.#budget),
      servesListed: this.#servesListed,
      showsListed: this.#showsListed,
    });
    const next = { models: modelsByName(models), plans, creditPacksTokens };
    if (textOf(next) === textOf(this.#live)) return;
    this.#live.replace(next);
    this.#nodes.modelsChanged();
    this.onChange();
  }
}

export const textOf = ({ models, plans, creditPacksTokens }: Catalog): string =>
  JSON.stringify([[...models], plans, creditPacksTokens]);
