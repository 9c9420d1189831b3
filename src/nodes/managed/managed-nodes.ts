// The configured nodes that the gateway starts itself, through every change of the configuration.
//
//   the same program                 -> runs on, with its streams, whatever else about the node has changed
//   another program, or no node      -> gets no new requests, may finish its streams, then is ended
//   a program that does not run yet  -> started once all programs to end have ended: it may need their port or their GPU
import type { ManagedNodeConfig, NodeConfig } from "../../config/config.ts";
import type { Ms } from "../../core/types.ts";
import { ManagedNode, type ManagedNodeParts } from "./managed-node.ts";

export type ManagedNodesParts = ManagedNodeParts &
  Readonly<{
    /** A port that nothing listens on; may return the same one twice. */
    freePort(): number;
    /** The gateway's own port, even before it listens there. */
    ownPort: number;
    busyAt(url: string): number;
    /** How long requests may continue on a program that is to end. */
    leaveGraceMs(): Ms;
  }>;

/** All nodes with their addresses; nodes that others start are unchanged. */
export type AppliedNodes = Readonly<{ nodes: readonly NodeConfig[]; arrivals: Arrivals }>;

/** By name: nodes whose program does not answer yet, or must wait for another to end, and when that is over. */
export type Arrivals = ReadonlyMap<string, Promise<void>>;

/** Stands for a port that is free when the node first starts. */
const portPlace = "{port}";

const leaveCheckMs = 100;

/** `program`: as configured. `port`: null where the configuration names one. */
type Running = Readonly<{ node: ManagedNode; program: string; port: number | null }>;

export class ManagedNodes {
  readonly #parts: ManagedNodesParts;
  #running: Running[] = [];
  /** Unwanted programs, by address. Each promise settles when its program is gone. */
  readonly #ending = new Map<Promise<void>, string>();
  #closed = false;
  /** Ports assigned so far: their nodes may still be loading, and listen on them later. */
  readonly #takenPorts: Set<number>;

  constructor(parts: ManagedNodesParts) {
    this.#parts = parts;
    this.#takenPorts = new Set([parts.ownPort]);
  }

  /** See the table at the top. Apply the result before the next turn, which ends programs without requests. */
  apply(configs: readonly NodeConfig[]): AppliedNodes {
    if (this.#closed) return { nodes: configs, arrivals: new Map() };
    const kept = this.#keptOf(configs.filter(isManaged));
    const wanted = new Set(kept.values());
    for (const running of this.#running) if (!wanted.has(running)) this.#leave(running);
    const before = this.#ending.size === 0 ? null : Promise.all(this.#ending.keys());
    const arrivals = new Map<string, Promise<void>>();
    this.#running = [];
    const nodes = configs.map((given) => {
      if (!isManaged(given)) {
        // From now on another program runs at this address: nothing new goes there until ours is gone.
        const ended = this.#endingAt(given.url);
        if (ended !== null) arrivals.set(given.name, ended);
        return given;
      }
      const running = kept.get(given) ?? this.#start(given, before);
      this.#running.push(running);
      const { node, port } = running;
      const config = (node.config = withPort(given, port));
      if (node.arrival !== null) arrivals.set(config.name, node.arrival);
      return config;
    });
    return { nodes, arrivals };
  }

  async close(): Promise<void> {
    this.#closed = true;
    const running = this.#running;
    this.#running = [];
    await Promise.all([...running.map(({ node }) => node.close()), ...this.#ending.keys()]);
  }

  /** The running program that each node keeps: the one of its name, otherwise one under another name. */
  #keptOf(configs: readonly ManagedNodeConfig[]): ReadonlyMap<NodeConfig, Running> {
    const kept = new Map<NodeConfig, Running>();
    const free = new Set(this.#running);
    for (const renamed of [false, true]) {
      for (const config of configs.filter((each) => !kept.has(each))) {
        const isIts = ({ program, node }: Running) =>
          program === programOf(config) && (renamed || node.config.name === config.name);
        const running = [...free].find(isIts);
        if (running === undefined) continue;
        kept.set(config, running);
        free.delete(running);
      }
    }
    return kept;
  }

  #leave({ node }: Running): void {
    const { url } = node.config;
    const ended = this.#whenLeft(url).then(() => node.close());
    this.#ending.set(ended, url);
    void ended.then(() => this.#ending.delete(ended));
  }

  #endingAt(address: string): Promise<void> | null {
    for (const [ended, url] of this.#ending) if (url === address) return ended;
    return null;
  }

  /** Resolves when no request runs there, or when their time is up. */
  async #whenLeft(url: string): Promise<void> {
    const { clock, busyAt, leaveGraceMs } = this.#parts;
    const since = clock.monotonic();
    await null; // see `apply`
    while (!this.#closed && busyAt(url) > 0 && clock.monotonic() - since < leaveGraceMs())
      await Bun.sleep(leaveCheckMs);
  }

  #freePort(): number {
    let port = this.#parts.freePort();
    while (this.#takenPorts.has(port)) port = this.#parts.freePort();
    this.#takenPorts.add(port);
    return port;
  }

  #start(config: ManagedNodeConfig, before: Promise<unknown> | null): Running {
    const port = config.url.includes(portPlace) ? this.#freePort() : null;
    return { port, program: programOf(config), node: new ManagedNode(withPort(config, port), this.#parts, before) };
  }
}

const isManaged = (config: NodeConfig): config is ManagedNodeConfig => config.managed !== undefined;

/** The parts that cannot change while it runs. */
function programOf({ url, managed: { command, environment, folder } }: ManagedNodeConfig): string {
  return JSON.stringify([url, command, environment, folder]);
}

function withPort(config: ManagedNodeConfig, port: number | null): ManagedNodeConfig {
  if (port === null) return config;
  const fill = (text: string): string => text.replaceAll(portPlace, String(port));
  return {
    ...config,
    url: fill(config.url),
    managed: { ...config.managed, command: config.managed.command.map(fill) },
  };
}
