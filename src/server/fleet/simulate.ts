// What would have become of the journal's requests under another configuration: puts a simulation's questions together and
// has a Worker answer them, so that a server that runs is not disturbed.
import type { Office } from "../../account/office.ts";
import type { Config, ConfigEdit, ConfigError } from "../../config/config.ts";
import { catalogOf, offeredPlans } from "../../config/configured-catalog.ts";
import { type LineChange, lineChangeOf, lineEdit } from "../../config/line-changes.ts";
import type { ArrivalQueries } from "../../core/arrivals.ts";
import { parallelOf } from "../../core/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import { CommandError } from "../../core/expected-error.ts";
import { nodeSlotsDefault, nodeSlotsMax } from "../../core/limits.ts";
import { planOf, type Plans } from "../../core/plans.ts";
import { priorityOf } from "../../core/priority.ts";
import type { Simulation, SimulationAsked, SimulatedRun } from "../../core/simulation.ts";
import { sinceOf } from "../../core/since.ts";
import type { Ms } from "../../core/types.ts";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import { engineTraits } from "../../nodes/engine-traits.ts";
import { servesAmong } from "../../nodes/model-routes.ts";
import { type KeptPrompts, keptPrompts } from "../../nodes/prefix-cache.ts";
import type { NodePool } from "../../nodes/queue/pool.ts";
import type { LinePlan, Setup, SimulatedNode } from "../../nodes/simulation/replay.ts";
import type { RunResult, SimulationCall, TraceFacts } from "../../nodes/simulation/simulation-worker.ts";
import { verdictOf } from "../../nodes/simulation/verdict.ts";
import type { Progress } from "../../office/work.ts";

export type SimulateParts = Readonly<{
  requestLog: ArrivalQueries;
  office: Pick<Office, "read">;
  clock: Clock;
  /** Reads the configuration anew, with changes. Throws ConfigError. */
  load(edit?: ConfigEdit): Promise<Config>;
  /** Null where no server runs: then nodes are as the configuration and the journal show them. */
  pool: Pick<NodePool, "states" | "servesOn"> | null;
}>;

const sinceUsual = "7d";
const topUsual = 10;
const nodesAddedMax = 64;

/** Rejects with CommandError for options that are wrong. */
export async function simulate(parts: SimulateParts, asked: SimulationAsked, progress: Progress): Promise<Simulation> {
  const { requestLog, clock, load } = parts;
  const from = sinceOf(asked.since ?? sinceUsual, clock.wall());
  if (from === null)
    throw new CommandError(
      `--since must be such as 90m, 24h or 7d, or a time that has passed, is ${JSON.stringify(asked.since)}`,
    );
  const more = nodesOf(asked.nodes);
  const changes = (asked.set ?? []).map(lineChangeOf);
  const config = await load();
  const catalog = await catalogOf(config);
  const plans = offeredPlans(config.plans, catalog);
  const changed = await changedBy(load, changes, plans);
  const worker = new WorkerClient<SimulationCall>({
    start: () => startWorker("nodes/simulation/simulation-worker.ts"),
    close: { order: "close" },
  });
  try {
    const facts = await readTrace(worker, requestLog, from, progress);
    if (facts.requests === 0)
      throw new CommandError(`the journal has no requests since ${new Date(from).toISOString()}`);
    const accounts = await accountsOf(parts.office, facts);
    const today: Setup = {
      nodes: nodesToday(parts, config, facts),
      maxWaitMs: config.queueMaxWaitMs,
      parallel: parallelOf(catalog),
      ...plansIn(plans, plans, accounts),
    };
    const other: Setup = {
      ...today,
      ...plansIn(changed?.plans ?? plans, plans, accounts),
      nodes: withNodes(withSlots(today.nodes, config, changed?.config ?? config, asked.slots ?? []), more, facts),
    };
    const words = [
      ...(asked.nodes === undefined ? [] : [`nodes ${asked.nodes}`]),
      ...changes.map(({ text }) => text),
      ...(asked.slots ?? []).map((slots) => `slots ${slots}`),
    ];
    const setups = new Map<SimulatedRun["configuration"], Setup>([["today", today]]);
    if (words.length > 0) setups.set("changed", other);
    // The question is always whether another node would do better.
    if (changes.length > 0 || words.length !== 1 || asked.nodes !== "+1") {
      setups.set("one more node", { ...today, nodes: withNodes(today.nodes, 1, facts) });
    }
    const shown = mostWork(facts, asked.top ?? topUsual);
    const runs: SimulatedRun[] = [];
    let calibration: Simulation["calibration"] = null;
    for (const [configuration, setup] of setups) {
      const said = stepwise((part) => progress(`${configuration}: ${Math.round(100 * part)} %`));
      const run = await worker.call<RunResult>({ order: "run", setup, shown }, { progress: said });
      if (configuration === "today") ({ calibration } = run);
      runs.push({
        configuration,
        ...run.summary,
        accounts: run.summary.accounts.map((tokens, place) => {
          const account = shown[place]!;
          const { id, weight } = setup.plans[setup.planOf[account]!]!;
          const work = facts.work[account]! / sumOf(facts.work);
          return { account: accounts[account]!.email, plan: id, weight, work, ...tokens };
        }),
      });
    }
    const found = { requests: facts.requests, accounts: accounts.length, changes: words, runs, calibration };
    const [since, until] = [new Date(from).toISOString(), new Date(facts.until).toISOString()];
    return { since, until, ...found, verdict: verdictOf(found) };
  } finally {
    await worker.close();
  }
}

async function readTrace(
  worker: WorkerClient<SimulationCall>,
  requestLog: ArrivalQueries,
  from: Ms,
  progress: Progress,
): Promise<TraceFacts> {
  let pages = 0;
  for (let after: number | string | null = null; ; pages++) {
    const page = await requestLog.arrivals(from, after);
    after = page.next;
    await worker.call({ order: "add", page, from }, { moved: [page.numbers.buffer] });
    if (after === null) break;
    if (pages % 10 === 9) progress(`read up to ${pages + 1} pages of the journal`);
  }
  return worker.call<TraceFacts>({ order: "trace" });
}

/** Calls at each tenth. */
function stepwise(said: (part: number) => void): (progress: unknown) => void {
  let next = 0.1;
  return (part) => {
    if (typeof part !== "number" || part < next) return;
    next = part + 0.1;
    said(part);
  };
}

const sumOf = (numbers: Float64Array): number =>
  Math.max(
    1,
    numbers.reduce((sum, one) => sum + one, 0),
  );

function mostWork({ work }: TraceFacts, top: number): number[] {
  const all = Array.from(work, (_, account) => account);
  return all.toSorted((one, other) => work[other]! - work[one]!).slice(0, top);
}

// ---------------------------------------------------------------- plans

type Changed = Readonly<{ config: Config; plans: Plans }>;

/** Null where nothing is to be changed in the configuration. */
async function changedBy(
  load: SimulateParts["load"],
  changes: readonly LineChange[],
  plans: Plans,
): Promise<Changed | null> {
  if (changes.length === 0) return null;
  const ids = Object.keys(plans);
  const config = await load(lineEdit(changes, ids)).catch((error: ConfigError) => {
    if (error.name !== "ConfigError") throw error;
    throw new CommandError(`--set: ${error.message}`, { cause: error });
  });
  const written = new Map(config.plans.map((plan) => [plan.id, plan]));
  const changedPlans = ids.map((id) => {
    const { weight, priority, priorityMax, parallel } = written.get(id) ?? plans[id]!;
    return [id, { ...plans[id]!, weight, priority, priorityMax, parallel }] as const;
  });
  return { config, plans: Object.fromEntries(changedPlans) as Plans };
}

function plansIn(plans: Plans, today: Plans, accounts: readonly Known[]): Pick<Setup, "plans" | "planOf"> {
  const listed = new Map<string, number>();
  const found: LinePlan[] = [];
  const placeOf = (id: string): number => {
    const known = listed.get(id);
    if (known !== undefined) return known;
    const { weight = 1, priority, priorityMax, parallel } = planOf(plans, id);
    listed.set(id, found.length);
    return found.push({ id, weight, priority, priorityMax, parallel, unasked: priorityOf(planOf(today, id)) }) - 1;
  };
  const planOfEach = accounts.map(({ plan }) => placeOf(plan));
  return { plans: found, planOf: planOfEach };
}

type Known = Readonly<{ email: string; plan: string }>;

async function accountsOf(office: Pick<Office, "read">, { accounts }: TraceFacts): Promise<readonly Known[]> {
  const all = await office.read((unit) => unit.accounts.list());
  const byId = new Map(all.map(({ id, email, plan }) => [id, { email, plan }]));
  return accounts.map((id) => byId.get(id) ?? { email: `account ${id}`, plan: "" });
}

// ---------------------------------------------------------------- nodes

function nodesOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const more = Number(text);
  if (/^[+-]\d{1,3}$/.test(text) && more !== 0 && Math.abs(more) <= nodesAddedMax) return more;
  throw new CommandError(`--nodes must be +N or -N, up to ${nodesAddedMax}, is ${JSON.stringify(text)}`);
}

/** As they are now, or as the configuration and the journal show them. */
function nodesToday({ pool }: SimulateParts, config: Config, facts: TraceFacts): readonly SimulatedNode[] {
  const { models, nodes: seen, rates: usual } = facts;
  const seenAs = new Map(seen.map((node) => [node.name, node]));
  if (pool !== null) {
    return pool.states().map(({ name, slots, engine, load }) => ({
      name,
      slots,
      keeps: keptBy(config, name, engineTraits[engine.kind].prefixCache),
      cacheTokens: load?.cacheTokens ?? null,
      models: models.filter((model) => pool.servesOn(name, model)),
      rates: seenAs.get(name)?.rates ?? usual,
    }));
  }
  const known = config.nodes.map(({ models }) => ({ models, engine: null }));
  const nodeModels = new Map(config.models.map(({ id, nodeModel }) => [id, nodeModel]));
  const serves = servesAmong(
    () => known,
    (id) => nodeModels.get(id) ?? null,
  );
  const placeless = new Set(
    models.filter((model) => !seen.some((node) => isThere(node.name) && node.models.includes(model))),
  );
  function isThere(name: string): boolean {
    return config.nodes.some((node) => node.name === name);
  }
  return config.nodes.map(({ name, slots, models: named }, at) => {
    const shown = seenAs.get(name);
    const own = Object.hasOwn(named, "*")
      ? (model: string) => placeless.has(model) || shown?.models.includes(model) === true
      : () => true;
    // Slots that follow the load were as many as were in use where requests waited for them. Otherwise there was room for
    // more: a limit at the peak would make a line of every change for the worse.
    const peak = shown?.peak ?? 0;
    const followed = shown?.isFull === true ? peak : Math.max(2 * peak, nodeSlotsDefault);
    return {
      name,
      slots: typeof slots === "number" ? slots : followed,
      keeps: keptBy(config, name, "salt"),
      cacheTokens: null,
      models: models.filter((model) => serves(known[at]!, model) && own(model)),
      rates: shown?.rates ?? usual,
    };
  });
}

function keptBy(
  { nodes, sharePrefixCache }: Config,
  name: string,
  trait: Parameters<typeof keptPrompts>[0],
): KeptPrompts {
  const own = nodes.find((node) => node.name === name)?.sharePrefixCache;
  return keptPrompts(trait, own ?? sharePrefixCache ?? undefined);
}

/** `asked`: "N" for all nodes, or "NODE=N". Throws CommandError. */
function withSlots(
  nodes: readonly SimulatedNode[],
  today: Config,
  changed: Config,
  asked: readonly string[],
): readonly SimulatedNode[] {
  const slotsBy = new Map<string, number>();
  for (const { name, slots } of changed.nodes) {
    const before = today.nodes.find((node) => node.name === name)?.slots;
    if (typeof slots === "number" && slots !== before) slotsBy.set(name, slots);
  }
  for (const text of asked) {
    const equals = text.lastIndexOf("=");
    const slots = Number(text.slice(equals + 1));
    const named = nodes.filter(({ name }) => equals < 0 || name === text.slice(0, equals));
    const known = nodes.map(({ name }) => name).join(", ");
    if (named.length === 0) throw new CommandError(`--slots ${text}: no node has that name; there are ${known}`);
    if (!Number.isInteger(slots) || slots < 1 || slots > nodeSlotsMax) {
      throw new CommandError(`--slots must be N or NODE=N, from 1 to ${nodeSlotsMax}, is ${JSON.stringify(text)}`);
    }
    for (const { name } of named) slotsBy.set(name, slots);
  }
  const kept = changed.nodes.map((node) => [node.name, node.sharePrefixCache] as const);
  const shares = new Map(
    kept.filter(([name, shared]) => shared !== today.nodes.find((node) => node.name === name)?.sharePrefixCache),
  );
  return nodes.map((node) => {
    const shared = shares.get(node.name);
    const keeps =
      shared === undefined
        ? node.keeps
        : shared === true
          ? "for all"
          : shared === false
            ? "by account"
            : (`by ${shared}` as const);
    return { ...node, keeps, slots: slotsBy.get(node.name) ?? node.slots };
  });
}

/** More copies of the node with the most requests, or without those with the fewest; one stays. */
function withNodes(
  nodes: readonly SimulatedNode[],
  more: number,
  { nodes: seen }: TraceFacts,
): readonly SimulatedNode[] {
  const requestsOf = ({ name }: SimulatedNode): number => seen.find((node) => node.name === name)?.requests ?? 0;
  const byUse = nodes.toSorted((one, other) => requestsOf(other) - requestsOf(one));
  if (more <= 0) return more === 0 ? nodes : byUse.slice(0, Math.max(1, nodes.length + more));
  const [most] = byUse;
  if (most === undefined) throw new CommandError("no nodes are configured");
  return [...nodes, ...Array.from({ length: more }, (_, at) => ({ ...most, name: `${most.name} +${at + 1}` }))];
}
