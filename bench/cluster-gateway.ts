// The books of one gateway alone, in a process of their own, for cluster.ts: POST /run {seconds, clients, rate} admits and
// settles requests of accounts at random, and answers with what that took. Books in PostgreSQL by a URL, else in SQLite.
//
//   bun bench/cluster-gateway.ts NAME ACCOUNTS postgres://... | FOLDER
import { openAccounting } from "../src/books/accounting.ts";
import { embeddedCatalog } from "../src/core/catalog.ts";
import { momentOf, systemClock } from "../src/core/clock.ts";
import type { Plans } from "../src/core/plans.ts";
import { isRefusal } from "../src/core/refusals.ts";
import { defaultKey, type Hold, type Principal, type Refusal, type Usage } from "../src/core/types.ts";
import { PostgresBooks } from "../src/store/postgres/books.ts";
import { PostgresServer } from "../src/store/postgres/connection.ts";
import { filledKey } from "./cluster.ts";
import { percentile } from "./statistics.ts";

export type Load = Readonly<{
  seconds: number;
  /** As many requests at once, each again when it has ended; 0: `rate` begin in a second, whatever has ended. */
  clients: number;
  rate: number;
}>;

export type Carried = Readonly<{
  perSecond: number;
  admissionMs: readonly [p50: number, p99: number];
  /** Microseconds of this process's CPU for a request. */
  gatewayMicros: number;
  requests: number;
  operationsInBatch: number | null;
  /** A batch was under way for so long. */
  batchMs: number | null;
}>;

const usage: Usage = { inputFresh: 900, inputCached: 0, output: 100, reasoning: 0 };
const outputTokensMax = 4_096;

type Books = Readonly<{
  admit(account: number, requestId: string): Promise<Hold | Refusal>;
  batches(): Readonly<{ batches: number; operations: number; underWayMs: number }> | null;
}>;

/** Nobody is stopped by flood protection. */
function openPlans(): Plans {
  const { plans } = embeddedCatalog();
  return Object.fromEntries(
    Object.entries(plans).map(([id, plan]) => [id, { ...plan, requestsPerMinute: Number.MAX_SAFE_INTEGER }]),
  );
}

const model = embeddedCatalog().models.get("core-3")!;
const ask = { endpoint: "/v1/chat/completions", coderBilling: "calls", model, outputTokensMax } as const;

async function openPostgres(gateway: string, url: string): Promise<Books> {
  let underWayMs = 0;
  const onCommit = (_lines: number, durationMs: number): void => void (underWayMs += durationMs);
  const books = await PostgresBooks.open({
    onCommit,
    server: new PostgresServer(url),
    gateway,
    version: "bench",
    configDigest: "",
    rules: { plans: openPlans(), siteUrl: "", maxWaitMs: 60_000, inputRequestsPerMinute: 3_000 },
    log: (_level, event, fields) => console.error(event, fields),
  });
  const principals = new Map<number, Principal>();
  return {
    async admit(account, requestId) {
      const known = principals.get(account) ?? (await books.principal(filledKey(account)));
      if (known === null) throw new Error("the account is not there");
      principals.set(account, known);
      return books.admit({ ...known, ask, inputTokens: 0, requestId });
    },
    batches: () => ({ ...books.lane.counts, underWayMs }),
  };
}

async function openSqlite(dataFolder: string, accounts: number): Promise<Books> {
  const onFatal = (error: Error): never => {
    throw error;
  };
  const catalog = { ...embeddedCatalog(), plans: openPlans() };
  const { admission, office } = await openAccounting({
    dataFolder,
    catalog,
    siteUrl: "",
    clock: systemClock,
    onFatal,
  });
  const ids = await office.change(async ({ accounts: made }) => {
    const all: number[] = [];
    for (let number = 1; number <= accounts; number += 1) {
      all.push((await made.create({ email: `filled-${number}@example.com`, credit: 1_000_000_000_000 })).id);
    }
    return all;
  });
  return {
    admit: (account, requestId) => {
      const principal = { account: ids[account - 1]!, key: defaultKey };
      return Promise.resolve(admission.admit({ ...principal, ask, inputTokens: 0, requestId }, momentOf(systemClock)));
    },
    batches: () => null,
  };
}

async function carry(books: Books, accounts: number, { seconds, clients, rate }: Load): Promise<Carried> {
  const admissionMs: number[] = [];
  const tag = crypto.randomUUID();
  let begun = 0;
  const one = async (): Promise<void> => {
    const askedAt = performance.now();
    const hold = await books.admit(1 + Math.floor(Math.random() * accounts), `${tag}-${begun++}`);
    if (isRefusal(hold)) throw new Error(`refused: ${hold.refusal}`);
    admissionMs.push(performance.now() - askedAt);
    await hold.settle(usage, false, Date.now());
  };
  const before = books.batches();
  const cpu = process.cpuUsage();
  const startedMs = performance.now();
  const isOver = () => performance.now() - startedMs > seconds * 1_000;
  if (clients > 0) {
    const again = async (): Promise<void> => {
      while (!isOver()) await one();
    };
    await Promise.all(Array.from({ length: clients }, again));
  } else {
    const open: Promise<void>[] = [];
    while (!isOver()) {
      const due = ((performance.now() - startedMs) / 1_000) * rate;
      while (open.length < due) open.push(one());
      await Bun.sleep(1);
    }
    await Promise.all(open);
  }
  const requests = admissionMs.length;
  const { user, system } = process.cpuUsage(cpu);
  const after = books.batches();
  const counts = before === null || after === null ? null : { before, after, batches: after.batches - before.batches };
  return {
    perSecond: (requests * 1_000) / (performance.now() - startedMs),
    admissionMs: [percentile(admissionMs, 0.5), percentile(admissionMs, 0.99)],
    gatewayMicros: (user + system) / requests,
    requests,
    operationsInBatch: counts && (counts.after.operations - counts.before.operations) / counts.batches,
    batchMs: counts && (counts.after.underWayMs - counts.before.underWayMs) / counts.batches,
  };
}

if (import.meta.main) {
  const [name, count, place] = process.argv.slice(2) as [string, string, string];
  const accounts = Number(count);
  const books = place.startsWith("postgres") ? await openPostgres(name, place) : await openSqlite(place, accounts);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => Response.json(await carry(books, accounts, (await request.json()) as Load)),
  });
  console.log(`ready on ${server.port}`);
}
