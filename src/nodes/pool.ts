// The nodes as one: which are well, who gets a slot, and generations on a slot. Composition of the slot queue (decides),
// the clients (connections) and the generations; timers and promises live here.
import { assert } from "../assert.ts";
import type { Clock } from "../clock.ts";
import { modelNameOn, type NodeConfig } from "../config.ts";
import {
  nodeAfterFinishMs,
  nodeConnectTimeoutMs,
  nodeCoolOffMs,
  nodeCountBytesMax,
  nodeCountsBytesMax,
  nodeFirstPieceMs,
  nodeIdleSocketMs,
  nodeProbeIntervalMs,
  nodeProbeTimeoutMs,
  nodeStallMs,
} from "../limits.ts";
import type { AccountId, Ask, Ending, Model, Ms, Refusal, Sink, Slot } from "../types.ts";
import { NodeClient, originOf } from "./client.ts";
import type { Dial } from "./client.ts";
import { detectEngine, unknownEngine } from "./engine.ts";
import type { Engine } from "./engine.ts";
import { busy } from "./failure.ts";
import { generate } from "./generation.ts";
import type { GenerationLimits, Outcome } from "./generation.ts";
import { get } from "./get.ts";
import { type Quickness, RecentReplies } from "./recent-replies.ts";
import { nodeRequest } from "./request.ts";
import { requestHead } from "./request-head.ts";
import { SlotQueue } from "./slot-queue.ts";
import type { NodeHealth, Place, RefusalCause } from "./slot-queue.ts";
import { askForCount, countRequestOfAsk, countRequestOfText } from "./token-count.ts";
import type { CountRequest } from "./token-count.ts";

/** Time limits of the pool, in milliseconds; the defaults are those of limits.ts. */
export type PoolLimits = GenerationLimits &
  Readonly<{
    connectTimeoutMs: number;
    idleSocketMs: number;
    probeIntervalMs: number;
    probeTimeoutMs: number;
    coolOffMs: number;
  }>;

const defaultLimits: PoolLimits = {
  firstPieceMs: nodeFirstPieceMs,
  stallMs: nodeStallMs,
  afterFinishMs: nodeAfterFinishMs,
  connectTimeoutMs: nodeConnectTimeoutMs,
  idleSocketMs: nodeIdleSocketMs,
  probeIntervalMs: nodeProbeIntervalMs,
  probeTimeoutMs: nodeProbeTimeoutMs,
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
}>;

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
/** This much of the prompt's start decides which node has it cached. */
const affinityCharacters = 1_024;

/** All configured nodes. */
export class NodePool {
  readonly #options: PoolOptions;
  readonly #limits: PoolLimits;
  readonly #queue: SlotQueue;
  #nodes = new Map<string, PooledNode>();
  #expiry: ReturnType<typeof setTimeout> | null = null;
  /** What nodes are counting now. */
  #countedBytes = 0;
  #closed = false;

  constructor(nodes: readonly NodeConfig[], options: PoolOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#queue = new SlotQueue(options.queueMaxWaitMs);
    this.reconfigure(nodes);
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
    gone: AbortSignal,
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

  /** Applies another configuration. Running generations end where they are; those who wait stay in line. */
  reconfigure(configs: readonly NodeConfig[], queueMaxWaitMs = this.#queue.maxWaitMs): void {
    this.#queue.maxWaitMs = queueMaxWaitMs;
    const named = new Set(configs.flatMap(({ models }) => Object.keys(models)));
    const before = this.#nodes;
    this.#nodes = new Map();
    for (const config of configs) {
      const known = before.get(config.name);
      if (known !== undefined && known.config.url === config.url && known.config.apiKey === config.apiKey) {
        known.config = config;
        this.#nodes.set(config.name, known);
        before.delete(config.name);
      } else this.#nodes.set(config.name, this.#open(config));
    }
    for (const old of before.values()) old.close();
    this.#queue.configure(
      configs.map(({ name, slots, models }) => ({
        name,
        slots,
        serves: (modelId) => Object.hasOwn(models, modelId) || ("*" in models && !named.has(modelId)),
      })),
    );
    // a node that kept its name and moved is believed to be well until a request meets it
    for (const { config, health } of this.#nodes.values()) this.#queue.setHealth(config.name, health);
    this.#disarmExpiry();
    this.#armExpiry();
  }

  /** Tokens of the prompt that the request becomes on its node; null where no well node for the model can tell. */
  countAsk(ask: Ask, gone: AbortSignal): Promise<number | null> {
    return this.#count(ask.model, ask.bodyBytes, gone, (node) => node.countRequestOfAsk(ask));
  }

  /** Tokens of a text alone, as the model reads it; null where no well node for the model can tell. */
  countText(model: Model, text: string, gone: AbortSignal): Promise<number | null> {
    return this.#count(model, text.length, gone, (node) => node.countRequestOfText(model.id, text));
  }

  states(): NodeState[] {
    return this.#queue.states().map((state) => {
      const { engine, config, recent } = this.#nodes.get(state.name)!;
      return { ...state, engine, models: config.models, quickness: recent.quickness(this.#now()) };
    });
  }

  /** Refuses everything new and those who wait, and closes idle connections. Running generations may end. */
  close(): Promise<void> {
    this.#closed = true;
    this.reconfigure([]);
    return Promise.resolve();
  }

  slotOn(nodeName: string): Slot {
    const node = this.#nodes.get(nodeName);
    assert(node !== undefined, `a slot was given on ${nodeName}, which is not configured`);
    return new NodeSlot(this.#queue, node);
  }

  leave(place: QueuedPlace): boolean {
    return this.#queue.leave(place);
  }

  /** `size`: about the bytes that the node would tokenize. */
  async #count(
    model: Model,
    size: number,
    gone: AbortSignal,
    requestFor: (node: PooledNode) => CountRequest | null,
  ): Promise<number | null> {
    if (size > nodeCountBytesMax || this.#countedBytes + size > nodeCountsBytesMax) return null;
    for (const node of this.#nodes.values()) {
      if (node.health !== "well" || !this.#queue.servesOn(node.config.name, model.id)) continue;
      const request = requestFor(node);
      if (request === null) continue;
      this.#countedBytes += size;
      try {
        return await node.count(request, gone);
      } finally {
        this.#countedBytes -= size;
      }
    }
    return null;
  }

  #open(config: NodeConfig): PooledNode {
    return new PooledNode(config, this.#options, this.#limits, (health) => {
      if (this.#nodes.get(config.name)?.config.url === config.url) this.#queue.setHealth(config.name, health);
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
  wait(gone: AbortSignal): Promise<Slot | Refusal> {
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
class NodeSlot implements Slot {
  readonly #queue: SlotQueue;
  readonly #node: PooledNode;
  #released = false;

  constructor(queue: SlotQueue, node: PooledNode) {
    this.#queue = queue;
    this.#node = node;
  }

  get nodeName(): string {
    return this.#node.config.name;
  }

  generate(ask: Ask, account: AccountId, gone: AbortSignal, sink: Sink, began?: () => void): Promise<Ending> {
    assert(!this.#released, "no generation on a slot that was given back");
    return this.#node.generate(ask, account, gone, sink, began);
  }

  [Symbol.dispose](): void {
    assert(!this.#released, "a slot is given back once");
    this.#released = true;
    this.#queue.release(this.nodeName);
  }
}

/** One configured node: its connections, its engine and how it is. */
class PooledNode {
  config: NodeConfig;
  health: NodeHealth = "well";
  engine: Engine = unknownEngine;
  readonly recent = new RecentReplies();
  readonly #client: NodeClient;
  readonly #options: PoolOptions;
  readonly #limits: PoolLimits;
  readonly #onHealth: (health: NodeHealth) => void;
  readonly #basePath: string;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  constructor(config: NodeConfig, options: PoolOptions, limits: PoolLimits, onHealth: (health: NodeHealth) => void) {
    this.config = config;
    this.#options = options;
    this.#limits = limits;
    this.#onHealth = onHealth;
    const url = new URL(config.url);
    this.#basePath = url.pathname.replace(/\/+$/, "");
    const { clock, dial } = options;
    this.#client = new NodeClient(originOf(url), { clock, ...limits, ...(dial === undefined ? {} : { dial }) });
    if (options.detectEngines !== false) void this.#detect();
  }

  async generate(
    ask: Ask,
    account: AccountId,
    gone: AbortSignal,
    sink: Sink,
    beganThere?: () => void,
  ): Promise<Ending> {
    const { apiKey, models, depth, thinkTagOpened = [] } = this.config;
    const nodeModel = modelNameOn(models, ask.model.id, this.engine.models);
    const { body, textIsCallOf } = nodeRequest(ask, account, nodeModel, this.engine.kind, depth);
    const opened = ask.effort !== "off" && thinkTagOpened.some((name) => name === nodeModel || name === "*");
    const path = `${this.#basePath}/chat/completions`;
    const head = requestHead("POST", path, this.#client.origin.hostHeader, apiKey, Buffer.byteLength(body));
    const request = Buffer.from(head + body);
    const client = this.#client;
    const { clock } = this.#options;
    const askedAt = clock.monotonic();
    let firstPieceMs: Ms | null = null;
    const began = (): void => {
      firstPieceMs = clock.monotonic() - askedAt;
      beganThere?.();
    };
    const outcome = await generate({
      ask,
      request,
      textIsCallOf,
      thinkTagOpened: opened,
      client,
      limits: this.#limits,
      gone,
      sink,
      began,
    });
    this.#met(outcome);
    const { ending } = outcome;
    if (ending.kind === "end" && firstPieceMs !== null) {
      this.recent.add(firstPieceMs, ending.usage.output, clock.monotonic());
    }
    return ending;
  }

  /** As for account 0: whose request it is changes the key of the node's prompt cache, not the prompt. */
  countRequestOfAsk(ask: Ask): CountRequest | null {
    const nodeModel = modelNameOn(this.config.models, ask.model.id, this.engine.models);
    return countRequestOfAsk(
      ask,
      () => nodeRequest(ask, 0, nodeModel, this.engine.kind, this.config.depth).body,
      this.engine.kind,
    );
  }

  countRequestOfText(modelId: string, text: string): CountRequest | null {
    return countRequestOfText(text, modelNameOn(this.config.models, modelId, this.engine.models), this.engine.kind);
  }

  count({ path, body }: CountRequest, gone: AbortSignal): Promise<number | null> {
    const root = this.#basePath.replace(/\/v1$/, "");
    return askForCount(this.#client, { path: root + path, body }, this.config.apiKey, gone);
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#client.close();
  }

  /** What a request met tells how the node is; healthy nodes are not probed. */
  #met({ failure, unreachable, overloaded }: Outcome): void {
    if (failure !== null) this.#log(failure.operator ? "error" : "warn", `generation failed: ${failure.cause}`);
    if (this.#closed) return;
    if (unreachable && this.health !== "down") {
      this.#turn("down");
      this.#probeAfter(firstProbeMs);
    } else if (overloaded && this.health === "well") {
      this.#turn("cooling");
      this.#timer = setTimeout(() => this.#turn("well"), this.#limits.coolOffMs);
    }
  }

  #probeAfter(delayMs: Ms): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#probe(delayMs), Math.min(delayMs, this.#limits.probeIntervalMs));
  }

  async #probe(delayMs: Ms): Promise<void> {
    const path = `${this.#basePath}/models`;
    const answer = await get(this.#client, path, this.config.apiKey, this.#limits.probeTimeoutMs);
    if (this.#closed) return;
    // any answer shows that it is there; 503 says that it still loads its model
    if (answer === null || answer.status === 503) return this.#probeAfter(2 * delayMs);
    this.#turn("well");
    if (this.#options.detectEngines !== false && this.engine.kind === "unknown") void this.#detect();
  }

  async #detect(): Promise<void> {
    const engine = await detectEngine(this.#client, this.#basePath, this.config.apiKey, this.#limits.probeTimeoutMs);
    if (engine === null || this.#closed) return;
    this.engine = engine;
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

/** Hash of what two requests share when their prompts begin alike: account, model, system, tools, first user message. */
function affinityOf(ask: Ask, account: AccountId): number {
  let start = "";
  for (const turn of ask.turns) {
    if (start.length >= affinityCharacters || turn.role === "assistant" || turn.role === "tool") break;
    start +=
      typeof turn.content === "string"
        ? turn.content
        : turn.content.map((part) => (part.kind === "text" ? part.text : "")).join("");
    if (turn.role === "user") break;
  }
  for (const { name } of ask.tools) {
    if (start.length >= affinityCharacters) break;
    start += name;
  }
  return Number(
    BigInt.asUintN(52, BigInt(Bun.hash(`${account} ${ask.model.id} ${start.slice(0, affinityCharacters)}`))),
  );
}
