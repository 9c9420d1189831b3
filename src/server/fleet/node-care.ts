// What operators do to nodes, by a command or in the console: drain and resume them, and try them with a token. Which are
// drained is kept in a file of the data folder: a restart, a reload and a restored backup change nothing about it.
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Catalog } from "../../core/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import { CommandError } from "../../core/expected-error.ts";
import type { Log } from "../../core/log.ts";
import type { Model, Ms } from "../../core/types.ts";
import { modelsOn } from "../../nodes/abilities.ts";
import type { NodePool, NodeState } from "../../nodes/queue/pool.ts";
import type { Tested } from "../../nodes/queue/test-request.ts";
import type { DrainReport } from "../../office/work.ts";
import { drainedName } from "../../store/folder/data-folder.ts";
import { readWhole, writeWhole } from "../../store/folder/whole-file.ts";

export type TestReport = Tested & Readonly<{ name: string; model: string | null }>;

type Parts = Readonly<{
  dataFolder: string;
  pool: Pick<NodePool, "drain" | "states" | "test">;
  catalog: Pick<Catalog, "models">;
  clock: Clock;
  log: Log;
}>;

export class NodeCare {
  readonly #parts: Parts;
  readonly #file: string;
  /** By name, since when; also of nodes that are not configured at the moment. */
  #drained: ReadonlyMap<string, Ms>;
  readonly #testing = new Set<string>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#file = join(parts.dataFolder, drainedName);
    this.#drained = this.#read();
    if (this.#drained.size > 0) parts.pool.drain(this.#drained);
  }

  drain(name: string): DrainReport {
    this.#nodeOf(name);
    if (!this.#drained.has(name)) this.#keep(new Map([...this.#drained, [name, this.#parts.clock.wall()]]));
    return this.#reportOf(name);
  }

  /** Throws CommandError where there is no such node, and none was drained under that name. */
  resume(name: string): DrainReport {
    if (!this.#drained.has(name)) this.#nodeOf(name);
    else this.#keep(new Map([...this.#drained].filter(([drained]) => drained !== name)));
    return this.#reportOf(name);
  }

  /** Asks it for one token. Throws CommandError where there is no such node, or it is being tried. */
  async test(name: string): Promise<TestReport> {
    const node = this.#nodeOf(name);
    if (this.#testing.has(name)) throw new CommandError(`the node ${name} is being tried already`);
    const model = this.#modelOf(node);
    const untried = { name, model: null, firstTokenMs: null, tookMs: 0 };
    if (node.health === "starting") return { ...untried, problem: "its program is starting" };
    if (model === null) return { ...untried, problem: "it is asked for no model" };
    this.#testing.add(name);
    try {
      return { name, model: model.id, ...(await this.#parts.pool.test(name, model)) };
    } finally {
      this.#testing.delete(name);
    }
  }

  #nodeOf(name: string): NodeState {
    const states = this.#parts.pool.states();
    const node = states.find((state) => state.name === name);
    if (node !== undefined) return node;
    const names = states.map((state) => state.name).join(", ") || "none";
    throw new CommandError(`there is no node ${JSON.stringify(name)}; those that are configured: ${names}`);
  }

  /** One that gives answers, where it has one. */
  #modelOf(node: NodeState): Model | null {
    const { pool, catalog } = this.#parts;
    const models = modelsOn(pool.states(), catalog.models)(node);
    return models.find(({ kind }) => kind === "chat") ?? models[0] ?? null;
  }

  #reportOf(name: string): DrainReport {
    const busy = this.#parts.pool.states().find((state) => state.name === name)?.busy ?? 0;
    return { name, drained: this.#drained.has(name), busy };
  }

  /** On disk before it is so. */
  #keep(drained: ReadonlyMap<string, Ms>): void {
    if (drained.size === 0) rmSync(this.#file, { force: true });
    else writeWhole(this.#file, Buffer.from(`${JSON.stringify(Object.fromEntries(drained))}\n`));
    this.#drained = drained;
    this.#parts.pool.drain(drained);
  }

  /** A file that cannot be understood must not keep a server from starting. */
  #read(): ReadonlyMap<string, Ms> {
    try {
      const bytes = readWhole(this.#file);
      const written: unknown = bytes === null ? {} : JSON.parse(Buffer.from(bytes).toString());
      const since = Object.entries(written as object).filter(([, at]) => typeof at === "number") as [string, Ms][];
      const now = this.#parts.clock.wall();
      // What is no time, or one to come, is a drained node nevertheless.
      return new Map(since.map(([name, at]) => [name, Math.max(0, Math.min(at, now))]));
    } catch (thrown) {
      const reason = (thrown as Error).message;
      this.#parts.log("error", "the list of drained nodes cannot be read: none counts as drained", {
        file: this.#file,
        reason,
      });
      return new Map();
    }
  }
}
