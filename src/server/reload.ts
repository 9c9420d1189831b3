// Applies a changed configuration to the running server without touching open streams: each option that is another one as
// its row in `config/options.ts` says. All that can fail is done before anything changes, so that a wrong file changes nothing.
import { type Config, optionEntries } from "../config/config.ts";
import { ConfigError } from "../config/faults.ts";
import { catalogOf, configuredCatalog } from "../config/configured-catalog.ts";
import type { AnyOption } from "../config/option.ts";
import type { Running } from "../config/running.ts";
import type { Clock } from "../core/clock.ts";
import type { NodePool } from "../nodes/queue/pool.ts";
import { engineInWords } from "../nodes/engine.ts";
import { isExpected } from "../core/expected-error.ts";
import type { Log } from "../core/log.ts";
import type { Ms } from "../core/types.ts";
import type { ReloadOutcome, ReloadReport } from "../office/reloaded.ts";
import { checkPrograms } from "./fleet/nodes.ts";

export type ReloadParts = Readonly<{
  clock: Clock;
  /** Reads the configuration again, from where it was read at the start. Throws ConfigError. */
  load(): Promise<Config>;
  running: Running;
  pool: Pick<NodePool, "states" | "lookNow">;
  /** What the nodes' programs get. */
  environment(): Readonly<Record<string, string>>;
  log: Log;
  /** Called before anything of the new configuration is used. */
  adopting(config: Config): void;
  /** Called when all of it that can be is in force here: other threads follow. */
  adopted(config: Config): Promise<void>;
}>;

export class Reloader {
  readonly #parts: ReloadParts;
  readonly #atStart: Config;
  #config: Config;
  #loadedAt: Ms;
  /** One at a time: a later signal waits for what the earlier one does. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(config: Config, parts: ReloadParts) {
    this.#atStart = config;
    this.#config = config;
    this.#parts = parts;
    this.#loadedAt = parts.clock.wall();
  }

  get loadedAt(): Ms {
    return this.#loadedAt;
  }

  /** Throws what is wrong with the configuration; then nothing has changed. */
  apply(): Promise<ReloadReport> {
    const report = this.#last.then(() => this.#apply());
    this.#last = report.catch(() => {}); // the caller gets the error
    return report;
  }

  /** For SIGHUP and the console: the log reports the outcome, too. */
  async applyAndLog(): Promise<ReloadOutcome> {
    const { log } = this.#parts;
    try {
      const report = await this.apply();
      const { applied, needsRestart } = report;
      log(needsRestart.length > 0 ? "warn" : "info", "configuration applied", {
        changed: applied.join(", ") || "nothing",
        needs_restart: needsRestart.join(", ") || "nothing",
      });
      return report;
    } catch (error) {
      if (!isExpected(error)) throw error;
      const refused = (error as Error).message;
      log("error", "configuration not applied; the old one stays", { reason: refused });
      return { refused };
    }
  }

  async #apply(): Promise<ReloadReport> {
    const { clock, load, pool, adopting, adopted } = this.#parts;
    const loadedAt = clock.wall();
    const next = await load();
    // Editors that truncate the file before they write it were met in between: everybody had the default plans then.
    if (next.isBlank && !this.#config.isBlank) {
      throw new ConfigError(`${next.file} is empty, as while it is written: write a comment into it to mean that`);
    }
    const { needsRestart, changes } = await this.#planned(next);
    adopting(next);
    for (const { make } of changes.toSorted((one, other) => Number(other.canFail) - Number(one.canFail))) await make();
    const found = await otherEngines(pool);
    await adopted(next);
    this.#loadedAt = loadedAt;
    this.#config = next;
    const report = { applied: changes.map(({ name }) => name), needsRestart };
    return found.length === 0 ? report : { ...report, found };
  }

  /** What would be applied of another configuration. Throws what is wrong with it. */
  async rehearse(next: Config): Promise<ReloadReport> {
    const { needsRestart, changes } = await this.#planned(next);
    return { applied: changes.map(({ name }) => name), needsRestart };
  }

  async #planned(next: Config): Promise<Readonly<{ needsRestart: readonly string[]; changes: readonly Change[] }>> {
    const { running, environment } = this.#parts;
    const { models, plans } = next;
    const derived = { catalog: await catalogOf(next), models, plans };
    configuredCatalog(next, derived.catalog);
    checkPrograms(next.nodes, environment());

    const needsRestart: string[] = [];
    const changes: Change[] = [];
    for (const [name, option] of optionEntries as readonly (readonly [keyof Config, AnyOption])[]) {
      const { change } = option;
      const isOther = (than: Config): boolean => JSON.stringify(than[name]) !== JSON.stringify(next[name]);
      if (change.reload === null ? isOther(this.#atStart) : change.beyond?.is(this.#atStart[name], next[name])) {
        needsRestart.push(option.name);
      } else if (change.reload !== null && (change.differs?.(running, derived) ?? isOther(this.#config))) {
        const { reload, canFail = false } = change;
        changes.push({ name: option.name, canFail, make: () => reload(running, next[name], derived) });
      }
    }
    return { needsRestart, changes };
  }
}

type Change = Readonly<{ name: string; canFail: boolean; make(): void | Promise<void> }>;

/** Looks at all nodes; those that turned out to be others than before, in words. */
async function otherEngines(pool: Pick<NodePool, "states" | "lookNow">): Promise<readonly string[]> {
  const before = new Map(pool.states().map(({ name, engine }) => [name, engine]));
  await pool.lookNow();
  return pool.states().flatMap(({ name, engine }) => {
    const was = before.get(name) ?? engine;
    return was.models.length === 0 || engine === was ? [] : [`node ${name} is ${engineInWords(engine)} now`];
  });
}
