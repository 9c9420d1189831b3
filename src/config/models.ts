// [[models]]: a shop's own models, one each, and what becomes of them with what their nodes tell.
import { Type } from "@sinclair/typebox";
import { encodingDefault } from "../core/catalog.ts";
import {
  modelNamesMax,
  outputTokensDefault,
  outputTokensMax,
  outputTokensMin,
  ownModelNameMaxLength,
  partsPerCent,
} from "../core/limits.ts";
import { type ModelKind, modelKinds, pricedUnits, type VoiceKind } from "../core/model-kinds.ts";
import type { Model, Preset, PresetFields, Price } from "../core/types.ts";
import { presetNames, readPresetFields } from "../dialects/request/preset.ts";
import { isRefusal } from "../core/refusals.ts";
import { type Kind, listOf, mapped, oneOf, text, textLike, whole, yesOrNo } from "./kinds.ts";
import { nearest } from "../core/nearest.ts";
import { planId } from "./plans.ts";
import { key, required, table } from "./rows.ts";

/**
 * Context assumed where neither the config nor a node reports one; too large on purpose, so that the node's own error
 * counts.
 */
export const ownModelContextTokensDefault = 1_048_576;
const priceMaxDollars = 10_000;

const name = (): Kind<string> =>
  textLike(`^\\S{1,${ownModelNameMaxLength}}$`, `a name without spaces, of up to ${ownModelNameMaxLength} characters`);

const dollarsExpected = `dollars per million tokens from 0 to ${priceMaxDollars}, with up to 6 decimals`;
const dollars = () => Type.Number({ minimum: 0, maximum: priceMaxDollars, description: dollarsExpected });
/** Parts of cents. Dividing whole numbers gives the nearest double, which is what a decimal of the file is read as. */
const partsPerDollar = 100 * partsPerCent;
const partsOf = (dollars: number): number => Math.round(dollars * partsPerDollar);
const isExact = (dollars: number): boolean => partsOf(dollars) / partsPerDollar === dollars;
/** Of a minute, or of a thousand characters: small enough that no charge is beyond a whole number. */
const unitPriceMaxDollars = 10;
/** Under its own key, because it is for other units than tokens. */
const priceKeys = {
  chat: "price",
  embedding: "price",
  rerank: "price",
  transcription: "price_per_minute",
  speech: "price_per_1k_characters",
} as const satisfies Record<ModelKind, string>;

const unitPrice = (kind: VoiceKind): Kind<Price> => {
  const { units, in: unit } = pricedUnits[kind];
  const expected = `dollars per ${unit} from 0 to ${unitPriceMaxDollars}, with up to 6 decimals`;
  return {
    schema: Type.Number({ minimum: 0, maximum: unitPriceMaxDollars, description: expected }),
    read(written: number, place) {
      if (!isExact(written)) place.mustBe(expected, written);
      return priceOf(Math.round((partsOf(written) * 1_000_000) / units), 0, 0);
    },
  };
};
const centsOf = (parts: number): number => Math.floor(parts / partsPerCent);

type WrittenPrice = number | Readonly<{ input?: number; cached?: number; output?: number }>;
const free: Price = { kind: "split", inputCents: 0, cachedInputCents: 0, outputCents: 0 };

/** Cached input costs what other input costs unless the row says otherwise. */
const priceKind: Kind<Price> = {
  schema: Type.Union(
    [
      dollars(),
      Type.Object(
        { input: Type.Optional(dollars()), cached: Type.Optional(dollars()), output: Type.Optional(dollars()) },
        { additionalProperties: false },
      ),
    ],
    { description: `${dollarsExpected}, or a table such as { input = 0.5, cached = 0.05, output = 2 }` },
  ),
  read(written: WrittenPrice, place) {
    const {
      input = 0,
      cached = input,
      output = 0,
    } = typeof written === "number" ? { input: written, output: written } : written;
    for (const [key, price] of Object.entries(typeof written === "number" ? { "": written } : written)) {
      if (!isExact(price)) (key === "" ? place : place.at(key)).mustBe(dollarsExpected, price);
    }
    return priceOf(partsOf(input), partsOf(cached), partsOf(output));
  },
};

/** Of rates in parts of cents. */
function priceOf(input: number, cachedInput: number, output: number): Price {
  const price = {
    kind: "split",
    inputCents: centsOf(input),
    cachedInputCents: centsOf(cachedInput),
    outputCents: centsOf(output),
  } as const;
  const parts = {
    input: input % partsPerCent,
    cachedInput: cachedInput % partsPerCent,
    output: output % partsPerCent,
  };
  return parts.input + parts.cachedInput + parts.output === 0 ? price : { ...price, parts };
}

const noFields: PresetFields = { sampling: {}, effort: null, stop: [], engineFields: [] };
const noPreset: Preset = { set: noFields, default: noFields, remove: [], system: "" };
const presetFields: Kind<PresetFields> = {
  schema: Type.Record(Type.String(), Type.Unknown(), { description: "a table of request fields" }),
  read(written: Readonly<Record<string, unknown>>, place) {
    const fields = readPresetFields(written);
    if (!isRefusal(fields)) return fields;
    place.fault(`has a wrong field: ${fields.detail?.["reason"]}`);
    return noFields;
  },
};
const presetName: Kind<string> = mapped(text("the name of a request field"), (written, place) => {
  if (!presetNames.has(written)) place.mustBe("a field that a preset can have", written);
  return written;
});

export const modelTable = table(
  {
    id: required("id", name(), "The name that requests use."),
    presetOf: key("preset_of", name(), {
      about: "The id of another row, whose node model and settings it has, apart from those that it says itself.",
      otherwise: null,
      shown: "none",
    }),
    set: key("set", presetFields, {
      about: "Fields of requests that hold whatever the client says, named as in chat completions.",
      otherwise: undefined,
      shown: "none",
    }),
    default: key("default", presetFields, {
      about: "Fields of requests that hold where the client says nothing.",
      otherwise: undefined,
      shown: "none",
    }),
    remove: key("remove", listOf(presetName, "a list of names of fields"), {
      about: "Fields of requests that the nodes do not get.",
      otherwise: undefined,
      shown: "none",
    }),
    system: key("system", text("instructions"), {
      about: "Instructions in front of the client's own.",
      otherwise: undefined,
      shown: "none",
    }),
    fallback: key("fallback", listOf(name(), "a list of names of other rows", 1), {
      about: "Models that serve its requests while no node can, the first that can.",
      otherwise: undefined,
      shown: "none",
    }),
    parallel: key("parallel", whole(1, 1_000_000), {
      about: "The most of its requests under way at once, over all accounts; others wait in line.",
      otherwise: undefined,
      shown: "any number",
    }),
    nodeModel: key("node_model", name(), {
      about: "Its name on the nodes. Nodes that list it serve it.",
      otherwise: null,
      shown: "the id",
    }),
    kind: key("kind", oneOf(modelKinds), {
      about: "What it is for: answers, embeddings, reranking, transcriptions or speech.",
      otherwise: "chat" as const,
    }),
    price: key("price", priceKind, {
      about: "For input, cached input and output, or one number for all.",
      otherwise: null,
      shown: "0: it is free",
    }),
    pricePerMinute: key(priceKeys.transcription, unitPrice("transcription"), {
      about: "Of audio, for a model of kind `transcription`, which has no `price`.",
      otherwise: null,
      shown: "0: it is free",
    }),
    pricePer1kCharacters: key(priceKeys.speech, unitPrice("speech"), {
      about: "Of text, for a model of kind `speech`, which has no `price`.",
      otherwise: null,
      shown: "0: it is free",
    }),
    batchPrice: key("batch_price", priceKind, {
      about: "The same for lines of batches.",
      otherwise: undefined,
      shown: "`price`, less the plan's `batch_discount`",
    }),
    contextTokens: key("context", whole(1, 100_000_000), {
      about: "Its context in tokens.",
      otherwise: null,
      shown: "what its nodes report",
    }),
    readsImages: key("images", yesOrNo(), {
      about: "Whether it reads images.",
      otherwise: null,
      shown: "what its nodes report",
    }),
    readsAudio: key("audio", yesOrNo(), {
      about: "Whether it reads audio in messages (`input_audio`).",
      otherwise: null,
      shown: "what its nodes report, else false",
    }),
    structuredOutput: key("structured_output", oneOf(["json_schema", "json_object", "none"]), {
      about: "The strictest format that its answers can keep to.",
      otherwise: null,
      shown: "json_schema",
    }),
    callsTools: key("tools", yesOrNo(), {
      about: "Whether lists say that it calls tools.",
      otherwise: null,
      shown: "what its nodes report",
    }),
    readsDepth: key("reasoning", yesOrNo(), {
      about: "Whether requests may set how deeply it thinks.",
      otherwise: true,
    }),
    outputTokens: key("default_output_tokens", whole(outputTokensMin, outputTokensMax), {
      about: "Output budget of requests that name none.",
      otherwise: null,
      shown: "`[limits]`, else as long as the model writes",
    }),
    /** Null = all. */
    plans: key("plans", listOf(planId(), "a list of one or more plans", 1), {
      about: "Plans that may use it.",
      otherwise: null,
      shown: "all",
    }),
    aliases: key("aliases", listOf(name(), `a list of up to ${modelNamesMax} names`), {
      about: "Other names that requests may use, for programs that insist on theirs.",
      otherwise: [] as readonly string[],
      shown: "none",
    }),
    hidden: key("hidden", yesOrNo(), {
      about: "Whether lists of models leave it out; requests may name it.",
      otherwise: false,
    }),
  },
  ({ set, default: otherwise, remove, system, pricePerMinute, pricePer1kCharacters, ...model }, place, given) => {
    if (model.aliases.length > modelNamesMax) place.at("aliases").fault(`must be at most ${modelNamesMax} names`);
    if (model.presetOf !== null) {
      for (const key of ["node_model", "kind"]) {
        if (given[key] !== undefined) place.at(key).fault("must be absent beside preset_of, whose row says it");
      }
    }
    const preset: Partial<Preset> = {
      ...(set && { set }),
      ...(otherwise && { default: otherwise }),
      ...(remove && { remove }),
      ...(system !== undefined && { system }),
    };
    const pricedBy = Object.values(priceKeys).filter((key) => given[key] !== undefined);
    return {
      ...model,
      price: pricePerMinute ?? pricePer1kCharacters ?? model.price,
      pricedBy,
      nodeModel: model.nodeModel ?? model.id,
      ...(!isEmpty(preset) && { preset }),
    };
  },
);

/** Rows with `preset_of` have what they do not say from the row that it names. Faults: where that is no such row. */
export function basedModels(
  models: readonly Row[],
  faults: (row: number, key: string, problem: string) => void,
): Row[] {
  for (const [row, { kind, presetOf, pricedBy = [] }] of models.entries()) {
    const priced = (models.find(({ id }) => id === presetOf)?.kind ?? kind) satisfies ModelKind;
    const wrong = pricedBy.find((key) => key !== priceKeys[priced]);
    if (wrong !== undefined)
      faults(row, wrong, `must be absent: the price of a model of kind ${priced} is ${priceKeys[priced]}`);
  }
  const bases = new Map(models.filter(({ presetOf }) => presetOf === null).map((model) => [model.id, model]));
  return models.map((model, row) => {
    if (model.presetOf === null) return model;
    const base = bases.get(model.presetOf);
    if (base === undefined) {
      const meant = nearest(model.presetOf, bases.keys());
      const hint = meant === null ? "" : `, did you mean ${JSON.stringify(meant)}?`;
      faults(
        row,
        "preset_of",
        `must be the id of a row without preset_of, is ${JSON.stringify(model.presetOf)}${hint}`,
      );
      return model;
    }
    const said = Object.fromEntries(Object.entries(model).filter(([, value]) => value !== null));
    const { kind, nodeModel } = base;
    const preset = { ...base.preset, ...model.preset };
    const own = { ...base, ...said, kind, nodeModel, readsDepth: base.readsDepth && model.readsDepth };
    return isEmpty(preset) ? own : { ...own, preset };
  });
}

const isEmpty = (preset: Partial<Preset>): boolean => Object.keys(preset).length === 0;

/** One row; null where it says nothing: then what the nodes tell holds. */
export type OwnModel = Readonly<Omit<Row, "pricedBy" | "readsAudio">> & Partial<Pick<Row, "pricedBy" | "readsAudio">>;
type Row = Readonly<ReturnType<typeof modelTable.read>>;

/** Names that stand for two models, and where they stand: the schema of a row cannot know the others. */
type SharedName = Readonly<{ row: number; key: readonly (string | number)[]; problem: string }>;
export function sharedNames(models: readonly OwnModel[]): SharedName[] {
  const owners = new Map<string, string>();
  return models
    .flatMap(({ id, aliases }, row) => [
      { name: id, id, row, key: ["id"] },
      ...aliases.map((name, index) => ({ name, id, row, key: ["aliases", index] })),
    ])
    .flatMap(({ name, id, row, key }) => {
      const other = owners.get(name);
      if (other === undefined) owners.set(name, id);
      return other === undefined
        ? []
        : { row, key, problem: `must be unique: ${JSON.stringify(name)} is a name of ${JSON.stringify(other)}, too` };
    });
}

/** What the nodes of a model tell of it; null where they tell nothing. */
export type ToldOfModel = Readonly<{
  contextTokens: number | null;
  readsImages: boolean | null;
  readsAudio?: boolean | null;
  callsTools: boolean | null;
  /** Whether their engines hold answers to a schema. */
  keepsFormats: boolean | null;
}>;
export const nothingTold: ToldOfModel = {
  contextTokens: null,
  readsImages: null,
  callsTools: null,
  keepsFormats: null,
};

/** A model that has only a name, such as one that a node lists. */
export const unpricedModel = (id: string): OwnModel => ({
  id,
  nodeModel: id,
  kind: "chat",
  presetOf: null,
  price: null,
  contextTokens: null,
  readsImages: null,
  structuredOutput: null,
  callsTools: null,
  readsDepth: true,
  outputTokens: null,
  plans: null,
  aliases: [],
  hidden: false,
});

/** `budget`: of requests that name none, where the shop says one; else such an answer is as long as the model makes it. */
export function modelOf(
  { outputTokens: own, callsTools, ...model }: OwnModel,
  reported: ToldOfModel,
  budget: number | null,
): Model {
  const contextTokens = model.contextTokens ?? reported.contextTokens ?? ownModelContextTokensDefault;
  const outputTokens = Math.min(own ?? budget ?? outputTokensMax, contextTokens);
  const claimed = {
    images: model.readsImages ?? reported.readsImages,
    tools: callsTools ?? reported.callsTools,
    formats: model.structuredOutput !== null || reported.keepsFormats === true,
  };
  const abilities = ["images", "tools", "formats"] as const;
  const { presetOf: _, pricedBy: __, preset, ...row } = model;
  return {
    ...row,
    ...(preset && { preset: { ...noPreset, ...preset } }),
    price: model.price ?? free,
    structuredOutput: model.structuredOutput ?? "json_schema",
    unclaimed: abilities.filter((ability) => claimed[ability] !== true),
    tier: "own",
    contextTokens,
    readsImages: model.readsImages ?? reported.readsImages ?? true,
    readsAudio: model.readsAudio ?? reported.readsAudio ?? false,
    budgetLimitsAnswer: true,
    outputTokensDefault: { calls: outputTokens, tokens: outputTokens },
    encoding: encodingDefault,
    coder: false,
  };
}

/** What the shop says of requests that name no budget; the usual number is the specification's, and not the shop's. */
export const shopBudgetOf = (outputTokens: number): number | null =>
  outputTokens === outputTokensDefault ? null : outputTokens;
