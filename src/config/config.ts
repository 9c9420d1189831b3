// The configuration file, environment and flags as one checked value. Flags win over the environment, the environment
// over the file, the file over the defaults. Every error names where the value came from and what was expected.
import { dirname } from "node:path";
import { type TSchema, Type } from "@sinclair/typebox";
import { type Catalog, modelsByName } from "../core/catalog.ts";
import { planIds } from "../core/plan-ids.ts";
import { nearest } from "../core/nearest.ts";
import { misfitsOf, type SchemaError } from "../core/schema-errors.ts";
import { namesThisMachine } from "../core/this-machine.ts";
import { ConfigError, type Environment, Faults, type ConfigReading } from "./faults.ts";
import {
  basedModels,
  modelOf,
  nothingTold,
  type OwnModel,
  sharedNames,
  shopBudgetOf,
  type ToldOfModel,
} from "./models.ts";
import type { NodeConfig } from "./nodes.ts";
import type { AnyOption, ConfigFlags, FileTables } from "./option.ts";
import { type FixedOptions, type LiveOptions, type OptionName, options, type OptionValues } from "./options.ts";
import { type Keys, schemaOf } from "./rows.ts";

const plansMax = 100;

export { ConfigError, type Environment } from "./faults.ts";
export type { McpConfig } from "./mcp.ts";
export type { ManagedNodeConfig, NodeConfig, SharePrefixCache } from "./nodes.ts";
export type { ConfigFlags } from "./option.ts";
export type { BackupSchedule } from "./running.ts";
export type { FixedOptions, LiveOptions, OptionName } from "./options.ts";
export type { FolderSearchConfig, SearchConfig, WebSearchConfig } from "./search.ts";

/** All options, as they were set. */
export type Config = OptionValues &
  Readonly<{
    /** The file it was read from; null when no file was named. */
    file: string | null;
    /** Not one byte was in it, or there is none. */
    isBlank: boolean;
    /** Secrets among them, wherever they stand. */
    keys: readonly string[];
  }>;

export const optionEntries = Object.entries(options) as readonly (readonly [OptionName, AnyOption])[];

// ---------------------------------------------------------------- the file

/** A table of the file and its keys, in the order of the table of options. */
export type FileTableOfKeys = Readonly<{
  name: string;
  isList: boolean;
  rowKey: string | null;
  keys: Keys;
  options: readonly AnyOption[];
}>;

export const fileTables: readonly FileTableOfKeys[] = [
  ...Map.groupBy(Object.values<AnyOption>(options), ({ table }) => table),
].flatMap(([name, ofTable]) =>
  name === null
    ? []
    : {
        name,
        isList: ofTable.some(({ isList }) => isList),
        rowKey: ofTable[0]!.rowKey,
        keys: Object.assign({}, ...ofTable.map(({ keys }) => keys)) as Keys,
        options: ofTable,
      },
);

const schemaOfTables = (more: Readonly<Record<string, TSchema>> = {}): TSchema =>
  Type.Object(
    {
      ...Object.fromEntries(
        fileTables.map(({ name, isList, keys }) => {
          const item = schemaOf(keys, isList ? `a table [[${name}]]` : `a table [${name}]`);
          const all = isList ? Type.Array(item, { description: `one or more tables [[${name}]]` }) : item;
          return [name, Type.Optional(all)];
        }),
      ),
      ...more,
    },
    { additionalProperties: false, description: "a configuration" },
  );
const fileSchema = schemaOfTables();

/** Without rows of nodes, [nodes] is a table of what [server] says of all nodes. */
const ofAllNodes = options.sharePrefixCache.keys;
const nodesTableSchema = schemaOfTables({
  nodes: schemaOf(ofAllNodes, "one or more tables [[nodes]], or a table [nodes] for all"),
});

// ---------------------------------------------------------------- reading

/** Gives the tables of a file other values, before anything is checked. */
export type ConfigEdit = (tables: FileTables) => FileTables;

/**
 * Reads the file that the flags or the environment name and merges all sources.
 * Throws ConfigError; touches nothing but the file.
 */
export async function loadConfig(flags: ConfigFlags, environment: Environment, edit?: ConfigEdit): Promise<Config> {
  const file = flags.config ?? (environment["TOLLGATE_CONFIG"] || null);
  if (file === null) return readConfig(null, "", flags, environment, edit);
  let toml: string;
  try {
    toml = await Bun.file(file).text();
  } catch (error) {
    throw new ConfigError(`${file}: cannot be read: ${(error as Error).message}`);
  }
  return readConfig(file, toml, flags, environment, edit);
}

/** Merges the text of a configuration file, as `edit` leaves it, with flags and environment; throws ConfigError. */
export function readConfig(
  file: string | null,
  toml: string,
  flags: ConfigFlags,
  environment: Environment,
  edit: ConfigEdit = (tables) => tables,
): Config {
  const faults = new Faults(file, toml);
  const reading: ConfigReading = { faults, environment, folder: dirname(file ?? "."), keys: new Set() };
  const sources = { tables: parseTables(toml, faults, edit), flags, reading };
  const read = optionEntries.map(([name, option]) => [name, option.read(sources)] as const);
  faults.throwIfAny();
  const values = Object.fromEntries(read) as OptionValues;
  checkTogether(values, faults);
  const models = basedModels(values.models, (row, key, problem) => faults.at(["models", row, key], problem));
  faults.throwIfAny();
  const nodes = values.nodes.map((node) => ({ ...node, models: withPresets(node.models, models) }));
  return { file, isBlank: toml === "", ...values, models, nodes, keys: [...reading.keys] };
}

/** A node that names a model serves its presets, too. */
function withPresets(named: NodeConfig["models"], models: readonly OwnModel[]): NodeConfig["models"] {
  const presets = models.filter(
    ({ id, presetOf }) => presetOf !== null && Object.hasOwn(named, presetOf) && !Object.hasOwn(named, id),
  );
  if (presets.length === 0) return named;
  return { ...named, ...Object.fromEntries(presets.map(({ id, presetOf }) => [id, named[presetOf!]!])) };
}

/** What rows say of each other: plans that are there, models that are there, and no name for two models. */
function checkTogether(values: OptionValues, faults: Faults): void {
  const { models, plans, mcp, managedSettings, signUp, passwords, oidc, databaseUrl, backups } = values;
  if (databaseUrl !== null && backups !== null) {
    faults.at(["backups"], "must be absent where the ledger is in PostgreSQL: pg_dump backs it up");
  }
  const [first] = plans;
  if (signUp && first?.unlimited === true) {
    faults.at(["console", "sign_up"], `must be false: strangers would get the plan "${first.id}", which is unlimited`);
  }
  if (!passwords && oidc === null) {
    faults.at(["console", "passwords"], "must be true without [oidc]: there would be no way to sign in");
  }
  if (plans.length > plansMax) faults.at(["plans"], `must be at most ${plansMax} tables`);
  const ids: readonly string[] = plans.length === 0 ? planIds : plans.map(({ id }) => id);
  if (oidc !== null && oidc.plan !== null && !ids.includes(oidc.plan)) {
    faults.at(
      ["oidc", "plan"],
      `must be one of ${ids.map((each) => `"${each}"`).join(", ")}, is ${JSON.stringify(oidc.plan)}`,
    );
  }
  const plansOf = (
    list: "models" | "mcp" | "managed_settings",
    rows: readonly Readonly<{ plans: readonly string[] | null }>[],
  ): void => {
    for (const [row, { plans: named }] of rows.entries()) {
      for (const [index, id] of (named ?? []).entries()) {
        if (ids.includes(id)) continue;
        const expected = `must be one of ${ids.map((each) => `"${each}"`).join(", ")}, is ${JSON.stringify(id)}`;
        faults.at([list, row, "plans", index], expected);
      }
    }
  };
  plansOf("models", models);
  plansOf("mcp", mcp);
  plansOf("managed_settings", managedSettings);
  for (const { row, key, problem } of sharedNames(models)) faults.at(["models", row, ...key], problem);
  // Without models of the shop's own, names that nodes list are valid too, and they are not known yet.
  const known = new Set(models.flatMap(({ id, aliases }) => [id, ...aliases]));
  for (const [row, { id, aliases, fallback = [] }] of models.entries()) {
    for (const [index, name] of fallback.entries()) {
      if (known.has(name) && name !== id && !aliases.includes(name)) continue;
      faults.at(
        ["models", row, "fallback", index],
        `must be a name of another of [[models]], is ${JSON.stringify(name)}`,
      );
    }
  }
  for (const [row, { models: named }] of plans.entries()) {
    for (const [index, name] of (models.length === 0 ? [] : (named ?? [])).entries()) {
      if (known.has(name)) continue;
      const meant = nearest(name, known);
      const hint = meant === null ? "" : `, did you mean ${JSON.stringify(meant)}?`;
      faults.at(
        ["plans", row, "models", index],
        `must be a name of one of [[models]], is ${JSON.stringify(name)}${hint}`,
      );
    }
  }
}

function parseTables(toml: string, faults: Faults, edit: ConfigEdit): FileTables {
  let tables: unknown;
  try {
    tables = Bun.TOML.parse(toml);
  } catch (error) {
    faults.syntax((error as Error).message);
  }
  tables = edit(tables as FileTables);
  const ofNodes = (tables as FileTables)["nodes"];
  const isTable = isTableOfAllNodes(ofNodes);
  const misfits = misfitsOf(isTable ? nodesTableSchema : fileSchema, tables);
  for (const { path, problem } of misfits) faults.at(path, problem);
  // Where single keys are wrong, the others are read, too: all faults are told at once.
  if (misfits.some(({ path }) => path.length < (typeof path[1] === "number" ? 3 : 2))) faults.throwIfAny();
  const { nodes, server, ...others } = tables as FileTables;
  return isTable ? { ...others, server: { ...server, ...nodes } } : (tables as FileTables);
}

/** A table with other keys is more likely meant as a row: the error then says that it must be [[nodes]]. */
const isTableOfAllNodes = (written: unknown): boolean =>
  typeof written === "object" &&
  written !== null &&
  !Array.isArray(written) &&
  Object.keys(written).length > 0 &&
  Object.keys(written).every((key) => key in ofAllNodes);

/** The data folder: known without the file, so that the commands on accounts need no configuration. */
export function dataFolderOf(flags: Pick<ConfigFlags, "data">, environment: Environment): string {
  const reading: ConfigReading = { faults: new Faults(null, ""), environment, folder: ".", keys: new Set() };
  return options.dataFolder.read({ tables: {}, flags, reading });
}

/** Those that a reload applies, and those that stay as they were at the start. */
export function splitConfig(config: Config): Readonly<{ live: LiveOptions; fixed: FixedOptions }> {
  const { true: fixed = [], false: live = [] } = Object.groupBy(optionEntries, ([, { change }]) =>
    change.reload === null ? "true" : "false",
  );
  const of = (entries: typeof optionEntries) => Object.fromEntries(entries.map(([name]) => [name, config[name]]));
  return { live: of(live) as unknown as LiveOptions, fixed: of(fixed) as unknown as FixedOptions };
}

/**
 * What the schema of the file cannot know: each model id of [nodes.models] and [[mcp]] is an id of the catalog.
 * Throws ConfigError naming the nearest id.
 */
export function checkModelIds({ file, nodes, mcp }: Config, { models }: Catalog): void {
  const meantFor = (id: string, otherwise: string): string => {
    const meant = nearest(id, models.keys());
    return `must be a model id of the catalog, ${meant === null ? otherwise : `did you mean "${meant}"?`}`;
  };
  const places: SchemaError[] = [];
  const lines = [
    ...nodes.flatMap((node, at) =>
      Object.keys(node.models)
        .filter((id) => id !== "*" && !models.has(id))
        .map((id) => {
          const problem = meantFor(id, 'or "*" for any');
          places.push({ path: ["nodes", at, "models", id], problem });
          return `${file ?? "--node"}: node "${node.name}": models.${JSON.stringify(id)} ${problem}`;
        }),
    ),
    ...mcp.flatMap((server) =>
      (server.models ?? [])
        .filter((id) => !models.has(id))
        .map(
          (id) =>
            `${file}: mcp "${server.name}": models: ${JSON.stringify(id)} ${meantFor(id, "or leave models out for any")}`,
        ),
    ),
  ];
  if (lines.length > 0) throw new ConfigError(lines.join("\n"), false, places);
}

/** A shop's own models as their rows say; `reported` fills the gaps. At the start no node has reported anything. */
export const ownModelsOf = (
  { models, outputTokensDefault }: Pick<Config, "models" | "outputTokensDefault">,
  reported: ToldOfModel = nothingTold,
) => modelsByName(models.map((model) => modelOf(model, reported, shopBudgetOf(outputTokensDefault))));

/** {base_url} and {site_url} of a server that listens on `port`; the site is at the base unless the file says otherwise. */
export function addressesOf(config: Config, port: number): { baseUrl: string; siteUrl: string } {
  const baseUrl = config.baseUrl ?? listeningAddress(config.host, port);
  return { baseUrl, siteUrl: config.siteUrl ?? baseUrl };
}

/** Whether clients come through a proxy, as far as the configuration says it. */
export function isBehindProxy({ baseUrl, addressHeader }: Pick<Config, "baseUrl" | "addressHeader">): boolean {
  return addressHeader !== null || (baseUrl !== null && !namesThisMachine(new URL(baseUrl).hostname));
}

/** Address under which a server on `host` and `port` can be opened on its own machine. */
function listeningAddress(host: string, port: number): string {
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}
