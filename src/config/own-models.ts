// A shop's own models: rows of `[[models]]`, and what becomes of them with what their nodes tell.
import { type Static, Type } from "@sinclair/typebox";
import { encodingDefault } from "../core/catalog.ts";
import {
  modelNamesMax,
  outputTokensMax,
  outputTokensMin,
  ownModelContextTokensDefault,
  ownModelNameMaxLength,
  priceMaxDollars,
} from "../core/limits.ts";
import type { Model, ModelKind, PlanId, Price, StructuredOutput } from "../core/types.ts";

/** One row as it was written; null where nothing was: then what the nodes tell holds. */
export type OwnModel = Readonly<{
  id: string;
  kind: ModelKind;
  nodeModel: string;
  aliases: readonly string[];
  hidden: boolean;
  plans: readonly PlanId[] | null;
  price: Price;
  contextTokens: number | null;
  readsImages: boolean | null;
  structuredOutput: StructuredOutput;
  readsDepth: boolean;
  outputTokensDefault: number | null;
}>;

/** What the nodes of a model tell of it; null where they tell nothing. */
export type ToldOfModel = Readonly<{ contextTokens: number | null; readsImages: boolean | null }>;
export const nothingTold: ToldOfModel = { contextTokens: null, readsImages: null };

const dollarsExpected = `dollars per million tokens, from 0 to ${priceMaxDollars}, in whole cents`;
const dollars = () => Type.Number({ minimum: 0, maximum: priceMaxDollars, description: dollarsExpected });
const name = (what: string) =>
  Type.String({ minLength: 1, maxLength: ownModelNameMaxLength, pattern: "^\\S+$", description: what });
const oneOf = <const Words extends readonly string[]>(words: Words) =>
  Type.Union(
    words.map((word) => Type.Literal(word as Words[number])),
    { description: `one of ${words.map((word) => `"${word}"`).join(", ")}` },
  );

export const OwnModelTable = Type.Object(
  {
    id: name(`a name without spaces, of up to ${ownModelNameMaxLength} characters`),
    node_model: Type.Optional(name("the name that nodes know the model by")),
    kind: Type.Optional(oneOf(["chat", "embedding", "rerank"])),
    price: Type.Optional(
      Type.Union(
        [
          dollars(),
          Type.Object(
            { input: Type.Optional(dollars()), cached: Type.Optional(dollars()), output: Type.Optional(dollars()) },
            { additionalProperties: false },
          ),
        ],
        { description: `${dollarsExpected}, or a table such as { input = 0.5, cached = 0.05, output = 2 }` },
      ),
    ),
    context: Type.Optional(Type.Integer({ minimum: 1, description: "a whole number of tokens >= 1" })),
    images: Type.Optional(Type.Boolean({ description: "true or false" })),
    structured_output: Type.Optional(oneOf(["json_schema", "json_object", "none"])),
    reasoning: Type.Optional(Type.Boolean({ description: "true or false" })),
    default_output_tokens: Type.Optional(
      Type.Integer({
        minimum: outputTokensMin,
        maximum: outputTokensMax,
        description: `a whole number from ${outputTokensMin} to ${outputTokensMax}`,
      }),
    ),
    plans: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), { minItems: 1, description: "a list of one or more plans" }),
    ),
    aliases: Type.Optional(
      Type.Array(name("a name without spaces"), { maxItems: modelNamesMax, description: "a list of names" }),
    ),
    hidden: Type.Optional(Type.Boolean({ description: "true or false" })),
  },
  { additionalProperties: false, description: "a model" },
);
type Row = Static<typeof OwnModelTable>;

/** Reports what is wrong with `models[position]` at a key of it. */
export type FaultAt = (path: readonly (string | number)[], problem: string) => void;

/** The rows in order. Reports names that stand for two models and plans that are not there. */
export function readOwnModels(rows: readonly Row[], plans: readonly string[], fault: FaultAt): readonly OwnModel[] {
  const named = new Map<string, string>();
  const claim = (name: string, path: readonly (string | number)[]): void => {
    const at = named.get(name);
    if (at === undefined) named.set(name, path.join("."));
    else fault(path, `must be unique, ${JSON.stringify(name)} is named in ${at} as well`);
  };
  rows.forEach(({ id }, index) => claim(id, ["models", index, "id"]));
  return rows.map((row, index) => {
    row.aliases?.forEach((alias, position) => claim(alias, ["models", index, "aliases", position]));
    for (const [key, dollars] of Object.entries(typeof row.price === "object" ? row.price : { "": row.price ?? 0 })) {
      if (isWholeCents(dollars)) continue;
      fault(["models", index, "price", ...(key === "" ? [] : [key])], `must be ${dollarsExpected}, is ${dollars}`);
    }
    row.plans?.forEach((plan, position) => {
      if (!plans.includes(plan)) fault(["models", index, "plans", position], `must be one of ${plans.join(", ")}`);
    });
    return ownModelOf(row);
  });
}

/** A model of which nothing but its name was said, such as one that a node lists. */
export const unpricedModel = (id: string): OwnModel => ownModelOf({ id });

function ownModelOf(row: Row): OwnModel {
  return {
    id: row.id,
    kind: row.kind ?? "chat",
    nodeModel: row.node_model ?? row.id,
    aliases: row.aliases ?? [],
    hidden: row.hidden ?? false,
    plans: (row.plans as readonly PlanId[] | undefined) ?? null,
    price: priceOf(row.price ?? 0),
    contextTokens: row.context ?? null,
    readsImages: row.images ?? null,
    structuredOutput: row.structured_output ?? "json_schema",
    readsDepth: row.reasoning ?? true,
    outputTokensDefault: row.default_output_tokens ?? null,
  };
}

const cents = (dollars: number): number => Math.round(dollars * 100);
/** 0.07 * 100 is 7.000000000000001: what is no whole cent differs by far more. */
const isWholeCents = (dollars: number): boolean => Math.abs(dollars * 100 - cents(dollars)) < 1e-6;

/** Cached input costs what other input costs unless the row says otherwise. */
function priceOf(price: Row["price"] & {}): Price {
  if (typeof price === "number") {
    return { kind: "split", inputCents: cents(price), cachedInputCents: cents(price), outputCents: cents(price) };
  }
  const input = price.input ?? 0;
  return {
    kind: "split",
    inputCents: cents(input),
    cachedInputCents: cents(price.cached ?? input),
    outputCents: cents(price.output ?? 0),
  };
}

/** `budget`: of requests that name none, where the shop says one; else such an answer is as long as the model makes it. */
export function modelOf(own: OwnModel, told: ToldOfModel, budget = outputTokensMax): Model {
  const { outputTokensDefault: ownBudget, ...rest } = own;
  const outputTokens = ownBudget ?? budget;
  return {
    ...rest,
    tier: "own",
    contextTokens: own.contextTokens ?? told.contextTokens ?? ownModelContextTokensDefault,
    readsImages: own.readsImages ?? told.readsImages ?? true,
    budgetLimitsAnswer: true,
    outputTokensDefault: { calls: outputTokens, tokens: outputTokens },
    encoding: encodingDefault,
    coder: false,
  };
}
