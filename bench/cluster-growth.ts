// How do batches and the usage page of one gateway on PostgreSQL grow with accounts and with lines of the journal?
//
//   bun bench/cluster-growth.ts [--accounts 1000000] [--rows 10000000] [--seconds 5] [--runs 3] [--quick]
import { dayMs } from "../src/core/units.ts";
import { PostgresServer } from "../src/store/postgres/connection.ts";
import { Database } from "../src/store/postgres/database.ts";
import { PostgresUsage } from "../src/store/postgres/usage.ts";
import { TestPostgres } from "../test/fixtures/postgres.ts";
import { fill, runAll, start } from "./cluster.ts";
import { readFlags } from "./flags.ts";
import type { Running } from "./process.ts";
import { keepResult } from "./result.ts";
import { median, percentile } from "./statistics.ts";

const defaults = { accounts: 1_000_000, rows: 10_000_000, seconds: 5, runs: 3, clients: 256, rate: 300, pages: 100 };

type Size = Readonly<{ accounts: number; rows: number; url: string; gateway: Running }>;
type Figures = Readonly<
  Record<"perSecond" | "busyBatchMs" | "busyEngineMicros" | "calmBatchMs" | "admissionMs" | "pageMs", number>
>;

async function measure(
  { accounts, url, gateway }: Size,
  flags: typeof defaults,
  postgres: TestPostgres,
): Promise<Figures> {
  const { seconds, clients, rate, pages } = flags;
  const busy = await runAll([gateway], { seconds, clients, rate: 0 }, postgres);
  const calm = await runAll([gateway], { seconds, clients: 0, rate }, postgres);
  return {
    perSecond: busy.carried[0]!.perSecond,
    busyBatchMs: busy.carried[0]!.batchMs!,
    busyEngineMicros: busy.engineMicros!,
    calmBatchMs: calm.carried[0]!.batchMs!,
    admissionMs: calm.carried[0]!.admissionMs[0],
    pageMs: await pageMs(url, accounts, pages),
  };
}

/** The median of first pages, each of another account. */
async function pageMs(url: string, accounts: number, pages: number): Promise<number> {
  const database = new Database(new PostgresServer(url));
  const usage = new PostgresUsage(database);
  const filter = { model: null, endpoint: null, key: null, from: Date.now() - 31 * dayMs, to: null, text: "" };
  const taken: number[] = [];
  for (let page = 0; page < pages; page += 1) {
    const account = 1 + Math.floor(Math.random() * accounts);
    const askedAt = performance.now();
    await usage.page(account, filter, null, 50);
    taken.push(performance.now() - askedAt);
  }
  await database.close();
  return percentile(taken, 0.5);
}

if (import.meta.main) {
  const small = { accounts: 1_000, rows: 10_000, seconds: 1, runs: 1, clients: 20, pages: 10 };
  const flags = readFlags(defaults, small);
  await using postgres = await TestPostgres.start();
  const sizes: Size[] = [];
  try {
    for (const rows of [flags.rows / 100, flags.rows]) {
      for (const accounts of [flags.accounts / 100, flags.accounts]) {
        const url = await postgres.database(`filled_${accounts}_${rows}`);
        const startedAt = performance.now();
        await fill(url, accounts, rows);
        console.log(
          `  ${accounts} accounts, ${rows} lines: made in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`,
        );
        sizes.push({ accounts, rows, url, gateway: await start("g", accounts, url) });
      }
    }
    const measured = sizes.map(() => [] as Figures[]);
    for (let run = 0; run < flags.runs; run += 1) {
      for (const [index, size] of sizes.entries()) measured[index]!.push(await measure(size, flags, postgres));
    }
    const middle = (index: number, name: keyof Figures, digits: number): string =>
      median(measured[index]!.map((figures) => figures[name])).toFixed(digits);
    await keepResult({
      bench: "cluster-growth",
      variant: "",
      question: "Books of one gateway in PostgreSQL, as accounts and lines grow",
      columns: [
        "accounts",
        "lines",
        "requests/s",
        "batch ms",
        "engine us",
        `batch ms at ${flags.rate}/s`,
        "admission p50 ms",
        "usage page ms",
      ],
      rows: sizes.map(({ accounts, rows }, index) => [
        `${accounts}`,
        `${rows}`,
        middle(index, "perSecond", 0),
        middle(index, "busyBatchMs", 1),
        middle(index, "busyEngineMicros", 0),
        middle(index, "calmBatchMs", 1),
        middle(index, "admissionMs", 1),
        middle(index, "pageMs", 1),
      ]),
      chart: null,
      failures: 0,
      notes: [
        `${flags.clients} clients at once, then ${flags.rate} requests a second, of accounts at random, on a server with 32 MB of ` +
          `buffers of its own. Medians of ${flags.runs} runs of ${flags.seconds} s; us: CPU time a request, of all of PostgreSQL's ` +
          "processes. A usage page: the newest 50 lines of an account at random. Engine and gateway share the machine.",
      ],
    });
  } finally {
    await Promise.all(sizes.map(({ gateway }) => gateway.stop()));
  }
}
