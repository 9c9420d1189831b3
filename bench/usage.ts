// How long does the usage page take over millions of replies, and do streams notice?
//
//   bun bench/usage.ts [--replies 5000000] [--looks 20] [--quick]
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { UsageFilter } from "../src/account/usage-queries.ts";
import { embeddedCatalog } from "../src/core/catalog.ts";
import { dayMs } from "../src/core/units.ts";
import { mintRequestId } from "../src/core/request-id.ts";
import { migrate } from "../src/store/ledger/migrate.ts";
import { usageInFile } from "../src/store/usage/usage-file.ts";
import { readFlags } from "./flags.ts";
import { keepResult, type Result } from "./result.ts";
import { percentile } from "./statistics.ts";

const usageDefaults = {
  /** Half of them belong to the account that is looked at, the others to 1,000 accounts. */
  replies: 5_000_000,
  /** Times that each look is taken, the last place of a page included. */
  looks: 20,
  /** The main thread's turns are watched for so long before the first look, to compare with. */
  quietMs: 10_000,
};
export type UsageFlags = typeof usageDefaults;

const start = Date.UTC(2026, 0, 1);
const days = 60;
const end = start + days * dayMs;
const otherAccounts = 1_000;
const rareReplies = 5;
const models = [...embeddedCatalog().models.keys()];
const rare = models.at(-1)!;
const endpoints = ["/v1/chat/completions", "/v1/messages", "/v1/responses"] as const;
const everything: UsageFilter = { model: null, endpoint: null, key: null, from: null, to: null, text: "" };

type Look = Readonly<{ name: string; rows: number; ms: number[] }>;

/** Fills a journal, makes its index, looks at it; a look that finds other than it must is a failure. */
export async function measureUsage(flags: UsageFlags) {
  const folder = mkdtempSync(join(tmpdir(), "bench-usage-"));
  const journalFile = join(folder, "tollgate.db");
  try {
    const { lastId, own } = fill(journalFile, flags.replies);
    const usage = usageInFile(folder, journalFile, () => {});
    const quiet = new TurnGaps();
    await Bun.sleep(flags.quietMs);
    const quietGapsMs = quiet.stop();
    const gaps = new TurnGaps();
    const buildMs = await timed(() => usage.summary(1, 0));
    const looks: Look[] = [];
    let failures = 0;
    const look = async (name: string, part: Partial<UsageFilter>, least: number) => {
      const filter = { ...everything, ...part };
      const ms: number[] = [];
      let rows = 0;
      for (let time = 0; time < flags.looks; time++) {
        let found = 0;
        ms.push(await timed(async () => void (found = (await usage.page(1, filter, null, 50)).rows.length)));
        rows = found;
      }
      if (rows < least) failures += 1;
      looks.push({ name, rows, ms });
    };
    const page = Math.min(50, own);
    await look("the newest page", {}, page);
    await look("one model", { model: models[4]! }, Math.min(50, Math.floor(own / models.length)));
    await look(`a model with ${rareReplies} replies in all`, { model: rare }, rareReplies);
    await look(
      "one endpoint on one day",
      { endpoint: endpoints[1], from: start + 30 * dayMs, to: start + 31 * dayMs },
      1,
    );
    await look('text "CORE-3"', { text: "CORE-3" }, page);
    await look('text "%_"', { text: "%_" }, 0);
    await look("text: a request id", { text: lastId }, 1);
    await look("text: the beginning of a request id", { text: lastId.slice(0, 11) }, 1);
    const summaryMs: number[] = [];
    for (let time = 0; time < flags.looks; time++) {
      summaryMs.push(await timed(() => usage.summary(1, Math.floor(end / dayMs) - 29)));
    }
    const { total } = await usage.summary(1, 0);
    if (total.requests !== own) failures += 1;
    looks.push({ name: "30 days by model, and totals", rows: total.requests, ms: summaryMs });
    const filter = { model: null, endpoint: null, key: null, endUser: null };
    const year = { account: 0, from: end - 364 * dayMs, until: end, stepMs: 7 * dayMs, filter } as const;
    for (const by of ["model", "account"] as const) {
      const ms: number[] = [];
      for (let time = 0; time < flags.looks; time++) ms.push(await timed(() => usage.overTime({ ...year, by })));
      looks.push({ name: `a chart of a year of all accounts by ${by}`, rows: flags.replies, ms });
    }
    const gapsMs = gaps.stop();
    await usage.close();
    const indexBytes = statSync(join(folder, "usage.db")).size;
    return { looks, buildMs, quietGapsMs, gapsMs, indexBytes, journalBytes: statSync(journalFile).size, failures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** How long the main thread, which has the streams, was kept from its next turn. */
class TurnGaps {
  readonly #gapsMs: number[] = [];
  #lastMs = performance.now();
  readonly #timer = setInterval(() => {
    const now = performance.now();
    this.#gapsMs.push(now - this.#lastMs);
    this.#lastMs = now;
  }, 1);

  stop(): number[] {
    clearInterval(this.#timer);
    return this.#gapsMs;
  }
}

const gapsText = (gapsMs: readonly number[]): string =>
  `p99 ${percentile(gapsMs, 0.99).toFixed(0)} ms, longest ${percentile(gapsMs, 1).toFixed(0)} ms`;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const fromMs = performance.now();
  await work();
  return performance.now() - fromMs;
}

/** Replies in the order of their time. Gives the last request id of account 1, and how many it has. */
function fill(file: string, replies: number): { lastId: string; own: number } {
  migrate(file);
  const database = new Database(file);
  database.run("PRAGMA synchronous = OFF");
  const insert = database.prepare(`
    INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model, input_fresh,
      input_cached, output, reasoning, input_cents, cached_input_cents, output_cents, billed_tokens, estimated)
    VALUES (?, 'charge', ?, ?, 0, 100, 0, ?, ?, 500, 100, 80, 20, 50, 5, 200, 100, 0)`);
  let lastId = "";
  let own = 0;
  for (let row = 0; row < replies;) {
    database.transaction(() => {
      for (const until = Math.min(row + 100_000, replies); row < until; row++) {
        const at = start + Math.floor(((end - start) * row) / replies);
        const id = mintRequestId(at);
        const account = row % 2 === 0 ? 1 : 2 + (row % otherAccounts);
        if (account === 1) lastId = id;
        const isRare = account === 1 && own % Math.ceil(replies / 2 / rareReplies) === 0;
        if (account === 1) own += 1;
        const model = isRare ? rare : models[Math.floor(row / 2) % (models.length - 1)]!;
        insert.run(id, account, at, endpoints[row % 3]!, model);
      }
    })();
    console.log(`  ${row} replies`);
  }
  database.close();
  return { lastId, own };
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`;

function resultOf(flags: UsageFlags, measured: Awaited<ReturnType<typeof measureUsage>>): Result {
  const { looks, buildMs, quietGapsMs, gapsMs, indexBytes, journalBytes, failures } = measured;
  return {
    bench: "usage",
    variant: "",
    question: "The usage page over millions of replies",
    columns: ["look", "rows", "median ms", "longest ms"],
    rows: looks.map(({ name, rows, ms }) => [
      name,
      String(rows),
      percentile(ms, 0.5).toFixed(1),
      percentile(ms, 1).toFixed(1),
    ]),
    chart: null,
    failures,
    notes: [
      `${flags.replies} replies in ${days} days, half of them of the account that looks; each look ${flags.looks} times, from ` +
        `the main thread to the Worker and back. The index was made once in ${(buildMs / 1_000).toFixed(1)} s ` +
        `(${((buildMs * 1_000) / flags.replies).toFixed(1)} us a reply) and takes ${mebibytes(indexBytes)} beside a ` +
        `journal of ${mebibytes(journalBytes)}. A timer of 1 ms on the main thread, which has the streams: ` +
        `${gapsText(gapsMs)} between two turns all the while, ${gapsText(quietGapsMs)} while nothing was looked for.`,
    ],
  };
}

if (import.meta.main) {
  const flags = readFlags(usageDefaults, { replies: 20_000, looks: 3, quietMs: 200 });
  await keepResult(resultOf(flags, await measureUsage(flags)));
}
