// The running server and its nodes as verbs see them.
import type { Config } from "../../config/config.ts";
import type { Catalog } from "../../core/catalog.ts";
import type { NodePool } from "../../nodes/queue/pool.ts";
import type { Fleet } from "../../office/work.ts";
import { modelReport, seenNode } from "./model-report.ts";
import type { NodeCare } from "./node-care.ts";
import { healthOf } from "./node-lines.ts";
import type { Reloader } from "../reload.ts";
import type { ServedModels } from "./served-models.ts";

type Parts = Readonly<{
  pool: NodePool;
  catalog: Pick<Catalog, "models">;
  served: Pick<ServedModels, "areOwn">;
  reloader: Pick<Reloader, "applyAndLog">;
  nodeCare: Pick<NodeCare, "drain" | "resume">;
  config: Pick<Config, "databaseUrl" | "gateway">;
  editing: Fleet["config"];
  testWebhook: Fleet["testWebhook"];
  batches: Fleet["batches"];
  unready(): string | null;
}>;

export function fleetOf(parts: Parts): Fleet {
  const { pool, catalog, served, reloader, nodeCare, config, editing, testWebhook, batches, unready } = parts;
  // Several gateways each see and drain the nodes by themselves.
  const byGateway = config.databaseUrl === null ? {} : { gateway: config.gateway };
  return {
    config: editing,
    async nodes() {
      const { nodeLines } = await import("../../nodes/queue/line-view.ts");
      const { lineAccountsShownMax, nodeReports } = await import("./node-report.ts");
      const lines = nodeLines(pool.seen(), lineAccountsShownMax);
      return nodeReports(pool.states(), lines, catalog).map((report) => ({ ...report, ...byGateway }));
    },
    models: () => modelReport(catalog, served.areOwn, pool.states().map(seenNode)),
    async gateways() {
      const { gatewayReports } = await import("./gateway-reports.ts");
      return gatewayReports(config.databaseUrl);
    },
    drain: (name) => ({ ...nodeCare.drain(name), ...byGateway }),
    resume: (name) => ({ ...nodeCare.resume(name), ...byGateway }),
    reload: () => reloader.applyAndLog(),
    health: () => healthOf(unready(), pool),
    testWebhook,
    batches,
  };
}
