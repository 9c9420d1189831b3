// The catalog: models, plans and credit packs of data/catalog.json, checked at start. The committed file is embedded in
// the program; self-hosters can configure another with `[catalog] file =`.
import { type Static, Type } from "@sinclair/typebox";
import embedded from "../../data/catalog.json" with { type: "json" };
import {
  creditPurchaseMaxTokens,
  creditPurchaseMinTokens,
  floodRequestsMax,
  outputTokensDefault,
  outputTokensMax,
  outputTokensMin,
} from "./limits.ts";
import { formatPath, misfitsOf } from "./schema-errors.ts";
import { planIds } from "./plan-ids.ts";
import { type Plans, plansById, replacePlans } from "./plans.ts";
import type { EncodingName, Model, Plan, Price } from "./types.ts";

export type Catalog = Readonly<{
  /** By id and by alias. */
  models: ReadonlyMap<string, Model>;
  plans: Plans;
  creditPacksTokens: readonly number[];
}>;

/** Models by every name that requests may use: ids and aliases. */
export const modelsByName = (models: Iterable<Model>): ReadonlyMap<string, Model> => {
  const all = [...models];
  const byName = new Map(all.map((model) => [model.id, model]));
  for (const model of all) for (const alias of model.aliases) if (!byName.has(alias)) byName.set(alias, model);
  return byName;
};

export const distinctModels = ({ models }: KnownModels): readonly Model[] => [...new Set(models.values())];

export const listedModels = (catalog: KnownModels): readonly Model[] =>
  distinctModels(catalog).filter(({ hidden }) => !hidden);

/** The abilities that lists claim for it. */
export function claimsOf({ kind, readsImages, structuredOutput, unclaimed = [] }: Model) {
  const answers = kind === "chat";
  const formats = answers && !unclaimed.includes("formats") ? structuredOutput : "none";
  return {
    images: answers && readsImages && !unclaimed.includes("images"),
    tools: answers && !unclaimed.includes("tools"),
    formats,
  } as const;
}

/** The model in written samples. */
export const usualSampleModel = "core-3";
/** It appears unquoted in JSON, in shells and in five languages. */
const samplesAs = /^[A-Za-z0-9][\w.:@/+-]*$/;

/**
 * A model of this server for samples: the written one where nodes have it, otherwise one that nodes have and that every
 * plan may use for answers, preferably one that lists show; null: none. `has`: whether a node has the model.
 */
export function sampleModelOf(catalog: KnownModels, has: (model: Model) => boolean = () => true): Model | null {
  const able = distinctModels(catalog).filter(({ id, kind }) => kind === "chat" && samplesAs.test(id));
  const had = able.filter(has);
  const usual = (model: Model): boolean => model.id === usualSampleModel;
  const shown = (model: Model): boolean => !model.hidden && !model.coder && model.plans === null;
  return had.find(usual) ?? had.find(shown) ?? had[0] ?? able.find(usual) ?? able.find(shown) ?? able[0] ?? null;
}

/** The part of the catalog that reading a request needs. */
export type KnownModels = Pick<Catalog, "models">;

/**
 * The catalog of a running server, which may be replaced between two requests: a request that has begun keeps its model
 * and prices.
 */
export class LiveCatalog implements Catalog {
  /** The plans' objects stay the same forever, because the accounts in memory hold them. */
  readonly #plans: Record<string, Plan>;
  #current: Catalog;
  #parallel: ReadonlyMap<string, number>;

  constructor(catalog: Catalog) {
    this.#current = catalog;
    this.#parallel = parallelOf(catalog);
    this.#plans = structuredClone(catalog.plans);
  }

  get plans(): Catalog["plans"] {
    return this.#plans;
  }

  get models(): Catalog["models"] {
    return this.#current.models;
  }

  get creditPacksTokens(): Catalog["creditPacksTokens"] {
    return this.#current.creditPacksTokens;
  }

  /** The nodes' name for a model; null where their own configuration has it. */
  readonly nodeModelOf = (modelId: string): string | null => this.models.get(modelId)?.nodeModel ?? null;

  /** The most requests under way, of the models that have a limit. */
  readonly parallel = (): ReadonlyMap<string, number> => this.#parallel;

  replace(catalog: Catalog): void {
    this.#current = catalog;
    this.#parallel = parallelOf(catalog);
    replacePlans(this.#plans, catalog.plans);
  }
}

/** By id: how many requests of a model may be under way at once. */
export const parallelOf = (catalog: KnownModels): ReadonlyMap<string, number> =>
  new Map(distinctModels(catalog).flatMap(({ id, parallel }) => (parallel === undefined ? [] : [[id, parallel]])));

/** The catalog is wrong; the message has one line for each fault, with file, row and what was expected. */
export class CatalogError extends Error {
  override readonly name = "CatalogError";
}

const encodings = ["o200k_base", "cl100k_base", "p50k_base", "r50k_base"] as const satisfies readonly EncodingName[];
/** For models that name none, and for texts that are counted without a model. */
export const encodingDefault: EncodingName = "o200k_base";

/** Defaults for what a catalog's rows leave out. */
export const plainModel = {
  kind: "chat",
  nodeModel: null,
  aliases: [],
  hidden: false,
  plans: null,
} as const satisfies Partial<Model>;

// ---------------------------------------------------------------- the file

const text = () => Type.String({ minLength: 1, maxLength: 200, description: "a text of 1 to 200 characters" });
const cents = () => Type.Integer({ minimum: 0, description: "a whole number >= 0" });
const count = () => Type.Integer({ minimum: 0, description: "a whole number >= 0" });
const budget = () =>
  Type.Integer({
    minimum: outputTokensMin,
    maximum: outputTokensMax,
    description: `a whole number of tokens from ${outputTokensMin} to ${outputTokensMax}`,
  });
const yesOrNo = () => Type.Boolean({ description: "true or false" });
const oneOf = <const Words extends readonly string[]>(words: Words) =>
  Type.Union(
    words.map((word) => Type.Literal(word as Words[number])),
    { description: `one of ${words.map((word) => `"${word}"`).join(", ")}` },
  );

const ModelRow = Type.Object(
  {
    id: text(),
    tier: oneOf(["first-party", "hosted"]),
    context_tokens: Type.Integer({ minimum: 1, description: "a whole number of tokens >= 1" }),
    reads_images: yesOrNo(),
    structured_output: oneOf(["json_schema", "json_object", "none"]),
    /** US cents per 1,000,000 tokens: `cents` for a first-party tier, the others for a hosted model. */
    price: Type.Object(
      {
        cents: Type.Optional(cents()),
        input_cents: Type.Optional(cents()),
        cached_input_cents: Type.Optional(cents()),
        output_cents: Type.Optional(cents()),
      },
      { additionalProperties: false, description: 'a table such as { "cents": 390 }' },
    ),
    budget_limits_answer: yesOrNo(),
    /** The output budget of requests that name none, on every endpoint. */
    default_output_tokens: Type.Optional(budget()),
    /** Only for chat-completions and messages: the older name, which earlier catalogs have for the coder tier. */
    output_tokens_default: Type.Optional(budget()),
    encoding: Type.Optional(oneOf(encodings)),
    coder: Type.Optional(yesOrNo()),
  },
  { additionalProperties: false, description: "a model" },
);

const PlanRow = Type.Object(
  {
    id: oneOf(planIds),
    name: text(),
    tokens_per_day: count(),
    coder_calls_per_window: count(),
    searches_per_day: count(),
  },
  { additionalProperties: false, description: "a plan" },
);

const CatalogFile = Type.Object(
  {
    models: Type.Array(ModelRow, { minItems: 1, description: "a list of one or more models" }),
    plans: Type.Array(PlanRow, { description: `the list of the plans ${planIds.join(", ")}` }),
    credit_packs_tokens: Type.Array(
      Type.Integer({
        minimum: creditPurchaseMinTokens,
        maximum: creditPurchaseMaxTokens,
        description: `a whole number of tokens from ${creditPurchaseMinTokens} to ${creditPurchaseMaxTokens}`,
      }),
      { description: "a list of credit packs" },
    ),
  },
  { additionalProperties: false, description: "a catalog of models, plans and credit_packs_tokens" },
);

// ---------------------------------------------------------------- reading

export function embeddedCatalog(budget?: number): Catalog {
  return readCatalog(embedded, "data/catalog.json", budget);
}

/** The catalog in `file`; throws CatalogError where it cannot be read or a row is wrong. `budget`: see `readCatalog`. */
export async function loadCatalog(file: string, budget?: number): Promise<Catalog> {
  let json: unknown;
  try {
    json = await Bun.file(file).json();
  } catch (error) {
    throw new CatalogError(`${file}: cannot be read as JSON: ${(error as Error).message}`);
  }
  return readCatalog(json, file, budget);
}

/**
 * Checks `json` and turns it into a Catalog; `file` is its name in errors, `budget` the output budget of requests that
 * name none, for models whose row does not set it.
 */
export function readCatalog(json: unknown, file: string, budget = outputTokensDefault): Catalog {
  const misfits = misfitsOf(CatalogFile, json);
  if (misfits.length > 0) {
    throw new CatalogError(misfits.map(({ path, problem }) => `${file}: ${rowPath(path, json)} ${problem}`).join("\n"));
  }
  const rows = json as Static<typeof CatalogFile>;
  const faults = [...modelFaults(rows.models), ...planFaults(rows.plans)];
  if (faults.length > 0) throw new CatalogError(faults.map((fault) => `${file}: ${fault}`).join("\n"));
  const plans = new Map(rows.plans.map((row) => [row.id, planOf(row)]));
  return {
    models: modelsByName(rows.models.map((row) => modelOf(row, budget))),
    plans: plansById(planIds.map((id) => plans.get(id)!)),
    creditPacksTokens: rows.credit_packs_tokens,
  };
}

/** `models[3] "core-2-pro": price.cents`: a row is easier to find by its id than by its position. */
function rowPath(path: readonly (string | number)[], json: unknown): string {
  const [list, position, ...inside] = path;
  if (typeof position !== "number") return path.length === 0 ? "the file" : formatPath(path);
  const id = (json as Record<string, { id?: unknown }[]>)[String(list)]?.[position]?.id;
  const row = `${list}[${position}]${typeof id === "string" ? ` ${JSON.stringify(id)}` : ""}`;
  return inside.length === 0 ? row : `${row}: ${formatPath(inside)}`;
}

/** What the schema cannot express: ids are unique, a price fits its tier, and a coder tier is first-party. */
function* modelFaults(rows: readonly Static<typeof ModelRow>[]): Generator<string> {
  const seen = new Map<string, number>();
  for (const [position, { id, tier, price, coder }] of rows.entries()) {
    const row = `models[${position}] ${JSON.stringify(id)}`;
    const first = seen.get(id);
    if (first !== undefined) yield `${row}: id must be unique, is also the id of models[${first}]`;
    else seen.set(id, position);
    const wanted = tier === "hosted" ? ["input_cents", "output_cents"] : ["cents"];
    const allowed = tier === "hosted" ? [...wanted, "cached_input_cents"] : wanted;
    for (const key of wanted) if (!(key in price)) yield `${row}: price.${key} is missing for a ${tier} model`;
    for (const key of Object.keys(price)) {
      if (!allowed.includes(key)) yield `${row}: price.${key} does not fit a ${tier} model`;
    }
    if (coder === true && tier !== "first-party") yield `${row}: coder must be false for a hosted model`;
  }
}

function* planFaults(rows: readonly Static<typeof PlanRow>[]): Generator<string> {
  for (const id of planIds) {
    const rowsOfPlan = rows.filter((row) => row.id === id).length;
    if (rowsOfPlan !== 1) yield `plans: must have "${id}" exactly once, has it ${rowsOfPlan} times`;
  }
}

function modelOf(row: Static<typeof ModelRow>, budget: number): Model {
  // Where calls of the coder tier are counted, the budget reserves no tokens (spec, per-request limits).
  const ofCalls = row.output_tokens_default ?? (row.coder === true ? outputTokensMax : budget);
  const own = row.default_output_tokens;
  return {
    id: row.id,
    ...plainModel,
    tier: row.tier,
    readsDepth: row.tier === "hosted",
    contextTokens: row.context_tokens,
    readsImages: row.reads_images,
    structuredOutput: row.structured_output,
    price: priceOf(row.price),
    budgetLimitsAnswer: row.budget_limits_answer,
    outputTokensDefault: { calls: own ?? ofCalls, tokens: own ?? budget },
    encoding: row.encoding ?? encodingDefault,
    coder: row.coder ?? false,
  };
}

/** Cached input costs a tenth of the input rate, rounded up to a cent, unless the row sets it. */
function priceOf({ cents, input_cents, cached_input_cents, output_cents }: Static<typeof ModelRow>["price"]): Price {
  if (cents !== undefined) return { kind: "flat", cents };
  return {
    kind: "split",
    inputCents: input_cents!,
    cachedInputCents: cached_input_cents ?? Math.ceil(input_cents! / 10),
    outputCents: output_cents!,
  };
}

function planOf(row: Static<typeof PlanRow>): Plan {
  return {
    id: row.id,
    as: row.id,
    name: row.name,
    tokensPerDay: row.tokens_per_day,
    coderCallsPerWindow: row.coder_calls_per_window,
    searchesPerDay: row.searches_per_day,
    requestsPerMinute: floodRequestsMax,
    models: null,
    unlimited: false,
  };
}
