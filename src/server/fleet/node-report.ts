// What operators are told of each node.
import type { Catalog } from "../../core/catalog.ts";
import { abilitiesOf, leastContext, modelsOn, type ServedModel } from "../../nodes/abilities.ts";
import type { EngineLoad } from "../../nodes/engine-load.ts";
import type { NodeOutlook } from "../../nodes/queue/line-view.ts";
import type { NodeState } from "../../nodes/queue/pool.ts";
import type { NodeHealth } from "../../nodes/queue/slot-queue.ts";
import { wrongWith } from "./node-lines.ts";

/** Accounts of a node's line that operators see by name: those with the most requests in it. */
export const lineAccountsShownMax = 5;

export type NodeReport = Readonly<{
  name: string;
  url: string;
  health: NodeHealth;
  /** Since when, as an ISO time; null while no server runs. */
  since: string | null;
  /** What is wrong with it, in words; null where nothing is known to be. */
  problem: string | null;
  last_error: Readonly<{ at: string; message: string }> | null;
  /** Since when an operator wants it to get nothing new, as an ISO time; null if none does, or no server runs. */
  drained_since: string | null;
  /** Requests it runs now; null while no server runs. */
  busy: number | null;
  /** Requests in line for it, for how many accounts, and since when the one that waited longest does. */
  waiting: number | null;
  waiting_by_priority: NodeOutlook["byPriority"] | null;
  waiting_accounts: number | null;
  waiting_since: string | null;
  /** Expected by an account with nothing in line, for a short prompt; null where it takes none now, or no server runs. */
  expected_first_token_ms: number | null;
  /** Null where they follow what its engine has to do, and no server runs. */
  slots: number | null;
  slots_auto: boolean;
  /** Where they do: what the engine said last of it; null where that is not known. */
  load: Readonly<{ running: number; waiting: number; cache_use: number | null }> | null;
  engine: string | null;
  version: string | null;
  /** In tokens, where the engine names it: the least of the models that it is asked for. */
  context: number | null;
  /** What the engine says of the models that it is asked for. */
  abilities: readonly ServedModel[];
  /** What of the catalog's promises that does not keep, in words. */
  below: readonly string[];
  /** Public model id -> the name the node knows it by. */
  models: Readonly<Record<string, string>>;
  /** Of several gateways the one whose sight it is. */
  gateway?: string;
}>;

export const loadReport = (load: EngineLoad | null): NodeReport["load"] =>
  load === null ? null : { running: load.running, waiting: load.waiting, cache_use: load.cacheUse };

const timeOrNull = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

/** What a running server tells of its nodes, in their order. */
export function nodeReports(
  states: readonly NodeState[],
  lines: ReadonlyMap<string, NodeOutlook>,
  catalog: Pick<Catalog, "models">,
) {
  const servedBy = modelsOn(states, catalog.models);
  return states.map((node) => {
    const { name, url, health, since, lastError, busy, slots, isAuto, load, engine, models } = node;
    const served = servedBy(node);
    const abilities = abilitiesOf(engine, node, served);
    const { waiting, byPriority, accounts, since: waitingSince, firstTokenMs } = lines.get(name)!;
    return {
      name,
      url,
      health,
      since: new Date(since).toISOString(),
      problem: wrongWith(node, served),
      last_error: lastError === null ? null : { at: new Date(lastError.at).toISOString(), message: lastError.message },
      drained_since: timeOrNull(node.drainedAt),
      busy,
      waiting,
      waiting_by_priority: byPriority,
      waiting_accounts: accounts,
      waiting_since: timeOrNull(waitingSince),
      expected_first_token_ms: firstTokenMs === null ? null : Math.round(firstTokenMs),
      slots,
      slots_auto: isAuto,
      load: loadReport(load),
      engine: engine.kind,
      version: engine.version,
      context: leastContext(abilities),
      abilities: abilities.models,
      below: abilities.below,
      models,
    } satisfies NodeReport;
  });
}
