// Describes nodes in lines for people: what `serve` prints about each after the first look, and why none can serve.
import type { Catalog } from "../../core/catalog.ts";
import { abilitiesOf, leastContext, modelsOn, type ServedModel } from "../../nodes/abilities.ts";
import type { EngineLoad } from "../../nodes/engine-load.ts";
import type { Model } from "../../core/types.ts";
import { engineInWords, noneServed } from "../../nodes/engine.ts";
import type { NodeOutlook } from "../../nodes/queue/line-view.ts";
import type { NodePool, NodeState } from "../../nodes/queue/pool.ts";
import type { NodeHealth } from "../../nodes/queue/slot-queue.ts";

/** Accounts of a node's line that operators see by name: those with the most requests in it. */
export const lineAccountsShownMax = 5;

/** What a running server answers: why requests should go elsewhere, or null, and what is wrong with all its nodes. */
export type Health = Readonly<{ unready: string | null; nodes: string | null }>;

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

/** What is wrong with it; also where it is well, but no request can go there. `served`: the models that it serves. */
const wrongWith = ({ health, problem, engine }: NodeState, served: readonly Model[]): string | null =>
  problem ?? (health === "well" ? noneServed(engine, served) : null);

/** One line for the operator, with the node's address. */
export function nodeLine(state: NodeState, served: readonly Model[]): string {
  const { name, url, health, engine } = state;
  const problem = wrongWith(state, served);
  const node = `Node ${name} at ${url}`;
  if (problem === null) return `${node}: ${engineInWords(engine)}.`;
  if (health === "well") return `${node}: ${problem}`;
  return `${node} is ${health}: ${problem}. It is looked at again every few seconds.`;
}

/** Null where a node can serve. Neither names nor addresses: it is public. */
export function noNodeServes(nodes: readonly Pick<NodeState, "health" | "drainedAt">[]): string | null {
  if (nodes.length === 0) return "no node is configured";
  const why = nodes.map(({ health, drainedAt }) => (drainedAt === null ? health : "drained"));
  if (why.some((each) => each === "well" || each === "cooling")) return null;
  const [most, ...others] = (["down", "drained", "starting"] as const).filter((each) => why.includes(each));
  const counted = others.map((other) => `, or (${why.filter((each) => each === other).length}) ${other}`);
  return `no node can serve: ${nodes.length === 1 ? "the only one is" : `all ${nodes.length} are`} ${most}${counted.join("")}`;
}

/** For the operator alone: with the names of nodes and what is wrong with each. */
export function healthOf(unready: string | null, pool: Pick<NodePool, "states">): Health {
  const states = pool.states();
  const reason = noNodeServes(states);
  const each = states.map(({ name, problem, drainedAt }) => {
    return `${name}: ${problem ?? (drainedAt === null ? "not there" : "drained by an operator")}`;
  });
  return { unready, nodes: reason === null ? null : [reason, ...each].join("; ") };
}

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
