// Passes on to relays what the pool says about its nodes: to running relays at once, to later ones all of it at their
// start.
import type { NodeConfig } from "../config/config.ts";
import type { Engine } from "../nodes/engine.ts";
import type { PoolFollower } from "../nodes/queue/pool.ts";
import type { NodeHealth } from "../nodes/queue/slot-queue.ts";
import type { News } from "./messages.ts";

export class FollowedNodes implements PoolFollower {
  onNews: (news: News) => void = () => {};
  #nodes: readonly NodeConfig[] = [];
  readonly #engines = new Map<string, Engine>();
  readonly #health = new Map<string, NodeHealth>();
  #drained: readonly string[] = [];

  nodesChanged(nodes: readonly NodeConfig[]): void {
    this.#nodes = nodes;
    this.onNews({ news: "nodes", nodes });
  }

  engineFound(node: string, engine: Engine): void {
    this.#engines.set(node, engine);
    this.onNews({ news: "engine", node, engine });
  }

  healthChanged(node: string, health: NodeHealth): void {
    this.#health.set(node, health);
    this.onNews({ news: "health", node, health });
  }

  drainedChanged(nodes: readonly string[]): void {
    this.#drained = nodes;
    this.onNews({ news: "drained", nodes });
  }

  /** Everything that a new relay must know, in order. */
  *known(): Iterable<News> {
    yield { news: "nodes", nodes: this.#nodes };
    for (const [node, engine] of this.#engines) yield { news: "engine", node, engine };
    for (const [node, health] of this.#health) yield { news: "health", node, health };
    yield { news: "drained", nodes: this.#drained };
  }
}
