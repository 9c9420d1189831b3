// What the operators' charts are made of, in steps of a minute, an hour and a day: whoever adds what its threads counted adds
// it to the rows of all three, and is alone meanwhile. In PostgreSQL the rows are of all gateways together.
import {
  type Activity,
  activityCounts,
  type ActivityKind,
  type ActivityRow,
  type ActivitySplit,
  activitySplits,
  type ActivityTotal,
  type Span,
  spanBetween,
} from "../../core/activity.ts";
import { activityNamesMax } from "../../core/limits.ts";
import type { Ms } from "../../core/types.ts";
import { type Questions, rowsIn, rowsText, type Send, statement } from "../questions.ts";
import {
  activityLevels,
  activityOf,
  addRow,
  addValues,
  emptySum,
  levelOf,
  type Sum,
  totalsOf,
  type Values,
  valuesOf,
} from "./activity-sums.ts";

type Step = Readonly<{ step_ms: Ms; kind: ActivityKind; at: Ms }>;
type Place = Step & Readonly<{ name: string }>;
type Added = Readonly<{ place: Place; sum: Sum }>;
type Found = Readonly<Record<string, string | number>>;

/** No request waits for it: late counts are not lost. */
const addLimitMs = 30_000;

export class ActivityTables {
  readonly #tables: Questions;

  constructor(tables: Questions) {
    this.#tables = tables;
  }

  /** Adds rows to their steps, and lets go of what is older than is kept. */
  add(rows: readonly ActivityRow[], now: Ms): Promise<void> {
    return this.#tables.change((send) => add(send, rows, now), { limitMs: addLimitMs, alone: "activity" });
  }

  /** As ActivityQueries. */
  async read(span: Span, split: ActivitySplit, name: string | null): Promise<Activity> {
    const { stepMs } = levelOf(span);
    const rows = (kind: ActivityKind, name: string | null) => this.#between(stepMs, kind, span.from, span.until, name);
    if (name !== null) return activityOf({ span, all: await rows(split, name), ofSplit: [] });
    const [all, ofSplit] = await Promise.all([rows("all", null), rows(split, null)]);
    return activityOf({ span, all, ofSplit });
  }

  async totals(split: ActivitySplit, from: Ms): Promise<ActivityTotal[]> {
    return totalsOf(await this.#between(activityLevels[1].stepMs, split, from, Number.MAX_SAFE_INTEGER));
  }

  reasons(from: Ms, until: Ms): Promise<readonly Readonly<{ reason: string; requests: number }>[]> {
    return this.#tables.ask(reasons, levelOf(spanBetween(from, until)).stepMs, from, until);
  }

  async #between(
    stepMs: Ms,
    kind: ActivityKind,
    from: Ms,
    until: Ms,
    name: string | null = null,
  ): Promise<(readonly [Ms, ...Values])[]> {
    const rows = await this.#tables.ask<Found>(between, stepMs, kind, from, until, name);
    return rows.map((row) => [row["at"] as Ms, ...valuesIn(row)]);
  }
}

async function add(send: Send, rows: readonly ActivityRow[], now: Ms): Promise<void> {
  const sums = new Map<string, Added>();
  const steps = new Map<string, Step>();
  for (const { stepMs } of activityLevels) {
    for (const row of rows) {
      const place = { step_ms: stepMs, kind: row.kind, at: Math.floor(row.at / stepMs) * stepMs, name: row.name };
      addRow(sumAt(sums, place), row);
      steps.set(`${stepMs} ${row.kind} ${place.at}`, place);
    }
  }
  for (const row of await send<Found & Place>(find, placesText([...sums.values()]))) {
    addValues(sumAt(sums, row), valuesIn(row));
  }
  await put(send, [...sums.values()]);
  await keepLargest(send, [...steps.values()]);
  for (const { stepMs, keptMs } of activityLevels) await send(prune, stepMs, now - keptMs);
}

function sumAt(sums: Map<string, Added>, place: Place): Sum {
  const key = `${place.step_ms} ${place.kind} ${place.at} ${place.name}`;
  let known = sums.get(key);
  if (known === undefined) sums.set(key, (known = { place, sum: emptySum() }));
  return known.sum;
}

async function put(send: Send, sums: readonly Added[]): Promise<void> {
  await send(
    upsert,
    rowsText(sums.map(({ place: { step_ms, kind, at, name }, sum }) => [step_ms, kind, at, name, ...valuesOf(sum)])),
  );
}

/** Of more names than are kept those with fewest requests become one. */
async function keepLargest(send: Send, steps: readonly Step[]): Promise<void> {
  const asked = rowsText(steps.map(({ step_ms, kind, at }) => [step_ms, kind, at]));
  for (const { step_ms, kind, at, names } of await send<Step & { names: number }>(crowded, asked, activityNamesMax)) {
    const rest = { place: { step_ms, kind, at, name: "" }, sum: emptySum() };
    const small = await send<Found>(removeSmallest, step_ms, kind, at, names - activityNamesMax);
    const known = await send<Found>(find, placesText([rest]));
    for (const each of [...small, ...known]) addValues(rest.sum, valuesIn(each));
    await put(send, [rest]);
  }
}

const placesText = (sums: readonly Added[]): string =>
  rowsText(sums.map(({ place: { step_ms, kind, at, name } }) => [step_ms, kind, at, name]));

/** Names of the counts' columns; LEFT is a word of SQL. */
export const countColumns = activityCounts.map(
  (name) => ({ cachedInput: "cached_input", left: "departed" })[name as string] ?? name,
);
const putColumns = [...countColumns, "wait", "first_token"];
const read = [...countColumns.map((column) => `${column}::float8 AS ${column}`), "wait", "first_token"].join(", ");

const valuesIn = (row: Found): Values => [row["name"] as string, ...putColumns.map((column) => row[column]!)];

const find = statement(
  "find activity",
  `SELECT step_ms::float8 AS step_ms, kind, at::float8 AS at, name, ${read} FROM activity
   WHERE (step_ms, kind, at, name) IN (${rowsIn(1, "bigint", "text", "bigint", "text")})`,
);
// WHERE true: without it SQLite would read ON as part of a join.
const upsert = statement(
  "put activity",
  `INSERT INTO activity (step_ms, kind, at, name, ${putColumns.join(", ")})
   ${rowsIn(1, "bigint", "text", "bigint", "text", ...countColumns.map(() => "bigint" as const), "text", "text")}
   WHERE true
   ON CONFLICT (step_ms, kind, at, name) DO UPDATE SET
     ${putColumns.map((column) => `${column} = excluded.${column}`).join(", ")}`,
);
const crowded = statement(
  "crowded activity",
  `SELECT step_ms::float8 AS step_ms, kind, at::float8 AS at, count(*)::int AS names FROM activity
   WHERE (step_ms, kind, at) IN (${rowsIn(1, "bigint", "text", "bigint")}) AND name <> ''
   GROUP BY activity.step_ms, activity.kind, activity.at HAVING count(*) > $2::text::int`,
);
const removeSmallest = statement(
  "remove small activity",
  `DELETE FROM activity WHERE step_ms = $1::text::bigint AND kind = $2::text AND at = $3::text::bigint AND name IN (
     SELECT name FROM activity AS small
     WHERE small.step_ms = $1::text::bigint AND small.kind = $2::text AND small.at = $3::text::bigint AND name <> ''
     ORDER BY requests, name LIMIT $4::text::int)
   RETURNING name, ${read}`,
);
const kinds = ["all", "reason", ...activitySplits].map((kind) => `'${kind}'`).join(", ");
const prune = statement(
  "prune activity",
  `DELETE FROM activity WHERE step_ms = $1::text::bigint AND kind IN (${kinds}) AND at < $2::text::bigint`,
);
const inRange = "step_ms = $1::text::bigint AND kind = $2::text AND at >= $3::text::bigint AND at < $4::text::bigint";
const between = statement(
  "activity between",
  `SELECT at::float8 AS at, name, ${read} FROM activity WHERE ${inRange} AND ($5::text IS NULL OR name = $5::text)`,
);
const reasons = statement(
  "reasons",
  `SELECT name AS reason, sum(requests)::float8 AS requests FROM activity
   WHERE step_ms = $1::text::bigint AND kind = 'reason' AND at >= $2::text::bigint AND at < $3::text::bigint
   GROUP BY name ORDER BY requests DESC, name`,
);
