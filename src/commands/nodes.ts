// tollgate nodes: the state of the inference nodes, from the running server or by asking them.
import { systemClock } from "../core/clock.ts";
import { priorities } from "../core/priority.ts";
import { loadConfig } from "../config/config.ts";
import { checkedCatalogOf } from "../config/configured-catalog.ts";
import { abilitiesInWords } from "../nodes/abilities.ts";
import { loadInWords } from "../nodes/engine-load.ts";
import { inspectNodes } from "../nodes/inspect.ts";
import type { Invocation } from "./command.ts";
import { type Cell, formatTable } from "../office/table.ts";
import { loadReport, type NodeReport } from "../server/fleet/node-report.ts";
import { askedServer, configFlags } from "./perform.ts";

export default async function listNodes(invocation: Invocation): Promise<number> {
  const answered = await askedServer(invocation, "nodes");
  const nodes = answered === null ? await inspectedNodes(invocation) : (answered.result as readonly NodeReport[]);
  if (invocation.flags["json"] === true) console.log(JSON.stringify(nodes));
  else if (nodes.length === 0) console.log("No server runs on this data folder, and the configuration names no nodes.");
  else for (const line of linesOf(nodes)) console.log(line);
  return 0;
}

/** Asked by this command, because no server runs. */
async function inspectedNodes({ flags, environment }: Invocation): Promise<readonly NodeReport[]> {
  const node = flags["node"] as readonly string[] | undefined;
  const config = await loadConfig({ ...configFlags(flags), node }, environment);
  const inspections = await inspectNodes(config.nodes, (await checkedCatalogOf(config)).models, systemClock);
  return inspections.map((inspected, at): NodeReport => {
    const { name, url, slots, load, well, engine, version, context, abilities, problem, warning } = inspected;
    const { models, managed } = config.nodes[at]!;
    // A program of ours runs with the server alone.
    const health = managed !== undefined || !well ? "down" : "well";
    const unline = { waiting: null, waiting_by_priority: null, waiting_accounts: null, waiting_since: null };
    const unknown = {
      since: null,
      last_error: null,
      drained_since: null,
      busy: null,
      expected_first_token_ms: null,
      ...unline,
    };
    const told = { engine, version, context, abilities: abilities.models, below: abilities.below };
    const room = { slots, slots_auto: slots === null, load: loadReport(load) };
    return { name, url, health, problem: problem ?? warning, ...room, ...told, models, ...unknown };
  });
}

function* linesOf(nodes: readonly NodeReport[]): Iterable<string> {
  yield formatTable(headings, nodes.map(cellsOf));
  const [{ gateway } = {}] = nodes;
  if (gateway !== undefined) {
    yield `This is how the gateway ${gateway} sees them. Others see them, and drain them, by themselves.`;
  }
  for (const { name, problem, last_error: error, abilities, below, load } of nodes) {
    if (load !== null) yield `${name}: its engine ${loadInWords({ ...load, cacheUse: load.cache_use })}`;
    for (const model of abilities) {
      const words = abilitiesInWords(model);
      if (words !== "") yield `${name}: ${model.name}: ${words}`;
    }
    for (const line of below) yield `${name}: ${line}`;
    if (problem !== null) yield `${name}: ${problem}`;
    if (error !== null && error.message !== problem) {
      yield `${name}: last error ${secondOf(error.at)}: ${error.message}`;
    }
  }
}

const headings = [
  "node",
  "address",
  "health",
  "since (UTC)",
  "busy",
  "waiting",
  "first token",
  "slots",
  "engine",
  "context",
  "models",
];

function cellsOf(node: NodeReport): Cell[] {
  const { name, url, health, since, problem, busy, slots, engine, version, context, models } = node;
  const { expected_first_token_ms: expected } = node;
  return [
    name,
    url,
    (problem !== null && health === "well" ? "unclear" : health) + (node.drained_since === null ? "" : ", drained"),
    since === null ? null : secondOf(since),
    busy,
    inClasses(node),
    expected === null ? null : `${(expected / 1_000).toFixed(1)} s`,
    node.slots_auto ? `auto${slots === null ? "" : ` (${slots})`}` : slots,
    engine === null || version === null ? engine : `${engine} ${version}`,
    context,
    Object.entries(models)
      .map(([id, known]) => (id === known ? id : `${id} = ${known}`))
      .join(", "),
  ];
}

/** `3`, or `3: 1 interactive, 2 bulk` where not all of them are standard. */
function inClasses({ waiting, waiting_by_priority: classes }: NodeReport): Cell {
  if (classes === null || classes.standard === waiting) return waiting;
  const each = priorities.filter((priority) => classes[priority] > 0);
  return `${waiting}: ${each.map((priority) => `${classes[priority]} ${priority}`).join(", ")}`;
}

/** Without its zone, which is UTC. */
const secondOf = (time: string): string => time.slice(0, 19).replace("T", " ");
