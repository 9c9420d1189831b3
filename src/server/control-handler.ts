// What the commands ask of a running server through the socket in its data folder.
import { version } from "../../package.json" with { type: "json" };
import { byCommandOf } from "../account/audit.ts";
import type { Catalog } from "../core/catalog.ts";
import { CommandError } from "../core/expected-error.ts";
import type { Soon } from "../core/soon.ts";
import type { NodePool } from "../nodes/queue/pool.ts";
import type { Handler } from "./control-socket.ts";
import type { DrainReport, NodeCare } from "./fleet/node-care.ts";
import { healthOf, lineAccountsShownMax, nodeReports } from "./fleet/node-lines.ts";
import { modelReport, seenNode } from "./fleet/model-report.ts";
import { isOperationName, type OperationArguments, type OperationName, runOperation, type Work } from "./operations.ts";
import type { Reloader, ReloadOutcome } from "./reload.ts";
import type { ServedModels } from "./fleet/served-models.ts";

/** What `check` and `doctor` must know to see what a running server sees, and its configuration does not say. */
export type StartedWith = Readonly<{
  /** The configuration's file; null without one. */
  config: string | null;
  /** Of `--node`. */
  nodes: readonly string[];
  /** Its name among several gateways, whose sight of the nodes and drains are their own; null: there is one. */
  gateway: string | null;
}>;

export type ControlParts = Readonly<{
  work: Work;
  pool: NodePool;
  catalog: Pick<Catalog, "models">;
  served: Pick<ServedModels, "areOwn">;
  reloader: Pick<Reloader, "apply">;
  /** Records in the audit log who reloaded the configuration, and the result. */
  noteReload(by: string, outcome: ReloadOutcome): Promise<void>;
  nodeCare: Pick<NodeCare, "drain" | "resume">;
  /** Records in the audit log who drained a node, or resumed it. */
  noteNode(by: string, report: DrainReport): Promise<void>;
  /** Tells a webhook that it is tried: null, or what went wrong. */
  testWebhook(name: string): Promise<string | null>;
  /** Why requests should go elsewhere, with all that only the operator may know; null where all is well. */
  unready(): string | null;
  /** What an operator should know of how browsers come here. */
  notices(): Soon<readonly string[]>;
  started: StartedWith;
}>;

export function controlHandler(parts: ControlParts): Handler {
  const { work, pool, catalog, served, reloader, noteReload, nodeCare, noteNode, unready, notices, started } = parts;
  const { testWebhook } = parts;
  const byGateway = started.gateway === null ? {} : { gateway: started.gateway };
  return async (operation, given, progress, user) => {
    if (operation === "reload") {
      const applying = reloader.apply();
      const outcome = await applying.catch((error: Error): ReloadOutcome => ({ refused: error.message }));
      await noteReload(byCommandOf(user), outcome);
      return applying; // or what is wrong with the configuration
    }
    if (operation === "health") return healthOf(unready(), pool);
    if (operation === "started with") return started;
    if (operation === "nodes") {
      return nodeReports(pool.states(), pool.lines(lineAccountsShownMax), catalog).map((report) => ({
        ...report,
        ...byGateway,
      }));
    }
    if (operation === "nodes drain" || operation === "nodes resume") {
      const { name } = given as { name: string };
      const report = operation === "nodes drain" ? nodeCare.drain(name) : nodeCare.resume(name);
      await noteNode(byCommandOf(user), report);
      return { ...report, ...byGateway };
    }
    if (operation === "webhooks test") return testWebhook((given as { name: string }).name);
    if (operation === "models") return modelReport(catalog, served.areOwn, pool.states().map(seenNode));
    if (operation === "notices") return notices();
    if (isOperationName(operation)) {
      return runOperation(operation, { ...work, user }, given as OperationArguments<OperationName>, progress);
    }
    throw new CommandError(`the running server (version ${version}) does not know "${operation}"; restart it`);
  };
}
