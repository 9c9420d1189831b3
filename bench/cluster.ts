// What do books in PostgreSQL cost beside those in SQLite, and how many requests do one, two and three gateways carry on one
// engine? A request is an admission and a settlement: no HTTP, no node.
//
//   bun bench/cluster.ts [--accounts 2000] [--rows 0] [--seconds 5] [--runs 3] [--url postgres://...] [--quick]
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiKeyPrefix, apiKeySecretLength } from "../src/account/people/keys.ts";
import { dayMs } from "../src/core/units.ts";
import { PostgresServer } from "../src/store/postgres/connection.ts";
import { migrate } from "../src/store/postgres/migrations.ts";
import { TestPostgres } from "../test/fixtures/postgres.ts";
import type { Carried, Load } from "./cluster-gateway.ts";
import { startCpuTimer } from "./cpu-time.ts";
import { readFlags } from "./flags.ts";
import { bun, type Running, startProcess } from "./process.ts";
import { keepResult } from "./result.ts";
import { median } from "./statistics.ts";

const defaults = {
  accounts: 2_000,
  /** In the journal, before the first request. */
  rows: 0,
  seconds: 5,
  runs: 3,
  /** At once at each gateway. */
  clients: 256,
  /** Requests a second in all, for the times of admissions. */
  rate: 300,
  gateways: 3,
  /** A database of its own that is empty, on another engine; left out, one is started here. */
  url: "",
};

/** The key of an account that was filled in. */
export const filledKey = (account: number): string => apiKeyPrefix + String(account).padStart(apiKeySecretLength, "0");

/** Its books add up: each line is a charge of some day. */
export async function fill(url: string, accounts: number, rows: number): Promise<void> {
  const connection = await new PostgresServer(url).connect();
  await migrate(connection);
  connection.close();
  const client = new Bun.SQL({ url, max: 1 });
  const secret = `lpad(n::text, ${apiKeySecretLength}, '0')`;
  await client.unsafe(
    `INSERT INTO accounts (id, email, plan, credit, key_hash, operator, created_at, key_created_at)
     SELECT n, 'filled-' || n || '@example.com', 'pro', 1000000000000, sha256(convert_to('${apiKeyPrefix}' || ${secret}, 'UTF8')),
       false, 0, 0 FROM generate_series(1, ${accounts}) AS n`,
  );
  const today = Math.floor(Date.now() / dayMs);
  // Indexes are made faster at once than line by line.
  const indexes = (await client.unsafe(
    "SELECT indexname AS name, indexdef AS made FROM pg_indexes WHERE tablename = 'journal' AND indexname NOT LIKE '%pkey'",
  )) as readonly Readonly<{ name: string; made: string }>[];
  for (const { name } of indexes) await client.unsafe(`DROP INDEX ${name}`);
  await client.unsafe(
    `INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model, input_fresh, input_cached,
       output, reasoning, input_cents, cached_input_cents, output_cents, billed_tokens, estimated)
     SELECT 'filled-' || lpad(n::text, 17, '0'), 'charge', 1 + n % ${accounts}, day * ${dayMs}::bigint + n % ${dayMs}, day, 780, 0,
       '/v1/chat/completions', 'core-1.6-lite', 900, 0, 100, 0, 390, 390, 390, 780, 0
     FROM (SELECT n, ${today - 31} + n % 30 AS day FROM generate_series(0::bigint, ${rows - 1}::bigint) AS n) AS lines`,
  );
  for (const { made } of indexes) await client.unsafe(made);
  await client.unsafe("VACUUM ANALYZE");
  await client.close();
}

/** Processes of an engine that was started here, of which each serves one connection or works in the background. */
function processesOf(postgres: TestPostgres): number[] {
  const parent = Number(readFileSync(join(postgres.folder, "data", "postmaster.pid"), "latin1").split("\n")[0]);
  const isChild = (pid: string): boolean => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === parent;
    } catch {
      return false; // it ended just now
    }
  };
  return [
    parent,
    ...readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && isChild(name))
      .map(Number),
  ];
}

type Row = Readonly<{ carried: readonly Carried[]; engineMicros: number | null }>;

export async function runAll(gateways: readonly Running[], load: Load, postgres: TestPostgres | null): Promise<Row> {
  const timers =
    postgres === null ? [] : processesOf(postgres).flatMap((pid) => ofLiving(() => [startCpuTimer([pid])], []));
  const carried = await Promise.all(
    gateways.map(async ({ ready }) => {
      const body = JSON.stringify(load);
      return (await fetch(`http://127.0.0.1:${ready[1]}/run`, { method: "POST", body })).json() as Promise<Carried>;
    }),
  );
  const requests = carried.reduce((sum, one) => sum + one.requests, 0);
  const engineMicros = timers.reduce((sum, timer) => sum + ofLiving(() => timer.elapsedMicroseconds(), 0), 0);
  return { carried, engineMicros: postgres === null ? null : engineMicros / requests };
}

/** A process that cleans up in the background may have ended meanwhile. */
function ofLiving<Value>(read: () => Value, otherwise: Value): Value {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return otherwise;
    throw error;
  }
}

export const start = (name: string, accounts: number, place: string): Promise<Running> =>
  startProcess({
    role: "anywhere",
    command: [bun, join(import.meta.dir, "cluster-gateway.ts"), name, String(accounts), place],
    ready: /ready on (\d+)/,
    readyTimeoutMs: 120_000,
  });

if (import.meta.main) {
  const flags = readFlags(defaults, { accounts: 50, seconds: 1, runs: 1, clients: 20, gateways: 2 });
  const folder = mkdtempSync(join(tmpdir(), "bench-cluster-"));
  const postgres = flags.url === "" ? await TestPostgres.start() : null;
  const url = postgres === null ? flags.url : await postgres.database("bench");
  console.log(`  ${flags.accounts} accounts and ${flags.rows} lines are made`);
  await fill(url, flags.accounts, flags.rows);
  const sqlite = [await start("sqlite", flags.accounts, join(folder, "data"))];
  const cluster = await Promise.all(
    Array.from({ length: flags.gateways }, (_, index) => start(`g${index}`, flags.accounts, url)),
  );
  const busy = (count: number) => ({ name: `${count} on PostgreSQL`, gateways: cluster.slice(0, count), isBusy: true });
  const calm = (count: number) => ({ ...busy(count), isBusy: false });
  const ways = [
    { name: "SQLite", gateways: sqlite, isBusy: true },
    ...cluster.map((_, index) => busy(index + 1)),
    { name: "SQLite", gateways: sqlite, isBusy: false },
    ...[...new Set([1, flags.gateways])].map(calm),
  ];
  const measured = ways.map(() => [] as Row[]);
  try {
    for (let run = 0; run < flags.runs; run += 1) {
      for (const [index, { name, gateways, isBusy }] of ways.entries()) {
        const { seconds, clients, rate } = flags;
        const load = isBusy ? { seconds, clients, rate: 0 } : { seconds, clients: 0, rate: rate / gateways.length };
        const row = await runAll(gateways, load, gateways === sqlite ? null : postgres);
        measured[index]!.push(row);
        const perSecond = row.carried.reduce((sum, one) => sum + one.perSecond, 0);
        console.log(`  run ${run + 1}/${flags.runs} ${name}: ${perSecond.toFixed(0)} requests/s`);
      }
    }
  } finally {
    await Promise.all([...sqlite, ...cluster].map((one) => one.stop()));
    await postgres?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  }
  const middle = (rows: readonly Row[], of: (row: Row) => number): number => median(rows.map(of));
  const mean = (row: Row, of: (one: Carried) => number): number =>
    row.carried.reduce((sum, one) => sum + of(one), 0) / row.carried.length;
  const text = (value: number, digits: number): string => (Number.isNaN(value) ? "-" : value.toFixed(digits));
  await keepResult({
    bench: "cluster",
    variant: flags.rows > 0 ? `${flags.rows}-rows` : "",
    question: "Books of one to three gateways in PostgreSQL, beside SQLite",
    columns: ["books", "load", "requests/s", "admission p50 ms", "p99 ms", "gateway us", "engine us", "in a batch"],
    rows: ways.map(({ name, isBusy }, index) => {
      const rows = measured[index]!;
      return [
        name,
        isBusy ? `${flags.clients} at once each` : `${flags.rate}/s`,
        text(
          middle(rows, (row) => row.carried.reduce((sum, one) => sum + one.perSecond, 0)),
          0,
        ),
        text(
          middle(rows, (row) => mean(row, ({ admissionMs }) => admissionMs[0])),
          2,
        ),
        text(
          middle(rows, (row) => mean(row, ({ admissionMs }) => admissionMs[1])),
          2,
        ),
        text(
          middle(rows, (row) => mean(row, ({ gatewayMicros }) => gatewayMicros)),
          0,
        ),
        text(
          middle(rows, (row) => row.engineMicros ?? Number.NaN),
          0,
        ),
        text(
          middle(rows, (row) => mean(row, ({ operationsInBatch }) => operationsInBatch ?? Number.NaN)),
          1,
        ),
      ];
    }),
    chart: null,
    failures: 0,
    notes: [
      `${flags.accounts} accounts at random, ${flags.rows} lines in the journal before. A request is an admission and a ` +
        `settlement, each durable (SQLite keeps reservations in memory), without HTTP and nodes. Medians of ${flags.runs} runs of ` +
        `${flags.seconds} s; us: CPU time a request, of the gateway and of all of PostgreSQL's processes. Engine and gateways share ` +
        "the machine; processes not pinned.",
    ],
  });
}
