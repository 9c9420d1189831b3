// All nodes together: their health, who gets a slot, and generations on a slot. It combines the slot queue (decides),
// the endpoints (talk to the nodes) and what happened to requests there. Timers and promises live here.
import type { NodeWork } from "../../core/node-work.ts";
import type { Forecast } from "../../core/forecast.ts";
import { type Standing, usualStanding } from "../../core/standing.ts";
import type { AnyCancelSignal } from "../../core/cancel-signal.ts";
import { assert } from "../../core/assert.ts";
import type { Clock } from "../../core/clock.ts";
import type { NodeConfig, SharePrefixCache } from "../../config/config.ts";
import type { PlanId } from "../../core/plan-ids.ts";
import { queuePlacesMax } from "../../core/limits.ts";
import { isRefusal } from "../../core/refusals.ts";
import type { AccountId, Ask, Ending, Model, Ms, Refusal, Sink, Slot } from "../../core/types.ts";
import type { Dial } from "../client/dial.ts";
import { type Engine, unknownEngine } from "../engine.ts";
import { keptPrompts, personOf } from "../prefix-cache.ts";
import { engineTraits } from "../engine-traits.ts";
import type { EngineLoad } from "../engine-load.ts";
import { busy, refusalOf, tooLate } from "../failure/failure.ts";
import { LookTurns } from "../health/look-turns.ts";
import type { Arrivals } from "../managed/managed-nodes.ts";
import type { NodeModelOf } from "../model-routes.ts";
import { KnownNodes } from "../known-nodes.ts";
import {
  type EndpointLimits,
  endpointLimitsDefault,
  type EstimateOfPrompt,
  type NodeOutcome,
  type NodeEndpoint,
  unknowingAmong,
} from "../node-endpoint.ts";
import type { SeenLine } from "./line-view.ts";
import { Placement, type CacheCounts } from "./placement.ts";
import { type LastError, type NodeLimits, nodeLimitsDefault, type NodeLog, PooledNode } from "./pooled-node.ts";
import { promptBlocksOf } from "./prompt-blocks.ts";
import type { Quickness } from "./recent-replies.ts";
import { SlotQueue } from "./slot-queue.ts";
import type { Entrant, LineNeed, NodeHealth, Place, RefusalCause, WeightOf } from "./slot-queue.ts";
import type { Tested } from "./test-request.ts";

export const nodeLooksAtOnceMax = 32;

/** Time limits of the pool, in milliseconds. */
export type PoolLimits = EndpointLimits & NodeLimits;

const defaultLimits: PoolLimits = { ...endpointLimitsDefault, ...nodeLimitsDefault };

export type PoolOptions = Readonly<{
  clock: Clock;
  queueMaxWaitMs: Ms;
  log: NodeLog;
  limits?: Partial<PoolLimits>;
  /** How sockets are opened; for tests. */
  dial?: Dial;
  estimate?: EstimateOfPrompt;
  /** Absent: models have no separately configured names on nodes. */
  nodeModelOf?: NodeModelOf;
  /** See PrefixCacheRule. */
  saltSeed?: bigint;
  /** An account's share of the nodes' work relative to others. Absent: all are equal. */
  weightOf?: WeightOf;
  /** The most requests under way, of the models that have a limit. Absent: none has. */
  parallel?: () => ReadonlyMap<string, number>;
  /** Absent: all accounts have one plan. */
  planOf?: (account: AccountId) => PlanId;
  /** Probes nodes at the start and where no request ends. Off: probes only those that went down, and engines stay unknown. */
  looks?: boolean;
  /** Called when a node is found to run something else than before. */
  onEngines?: () => void;
  /** Called when a node was probed for the first time. */
  onFirstLook?: (node: NodeState) => void;
  /** Others that talk to the same nodes; absent: none. */
  follower?: PoolFollower;
  /** See `reconfigure`. */
  arrivals?: Arrivals;
}>;

/** Talks to the nodes on slots of this pool, and must know them as the pool does. */
export interface PoolFollower {
  /** Called before a slot on one of them is given. */
  nodesChanged(nodes: readonly NodeConfig[]): void;
  engineFound(node: string, engine: Engine): void;
  healthChanged(node: string, health: NodeHealth): void;
  /** The names of all drained nodes. */
  drainedChanged(nodes: readonly string[]): void;
}

/** A slot on a node that another thread talks to. Disposing it gives the slot to the next in line. */
export interface Grant extends Disposable {
  readonly nodeName: string;
  /** The account's plan, where accounts of a plan share the node's prefix cache. */
  readonly plan?: PlanId | undefined;
  /** Its first pieces came. */
  began(): void;
  /** What happened to the request there, which decides the node's health. */
  outcome(outcome: NodeOutcome): void;
}

/** The demand for one node, from all requests that wait or run there. */
export type NodeNeed = LineNeed & Readonly<{ name: string; url: string; slots: number; busy: number }>;

/** One node for the console and the `nodes` command. */
export type NodeState = Readonly<{
  name: string;
  url: string;
  health: NodeHealth;
  /** When its health last changed, by the wall clock. */
  since: Ms;
  /** What is wrong with it now, in words without an address; null where nothing is known to be. */
  problem: string | null;
  lastError: LastError | null;
  busy: number;
  slots: number;
  /** When an operator drained it, by the wall clock; null where it is not drained. */
  drainedAt: Ms | null;
  /** Whether the slots follow its engine's load. */
  isAuto: boolean;
  /** Its engine's last load report; null where unknown or not requested. */
  load: EngineLoad | null;
  engine: Engine;
  models: Readonly<Record<string, string>>;
  quickness: Quickness;
}>;

/** A connection that has not failed this long after its timeout is open. */
const trialMarginMs = 250;

/** All configured nodes. */
export class NodePool extends KnownNodes<PooledNode> {
  readonly #options: PoolOptions;
  readonly #limits: PoolLimits;
  readonly #queue: SlotQueue;
  /** The places of what waits in line. */
  readonly #places = new WeakMap<Promise<Slot | Refusal>, Place>();
  readonly #placement: Placement;
  /** No longer configured, or replaced, with requests that still run. */
  #leaving: readonly PooledNode[] = [];
  /** As given, because the defaults for what they leave open may change. */
  #configs: readonly NodeConfig[] = [];
  #sharesPrefixCache: SharePrefixCache | null = null;
  readonly #lookTurns = new LookTurns(nodeLooksAtOnceMax);
  #expiry: ReturnType<typeof setTimeout> | null = null;
  #expiresAt: Ms = Infinity;
  #closed = false;
  protected override drained: ReadonlyMap<string, Ms> = new Map();
  /** Called when a request waits, where other gateways also use the nodes. */
  #lineBegan: (() => void) | null = null;
  /** Of models with a limit that gateways share; null: this gateway has them alone. */
  #modelShares: ReadonlyMap<string, number> | null = null;

  constructor(nodes: readonly NodeConfig[], options: PoolOptions) {
    super(options.nodeModelOf ?? (() => null));
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#placement = new Placement(options.planOf, options.nodeModelOf);
    const { queueMaxWaitMs, weightOf } = options;
    const parallelOf = (modelId: string): number | null => {
      const most = this.#parallel.get(modelId);
      if (most === undefined) return null;
      return this.#modelShares === null ? most : Math.min(most, this.#modelShares.get(modelId) ?? 0);
    };
    this.#queue = new SlotQueue(queueMaxWaitMs, queuePlacesMax, this.#placement, weightOf, parallelOf);
    this.reconfigure(nodes, options.queueMaxWaitMs, options.arrivals);
  }

  /** Requests in line. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Whether a configured node serves the model, even one that is down now. */
  serves(modelId: string): boolean {
    return this.#queue.serves(modelId);
  }

  /** Whether this node is configured to serve the model, healthy or not. */
  servesOn(nodeName: string, modelId: string): boolean {
    return this.#queue.servesOn(nodeName, modelId);
  }

  /**
   * A slot for the request: at once if one is free, otherwise when its turn comes. A refusal (busy) when no node for
   * the model is up, too many wait, it waited too long, or `cancelSignal` aborted. `excluded`: names of nodes not to
   * use.
   */
  enter(
    ask: Ask,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
    excluded: ReadonlySet<string> = none,
    standing = usualStanding,
  ): Slot | Refusal | Promise<Slot | Refusal> {
    if (cancelSignal.aborted) return busy;
    const entrant = this.#entrantOf(ask, account, excluded, standing);
    if (isRefusal(entrant)) return entrant;
    const now = this.#now();
    const deadlineMs = standing.beginBy === undefined ? undefined : standing.beginBy - now;
    if (deadlineMs !== undefined && deadlineMs <= 0) return tooLate();
    let result: Slot | Refusal | null = null;
    let settle = (at: Slot | Refusal): void => void (result = at);
    const place: Place = {
      ...entrant,
      deadlineMs,
      granted: (nodeName) => settle(this.slotOn(nodeName, place)),
      refused: (cause, forecast) => settle(this.refusalOf(cause, entrant.modelId, forecast)),
    };
    this.#queue.enter(place, now);
    if (result !== null) return result;
    this.#nowInLine(place);
    const { promise: waiting, resolve } = Promise.withResolvers<Slot | Refusal>();
    const leave = (): void => {
      if (this.#queue.leave(place)) settle(busy);
    };
    cancelSignal.addEventListener("abort", leave, { once: true });
    settle = (result) => {
      cancelSignal.removeEventListener("abort", leave);
      resolve(result);
    };
    this.#places.set(waiting, place);
    return waiting;
  }

  #entrantOf(ask: Ask, account: AccountId, excluded: ReadonlySet<string>, standing: Standing): Entrant | Refusal {
    return this.#closed ? busy : entrantOf(ask, account, excluded, standing, this.serving(ask.model.id));
  }

  /** What a request that entered now would meet, or why it would be refused. Changes nothing. */
  forecast(ask: Ask, account: AccountId, standing: Standing): Forecast | Refusal {
    const entrant = this.#entrantOf(ask, account, none, standing);
    if (isRefusal(entrant)) return entrant;
    const forecast = this.#queue.forecast(entrant, this.#now());
    return typeof forecast === "string" ? this.refusalOf(forecast, ask.model.id) : forecast;
  }

  /** Of what `enter` returned; null where it does not wait in line (anymore). */
  forecastOf(waiting: Promise<Slot | Refusal>): Forecast | null {
    const place = this.#places.get(waiting);
    return place === undefined ? null : this.forecastAt(place);
  }

  /** Null where the place does not wait in line. */
  forecastAt(place: Place): Forecast | null {
    return this.#queue.forecastOf(place, this.#now());
  }

  /** Its deadline ends its wait, whatever was expected. */
  #nowInLine(place: Place): void {
    this.#lineBegan?.();
    this.#armExpiry();
    if (place.deadlineMs === undefined) return;
    setTimeout(() => {
      const forecast = this.#queue.forecastOf(place, this.#now());
      if (forecast !== null && this.#queue.leave(place)) place.refused("too-late", forecast);
    }, place.deadlineMs);
  }

  /** Puts another thread's request in line. `slotOn` returns the slot that it is granted; until then `leave` takes it out. */
  stand(place: Place): void {
    if (this.#closed) return place.refused("away");
    const now = this.#now();
    this.#queue.enter(place, now);
    if (this.#queue.isInLine(place)) this.#nowInLine(place);
  }

  /** The longest wait from now on. */
  waitAtMost(ms: Ms): void {
    this.reconfigure(this.#configs, ms);
  }

  /** For nodes that do not configure which accounts share their engines' prefix caches. */
  sharePrefixCaches(shares: SharePrefixCache | null): void {
    this.#sharesPrefixCache = shares;
    this.reconfigure(this.#configs);
  }

  /**
   * Applies another configuration. Running generations end where they are, and waiting requests stay in line. Nodes
   * among the arrivals are starting until their promise settles and run another program, so what was known about them
   * no longer counts.
   */
  reconfigure(
    given: readonly NodeConfig[],
    queueMaxWaitMs = this.#queue.maxWaitMs,
    arrivals: Arrivals = new Map(),
  ): void {
    this.#queue.maxWaitMs = queueMaxWaitMs;
    this.#configs = given;
    const sharePrefixCache = this.#sharesPrefixCache;
    const configs = sharePrefixCache === null ? given : given.map((config) => ({ sharePrefixCache, ...config }));
    this.#options.follower?.nodesChanged(configs);
    const before = new Map([...this.nodes].filter(([name]) => !arrivals.has(name)));
    const { nodes } = nodesAfter(before, configs, (config) => this.#open(config, arrivals.get(config.name)));
    const kept = new Set(nodes.values());
    const gone = [...this.nodes.values()].filter((node) => !kept.has(node));
    this.nodes = nodes;
    if (this.#lineBegan !== null) for (const node of nodes.values()) node.shareSlots();
    for (const old of gone) {
      old.close();
      this.#placement.forget(old.config.name);
    }
    this.#leaving = [...this.#leaving, ...gone].filter(({ busy }) => busy > 0);
    for (const name of arrivals.keys()) {
      this.#options.follower?.engineFound(name, unknownEngine);
      this.#options.follower?.healthChanged(name, "starting");
    }
    this.#configureQueue();
    for (const node of nodes.values()) node.watchLoad();
  }

  /** After any change to which nodes serve which models. */
  #configureQueue(): void {
    for (const node of this.nodes.values()) this.#know(node);
    this.#queue.configure(
      [...this.nodes.values()].map((node) => ({
        name: node.config.name,
        slots: node.slots,
        elsewhere: node.elsewhere,
        serves: (modelId) => this.isServedBy(node, modelId),
        // A node that moved but kept its name is assumed healthy until a request meets it.
        health: node.health,
      })),
    );
    this.#disarmExpiry();
    this.#armExpiry();
  }

  /** What its engine keeps of prompts, and for whom. */
  #know({ config: { name, sharePrefixCache }, endpoint: { engine }, load }: PooledNode): void {
    const keeps = keptPrompts(engineTraits[engine.kind].prefixCache, sharePrefixCache);
    this.#placement.know(name, keeps, load.latest?.cacheTokens ?? null);
  }

  /** Expected cache hits, and those that the nodes reported. */
  get cacheCounts(): CacheCounts {
    return this.#placement.counts;
  }

  /** Models were added, or got other names on nodes. */
  modelsChanged(): void {
    this.#configureQueue();
  }

  /** Drained nodes by name, with the time. They get nothing new, here and on other threads. */
  drain(nodes: ReadonlyMap<string, Ms>): void {
    this.drained = nodes;
    this.#queue.drain(new Set(nodes.keys()));
    this.#options.follower?.drainedChanged([...nodes.keys()]);
    this.#disarmExpiry();
    this.#armExpiry();
  }

  /**
   * Other gateways also use the nodes: each grants nothing before `limitSlots` sets its share. Nodes whose slots follow
   * their engine's load see the others there. `lineBegan` is called when a request waits.
   */
  shareSlots(lineBegan: () => void): void {
    this.#lineBegan = lineBegan;
    this.#modelShares = new Map();
    this.reconfigure(this.#configs);
  }

  /** This gateway's demand for the nodes with shared slots. */
  needs(): readonly NodeNeed[] {
    return [...this.nodes.values()].flatMap(({ config: { name, url }, isAuto, slotsInAll, busy, running, share }) => {
      if (isAuto || share === null) return [];
      return [{ name, url, slots: slotsInAll, busy, ...this.#queue.needOf(name, running, this.#now()) }];
    });
  }

  get #parallel(): ReadonlyMap<string, number> {
    return this.#options.parallel?.() ?? noLimits;
  }

  /** This gateway's demand for each model with a limit, while gateways share; `slots`: the limit. */
  modelNeeds(): ReadonlyMap<string, LineNeed & Readonly<{ slots: number; busy: number }>> {
    if (this.#modelShares === null) return noLimits;
    const now = this.#now();
    return new Map(
      [...this.#parallel].map(([id, slots]) => [id, { slots, ...this.#queue.needOfModel(id, now) }] as const),
    );
  }

  /** This gateway's shares, by model. */
  limitModels(shares: ReadonlyMap<string, number>): void {
    const before = this.#modelShares;
    this.#modelShares = shares;
    for (const [id, share] of shares) if (share > (before?.get(id) ?? 0)) this.#queue.fillModel(id);
  }

  /** See SlotQueue. */
  takeServed(): ReturnType<SlotQueue["takeServed"]> {
    return this.#queue.takeServed();
  }

  /** The addresses of its nodes, by their names. */
  get addresses(): ReadonlyMap<string, string> {
    return new Map([...this.nodes.values()].map(({ config: { name, url } }) => [name, url]));
  }

  /** See SlotQueue. */
  servedElsewhere(work: NodeWork): void {
    this.#queue.servedElsewhere(work);
  }

  /** This gateway's shares, by node name. */
  limitSlots(shares: ReadonlyMap<string, number>): void {
    for (const [name, share] of shares) {
      const node = this.nodes.get(name);
      if (node === undefined || node.share === share) continue;
      node.share = share;
      this.#queue.setSlots(name, node.slots, node.elsewhere);
    }
  }

  /** What waits and runs, to be read at once: see line-view. */
  seen(): SeenLine {
    const now = this.#now();
    return {
      ...this.#queue.seen(now),
      now,
      wall: this.#options.clock.wall(),
      nodes: [...this.nodes.keys()],
      weightOf: this.#options.weightOf ?? (() => 1),
      caches: this.#placement.lastHour(now),
    };
  }

  /** Asks a node for one token, outside the line and whatever its state. The outcome counts like that of any request. */
  async test(nodeName: string, model: Model): Promise<Tested> {
    const node = this.nodes.get(nodeName);
    assert(node !== undefined, `${nodeName} is configured`);
    const { testNode } = await import("./test-request.ts");
    return testNode(node.endpoint, model, node.outcome, this.#options.clock);
  }

  /** Requests that run at this address, including nodes that are no longer configured. */
  busyAt(url: string): number {
    const there = [...this.nodes.values(), ...this.#leaving].filter(({ config }) => config.url === url);
    return there.reduce((sum, { busy }) => sum + busy, 0);
  }

  /** The smallest context in tokens that the model's nodes report; null where none does. */
  contextTokensOf(modelId: string): number | null {
    const contexts = [...this.nodes.values()].flatMap((node) =>
      this.isServedBy(node, modelId) ? (node.endpoint.contextTokensOf(modelId) ?? []) : [],
    );
    return contexts.length === 0 ? null : Math.min(...contexts);
  }

  /** Probes all nodes; resolves when the reachable ones have answered. */
  async lookNow(): Promise<void> {
    await Promise.all([...this.nodes.values()].map((node) => node.lookNow()));
  }

  states(): NodeState[] {
    return this.#queue.states().map((state) => {
      const node = this.nodes.get(state.name)!;
      const { endpoint, config, recent, problem, since, lastError, isAuto } = node;
      const drainedAt = this.drained.get(state.name) ?? null;
      const { url, models } = config;
      const quickness = recent.quickness(this.#now());
      const load = isAuto ? node.load.latest : null;
      const facts = { url, since, problem, lastError, drainedAt, engine: endpoint.engine, models, quickness };
      return { ...state, isAuto, load, ...facts };
    });
  }

  /** Whether a node that serves the model takes requests, or is only briefly busy. */
  takes(modelId: string): boolean {
    return this.#queue.takes(modelId);
  }

  /** Refuses new and waiting requests, and closes idle connections. Running generations may end. */
  close(): Promise<void> {
    this.#closed = true;
    this.reconfigure([]);
    return Promise.resolve();
  }

  /** The slot that was just granted on this node. */
  slotOn(nodeName: string, place: Place): Slot & Grant {
    const node = this.nodes.get(nodeName);
    assert(node !== undefined, `a slot was given on ${nodeName}, which is not configured`);
    const trialMs = this.#limits.connectTimeoutMs + trialMarginMs;
    return new NodeSlot(this, this.#queue, node, place, trialMs);
  }

  planOf(account: AccountId): PlanId | undefined {
    return this.#options.planOf?.(account);
  }

  began(place: Place): void {
    this.#queue.began(place, this.#now());
  }

  /** A slot is given back. */
  ended(place: Place, { answered }: Pick<NodeOutcome, "answered">): void {
    this.#queue.ended(place, answered, this.#now());
    if (this.#queue.length > 0) this.#armExpiry();
  }

  leave(place: Place): boolean {
    return this.#queue.leave(place);
  }

  /** Only models outside the catalog have names on nodes that are configured or listed. */
  refusalOf(cause: RefusalCause, modelId: string, forecast?: Forecast): Refusal {
    return this.#closed ? busy : refusalOf(cause, modelId, this.nodeModelOf(modelId) !== null, forecast);
  }

  #open(config: NodeConfig, arrival: Promise<void> | undefined): PooledNode {
    const onHealth = (health: NodeHealth): void => {
      if (this.nodes.get(config.name)?.config.url !== config.url) return;
      this.#options.follower?.healthChanged(config.name, health);
      if (health === "down" || health === "starting") this.#placement.cold(config.name);
      this.#queue.setHealth(config.name, health);
    };
    const { clock, log, looks = true, dial, estimate, onFirstLook } = this.#options;
    const stateOf = (node: PooledNode) => this.states().find(({ name }) => name === node.config.name);
    return new PooledNode(config, arrival ?? null, {
      clock,
      log,
      looks,
      dial,
      estimate,
      limits: this.#limits,
      turns: this.#lookTurns,
      onHealth,
      onDoubt: (until) => this.#queue.doubt(config.name, until),
      onTrialFailed: () => this.#queue.trialFailed(config.name),
      nodeModelOf: this.nodeModelOf,
      saltSeed: this.#options.saltSeed,
      onEngine: (engine) => {
        this.#options.follower?.engineFound(config.name, engine);
        this.#placement.cold(config.name);
        this.#configureQueue();
        this.#options.onEngines?.();
      },
      onSlots: (node) => {
        if (this.nodes.get(config.name) !== node) return;
        this.#know(node);
        this.#queue.setSlots(config.name, node.slots, node.elsewhere);
        if (this.#queue.length > 0) this.#armExpiry();
      },
      unreadMs: ({ config: { name } }) => this.#placement.unreadMs(name, this.#now()),
      kept: ({ config: { name } }) => this.#queue.keptFromBulk(name),
      onFirstLook(node) {
        const state = stateOf(node);
        if (state !== undefined) onFirstLook?.(state);
      },
    });
  }

  #now(): Ms {
    return this.#options.clock.monotonic();
  }

  #disarmExpiry(): void {
    if (this.#expiry !== null) clearTimeout(this.#expiry);
    this.#expiry = null;
  }

  #armExpiry(): void {
    const next = this.#queue.nextExpiry();
    if (next === null || this.#closed || (this.#expiry !== null && this.#expiresAt <= next)) return;
    this.#disarmExpiry();
    this.#expiresAt = next;
    this.#expiry = setTimeout(
      () => {
        this.#expiry = null;
        this.#queue.expire(this.#now());
        this.#armExpiry();
      },
      Math.max(1, next - this.#now()),
    );
  }
}

const none: ReadonlySet<string> = new Set();

/** A request that may enter; `serving`: all nodes that serve its model. */
export function entrantOf(
  ask: Ask,
  account: AccountId,
  excluded: ReadonlySet<string>,
  { member, own, weight, priority }: Standing,
  serving: Iterable<NodeEndpoint>,
): Entrant | Refusal {
  const unknowing = ask.model.tier === "own" ? unknowingAmong(ask, serving) : none;
  if (isRefusal(unknowing)) return unknowing;
  const passedOver = unknowing.size === 0 ? excluded : excluded.union(unknowing);
  const whose = { account, member, own, weight, priority };
  return { modelId: ask.model.id, ...whose, prompt: promptBlocksOf(ask), excluded: passedOver };
}

const noLimits: ReadonlyMap<string, never> = new Map<string, never>();

/** The nodes of another configuration: nodes at the same address are kept, with what is known about them. */
export function nodesAfter<Known extends Readonly<{ endpoint: NodeEndpoint }>>(
  before: ReadonlyMap<string, Known>,
  configs: readonly NodeConfig[],
  open: (config: NodeConfig) => Known,
): Readonly<{ nodes: Map<string, Known>; gone: Iterable<Known> }> {
  const nodes = new Map<string, Known>();
  const gone = new Map(before);
  for (const config of configs) {
    const known = before.get(config.name);
    if (known?.endpoint.isAt(config) === true) {
      known.endpoint.config = config;
      nodes.set(config.name, known);
      gone.delete(config.name);
    } else nodes.set(config.name, open(config));
  }
  return { nodes, gone: gone.values() };
}

/** A slot on a node, given back exactly once. */
class NodeSlot implements Slot, Grant {
  readonly #pool: NodePool;
  readonly #node: PooledNode;
  readonly #place: Place;
  /** Runs where the node is down and this request is the trial. */
  readonly #trial: ReturnType<typeof setTimeout> | null = null;
  #outcome: Pick<NodeOutcome, "answered" | "failure"> = { answered: null, failure: null };
  #released = false;

  constructor(pool: NodePool, queue: SlotQueue, node: PooledNode, place: Place, trialMs: Ms) {
    this.#pool = pool;
    this.#node = node;
    this.#place = place;
    node.begin(place.account);
    if (node.health === "down") this.#trial = setTimeout(() => queue.trialHolds(this.nodeName), trialMs);
  }

  get nodeName(): string {
    return this.#node.config.name;
  }

  get plan(): PlanId | undefined {
    return this.#node.config.sharePrefixCache === "plan" ? this.#pool.planOf(this.#place.account) : undefined;
  }

  run(ask: Ask, account: AccountId, cancelSignal: AnyCancelSignal, sink: Sink, began?: () => void): Promise<Ending> {
    assert(!this.#released, "no generation on a slot that was given back");
    const begins = (): void => {
      this.began();
      began?.();
    };
    const sender = { account, person: personOf(this.#place.member), plan: this.plan, priority: this.#place.priority };
    return this.#node.endpoint.send(ask, sender, cancelSignal, sink, (outcome) => this.outcome(outcome), begins);
  }

  get cause(): string | null {
    return this.#outcome.failure?.cause ?? null;
  }

  alike(modelId: string): ReadonlySet<string> {
    return this.#pool.alikeTo(this.#node.endpoint, modelId);
  }

  began(): void {
    this.#pool.began(this.#place);
  }

  outcome(outcome: NodeOutcome): void {
    this.#outcome = outcome;
    this.#node.outcome(outcome);
  }

  [Symbol.dispose](): void {
    assert(!this.#released, "a slot is given back once");
    this.#released = true;
    if (this.#trial !== null) clearTimeout(this.#trial);
    this.#node.end(this.#place.account);
    this.#pool.ended(this.#place, this.#outcome);
  }
}
