// The statements that write what a unit of work decided: changes first, in their order, then purchases, as a commit of SQLite
// does. They run under the locks of the accounts that they are about. One that breaks a rule of its table (an e-mail or a
// number that another gateway gave away meanwhile) takes the whole unit back, which decides again.
import { type Entry } from "../../account/money/entry.ts";
import type { AccountChange } from "../../account/journal.ts";
import { assert } from "../../core/assert.ts";
import { writesOf as writesOfChange } from "../changes/change-writes.ts";
import { Renderer } from "../changes/renderer.ts";
import type { Value } from "../changes/record.ts";
import { sql, type Write } from "../changes/write.ts";
import { rowOf } from "../ledger/batch.ts";
import { type ColumnKind, columnTypes, type TableName } from "../tables.ts";
import { arrayOf, type Call, call, type Parameter, type Statement } from "./connection.ts";
import { textParameter } from "./database.ts";
import { insertLines } from "./statements.ts";

const renderer = new Renderer<Statement, Parameter>({
  statement: (name, text) => ({ name, text }),
  parameter: (kind, place) =>
    kind === "hash" ? `decode($${place}::text, 'base64')` : `$${place}::text::${columnTypes[kind].postgres}`,
  valueOf,
  isCaseless: (column, parameter) => `lower(${column} COLLATE "C") = lower(${parameter} COLLATE "C")`,
  greatest: "greatest",
  onConflict: () => "",
  usingIndex: () => "",
});

/** Everything travels as text; a text may hold what PostgreSQL does not take. */
function valueOf(kind: ColumnKind, value: Value): Parameter {
  if (kind === "mark") return value === true ? "1" : null;
  if (typeof value === "object") return value === null ? null : JSON.stringify(value);
  return textParameter(String(value));
}

const statement = (name: string, text: string): Statement => ({ name, text: text.trim() });

/** A key that is limited has the sums of what its open requests hold, and one that is not has none. */
const sumHolds = statement(
  "sum a key's holds",
  `UPDATE api_keys SET held = s.held, waiting_held = s.waiting_held, begun = s.begun, expected = s.expected
   FROM (SELECT coalesce(sum(tokens), 0) AS held, coalesce(sum(CASE WHEN waits THEN tokens ELSE 0 END), 0) AS waiting_held,
       coalesce(sum(CASE WHEN cost > 0 AND NOT waits THEN 1 ELSE 0 END), 0) AS begun,
       coalesce(sum(CASE WHEN waits THEN 0 ELSE cost END), 0) AS expected
     FROM holds JOIN api_keys AS k ON k.account_id = holds.account_id AND k.id = holds.key_id
     WHERE k.account_id = $1::text::bigint AND k.id = $2::text::int
       AND (k.tokens_per_day IS NOT NULL OR k.tokens_per_month IS NOT NULL)) AS s
   WHERE account_id = $1::text::bigint AND id = $2::text::int`,
);
const addCredit = statement(
  "credit",
  "UPDATE accounts SET credit = credit + $2::text::bigint WHERE id = $1::text::bigint",
);

/** Tables whose rows have numbers of one row of `counters`, which tells the next one also where the latest row is gone. */
const numbered: readonly TableName[] = ["accounts", "sessions", "purchase_requests", "access_links", "operator_tokens"];
const setCounter = statement(
  "count",
  `INSERT INTO counters (name, value) VALUES ($1::text, $2::text::bigint)
   ON CONFLICT (name) DO UPDATE SET value = greatest(counters.value, excluded.value)`,
);
/** The audit log's numbers are given when an entry is written: its writer need not know the number. */
const raiseCounter = statement(
  "raise counter",
  `INSERT INTO counters (name, value) VALUES ($1::text, 1)
   ON CONFLICT (name) DO UPDATE SET value = counters.value + 1`,
);
/** Gateways' clocks differ: an entry is no earlier than the one before it. */
const inOrder = statement(
  "audit in order",
  `UPDATE audit_log AS entry SET at = before.at FROM audit_log AS before, counters
   WHERE counters.name = 'audit_log' AND entry.id = counters.value AND before.id = counters.value - 1 AND before.at > entry.at`,
);
const auditId = sql("(SELECT value FROM counters WHERE name = 'audit_log')");

export function writesOf(changes: readonly AccountChange[], entries: readonly Entry[]): readonly Call[] {
  const calls = changes.flatMap(callsOf);
  if (entries.length === 0) return calls;
  for (const { kind } of entries) assert(kind === "credit", "beside the lane nothing but purchases are booked");
  const lines = entries.map(rowOf);
  calls.push(
    call(insertLines, ...lines[0]!.map((_, index) => textParameter(arrayOf(lines.map((line) => line[index]!))))),
  );
  for (const { account, creditDelta } of entries) calls.push(call(addCredit, account, creditDelta));
  return calls;
}

function callsOf(change: AccountChange): Call[] {
  const calls = writesOfChange(change).flatMap(callsOfWrite);
  if (change.change !== "key_limits") return calls;
  const { tokensPerDay, tokensPerMonth } = change.limits;
  const mayHold = tokensPerDay !== undefined || tokensPerMonth !== undefined;
  return mayHold ? [...calls, call(sumHolds, change.account, change.key)] : calls;
}

function callsOfWrite(write: Write): readonly Call[] {
  const { verb, table, set } = write;
  if (verb !== "insert") return [renderer.render(write)];
  if (table === "audit_log")
    return [call(raiseCounter, table), renderer.render({ ...write, set: { ...set, id: auditId } }), call(inOrder)];
  return numbered.includes(table)
    ? [renderer.render(write), call(setCounter, table, String(set["id"]))]
    : [renderer.render(write)];
}
