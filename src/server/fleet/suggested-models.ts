// The [[models]] that `tollgate models suggest` prints for what nodes list: each row with what its nodes tell, and the other
// keys as comments. Pasted into a configuration it starts as it is.
import type { Config } from "../../config/config.ts";
import { modelNamesMax, ownModelNameMaxLength } from "../../core/limits.ts";
import { isVoice, modelKinds } from "../../core/model-kinds.ts";
import { tomlText } from "../../core/toml-text.ts";
import { withoutTag } from "../../nodes/model-facts.ts";
import type { ModelReport, OfferedReport, PriceInDollars, ServedReport } from "./model-report.ts";

type SuggestedModel = Readonly<{
  id: string;
  node_model: string;
  aliases: readonly string[];
  kind: ServedReport["kind"];
  price: PriceInDollars | null;
  context: number | null;
  images: boolean | null;
  nodes: readonly string[];
}>;

export type Suggestion = Readonly<{
  models: readonly SuggestedModel[];
  /** Names on nodes that no row can have. */
  unnameable: readonly string[];
}>;

type Named = Pick<Config, "models" | "nodes" | "mcp">;

/** Rows for all that nodes list and the configuration does not have; names that work today work with the rows, too. */
export function suggestedModels({ served, offered }: ModelReport, { models: own, nodes, mcp }: Named): Suggestion {
  const taken = new Set(own.flatMap(({ id, aliases }) => [id, ...aliases]));
  const known = new Set(own.map(({ nodeModel }) => withoutTag(nodeModel)));
  const suggested: SuggestedModel[] = [];
  const add = (model: SuggestedModel): void => {
    for (const name of [model.id, ...model.aliases]) taken.add(name);
    suggested.push(model);
  };
  // [nodes.models] and [[mcp]] speak of them, and only what [[models]] has may be spoken of.
  const spokenOf = [
    ...nodes.flatMap(({ models }) => Object.keys(models).filter((id) => id !== "*")),
    ...mcp.flatMap(({ models }) => models ?? []),
  ];
  for (const id of new Set(spokenOf)) {
    if (taken.has(id) || !isName(id)) continue;
    const today = served.find((model) => model.id === id) ?? null;
    add({
      id,
      node_model: id,
      aliases: [],
      kind: today?.kind ?? "chat",
      price: today?.price ?? null,
      context: null,
      images: null,
      nodes: today?.nodes ?? [],
    });
  }
  const byName = Map.groupBy(offered, ({ name }) => withoutTag(name));
  const unnameable: string[] = [];
  for (const [short, listed] of byName) {
    const [{ name, kind }] = listed as [OfferedReport];
    if (known.has(short)) continue;
    if (listed.every(({ served_as: ids }) => ids.length > 0 && ids.every((id) => spokenOf.includes(id)))) continue;
    if (!isName(name)) {
      unnameable.push(name);
      continue;
    }
    const id = [lastStep(short), short, name].find((each) => isName(each) && !taken.has(each));
    if (id === undefined) continue; // the configuration has that name, for another model
    const contexts = listed.flatMap(({ context }) => context ?? []);
    const today = served.find((model) => model.id === id && model.by === "catalog");
    add({
      id,
      node_model: name,
      aliases: [...new Set([short, name])].filter((each) => each !== id && !taken.has(each)).slice(0, modelNamesMax),
      kind,
      price: today?.price ?? null,
      context: contexts.length === 0 ? null : Math.min(...contexts),
      images: imagesOf(listed),
      nodes: listed.map(({ node }) => node),
    });
  }
  return { models: suggested, unnameable };
}

/** What [[models]] may be called, and what a text of TOML may have. */
const isName = (name: string): boolean =>
  name.length <= ownModelNameMaxLength && name.isWellFormed() && /^[^\s\p{Cc}]+$/u.test(name);

/** Of a file, which llama.cpp calls its model by: its name. An owner in front of a name stays, as clients know it so. */
const lastStep = (name: string): string =>
  name.toLowerCase().endsWith(".gguf")
    ? name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1, -5)
    : name;

function imagesOf(listed: readonly OfferedReport[]): boolean | null {
  if (listed.some(({ cannot }) => cannot.includes("images"))) return false;
  return listed.some(({ can }) => can.includes("images")) ? true : null;
}

/** As the text of a configuration. `planIds`: of the plans that there are. */
export function suggestionText({ models, unnameable }: Suggestion, { models: own }: Named, planIds: readonly string[]) {
  const head = [
    "# What the nodes list, as models of your own. Put it into the configuration and have it read: tollgate reload.",
    "# What stands behind # is what holds without it, or an example.",
    ...(own.length > 0 ? [] : ["# With [[models]] only these are served, and no longer those of the catalog."]),
    ...unnameable.map((name) => `# No row can have the name ${tomlText(name)}: it has spaces or is too long.`),
  ];
  return [head.join("\n"), ...models.map((model) => rowText(model, planIds))].join("\n\n");
}

function rowText(model: SuggestedModel, planIds: readonly string[]): string {
  const { id, node_model: nodeModel, aliases, kind, price, context, images, nodes } = model;
  const from = nodes.length === 0 ? "no node lists it now" : nodes.map(shownText).join(", ");
  const rows: readonly (readonly [key: string, value: string, isSaid: boolean, about: string])[] = [
    ["id", tomlText(id), true, `the name that requests use; on: ${from}`],
    ["node_model", tomlText(nodeModel), nodeModel !== id, "the name that nodes know it by"],
    isVoice(kind)
      ? [kind === "speech" ? "price_per_1k_characters" : "price_per_minute", "0", false, "in dollars"]
      : [
          "price",
          priceText(price),
          price !== null,
          "dollars per million tokens, or { input = 0.5, cached = 0.05, output = 2 }",
        ],
    ["aliases", listText(aliases), aliases.length > 0, "other names for it, such as one that an agent insists on"],
    ["kind", tomlText(kind), kind !== "chat", modelKinds.join(", ")],
    [
      "context",
      String(context ?? 32_768),
      false,
      context === null ? "in tokens; no node reports it" : "in tokens, as reported",
    ],
    [
      "images",
      String(images ?? true),
      false,
      images === null ? "whether it reads images; no node reports it" : "as reported",
    ],
    ["structured_output", '"json_schema"', false, "or json_object, or none"],
    ["reasoning", "true", false, "whether requests set how deeply it thinks"],
    ["default_output_tokens", "4096", false, "of requests that name none; left out: as long as it writes"],
    ["plans", listText(planIds), false, "that may use it"],
    ["hidden", "false", false, "whether lists of models leave it out"],
  ];
  const lines = rows.map(([key, value, isSaid, about]) => [`${isSaid ? "" : "# "}${key} = ${value}`, about] as const);
  const width = Math.min(44, Math.max(...lines.map(([line]) => line.length)));
  return ["[[models]]", ...lines.map(([line, about]) => `${line.padEnd(width)}  # ${about}`)].join("\n");
}

const priceText = (price: PriceInDollars | null): string => {
  if (price === null) return "0";
  const { input, cached, output } = price;
  if (input === cached && cached === output) return String(input);
  return `{ input = ${input}, cached = ${cached}, output = ${output} }`;
};

const listText = (names: readonly string[]): string => `[${names.map(tomlText).join(", ")}]`;

const shownText = (name: string): string => (/^[\w.:-]+$/.test(name) ? name : tomlText(name));
