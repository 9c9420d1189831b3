// What happened in each minute of the last day and in each hour and day of the last 90, in a file of its own: the operators'
// charts are made of it. A Worker writes every few seconds; a power cut may take the last rows.
import { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import {
  type Activity,
  activityCounts,
  type ActivityKind,
  type ActivityRange,
  type ActivityRow,
  type ActivitySplit,
  type ActivityTotal,
  type EarlierActivity,
} from "../../core/activity.ts";
import { activityNamesMax } from "../../core/limits.ts";
import { dayMs } from "../../core/units.ts";
import type { Ms } from "../../core/types.ts";
import {
  activityLevels,
  activityOf,
  type ActivityTable,
  addRow,
  addValues,
  beganLevelOf,
  boundsOf,
  emptySum,
  levelOf,
  type Sum,
  totalsOf,
  type Values,
  valuesOf,
} from "./activity-sums.ts";

/** Raised when the tables change: what another version wrote is let go of. */
const storeVersion = 2;
const columns = activityCounts
  .map((name) => (name === "cachedInput" ? "cached_input" : name))
  .map((name) => `"${name}"`);
const createTable = (table: ActivityTable): string => `
  CREATE TABLE ${table} (
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    name TEXT NOT NULL,
    ${columns.map((column) => `${column} INTEGER NOT NULL,`).join("\n    ")}
    -- JSON: pairs of a bucket and how many fell into it
    wait TEXT NOT NULL,
    first_token TEXT NOT NULL,
    PRIMARY KEY (kind, at, name)
  ) STRICT, WITHOUT ROWID`;

export class ActivityStore {
  readonly #database: Database;
  readonly #statements: Readonly<Record<ActivityTable, ReturnType<typeof prepare>>>;

  private constructor(database: Database) {
    this.#database = database;
    this.#statements = {
      minutes: prepare(database, "minutes"),
      hours: prepare(database, "hours"),
      days: prepare(database, "days"),
    };
  }

  /** Opens the file, and makes it where there is none that can be read. Throws what SQLite throws. */
  static open(file: string): ActivityStore {
    try {
      return ActivityStore.#openFitting(file);
    } catch {
      for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
      return ActivityStore.#openFitting(file);
    }
  }

  static #openFitting(file: string): ActivityStore {
    const database = new Database(file, { readwrite: true, create: true, strict: true });
    try {
      database.run("PRAGMA journal_mode = WAL");
      database.run("PRAGMA synchronous = OFF");
      const { user_version } = database.query("PRAGMA user_version").get() as { user_version: number };
      if (user_version === 0) {
        database.transaction(() => {
          for (const { table } of activityLevels) database.run(createTable(table));
          database.run(`PRAGMA user_version = ${storeVersion}`);
        })();
      } else if (user_version === 1) return ActivityStore.#withDays(database);
      else if (user_version !== storeVersion) throw new Error(`the activity file has version ${user_version}`);
      return new ActivityStore(database);
    } catch (thrown) {
      database.close();
      throw thrown;
    }
  }

  /** The first version had no days: they are sums of its hours. */
  static #withDays(database: Database): ActivityStore {
    return database.transaction(() => {
      database.run(createTable("days"));
      const store = new ActivityStore(database);
      const hours = database.prepare<unknown, []>(
        `SELECT kind, at, name, ${columns.join(", ")}, wait, first_token FROM hours ORDER BY kind, at`,
      );
      let day = "";
      const sums = new Map<string, Sum>();
      const put = (): void => {
        const [kind = "", at = ""] = day.split(" ");
        for (const [name, sum] of sums) store.#statements.days.put.run(kind, Number(at), name, ...valuesOf(sum));
        sums.clear();
      };
      for (const [kind, at, ...values] of hours.values() as unknown as [ActivityKind, Ms, ...Values][]) {
        const of = `${kind} ${Math.floor(at / dayMs) * dayMs}`;
        if (of !== day) put();
        day = of;
        const sum = sums.get(values[0]) ?? emptySum();
        addValues(sum, values);
        sums.set(values[0], sum);
      }
      put();
      hours.finalize();
      database.run(`PRAGMA user_version = ${storeVersion}`);
      return store;
    })();
  }

  /** Adds rows to their minutes and hours, and lets go of what is older than is kept. */
  add(rows: readonly ActivityRow[], now: Ms): void {
    this.#database.transaction(() => {
      for (const { table, stepMs, keptMs } of activityLevels) {
        const statements = this.#statements[table];
        const places = new Map<string, readonly [ActivityKind, Ms]>();
        for (const row of rows) {
          const at = Math.floor(row.at / stepMs) * stepMs;
          this.#addTo(table, row.kind, at, row.name, (sum) => addRow(sum, row));
          places.set(`${row.kind} ${at}`, [row.kind, at]);
        }
        for (const [kind, at] of places.values()) this.#keepLargest(table, kind, at);
        statements.prune.run(now - keptMs);
      }
    })();
  }

  #addTo(table: ActivityTable, kind: ActivityKind, at: Ms, name: string, add: (sum: Sum) => void): void {
    const { find, put } = this.#statements[table];
    const sum = emptySum();
    const known = find.values(kind, at, name)[0] as Values | undefined;
    if (known !== undefined) addValues(sum, known);
    add(sum);
    put.run(kind, at, name, ...valuesOf(sum));
  }

  /** Of more names than are kept those with fewest requests become one. */
  #keepLargest(table: ActivityTable, kind: ActivityKind, at: Ms): void {
    const { names, smallest, remove } = this.#statements[table];
    const more = names.get(kind, at)!.names - activityNamesMax;
    if (more <= 0) return;
    for (const values of smallest.values(kind, at, more) as unknown as Values[]) {
      this.#addTo(table, kind, at, "", (sum) => addValues(sum, values));
      remove.run(kind, at, values[0]);
    }
  }

  began(range: ActivityRange): Ms | null {
    return this.#statements[beganLevelOf(range).table].began.get()?.at ?? null;
  }

  /** As ActivityQueries.read; the last step is the one that `now` is in. */
  read(range: ActivityRange, split: ActivitySplit, now: Ms, earlier: readonly EarlierActivity[] = []): Activity {
    const { from, until } = boundsOf(range, now);
    const { ranked, between } = this.#statements[levelOf(range).table];
    return activityOf({
      range,
      split,
      now,
      earlier,
      ranked: ranked.all(split, from, until),
      rows: (kind) => between.values(kind, from, until) as unknown as [Ms, ...Values][],
    });
  }

  totals(split: ActivitySplit, from: Ms): ActivityTotal[] {
    const rows = this.#statements.hours.between.values(split, from, Number.MAX_SAFE_INTEGER);
    return totalsOf(rows as unknown as [Ms, ...Values][]);
  }

  reasons(from: Ms): { reason: string; requests: number }[] {
    return this.#statements.minutes.reasons.all(from);
  }

  close(): void {
    this.#database.close();
  }
}

function prepare(database: Database, table: ActivityTable) {
  const values = `name, ${columns.join(", ")}, wait, first_token`;
  return {
    find: database.prepare<unknown, [string, number, string]>(
      `SELECT ${values} FROM ${table} WHERE kind = ? AND at = ? AND name = ?`,
    ),
    put: database.prepare<unknown, (string | number)[]>(
      `INSERT OR REPLACE INTO ${table} (kind, at, ${values}) VALUES (?, ?, ?, ${"?, ".repeat(columns.length)} ?, ?)`,
    ),
    names: database.prepare<{ names: number }, [string, number]>(
      `SELECT count(*) AS names FROM ${table} WHERE kind = ? AND at = ? AND name <> ''`,
    ),
    smallest: database.prepare<unknown, [string, number, number]>(
      `SELECT ${values} FROM ${table} WHERE kind = ? AND at = ? AND name <> '' ORDER BY requests, name LIMIT ?`,
    ),
    remove: database.prepare<unknown, [string, number, string]>(
      `DELETE FROM ${table} WHERE kind = ? AND at = ? AND name = ?`,
    ),
    prune: database.prepare<unknown, [number]>(
      `DELETE FROM ${table} WHERE at < ? AND kind IN ('all', 'model', 'node', 'account', 'key', 'reason')`,
    ),
    ranked: database.prepare<{ name: string; requests: number }, [string, number, number]>(
      `SELECT name, sum(requests) AS requests FROM ${table} WHERE kind = ? AND at >= ? AND at < ? GROUP BY name`,
    ),
    began: database.prepare<{ at: Ms | null }, []>(`SELECT min(at) AS at FROM ${table} WHERE kind = 'all'`),
    between: database.prepare<unknown, [string, number, number]>(
      `SELECT at, ${values} FROM ${table} WHERE kind = ? AND at >= ? AND at < ?`,
    ),
    reasons: database.prepare<{ reason: string; requests: number }, [number]>(`
      SELECT name AS reason, sum(requests) AS requests FROM ${table}
      WHERE kind = 'reason' AND at >= ? GROUP BY name ORDER BY requests DESC, name`),
  };
}
