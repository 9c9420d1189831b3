// What the operators' charts are made of, of all gateways together: each adds what its threads counted to rows of a minute, an
// hour and a day. Who adds holds the lock of one row meanwhile, every 10 s for some milliseconds.
import { activityCounts, type ActivityKind, type ActivityRow } from "../../core/activity.ts";
import { activityNamesMax } from "../../core/limits.ts";
import type { Ms } from "../../core/types.ts";
import {
  activityLevels,
  activityOf,
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
} from "../activity/activity-sums.ts";
import type { ActivityCall } from "../activity/activity-worker.ts";
import type { Keeper } from "../kept.ts";
import { ask, change, type Send, statement } from "./asking.ts";
import { arrayOf } from "./connection.ts";
import type { Database } from "./database.ts";

type Place = Readonly<{ stepMs: Ms; kind: ActivityKind; at: Ms; name: string }>;
type Found = Readonly<Record<string, string | number>>;

/** No request waits for it: late counts are not lost. */
const addLimitMs = 30_000;

export class PostgresActivity implements Keeper<ActivityCall> {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  call<Result>(call: ActivityCall): Promise<Result> {
    return this.#answer(call) as Promise<Result>;
  }

  async close(): Promise<void> {}

  async #answer(call: ActivityCall): Promise<unknown> {
    switch (call.order) {
      case "add":
        return change(this.#database, (send) => add(send, call.rows, call.now), addLimitMs);
      case "began": {
        const [row] = await ask<{ at: Ms | null }>(this.#database, began, beganLevelOf(call.range).stepMs);
        return row?.at ?? null;
      }
      case "read": {
        const { range, split, now, earlier } = call;
        const { from, until } = boundsOf(range, now);
        const { stepMs } = levelOf(range);
        const [names, all, ofSplit] = await Promise.all([
          ask<{ name: string; requests: number }>(this.#database, ranked, stepMs, split, from, until),
          ask<Found>(this.#database, between, stepMs, "all", from, until),
          ask<Found>(this.#database, between, stepMs, split, from, until),
        ]);
        return activityOf({
          range,
          split,
          now,
          earlier,
          ranked: names,
          rows: (kind) => (kind === "all" ? all : ofSplit).map(timedOf),
        });
      }
      case "totals": {
        const { stepMs } = activityLevels[1];
        const rows = await ask<Found>(this.#database, between, stepMs, call.split, call.from, Number.MAX_SAFE_INTEGER);
        return totalsOf(rows.map(timedOf));
      }
      case "reasons":
        return ask(this.#database, reasons, activityLevels[0].stepMs, call.from);
      case "open":
      case "close":
        return null;
      default:
        return call satisfies never;
    }
  }
}

async function add(send: Send, rows: readonly ActivityRow[], now: Ms): Promise<void> {
  await send(makeLock);
  await send(lock);
  const sums = new Map<string, Readonly<{ place: Place; sum: Sum }>>();
  const steps = new Map<string, Omit<Place, "name">>();
  for (const { stepMs } of activityLevels) {
    for (const row of rows) {
      const place = { stepMs, kind: row.kind, at: Math.floor(row.at / stepMs) * stepMs, name: row.name };
      addRow(sumAt(sums, place), row);
      steps.set(`${stepMs} ${row.kind} ${place.at}`, place);
    }
  }
  const all = [...sums.values()].map(({ place }) => place);
  for (const row of await send<Found>(find, ...columnsOf(all))) {
    const { step_ms, kind, at } = row as unknown as Readonly<{ step_ms: Ms; kind: ActivityKind; at: Ms }>;
    const values = valuesIn(row);
    addValues(sumAt(sums, { stepMs: step_ms, kind, at, name: values[0] }), values);
  }
  await put(send, [...sums.values()]);
  await keepLargest(send, [...steps.values()]);
  for (const { stepMs, keptMs } of activityLevels) await send(prune, stepMs, now - keptMs);
}

function sumAt(sums: Map<string, Readonly<{ place: Place; sum: Sum }>>, place: Place): Sum {
  const key = `${place.stepMs} ${place.kind} ${place.at} ${place.name}`;
  let known = sums.get(key);
  if (known === undefined) sums.set(key, (known = { place, sum: emptySum() }));
  return known.sum;
}

async function put(send: Send, sums: readonly Readonly<{ place: Place; sum: Sum }>[]): Promise<void> {
  if (sums.length === 0) return;
  const values = sums.map(({ sum }) => valuesOf(sum));
  const columns = putColumns.map((_, column) => arrayOf(values.map((row) => row[column]!)));
  await send(upsert, ...columnsOf(sums.map(({ place }) => place)), ...columns);
}

/** Of more names than are kept those with fewest requests become one. */
async function keepLargest(send: Send, steps: readonly Omit<Place, "name">[]): Promise<void> {
  const full = await send<Found>(
    crowded,
    arrayOf(steps.map(({ stepMs }) => stepMs)),
    arrayOf(steps.map(({ kind }) => kind)),
    arrayOf(steps.map(({ at }) => at)),
    activityNamesMax,
  );
  for (const row of full) {
    const {
      step_ms: stepMs,
      kind,
      at,
      names,
    } = row as unknown as Readonly<{
      step_ms: Ms;
      kind: ActivityKind;
      at: Ms;
      names: number;
    }>;
    const rest = { stepMs, kind, at, name: "" };
    const sum = emptySum();
    const small = await send<Found>(removeSmallest, stepMs, kind, at, names - activityNamesMax);
    const known = await send<Found>(find, ...columnsOf([rest]));
    for (const each of [...small, ...known]) addValues(sum, valuesIn(each));
    await put(send, [{ place: rest, sum }]);
  }
}

const columnsOf = (places: readonly Place[]): readonly string[] => [
  arrayOf(places.map(({ stepMs }) => stepMs)),
  arrayOf(places.map(({ kind }) => kind)),
  arrayOf(places.map(({ at }) => at)),
  arrayOf(places.map(({ name }) => name)),
];

/** Names of the counts' columns; LEFT is a word of SQL. */
const countColumns = activityCounts.map(
  (name) => ({ cachedInput: "cached_input", left: "departed" })[name as string] ?? name,
);
const putColumns = [...countColumns, "wait", "first_token"];
const read = [...countColumns.map((column) => `${column}::float8 AS ${column}`), "wait", "first_token"].join(", ");

const valuesIn = (row: Found): Values => [row["name"] as string, ...putColumns.map((column) => row[column]!)];
const timedOf = (row: Found): readonly [Ms, ...Values] => [row["at"] as Ms, ...valuesIn(row)];

const makeLock = statement(
  "make activity lock",
  "INSERT INTO counters (name, value) VALUES ('activity', 0) ON CONFLICT DO NOTHING",
);
const lock = statement("lock activity", "SELECT 1 FROM counters WHERE name = 'activity' FOR UPDATE");

const placeTypes = "$1::text::bigint[], $2::text::text[], $3::text::bigint[], $4::text::text[]";
const find = statement(
  "find activity",
  `SELECT step_ms::float8 AS step_ms, kind, at::float8 AS at, name, ${read} FROM activity
   WHERE (step_ms, kind, at, name) IN (SELECT * FROM unnest(${placeTypes}))`,
);
const upsert = statement(
  "put activity",
  `INSERT INTO activity (step_ms, kind, at, name, ${putColumns.join(", ")})
   SELECT * FROM unnest(${placeTypes},
     ${putColumns.map((_, index) => `$${index + 5}::text::${index < countColumns.length ? "bigint" : "text"}[]`).join(", ")})
   ON CONFLICT (step_ms, kind, at, name) DO UPDATE SET
     ${putColumns.map((column) => `${column} = excluded.${column}`).join(", ")}`,
);
const crowded = statement(
  "crowded activity",
  `SELECT step_ms::float8 AS step_ms, kind, at::float8 AS at, count(*)::int AS names FROM activity
   WHERE (step_ms, kind, at) IN (SELECT * FROM unnest($1::text::bigint[], $2::text::text[], $3::text::bigint[]))
     AND name <> ''
   GROUP BY activity.step_ms, activity.kind, activity.at HAVING count(*) > $4::text::int`,
);
const removeSmallest = statement(
  "remove small activity",
  `DELETE FROM activity WHERE step_ms = $1::text::bigint AND kind = $2::text AND at = $3::text::bigint AND name IN (
     SELECT name FROM activity AS small
     WHERE small.step_ms = $1::text::bigint AND small.kind = $2::text AND small.at = $3::text::bigint AND name <> ''
     ORDER BY requests, name LIMIT $4::text::int)
   RETURNING name, ${read}`,
);
const prune = statement(
  "prune activity",
  "DELETE FROM activity WHERE step_ms = $1::text::bigint AND at < $2::text::bigint",
);
const began = statement(
  "activity began",
  "SELECT min(at)::float8 AS at FROM activity WHERE step_ms = $1::text::bigint AND kind = 'all'",
);
const inRange = "step_ms = $1::text::bigint AND kind = $2::text AND at >= $3::text::bigint AND at < $4::text::bigint";
const ranked = statement(
  "ranked activity",
  `SELECT name, sum(requests)::float8 AS requests FROM activity WHERE ${inRange} GROUP BY name`,
);
const between = statement("activity between", `SELECT at::float8 AS at, name, ${read} FROM activity WHERE ${inRange}`);
const reasons = statement(
  "reasons",
  `SELECT name AS reason, sum(requests)::float8 AS requests FROM activity
   WHERE step_ms = $1::text::bigint AND kind = 'reason' AND at >= $2::text::bigint
   GROUP BY name ORDER BY requests DESC, name`,
);
