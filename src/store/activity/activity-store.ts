// What happened in each minute of the last day and in each hour and day of the last 90, in a file of its own: the operators'
// charts are made of it. Whoever writes is a Worker, every few seconds; a power cut may take the last of them.
import { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import {
  type Activity,
  type ActivityFigures,
  type ActivityKind,
  type ActivityRange,
  activityRanges,
  type ActivityRow,
  type ActivitySeries,
  type ActivitySplit,
  type ActivityTotal,
  activityCounts,
  type EarlierActivity,
  startOf,
  durationBuckets,
  minuteMs,
  percentile,
} from "../../core/activity.ts";
import { activityNamesMax, activitySeriesMax, dayMs, hourMs } from "../../core/limits.ts";
import type { Ms } from "../../core/types.ts";

/** Raised when the tables change: what another version wrote is let go of. */
const storeVersion = 2;
/** Each is kept longer than the longest range that it is read for, since ranges begin at a whole step. */
const levels = [
  { table: "minutes", stepMs: minuteMs, keptMs: dayMs + hourMs },
  { table: "hours", stepMs: hourMs, keptMs: 91 * dayMs },
  { table: "days", stepMs: dayMs, keptMs: 91 * dayMs },
] as const;
type Table = (typeof levels)[number]["table"];

const columns = activityCounts
  .map((name) => (name === "cachedInput" ? "cached_input" : name))
  .map((name) => `"${name}"`);
const createTable = (table: Table): string => `
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

/** `name`, the counts in their order, `wait`, `first_token`. */
type Values = readonly [name: string, ...rest: (string | number)[]];
/** One place and its numbers, together. */
type Sum = { readonly counts: number[]; readonly wait: Uint32Array; readonly firstToken: Uint32Array };

export class ActivityStore {
  readonly #database: Database;
  readonly #statements: Readonly<Record<Table, ReturnType<typeof prepare>>>;

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
          for (const { table } of levels) database.run(createTable(table));
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
      for (const { table, stepMs, keptMs } of levels) {
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

  #addTo(table: Table, kind: ActivityKind, at: Ms, name: string, add: (sum: Sum) => void): void {
    const { find, put } = this.#statements[table];
    const sum = emptySum();
    const known = find.values(kind, at, name)[0] as Values | undefined;
    if (known !== undefined) addValues(sum, known);
    add(sum);
    put.run(kind, at, name, ...valuesOf(sum));
  }

  /** Of more names than are kept those with fewest requests become one. */
  #keepLargest(table: Table, kind: ActivityKind, at: Ms): void {
    const { names, smallest, remove } = this.#statements[table];
    const more = names.get(kind, at)!.names - activityNamesMax;
    if (more <= 0) return;
    for (const values of smallest.values(kind, at, more) as unknown as Values[]) {
      this.#addTo(table, kind, at, "", (sum) => addValues(sum, values));
      remove.run(kind, at, values[0]);
    }
  }

  /** As ActivityQueries.began. */
  began(range: ActivityRange): Ms | null {
    // An hour says it closer than its day.
    return this.#statements[activityRanges[range].stepMs < hourMs ? "minutes" : "hours"].began.get()?.at ?? null;
  }

  /** As ActivityQueries.read; the last step is the one that `now` is in. */
  read(range: ActivityRange, split: ActivitySplit, now: Ms, earlier: readonly EarlierActivity[] = []): Activity {
    const { stepMs, steps } = activityRanges[range];
    const from = startOf(range, now);
    const until = from + steps * stepMs;
    const { ranked, between } = this.#statements[tableOf(range)];
    const before = earlier.filter(({ at }) => at >= from && at < until);
    const collect = (kind: ActivityKind, placeOf: (name: string) => number, places: number): ActivitySeries[] => {
      const empty = () => Array.from({ length: places }, () => Array.from({ length: steps }, emptySum));
      const [sums, known] = [empty(), empty()];
      const at = (of: Sum[][], name: string, time: Ms): Sum => of[placeOf(name)]![Math.floor((time - from) / stepMs)]!;
      for (const [time, ...values] of between.values(kind, from, until) as unknown as [Ms, ...Values][]) {
        addValues(at(sums, values[0], time), values);
      }
      for (const row of before) addEarlier(at(known, row.name, row.at), row);
      return sums.map((each, place) => {
        // Of a step that was counted in part the journal knows more; what it does not know it has as 0.
        for (const [step, sum] of each.entries()) takeGreater(sum, known[place]![step]!);
        return { steps: figuresOf(each), total: figuresOf([each.reduce(plus, emptySum())]) };
      });
    };
    const requests = new Map(ranked.all(split, from, until).map((each) => [each.name, each.requests]));
    for (const row of before) requests.set(row.name, (requests.get(row.name) ?? 0) + row.requests);
    const names: (string | null)[] = [...requests]
      .sort(([a, many], [b, more]) => Number(a === "") - Number(b === "") || more - many || (a < b ? -1 : 1))
      .map(([name]) => name);
    if (names.length > activitySeriesMax) names.splice(activitySeriesMax - 1, names.length, null);
    const [all] = collect("all", () => 0, 1);
    const series = collect(
      split,
      (name) => (names.includes(name) ? names.indexOf(name) : names.length - 1),
      names.length,
    );
    return { from, all: all!, series: series.map((each, place) => ({ ...each, name: names[place]! })) };
  }

  /** As ActivityQueries.totals. */
  totals(split: ActivitySplit, from: Ms): ActivityTotal[] {
    const sums = new Map<string, Sum>();
    const rows = this.#statements.hours.between.values(split, from, Number.MAX_SAFE_INTEGER);
    for (const [, ...values] of rows as unknown as [Ms, ...Values][]) {
      const [name] = values;
      if (name === "") continue;
      let sum = sums.get(name);
      if (sum === undefined) sums.set(name, (sum = emptySum()));
      addValues(sum, values);
    }
    return [...sums].map(([name, sum]) => ({ name, total: figuresOf([sum]) }));
  }

  /** As ActivityQueries.reasons. */
  reasons(from: Ms): { reason: string; requests: number }[] {
    return this.#statements.minutes.reasons.all(from);
  }

  close(): void {
    this.#database.close();
  }
}

function tableOf(range: ActivityRange): Table {
  const { stepMs } = activityRanges[range];
  return stepMs < hourMs ? "minutes" : stepMs < dayMs ? "hours" : "days";
}

/** Whoever is in the journal was answered. */
function addEarlier({ counts }: Sum, { requests, input, cachedInput, output }: EarlierActivity): void {
  [requests, requests, 0, 0, 0, input, cachedInput, output].forEach((count, place) => (counts[place]! += count));
}

function takeGreater({ counts }: Sum, other: Sum): void {
  other.counts.forEach((count, place) => (counts[place] = Math.max(counts[place]!, count)));
}

const emptySum = (): Sum => ({
  counts: activityCounts.map(() => 0),
  wait: new Uint32Array(durationBuckets),
  firstToken: new Uint32Array(durationBuckets),
});

const valuesOf = ({ counts, wait, firstToken }: Sum): (string | number)[] => [
  ...counts,
  JSON.stringify(sparse(wait)),
  JSON.stringify(sparse(firstToken)),
];

function addRow(sum: Sum, { counts, wait, firstToken }: Pick<ActivityRow, "counts" | "wait" | "firstToken">): void {
  for (let place = 0; place < sum.counts.length; place += 1) sum.counts[place]! += counts[place]!;
  for (let pair = 0; pair < wait.length; pair += 2) sum.wait[wait[pair]!]! += wait[pair + 1]!;
  for (let pair = 0; pair < firstToken.length; pair += 2) sum.firstToken[firstToken[pair]!]! += firstToken[pair + 1]!;
}

function addValues(sum: Sum, [, ...values]: Values): void {
  const counts = values.slice(0, activityCounts.length) as number[];
  const [wait, firstToken] = values.slice(activityCounts.length).map((text) => JSON.parse(text as string) as number[]);
  addRow(sum, { counts, wait: wait!, firstToken: firstToken! });
}

function plus(sum: Sum, other: Sum): Sum {
  other.counts.forEach((count, place) => (sum.counts[place]! += count));
  other.wait.forEach((count, bucket) => (sum.wait[bucket]! += count));
  other.firstToken.forEach((count, bucket) => (sum.firstToken[bucket]! += count));
  return sum;
}

function sparse(buckets: Uint32Array): number[] {
  const pairs: number[] = [];
  buckets.forEach((count, bucket) => count > 0 && pairs.push(bucket, count));
  return pairs;
}

function figuresOf(sums: readonly Sum[]): ActivityFigures {
  const counts = activityCounts.map((name, place) => [name, sums.map((sum) => sum.counts[place]!)] as const);
  return {
    ...(Object.fromEntries(counts) as Record<(typeof activityCounts)[number], number[]>),
    waitP50: sums.map(({ wait }) => percentile(wait, 0.5)),
    waitP95: sums.map(({ wait }) => percentile(wait, 0.95)),
    firstTokenP50: sums.map(({ firstToken }) => percentile(firstToken, 0.5)),
    firstTokenP95: sums.map(({ firstToken }) => percentile(firstToken, 0.95)),
  };
}

function prepare(database: Database, table: Table) {
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
