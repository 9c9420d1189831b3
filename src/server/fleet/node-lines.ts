// Describes nodes in lines for people: what `serve` prints about each after the first look, and why none can serve.
import type { Model } from "../../core/types.ts";
import { engineInWords, noneServed } from "../../nodes/engine.ts";
import type { NodePool, NodeState } from "../../nodes/queue/pool.ts";

/** What a running server answers: why requests should go elsewhere, or null, and what is wrong with all its nodes. */
export type Health = Readonly<{ unready: string | null; nodes: string | null }>;

/** What is wrong with it; also where it is well, but no request can go there. `served`: the models that it serves. */
export const wrongWith = ({ health, problem, engine }: NodeState, served: readonly Model[]): string | null =>
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
