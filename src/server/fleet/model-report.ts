// What nodes offer, what is served of it, under which name and at which price, and what is missing: for the `models`
// command, for `doctor` and for the start.
import { dollarsShown, isFreeOfCharge, ratesOf } from "../../account/money/price.ts";
import type { NodeConfig } from "../../config/config.ts";
import { claimsOf, distinctModels, type KnownModels } from "../../core/catalog.ts";
import { isVoice, type ModelKind, pricedUnits } from "../../core/model-kinds.ts";
import type { Model } from "../../core/types.ts";
import { unitDollars } from "../../core/voices.ts";
import { type Engine, factsOf } from "../../nodes/engine.ts";
import type { Capability, ModelFacts } from "../../nodes/model-facts.ts";
import { lackOf } from "../../nodes/abilities.ts";
import { modelNameOn, servesAmong } from "../../nodes/model-routes.ts";
import type { NodeState } from "../../nodes/queue/pool.ts";
import { kindOf } from "./served-models.ts";

/** US dollars per 1,000,000 tokens; of input alone where it is `per` something else. */
export type PriceInDollars = Readonly<{ input: number; cached: number; output: number; per?: string }>;

export type ServedReport = Readonly<{
  id: string;
  aliases: readonly string[];
  /** Who says that it is served: the catalog, `[[models]]`, or nodes that list it. */
  by: "catalog" | "configuration" | "nodes";
  kind: ModelKind;
  /** The name on nodes; null where the nodes' own configuration says. */
  node_model: string | null;
  nodes: readonly string[];
  /** Why no node has it, in words; null where one has. */
  missing: string | null;
  /** Null: it is free, because no price is set. */
  price: PriceInDollars | null;
  context: number;
  images: boolean;
  /** Plans that may use it; null: all. */
  plans: readonly string[] | null;
  hidden: boolean;
  /** What nodes lack of what it promises, in words. */
  below: readonly string[];
}>;

export type OfferedReport = Readonly<{
  node: string;
  name: string;
  kind: ModelKind;
  context: number | null;
  can: readonly Capability[];
  cannot: readonly Capability[];
  /** Ids of the models that it is asked for. */
  served_as: readonly string[];
}>;

export type ModelReport = Readonly<{ served: readonly ServedReport[]; offered: readonly OfferedReport[] }>;

/** A node as it is now; `engine` is null where it was never seen, or lists nothing. */
export type SeenNode = Readonly<{
  name: string;
  models: NodeConfig["models"];
  engine: Engine | null;
  isWell: boolean;
}>;

export const seenNode = ({ name, models, engine, health }: NodeState): SeenNode => ({
  name,
  models,
  engine,
  isWell: health === "well",
});

/** A node that is asked for a model; `listed`: as it lists the model, null where it does not. */
type Standing = Readonly<{ node: SeenNode; is: "has it" | "is down" | "lacks it"; listed: ModelFacts | null }>;

function standings({ models }: KnownModels, nodes: readonly SeenNode[]): (model: Model) => readonly Standing[] {
  const serves = servesAmong(
    () => nodes,
    (id) => models.get(id)?.nodeModel ?? null,
  );
  return (model) =>
    nodes
      .filter((node) => serves(node, model.id))
      .map((node): Standing => {
        const { engine } = node;
        const listed = engine === null ? null : factsOf(engine, modelNameOn(node.models, model, engine));
        if (!node.isWell) return { node, is: "is down", listed };
        // What lists nothing, and the demo node, answer to any name.
        const answersToAny = (engine?.models ?? []).length === 0 || engine?.kind === "demo";
        return { node, is: listed !== null || answersToAny ? "has it" : "lacks it", listed };
      });
}

/** Whether some node has a model, or would if it were not down. */
export function hadModels(models: KnownModels, nodes: readonly SeenNode[]): (model: Model) => boolean {
  const standingOf = standings(models, nodes);
  return (model) => standingOf(model).some(({ is }) => is !== "lacks it");
}

/** `areOwn`: the models are those of `[[models]]`. */
export function modelReport(models: KnownModels, areOwn: boolean, nodes: readonly SeenNode[]): ModelReport {
  const standingOf = standings(models, nodes);
  const servedAs = new Map<SeenNode, Map<string, string[]>>(nodes.map((node) => [node, new Map()]));
  const served = distinctModels(models).map((model): ServedReport => {
    const standing = standingOf(model);
    const namesOf = (wanted: Standing["is"]) => standing.filter(({ is }) => is === wanted).map(({ node }) => node.name);
    const [having, silent, unlisted] = [namesOf("has it"), namesOf("is down"), namesOf("lacks it")];
    const below: string[] = [];
    for (const { node, listed } of standing) {
      if (listed === null) continue;
      const lack = node.engine?.kind === "demo" ? [] : lackOf(listed, model);
      if (lack.length > 0) below.push(`${node.name}: ${lack.join(", ")}`);
      const ids = servedAs.get(node)!;
      ids.set(listed.name, [...(ids.get(listed.name) ?? []), model.id]);
    }
    return {
      id: model.id,
      aliases: model.aliases,
      by: model.tier !== "own" ? "catalog" : areOwn ? "configuration" : "nodes",
      kind: model.kind,
      node_model: model.nodeModel,
      nodes: having,
      missing: having.length > 0 ? null : whyMissing(model, silent, unlisted),
      price: priceInDollars(model),
      context: model.contextTokens,
      images: claimsOf(model).images,
      plans: model.plans,
      hidden: model.hidden,
      below,
    };
  });
  const offered = nodes.flatMap((node) =>
    (node.engine === null || node.engine.kind === "demo" ? [] : node.engine.models).map((facts): OfferedReport => {
      const known = Object.entries(facts.capabilities) as [Capability, boolean][];
      const only = (wanted: boolean) => known.filter(([, has]) => has === wanted).map(([capability]) => capability);
      return {
        node: node.name,
        name: facts.name,
        kind: kindOf(facts),
        context: facts.contextTokens,
        can: only(true),
        cannot: only(false),
        served_as: servedAs.get(node)?.get(facts.name) ?? [],
      };
    }),
  );
  return { served, offered };
}

/** `silent`, `unlisted`: names of nodes that are configured for it and are down, or do not list it. */
export function whyMissing({ nodeModel }: Model, silent: readonly string[], unlisted: readonly string[]): string {
  if (silent.length > 0) return `${silent.join(", ")} should serve it, but ${silent.length === 1 ? "is" : "are"} down`;
  if (nodeModel !== null) return `no node lists ${nodeModel}`;
  if (unlisted.length === 0) return "no node is configured for it";
  return `${unlisted.join(", ")} should serve it, but ${unlisted.length === 1 ? "does" : "do"} not list it`;
}

/** Null where it costs nothing. */
function priceInDollars({ kind, price }: Model): PriceInDollars | null {
  const rates = ratesOf(price);
  const { inputCents, cachedInputCents, outputCents, parts } = rates;
  if (isFreeOfCharge(rates)) return null;
  if (isVoice(kind)) return { input: unitDollars(kind, price), cached: 0, output: 0, per: pricedUnits[kind].in };
  return {
    input: dollarsShown(inputCents, parts?.input),
    cached: dollarsShown(cachedInputCents, parts?.cachedInput),
    output: dollarsShown(outputCents, parts?.output),
  };
}

const namesOfReasonMax = 5;

/** A line for each reason why no node has a model. */
export function missingLines(served: readonly Pick<ServedReport, "id" | "missing">[]): string[] {
  const byReason = Map.groupBy(served, ({ missing }) => missing);
  return [...byReason].flatMap(([missing, models]) => {
    if (missing === null) return [];
    const more = models.length > namesOfReasonMax ? ` and ${models.length - namesOfReasonMax} more` : "";
    const names = models.slice(0, namesOfReasonMax).map(({ id }) => shownName(id));
    return [`No node answers ${names.join(", ")}${more}: ${missing}`];
  });
}

const namesShownMax = 12;

/** Which names requests may use, in a line for who started the server. */
export function understoodNames({ served, offered }: ModelReport): string {
  const of = (wanted: ServedReport["by"]): readonly string[] =>
    served.filter(({ by }) => by === wanted).map(({ id, aliases }) => [id, ...aliases].join(" = "));
  const configured = of("configuration");
  if (configured.length > 0) return `Models of the configuration: ${some(configured)}.`;
  const catalog = of("catalog");
  const listed = of("nodes");
  const first = `Models: the ${catalog.length} of the catalog (${some(catalog, 2)})`;
  const suggests = "tollgate models suggest writes them down as your own [[models]].";
  if (listed.length > 0) return `${first}, and what the nodes list: ${some(listed)}. ${suggests}`;
  const known = new Set(served.map(({ id }) => id));
  const unserved = [...new Set(offered.map(({ name }) => name))].filter((name) => !known.has(name));
  if (unserved.length === 0) return `${first}.`;
  return `${first}, but not by their own names what the nodes list: ${some(unserved)}. ${suggests}`;
}

/** What a node calls its models may be anything: no sign of it reaches the terminal as a command. */
const some = (names: readonly string[], most = namesShownMax): string =>
  [...names.slice(0, most).map(shownName), ...(names.length > most ? [`and ${names.length - most} more`] : [])].join(
    ", ",
  );

export const shownName = (name: string): string => (/^[!-~][ -~]*$/.test(name) ? name : JSON.stringify(name));
