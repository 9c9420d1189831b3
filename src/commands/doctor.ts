// tollgate doctor: checks everything that a server depends on, beside a running one or before the first start:
// configuration, identity provider, nodes, the data folder and its disk, the database, open files and the clock. Where the
// ledger is in PostgreSQL, that and the gateways on it stand in the place of the folder.
import { checkedCatalogOf } from "../config/configured-catalog.ts";
import { readFileSync, statSync } from "node:fs";
import { systemClock } from "../core/clock.ts";
import { type Config, dataFolderOf, type Environment, loadConfig } from "../config/config.ts";
import { isReported, modelInWords, type ServedModel } from "../nodes/abilities.ts";
import { type EngineLoad, loadInWords } from "../nodes/engine-load.ts";
import { type Inspection, inspectNodes } from "../nodes/inspect.ts";
import type { Catalog } from "../core/catalog.ts";
import { type Plans, unconfiguredPlans, unknownModels } from "../core/plans.ts";
import type { Model } from "../core/types.ts";
import { type Flags, type Invocation, textFlag } from "./command.ts";
import { askRunningServer } from "../server/control-socket.ts";
import { configFindings } from "./doctor-config.ts";
import { type FilesPlace, lookAtDatabase } from "./doctor-database.ts";
import { type CachingNode, saltFindings, sharedFindings } from "./doctor-prefix-cache.ts";
import { type FolderLook, folderFindings, nothingKnown } from "./doctor-folder.ts";
import { clockFinding, fileLimitFinding } from "./doctor-machine.ts";
import { filesFolderOf } from "../books/open-files.ts";
import { isExpected } from "../core/expected-error.ts";
import { providerFindings } from "./provider-findings.ts";
import { databaseUrlOf } from "./perform.ts";
import { type Finding, findingLine, ok, problem, warning } from "./finding.ts";
import type { Health } from "../server/fleet/node-lines.ts";
import { type SeenModels, seenModels } from "./models-report.ts";
import { missingAmong } from "../server/fleet/missing-models.ts";
import { asRunningServer } from "./started-with.ts";
import { webhookFindings } from "./webhook-findings.ts";

export default async function doctor(invocation: Invocation): Promise<number> {
  const { flags, environment } = invocation;
  const isJson = flags["json"] === true;
  const findings: Finding[] = [];
  const tell = (found: readonly Finding[]): void => {
    findings.push(...found);
    if (!isJson) for (const finding of found) console.log(findingLine(finding));
  };
  const dataFolder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
  const server = await serverFindings(dataFolder);
  const configured = await configurationFindings(flags, environment);
  tell(configured.findings);
  tell(server.findings);
  const books =
    (await databaseLook(invocation, configured.files)) ??
    (await folderFindings(dataFolder, (line) => console.error(line)));
  tell(books.findings);
  tell(saltFindings(configured.caching, books.recentInput));
  // A running server knows it from its plans.
  if (!server.runs && configured.plans !== null) {
    tell(unconfiguredPlans(configured.plans, books.byPlan).map((line) => warning("plans", line)));
  }
  tell([fileLimitFinding(), clockFinding(dataFolder, books.newestLineAt, systemClock.wall())]);
  const isWell = findings.every(({ level }) => level !== "problem");
  if (isJson) console.log(JSON.stringify({ ok: isWell, findings }));
  return isWell ? 0 : 1;
}

/** Of the PostgreSQL ledger; null if the data folder has it, or the configuration is wrong, which is reported already. */
async function databaseLook(invocation: Invocation, files: FilesPlace | null): Promise<FolderLook | null> {
  let url: string | null;
  try {
    url = await databaseUrlOf(invocation);
  } catch (error) {
    if (!isExpected(error)) throw error;
    return { findings: [], ...nothingKnown };
  }
  if (url === null) return null;
  try {
    return await lookAtDatabase(url, files);
  } catch (error) {
    if (!isExpected(error)) throw error;
    return { findings: [problem("database", (error as Error).message)], ...nothingKnown };
  }
}

/** The configuration and its nodes; the rest is checked even if they are wrong. */
async function configurationFindings(
  flags: Flags,
  environment: Environment,
): Promise<
  Readonly<{
    findings: readonly Finding[];
    plans: Plans | null;
    caching: readonly CachingNode[];
    files: FilesPlace | null;
  }>
> {
  let config: Config;
  let catalog: Catalog;
  let isOfServer: boolean;
  try {
    const seen = await asRunningServer(flags, environment);
    isOfServer = seen.isNodesOfServer;
    config = await loadConfig(seen.flags, environment);
    catalog = await checkedCatalogOf(config);
  } catch (error) {
    if (!isExpected(error)) throw error;
    return {
      findings: (error as Error).message.split("\n").map((line) => problem("configuration", line)),
      plans: null,
      caching: [],
      files: null,
    };
  }
  const { file, nodes } = config;
  const text = file === null ? "" : readFileSync(file, "utf8");
  const mode = file === null ? 0 : statSync(file).mode;
  const { models } = catalog;
  const inspections = await inspectNodes(nodes, models, systemClock);
  const caching = nodes.flatMap(({ name, sharePrefixCache: own = config.sharePrefixCache ?? undefined }, at) => {
    const { engine } = inspections[at]!;
    return engine === null ? [] : [{ name, engine, sharing: own }];
  });
  const findings = [
    ...configFindings(config, text, mode),
    ...(await providerFindings(config)),
    ...(await webhookFindings(config)),
    ...(config.mail === null ? [] : await (await import("./mail-findings.ts")).mailFindings(config)),
    ...nodes.flatMap((node, at) => nodeFindings(node, inspections[at]!, models, isOfServer)),
    ...caching.flatMap(sharedFindings),
    ...modelFindings(await seenModels(flags, environment), missingAmong(inspections, catalog)),
  ];
  const files = config.files === null ? null : { folder: filesFolderOf(config), isOwn: config.files.folder === null };
  return { findings, plans: catalog.plans, caching, files };
}

function nodeFindings(
  node: Config["nodes"][number],
  inspection: Inspection,
  models: Catalog["models"],
  isOfServer: boolean,
): readonly Finding[] {
  if (node.managed !== undefined) return []; // serve itself starts it
  const { name, engine, version, abilities, slots, load, serves, problem: wrong, warning: odd } = inspection;
  const what = `node ${name}`;
  const served = serves.map((id) => models.get(id)!);
  if (wrong !== null) return [problem(what, wrong)];
  const is = `${engine ?? "an engine that does not say which it is"}${version === null ? "" : ` ${version}`}`;
  const by = isOfServer ? ", by --node of the running server" : "";
  return [
    ok(what, `${is}, ${slots === null ? "slots by its load" : `${slots} slot${slots === 1 ? "" : "s"}`}${by}`),
    ...(odd === null ? [] : [warning(what, odd)]),
    ...(slots === null ? [loadFinding(what, load)] : []),
    ...abilities.models.filter(isReported).map((model) => ok(what, `${model.name}: ${modelInWords(model)}`)),
    ...abilities.below.map((line) => warning(what, line)),
    ...(engine === "ollama" ? abilities.models.flatMap((model) => ollamaFinding(what, model, served)) : []),
  ];
}

const missingShownMax = 20;

/** Configured models that no node has; nodes that are down, or that only the server starts, are reported elsewhere. */
function modelFindings(seen: SeenModels, missing: ReturnType<typeof missingAmong>): readonly Finding[] {
  return [...missingModels(seen, missing), ...unknownModelsOfPlans(seen)];
}

/** With [[models]] a wrong name is refused; without them a node may list it later. */
function unknownModelsOfPlans({ report: { served }, config: { plans } }: SeenModels): readonly Finding[] {
  const names = new Set(served.flatMap(({ id, aliases }) => [id, ...aliases]));
  return unknownModels(plans, names).map(({ plan, problem }) => warning(`plan ${plan}`, problem));
}

function missingModels(
  { report: { served }, config, isOfServer }: SeenModels,
  inspected: ReturnType<typeof missingAmong>,
): readonly Finding[] {
  // Its own nodes, such as the demo node, do not run without a server.
  if (!isOfServer && config.nodes.length === 0) return [];
  const isWhole = config.models.length > 0 || config.catalogFile !== null;
  const missing = isOfServer ? served.filter((model) => isWhole && model.missing !== null) : inspected;
  // A shop's own models must be served; of a catalog's, some may have no node.
  const level = config.models.length > 0 || !isOfServer ? problem : warning;
  const findings = missing.slice(0, missingShownMax).map(({ id, missing }) => level(`model ${id}`, missing!));
  if (missing.length <= missingShownMax) return findings;
  return [
    ...findings,
    level("models", `${missing.length - missingShownMax} more are served by no node: tollgate models`),
  ];
}

function loadFinding(what: string, load: EngineLoad | null): Finding {
  if (load !== null) return ok(what, `its engine ${loadInWords(load)}`);
  const how =
    "start llama-server with --metrics, SGLang with --enable-metrics; other engines than these and vLLM need a number";
  return warning(what, `slots = "auto", but its engine reports no load at /metrics: ${how}`);
}

/** Its default context is small, and it truncates longer prompts silently. */
function ollamaFinding(what: string, { name, contextTokens }: ServedModel, served: readonly Model[]): Finding[] {
  if (contextTokens !== null && served.every((model) => model.contextTokens <= contextTokens)) return [];
  const now = contextTokens === null ? "is decided when it is loaded" : `is ${contextTokens} tokens`;
  const how = "set OLLAMA_CONTEXT_LENGTH=32768 for ollama serve, or PARAMETER num_ctx 32768 in the model's Modelfile";
  return [warning(what, `the context of ${name} ${now}: longer prompts are refused; to raise it, ${how}`)];
}

async function serverFindings(dataFolder: string): Promise<Readonly<{ findings: readonly Finding[]; runs: boolean }>> {
  const what = "server";
  try {
    const health = await askRunningServer(dataFolder, "state", {}, () => {});
    if (health === null) return { findings: [ok(what, "none runs on the data folder")], runs: false };
    const { unready } = health.result as Health;
    const notices = (await askRunningServer(dataFolder, "notices", {}, () => {}))?.result as
      readonly string[] | undefined;
    const findings = [
      unready === null ? ok(what, "runs on the data folder and answers") : problem(what, unready),
      ...(notices ?? []).map((notice) => warning(what, notice)),
    ];
    return { findings, runs: true };
  } catch (error) {
    if (!isExpected(error)) throw error;
    return { findings: [problem(what, (error as Error).message)], runs: true };
  }
}
