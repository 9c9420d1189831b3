// The models that `models`, `models suggest` and `doctor` report: from the running server, or by asking the nodes.
import { loadConfig, type Config, dataFolderOf, type Environment } from "../config/config.ts";
import { catalogOf, configuredCatalog } from "../config/configured-catalog.ts";
import { shopBudgetOf } from "../config/models.ts";
import { modelsByName } from "../core/catalog.ts";
import { systemClock } from "../core/clock.ts";
import { discoverLocalEngine, unknownEngine } from "../nodes/engine.ts";
import { lookOnce } from "../nodes/inspect.ts";
import { askRunningServer } from "../server/control-socket.ts";
import { type ModelReport, modelReport, type SeenNode } from "../server/fleet/model-report.ts";
import { servedModels } from "../server/fleet/served-models.ts";
import { type Flags, textFlag } from "./command.ts";
import { asRunningServer } from "./started-with.ts";

export type SeenModels = Readonly<{
  report: ModelReport;
  /** The current file. */
  config: Config;
  isOfServer: boolean;
  /** Nodes that are down, or that run only with the server. */
  unseen: readonly string[];
}>;

export async function seenModels(flags: Flags, environment: Environment): Promise<SeenModels> {
  const seen = await asRunningServer(flags, environment);
  const config = await loadConfig(seen.flags, environment);
  const folder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
  // --node or --config ask about those, and not about the running server.
  const isOther = flags["node"] !== undefined || flags["config"] !== undefined || seen.unasked !== null;
  const answered = isOther ? null : await askRunningServer(folder, "models", {}, () => {});
  if (answered !== null) return { report: answered.result as ModelReport, config, isOfServer: true, unseen: [] };
  const named = config.nodes.length > 0 ? config.nodes : [await discoverLocalEngine()].filter((node) => node !== null);
  const nodes = await Promise.all(
    named.map(async (node): Promise<SeenNode> => {
      const look = await lookOnce(node, systemClock);
      return { name: node.name, models: node.models, engine: look?.engine ?? null, isWell: look?.health === "well" };
    }),
  );
  return {
    report: reportOf(config, configuredCatalog(config, await catalogOf(config)), nodes),
    config,
    isOfServer: false,
    unseen: nodes.filter(({ isWell }) => !isWell).map(({ name }) => name),
  };
}

export function reportOf(
  config: Config,
  catalog: ReturnType<typeof configuredCatalog>,
  nodes: readonly SeenNode[],
): ModelReport {
  const { models: own, outputTokensDefault, signUp, listNodeModels } = config;
  const models = servedModels({
    catalog,
    own,
    nodes: nodes.map(({ models, engine }) => ({ models, engine: engine ?? unknownEngine })),
    outputTokens: shopBudgetOf(outputTokensDefault),
    servesListed: !signUp,
    showsListed: listNodeModels,
  });
  return modelReport({ models: modelsByName(models) }, own.length > 0, nodes);
}
