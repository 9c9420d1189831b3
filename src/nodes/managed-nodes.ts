// The nodes of the configuration that the gateway starts itself, through every change of the configuration: those whose
// configuration stays the same run on.
import type { ManagedNodeConfig, NodeConfig } from "../config.ts";
import { ManagedNode, type ManagedNodeParts } from "./managed-node.ts";

export type ManagedNodesParts = ManagedNodeParts &
  Readonly<{
    /** A port that nothing listens on; it may give the same one twice. */
    freePort(): number;
    /** The gateway's own port, on which it may not listen yet. */
    ownPort: number;
  }>;

/** Stands for a port that is free when the node is first started. */
const portPlace = "{port}";

type Running = Readonly<{ node: ManagedNode; config: NodeConfig }>;

export class ManagedNodes {
  readonly #parts: ManagedNodesParts;
  /** By the configuration as it was given. */
  #running = new Map<string, Running>();
  /** Given away so far: their nodes may be loading still, and listen on them later. */
  readonly #takenPorts: Set<number>;

  constructor(parts: ManagedNodesParts) {
    this.#parts = parts;
    this.#takenPorts = new Set([parts.ownPort]);
  }

  /**
   * Starts what is new and ends what is no longer there. Gives all nodes with their addresses, those of others as they
   * were given. Two nodes never share a port, even while one of them is being replaced.
   */
  apply(configs: readonly NodeConfig[]): readonly NodeConfig[] {
    const before = this.#running;
    this.#running = new Map();
    const nodes = configs.map((config) => {
      if (!isManaged(config)) return config;
      const key = JSON.stringify(config);
      const running = before.get(key) ?? this.#start(config);
      before.delete(key);
      this.#running.set(key, running);
      return running.config;
    });
    for (const { node } of before.values()) void node.close();
    return nodes;
  }

  /** Ends all of them; resolves when they are gone. */
  async close(): Promise<void> {
    const running = [...this.#running.values()];
    this.#running.clear();
    await Promise.all(running.map(({ node }) => node.close()));
  }

  #freePort(): number {
    let port = this.#parts.freePort();
    while (this.#takenPorts.has(port)) port = this.#parts.freePort();
    this.#takenPorts.add(port);
    return port;
  }

  #start(given: ManagedNodeConfig): Running {
    const config = given.url.includes(portPlace) ? withPort(given, this.#freePort()) : given;
    return { config, node: new ManagedNode(config, this.#parts) };
  }
}

const isManaged = (config: NodeConfig): config is ManagedNodeConfig => config.managed !== undefined;

function withPort(config: ManagedNodeConfig, port: number): ManagedNodeConfig {
  const fill = (text: string): string => text.replaceAll(portPlace, String(port));
  return {
    ...config,
    url: fill(config.url),
    managed: { ...config.managed, command: config.managed.command.map(fill) },
  };
}
