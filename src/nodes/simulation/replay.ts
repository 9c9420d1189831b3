// Replays a trace in virtual time: the line and the placement are the program's own, the engines are models, and the clock
// jumps from one event to the next. Requests come when they came, however long others take now.
import { queuePlacesMax } from "../../core/limits.ts";
import { priorities, type Priority, priorityOf, rankOf } from "../../core/priority.ts";
import type { AccountId, Ms, PromptBlocks } from "../../core/types.ts";
import type { KeptPrompts } from "../prefix-cache.ts";
import { Placement } from "../queue/placement.ts";
import { mixed } from "../queue/prompt-blocks.ts";
import { type Place, SlotQueue } from "../queue/slot-queue.ts";
import { type Prompt, PromptChains } from "./prompt-chains.ts";
import type { Trace } from "./trace.ts";
import { type EngineRates, type Job, VirtualEngine } from "./virtual-engine.ts";

export type SimulatedNode = Readonly<{
  name: string;
  slots: number;
  keeps: KeptPrompts;
  /** Null: as Placement assumes it. */
  cacheTokens: number | null;
  models: readonly string[];
  rates: EngineRates;
}>;

/** What of a plan matters for the line. `unasked`: the priority that its requests had in the trace unless they asked. */
export type LinePlan = Readonly<{
  id: string;
  weight: number;
  priority?: Priority | undefined;
  priorityMax?: Priority | undefined;
  /** Requests of an account at once; the others wait before the line. Absent: any number. */
  parallel?: number | undefined;
  unasked: Priority;
}>;

/** A configuration, as far as the line sees it. */
export type Setup = Readonly<{
  nodes: readonly SimulatedNode[];
  maxWaitMs: Ms;
  /** Requests in line at most; absent: as many as in a server. */
  placesMax?: number;
  /** Requests of a model at once; others: any number. */
  parallel?: ReadonlyMap<string, number>;
  plans: readonly LinePlan[];
  /** The place of each account's plan, in the order of the trace's accounts. */
  planOf: readonly number[];
}>;

type NodeUse = Readonly<{ name: string; requests: number; busyMs: Ms; input: number; cached: number }>;

/** `firstMs` is from a request's arrival to its first token, `waitMs` its time in line; NaN where it was refused. */
export type Replayed = Readonly<{
  firstMs: Float32Array;
  waitMs: Float32Array;
  ranks: Uint8Array;
  nodes: readonly NodeUse[];
  refused: number;
}>;

/** As in Placement. */
const cacheTokensUsual = 400_000;
const progressEach = 10_000;
const noNames: ReadonlySet<string> = new Set();

/** `progress`: how much of it is done, from 0 to 1. */
export function replay(trace: Trace, setup: Setup, progress = (_part: number): void => {}): Replayed {
  const world = new World(trace, setup);
  for (let at = 0; at < trace.length; at++) {
    world.runTo(trace.lineAt[at]!);
    world.enter(at);
    if (at % progressEach === 0) progress(at / trace.length);
  }
  world.runTo(Infinity);
  return world.replayed();
}

class World {
  readonly trace: Trace;
  readonly firstMs: Float32Array;
  readonly waitMs: Float32Array;
  readonly queue: SlotQueue;
  now: Ms = 0;
  readonly #setup: Setup;
  readonly #ranks: Uint8Array;
  readonly #nodes: readonly Running[];
  readonly #byName: ReadonlyMap<string, Running>;
  readonly #chains = new PromptChains();
  /** By the places of accounts: requests in line or on nodes, and those that wait for one of them to end. */
  readonly #open: Uint32Array;
  readonly #held = new Map<number, Request[]>();
  /** Accounts of which a request has ended. */
  readonly #freed: number[] = [];
  #expiresAt = Infinity;
  #refused = 0;

  constructor(trace: Trace, setup: Setup) {
    this.trace = trace;
    this.#setup = setup;
    this.firstMs = new Float32Array(trace.length).fill(Number.NaN);
    this.waitMs = new Float32Array(trace.length).fill(Number.NaN);
    this.#ranks = new Uint8Array(trace.length);
    this.#open = new Uint32Array(trace.accounts.length);
    const planOf = new Map(trace.accounts.map((account, at) => [account, setup.plans[setup.planOf[at]!]!]));
    const placement = new Placement((account) => planOf.get(account)!.id);
    const weightOf = (account: AccountId): number => planOf.get(account)!.weight;
    const parallelOf = (model: string): number | null => setup.parallel?.get(model) ?? null;
    this.queue = new SlotQueue(setup.maxWaitMs, setup.placesMax ?? queuePlacesMax, placement, weightOf, parallelOf);
    this.#nodes = setup.nodes.map((node) => new Running(node));
    this.#byName = new Map(this.#nodes.map((running) => [running.node.name, running]));
    for (const { node } of this.#nodes) placement.know(node.name, node.keeps, node.cacheTokens);
    this.queue.configure(
      setup.nodes.map(({ name, slots, models }) => {
        const served = new Set(models);
        return { name, slots, serves: (model) => served.has(model) };
      }),
    );
  }

  enter(at: number): void {
    const { trace } = this;
    const account = trace.account[at]!;
    const plan = this.#setup.plans[this.#setup.planOf[account]!]!;
    const had = priorities[trace.rank[at]!]!;
    const priority = priorityOf(plan, had === plan.unasked ? undefined : had);
    this.#ranks[at] = rankOf(priority);
    const [model, member] = [trace.model[at]!, String(trace.member[at]!)];
    const [input, cached, output] = [trace.input[at]!, trace.cached[at]!, trace.output[at]!];
    const node = trace.node[at]!;
    const prompt = this.#chains.next({ who: `${account} ${member}`, model, input, cached, output, node });
    const place = { at, modelId: trace.models[model]!, account: trace.accounts[account]!, member, priority };
    const salts = {
      "for all": 0,
      "by plan": -1 - this.#setup.planOf[account]!,
      "by team": place.account,
      "by account": place.account,
      nothing: 0,
    };
    const request = new Request(this, { ...place, salts }, prompt);
    if (this.#open[account]! >= (plan.parallel ?? Infinity)) {
      const held = this.#held.get(account);
      if (held === undefined) this.#held.set(account, [request]);
      else held.push(request);
    } else this.#begin(account, request);
    this.#letIn();
  }

  #begin(account: number, request: Request): void {
    this.#open[account]!++;
    this.queue.enter(request, this.now);
    this.#lookLater();
  }

  #letIn(): void {
    for (let account = this.#freed.pop(); account !== undefined; account = this.#freed.pop()) {
      this.#open[account]!--;
      const next = this.#held.get(account)?.shift();
      if (next !== undefined) this.#begin(account, next);
    }
  }

  grant(request: Request, name: string): void {
    this.waitMs[request.at] = this.now - this.trace.lineAt[request.at]!;
    const running = this.#byName.get(name)!;
    request.startOn(running);
    running.requests++;
    running.engine.take(request, this.now);
  }

  refuse(at: number): void {
    this.#refused++;
    this.ended(at);
  }

  ended(at: number): void {
    this.#freed.push(this.trace.account[at]!);
  }

  /** Lets everything happen that is due before `until`. */
  runTo(until: Ms): void {
    for (;;) {
      let next: Running | null = null;
      let nextAt = this.#expiresAt;
      for (const running of this.#nodes)
        if (running.engine.nextAt < nextAt) [next, nextAt] = [running, running.engine.nextAt];
      if (nextAt >= until || nextAt === Infinity) break;
      this.now = nextAt;
      if (next !== null) next.engine.advance();
      else {
        this.#expiresAt = Infinity;
        this.queue.expire(this.now);
      }
      this.#letIn();
      if (next === null || this.#expiresAt === Infinity) this.#lookLater();
    }
    if (until !== Infinity) this.now = until;
  }

  #lookLater(): void {
    if (this.queue.length === 0) return;
    const next = this.queue.nextExpiry();
    if (next !== null && next < this.#expiresAt) this.#expiresAt = Math.max(next, this.now + 1);
  }

  replayed(): Replayed {
    return {
      firstMs: this.firstMs,
      waitMs: this.waitMs,
      ranks: this.#ranks,
      nodes: this.#nodes.map(({ node: { name }, requests, engine: { busyMs }, input, cached }) => ({
        name,
        requests,
        busyMs,
        input,
        cached,
      })),
      refused: this.#refused,
    };
  }
}

/** A node, and what it did. */
class Running {
  readonly node: SimulatedNode;
  readonly engine: VirtualEngine;
  requests = 0;
  input = 0;
  cached = 0;

  constructor(node: SimulatedNode) {
    this.node = node;
    this.engine = new VirtualEngine(node.rates, node.keeps === "nothing" ? 0 : (node.cacheTokens ?? cacheTokensUsual));
  }
}

type Entered = Pick<Place, "modelId" | "account" | "member" | "priority"> &
  Readonly<{ at: number; salts: Readonly<Record<KeptPrompts, number>> }>;

class Request implements Place, Job {
  readonly at: number;
  readonly modelId: string;
  readonly account: AccountId;
  readonly member: string;
  readonly priority: Priority;
  readonly excluded = noNames;
  readonly prompt: PromptBlocks;
  readonly inputTokens: number;
  readonly outputTokens: number;
  promptKeys: Uint32Array;
  keys: Uint32Array;
  readonly knownTokens: number;
  cachedTokens = 0;
  unread = -1;
  endStep = 0;
  readonly #world: World;
  readonly #salts: Entered["salts"];
  #on: Running | null = null;

  constructor(
    world: World,
    { at, modelId, account, member, priority, salts }: Entered,
    { blocks, keys, knownTokens }: Prompt,
  ) {
    this.#world = world;
    this.at = at;
    this.modelId = modelId;
    this.account = account;
    this.member = member;
    this.priority = priority;
    this.prompt = blocks;
    this.knownTokens = knownTokens;
    this.#salts = salts;
    this.inputTokens = world.trace.input[at]!;
    this.outputTokens = world.trace.output[at]!;
    this.promptKeys = this.keys = keys;
  }

  granted(node: string): void {
    this.#world.grant(this, node);
  }
  refused(): void {
    this.#world.refuse(this.at);
  }

  /** As that engine keeps its blocks. */
  startOn(running: Running): void {
    this.#on = running;
    const salt = this.#salts[running.node.keeps];
    this.keys = this.keys.map((key) => mixed(key ^ salt));
    this.promptKeys = this.keys.subarray(0, this.prompt.hashes.length);
  }

  first(now: Ms): void {
    const { trace, firstMs, queue } = this.#world;
    firstMs[this.at] = now - trace.lineAt[this.at]! + trace.beforeMs[this.at]! + this.#on!.node.rates.wayMs;
    queue.began(this, now);
  }

  end(now: Ms): void {
    const { inputTokens, outputTokens, cachedTokens } = this;
    this.#on!.input += inputTokens;
    this.#on!.cached += cachedTokens;
    this.#world.queue.ended(this, { inputTokens, cachedTokens, outputTokens }, now);
    this.#world.ended(this.at);
  }
}
