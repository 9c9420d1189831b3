// The nodes as a relay sees them: it talks to them on slots that the main thread grants.
import { personOf } from "../nodes/prefix-cache.ts";
import { usualStanding } from "../core/standing.ts";
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import type { Clock } from "../core/clock.ts";
import type { Outlook } from "../core/forecast.ts";
import type { NodeConfig } from "../config/config.ts";
import type { Engine } from "../nodes/engine.ts";
import { busy } from "../nodes/failure/failure.ts";
import { KnownNodes } from "../nodes/known-nodes.ts";
import {
  endpointLimitsDefault,
  type EstimateOfPrompt,
  type NodeOutcome,
  NodeEndpoint,
  type Sender,
} from "../nodes/node-endpoint.ts";
import type { NodeModelOf } from "../nodes/model-routes.ts";
import { entrantOf, nodesAfter, type PoolFollower } from "../nodes/queue/pool.ts";
import type { NodeHealth } from "../nodes/queue/slot-queue.ts";
import { assert } from "../core/assert.ts";
import { isRefusal } from "../core/refusals.ts";
import type { AccountId, Ask, Ending, Refusal, Sink, Slot } from "../core/types.ts";
import type { MainThreadClient } from "./main-thread-client.ts";

type KnownNode = { readonly endpoint: NodeEndpoint; health: NodeHealth };

export class RelayPool extends KnownNodes<KnownNode> implements PoolFollower {
  readonly #mainThread: MainThreadClient;
  readonly #clock: Clock;
  readonly #estimate: EstimateOfPrompt | null;
  readonly #saltSeed: bigint;

  constructor(
    mainThread: MainThreadClient,
    clock: Clock,
    estimate: EstimateOfPrompt | null = null,
    nodeModelOf: NodeModelOf = () => null,
    saltSeed = 0n,
  ) {
    super(nodeModelOf);
    this.#saltSeed = saltSeed;
    this.#mainThread = mainThread;
    this.#clock = clock;
    this.#estimate = estimate;
  }

  enter(
    ask: Ask,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
    excluded: ReadonlySet<string> = none,
    standing = usualStanding,
  ): Refusal | Promise<Slot | Refusal> {
    if (cancelSignal.aborted) return busy;
    const entrant = entrantOf(ask, account, excluded, standing, this.serving(ask.model.id));
    if (isRefusal(entrant)) return entrant;
    const { beginBy, member, priority } = standing;
    const deadlineMs = beginBy === undefined ? undefined : Math.max(0, beginBy - this.#clock.monotonic());
    return this.#mainThread.enter({ ...entrant, deadlineMs }, cancelSignal, (place, node, plan) => {
      const known = this.nodes.get(node);
      assert(known !== undefined, "a place is on a node that this relay knows");
      const sender = { person: personOf(member), plan, priority };
      return new RelaySlot(this, this.#mainThread, place, node, known.endpoint, sender);
    });
  }

  /** See Parts.pool. The first forecast arrives a moment after it was asked for. */
  forecastOf(waiting: Promise<Slot | Refusal>): Outlook | null {
    return this.#mainThread.forecastOf(waiting);
  }

  /** Requests on a removed node finish there. */
  nodesChanged(configs: readonly NodeConfig[]): void {
    const { nodes, gone } = nodesAfter(this.nodes, configs, (config): KnownNode => {
      const limits = endpointLimitsDefault;
      const [estimate, nodeModelOf, saltSeed] = [this.#estimate, this.nodeModelOf, this.#saltSeed];
      const options = { clock: this.#clock, limits, estimate, nodeModelOf, saltSeed, looks: true };
      const endpoint = new NodeEndpoint(config, options);
      return { endpoint, health: "well" };
    });
    this.nodes = nodes;
    for (const { endpoint } of gone) endpoint.close();
  }

  engineFound(node: string, engine: Engine): void {
    const known = this.nodes.get(node);
    if (known !== undefined) known.endpoint.engine = engine;
  }

  healthChanged(node: string, health: NodeHealth): void {
    const known = this.nodes.get(node);
    if (known !== undefined) known.health = health;
  }

  drainedChanged(nodes: readonly string[]): void {
    this.drained = new Set(nodes);
  }
}

const none: ReadonlySet<string> = new Set();

/** A slot granted by the main thread; giving it back also reports the outcome. */
class RelaySlot implements Slot {
  readonly nodeName: string;
  readonly #pool: RelayPool;
  readonly #mainThread: MainThreadClient;
  readonly #place: number;
  readonly #endpoint: NodeEndpoint;
  #outcome: NodeOutcome | null = null;
  #released = false;

  constructor(
    pool: RelayPool,
    mainThread: MainThreadClient,
    place: number,
    nodeName: string,
    endpoint: NodeEndpoint,
    readonly sender: Omit<Sender, "account">,
  ) {
    this.#pool = pool;
    this.#mainThread = mainThread;
    this.#place = place;
    this.nodeName = nodeName;
    this.#endpoint = endpoint;
  }

  alike(modelId: string): ReadonlySet<string> {
    return this.#pool.alikeTo(this.#endpoint, modelId);
  }

  run(ask: Ask, account: AccountId, cancelSignal: AnyCancelSignal, sink: Sink, began?: () => void): Promise<Ending> {
    assert(!this.#released, "no generation on a slot that was given back");
    const begins = (): void => {
      this.#mainThread.began(this.#place);
      began?.();
    };
    const outcome = (outcome: NodeOutcome): void => void (this.#outcome = outcome);
    return this.#endpoint.send(ask, { ...this.sender, account }, cancelSignal, sink, outcome, begins);
  }

  get cause(): string | null {
    return this.#outcome?.failure?.cause ?? null;
  }

  [Symbol.dispose](): void {
    assert(!this.#released, "a slot is given back once");
    this.#released = true;
    this.#mainThread.done(this.#place, this.#outcome);
  }
}
