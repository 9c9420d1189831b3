// The nodes as one: which are well, who gets a slot, and generations on a slot. Composition of the slot queue (decides),
// the endpoints (speak to the nodes) and what requests met there; timers and promises live here.
import type { Gone } from "../departure.ts";
import { assert } from "../assert.ts";
import type { Clock } from "../clock.ts";
import type { NodeConfig } from "../config.ts";
import { nodeCoolOffMs, nodeProbeIntervalMs } from "../limits.ts";
import type { AccountId, Ask, Ending, Model, Ms, Refusal, Sink, Slot } from "../types.ts";
import { affinityOf } from "./affinity.ts";
import type { Dial } from "./client.ts";
import { type Engine, unknownEngine } from "./engine.ts";
import { busy } from "./failure.ts";
import type { Arrivals } from "./managed-nodes.ts";
import { NodeCounting } from "./node-counting.ts";
import { type EndpointLimits, endpointLimitsDefault, type Met, NodeEndpoint } from "./node-endpoint.ts";
import { type Quickness, RecentReplies } from "./recent-replies.ts";
import { SlotQueue } from "./slot-queue.ts";
import type { NodeHealth, Place, RefusalCause } from "./slot-queue.ts";

/** Time limits of the pool, in milliseconds; the defaults are those of limits.ts. */
export type PoolLimits = EndpointLimits & Readonly<{ probeIntervalMs: Ms; coolOffMs: Ms }>;

const defaultLimits: PoolLimits = {
  ...endpointLimitsDefault,
  probeIntervalMs: nodeProbeIntervalMs,
  coolOffMs: nodeCoolOffMs,
};

/** For the operator; `node` is the configured name, never an address. */
export type NodeLog = (event: Readonly<{ level: "info" | "warn" | "error"; node: string; message: string }>) => void;

export type PoolOptions = Readonly<{
  clock: Clock;
  queueMaxWaitMs: Ms;
  log: NodeLog;
  limits?: Partial<PoolLimits>;
  /** Seam for tests: how sockets are opened. */
  dial?: Dial;
  /** Asks each node once which engine it is. Off: all are treated as unknown. */
  detectEngines?: boolean;
  /** Others that speak to the same nodes; absent: nobody does. */
  follower?: PoolFollower;
  /** See `reconfigure`. */
  arrivals?: Arrivals;
}>;

/** Somebody who speaks to the nodes on places that this pool gave, and must know them as it does. */
export interface PoolFollower {
  /** Called before a place on one of them is given. */
  nodesChanged(nodes: readonly NodeConfig[]): void;
  engineFound(node: string, engine: Engine): void;
  healthChanged(node: string, health: NodeHealth): void;
}

/** A place on a node that somebody else speaks to. Disposing it gives the place to the next in line. */
export interface Grant extends Disposable {
  readonly nodeName: string;
  /** What the request met there; the node's health follows from it. */
  met(met: Met): void;
}

/** One node for the console and the `nodes` command. */
export type NodeState = Readonly<{
  name: string;
  health: NodeHealth;
  busy: number;
  slots: number;
  engine: Engine;
  models: Readonly<Record<string, string>>;
  quickness: Quickness;
}>;

/** Back-off of the first probe of a node that went down; doubles up to probeIntervalMs. */
const firstProbeMs = 250;

/** All configured nodes. */
export class NodePool {
  readonly #options: PoolOptions;
  readonly #limits: PoolLimits;
  readonly #queue: SlotQueue;
  #nodes = new Map<string, PooledNode>();
  /** No longer configured, or replaced, with requests that run on. */
  #leaving: readonly PooledNode[] = [];
  readonly #counting = new NodeCounting((modelId) => this.#wellFor(modelId));
  #expiry: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  constructor(nodes: readonly NodeConfig[], options: PoolOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#queue = new SlotQueue(options.queueMaxWaitMs);
    this.reconfigure(nodes, options.queueMaxWaitMs, options.arrivals);
  }

  /** Requests in line. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Whether a configured node serves the model; it may be down at the moment. */
  serves(modelId: string): boolean {
    return this.#queue.serves(modelId);
  }

  /**
   * A slot for the request: at once if one is free, else when its turn comes. A refusal (busy) when no node for the
   * model is there, too many wait, it waited too long, or `gone` aborted. `excluded`: names of nodes not to be given.
   */
  enter(
    ask: Ask,
    account: AccountId,
    gone: Gone,
    excluded: ReadonlySet<string> = none,
  ): Slot | Refusal | Promise<Slot | Refusal> {
    if (this.#closed || gone.aborted) return busy;
    const affinity = this.#nodes.size > 1 ? affinityOf(ask, account) : 0;
    const place = new QueuedPlace(this, ask.model.id, account, affinity, excluded);
    this.#queue.enter(place, this.#now());
    if (place.result !== null) return place.result;
    this.#armExpiry();
    return place.wait(gone);
  }

  /** Puts somebody else's request in line: what it is granted is had by `slotOn`; until then `leave` takes it out. */
  stand(place: Place): void {
    if (this.#closed) return place.refused("no-node");
    this.#queue.enter(place, this.#now());
    this.#armExpiry();
  }

  /** As they are configured now. */
  get configs(): readonly NodeConfig[] {
    return [...this.#nodes.values()].map(({ config }) => config);
  }

  /**
   * Applies another configuration. Running generations end where they are; those who wait stay in line. Nodes among the
   * arrivals are down until then, and another program than before: what was known of it does not count.
   */
  reconfigure(
    configs: readonly NodeConfig[],
    queueMaxWaitMs = this.#queue.maxWaitMs,
    arrivals: Arrivals = new Map(),
  ): void {
    this.#queue.maxWaitMs = queueMaxWaitMs;
    this.#options.follower?.nodesChanged(configs);
    const before = new Map([...this.#nodes].filter(([name]) => !arrivals.has(name)));
    const { nodes } = nodesAfter(before, configs, (config) => this.#open(config, arrivals.get(config.name)));
    const kept = new Set(nodes.values());
    const gone = [...this.#nodes.values()].filter((node) => !kept.has(node));
    this.#nodes = nodes;
    for (const old of gone) old.close();
    this.#leaving = [...this.#leaving, ...gone].filter(({ busy }) => busy > 0);
    for (const name of arrivals.keys()) {
      this.#options.follower?.engineFound(name, unknownEngine);
      this.#options.follower?.healthChanged(name, "down");
    }
    const serves = servesAmong(configs);
    this.#queue.configure(
      configs.map((config) => ({
        name: config.name,
        slots: config.slots,
        serves: (modelId) => serves(config, modelId),
        // one that kept its name and moved is believed to be well until a request meets it
        health: nodes.get(config.name)!.health,
      })),
    );
    this.#disarmExpiry();
    this.#armExpiry();
  }

  /** Requests that run at this address, also of nodes that are no longer configured. */
  busyAt(url: string): number {
    const there = [...this.#nodes.values(), ...this.#leaving].filter(({ config }) => config.url === url);
    return there.reduce((sum, { busy }) => sum + busy, 0);
  }

  /** Tokens of the prompt that the request becomes on its node; null where no well node for the model can tell. */
  countAsk(ask: Ask, gone: Gone): Promise<number | null> {
    return this.#counting.countAsk(ask, gone);
  }

  /** Tokens of a text alone, as the model reads it; null where no well node for the model can tell. */
  countText(model: Model, text: string, gone: Gone): Promise<number | null> {
    return this.#counting.countText(model, text, gone);
  }

  states(): NodeState[] {
    return this.#queue.states().map((state) => {
      const { endpoint, config, recent } = this.#nodes.get(state.name)!;
      return { ...state, engine: endpoint.engine, models: config.models, quickness: recent.quickness(this.#now()) };
    });
  }

  /** Refuses everything new and those who wait, and closes idle connections. Running generations may end. */
  close(): Promise<void> {
    this.#closed = true;
    this.reconfigure([]);
    return Promise.resolve();
  }

  /** The place that was just granted on this node. */
  slotOn(nodeName: string): Slot & Grant {
    const node = this.#nodes.get(nodeName);
    assert(node !== undefined, `a slot was given on ${nodeName}, which is not configured`);
    return new NodeSlot(this.#queue, node);
  }

  leave(place: Place): boolean {
    return this.#queue.leave(place);
  }

  *#wellFor(modelId: string): Iterable<NodeEndpoint> {
    for (const { health, endpoint, config } of this.#nodes.values()) {
      if (health === "well" && this.#queue.servesOn(config.name, modelId)) yield endpoint;
    }
  }

  #open(config: NodeConfig, arrival: Promise<void> | undefined): PooledNode {
    const onHealth = (health: NodeHealth): void => {
      if (this.#nodes.get(config.name)?.config.url !== config.url) return;
      this.#options.follower?.healthChanged(config.name, health);
      this.#queue.setHealth(config.name, health);
    };
    return new PooledNode(config, this.#options, this.#limits, onHealth, arrival);
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
    if (this.#expiry !== null || next === null || this.#closed) return;
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

/** The nodes of another configuration: those that stayed where they were are kept, with what is known of them. */
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

/** Which of these nodes serves which model; "*" stands for those that none of them names. */
export function servesAmong(configs: readonly NodeConfig[]): (config: NodeConfig, modelId: string) => boolean {
  const named = new Set(configs.flatMap(({ models }) => Object.keys(models)));
  return ({ models }, modelId) => Object.hasOwn(models, modelId) || ("*" in models && !named.has(modelId));
}

/** A request's place in line as a promise. */
class QueuedPlace implements Place {
  readonly modelId: string;
  readonly account: AccountId;
  readonly affinity: number;
  readonly excluded: ReadonlySet<string>;
  result: Slot | Refusal | null = null;
  readonly #pool: NodePool;
  #resolve: ((result: Slot | Refusal) => void) | null = null;

  constructor(pool: NodePool, modelId: string, account: AccountId, affinity: number, excluded: ReadonlySet<string>) {
    this.#pool = pool;
    this.modelId = modelId;
    this.account = account;
    this.affinity = affinity;
    this.excluded = excluded;
  }

  granted(nodeName: string): void {
    this.#settle(this.#pool.slotOn(nodeName));
  }

  refused(_cause: RefusalCause): void {
    this.#settle(busy);
  }

  /** Settles with the slot or a refusal; an abort of `gone` gives the place up. */
  wait(gone: Gone): Promise<Slot | Refusal> {
    const { promise, resolve } = Promise.withResolvers<Slot | Refusal>();
    const leave = (): void => {
      if (this.#pool.leave(this)) this.#settle(busy);
    };
    gone.addEventListener("abort", leave, { once: true });
    this.#resolve = (result) => {
      gone.removeEventListener("abort", leave);
      resolve(result);
    };
    return promise;
  }

  #settle(result: Slot | Refusal): void {
    this.result = result;
    this.#resolve?.(result);
  }
}

/** A place on a node, given back exactly once. */
class NodeSlot implements Slot, Grant {
  readonly #queue: SlotQueue;
  readonly #node: PooledNode;
  #released = false;

  constructor(queue: SlotQueue, node: PooledNode) {
    this.#queue = queue;
    this.#node = node;
    node.busy++;
  }

  get nodeName(): string {
    return this.#node.config.name;
  }

  generate(ask: Ask, account: AccountId, gone: Gone, sink: Sink, began?: () => void): Promise<Ending> {
    assert(!this.#released, "no generation on a slot that was given back");
    const node = this.#node;
    return node.endpoint.generate(ask, account, gone, sink, node.met, began);
  }

  met(met: Met): void {
    this.#node.met(met);
  }

  [Symbol.dispose](): void {
    assert(!this.#released, "a slot is given back once");
    this.#released = true;
    this.#node.busy--;
    this.#queue.release(this.nodeName);
  }
}

/** One configured node: how it is, from what requests met there, and how it is spoken to. */
class PooledNode {
  readonly endpoint: NodeEndpoint;
  health: NodeHealth = "well";
  /** Places that are given on it. */
  busy = 0;
  readonly recent = new RecentReplies();
  readonly #options: PoolOptions;
  readonly #limits: PoolLimits;
  readonly #onHealth: (health: NodeHealth) => void;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  /** With an arrival it is down until then. */
  constructor(
    config: NodeConfig,
    options: PoolOptions,
    limits: PoolLimits,
    onHealth: (health: NodeHealth) => void,
    arrival?: Promise<void>,
  ) {
    this.endpoint = new NodeEndpoint(config, { clock: options.clock, limits, dial: options.dial });
    this.#options = options;
    this.#limits = limits;
    this.#onHealth = onHealth;
    if (arrival !== undefined) {
      this.health = "down";
      void arrival.then(() => this.#isThere());
    } else if (options.detectEngines !== false) void this.#detect();
  }

  get config(): NodeConfig {
    return this.endpoint.config;
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.endpoint.close();
  }

  /** What a request met tells how the node is; healthy nodes are not probed. */
  readonly met = ({ failure, unreachable, overloaded, answered }: Met): void => {
    if (failure !== null) this.#log(failure.operator ? "error" : "warn", `generation failed: ${failure.cause}`);
    if (answered !== null)
      this.recent.add(answered.firstPieceMs, answered.outputTokens, this.#options.clock.monotonic());
    if (this.#closed) return;
    if (unreachable && this.health !== "down") {
      this.#turn("down");
      this.#probeAfter(firstProbeMs);
    } else if (overloaded && this.health === "well") {
      this.#turn("cooling");
      this.#timer = setTimeout(() => this.#turn("well"), this.#limits.coolOffMs);
    }
  };

  #probeAfter(delayMs: Ms): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#probe(delayMs), Math.min(delayMs, this.#limits.probeIntervalMs));
  }

  async #probe(delayMs: Ms): Promise<void> {
    const answer = await this.endpoint.probe();
    if (this.#closed) return;
    // any answer shows that it is there; 503 says that it still loads its model
    if (answer === null || answer.status === 503) return this.#probeAfter(2 * delayMs);
    this.#isThere();
  }

  #isThere(): void {
    if (this.#closed) return;
    this.#turn("well");
    if (this.#options.detectEngines !== false && this.endpoint.engine.kind === "unknown") void this.#detect();
  }

  async #detect(): Promise<void> {
    const engine = await this.endpoint.detect();
    if (engine === null || this.#closed) return;
    this.endpoint.engine = engine;
    this.#options.follower?.engineFound(this.config.name, engine);
    this.#log("info", `engine ${engine.kind}, context ${engine.contextTokens ?? "unknown"}`);
  }

  #turn(health: NodeHealth): void {
    if (this.health === health) return;
    this.health = health;
    this.#log(health === "down" ? "error" : "info", `is ${health}`);
    this.#onHealth(health);
  }

  #log(level: "info" | "warn" | "error", message: string): void {
    this.#options.log({ level, node: this.config.name, message });
  }
}
