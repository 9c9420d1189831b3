// How long the usage page takes over millions of replies: fills a journal, builds its index, and asks. One account has
// half of all replies, the others share the rest.
//   bun bench/usage.ts [ROWS]
import { Database } from "bun:sqlite";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { embeddedCatalog } from "../src/catalog.ts";
import type { UsageFilter } from "../src/account/usage-queries.ts";
import { dayMs } from "../src/limits.ts";
import { mintRequestId } from "../src/request-id.ts";
import { migrate } from "../src/store/open.ts";
import { UsageFile } from "../src/store/usage-file.ts";

const rows = Number(process.argv[2] ?? 5_000_000);
const accounts = 1_000;
const start = Date.UTC(2026, 0, 1);
const end = start + 60 * dayMs;
const models = [...embeddedCatalog().models.keys()];
const common = models.slice(0, -1);
const rare = models.at(-1)!;
const endpoints = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];

const folder = await mkdtemp(join(tmpdir(), "tollgate-usage-"));
const journalFile = join(folder, "tollgate.db");
let usage: UsageFile | null = null;
try {
  const lastId = await timed("fill the journal", () => fill());
  for (const suffix of ["", "-wal"]) await size(journalFile + suffix);
  usage = new UsageFile(folder, journalFile, (_level, message, detail) => console.error(message, detail));
  const index = usage;
  await timed("build the index", () => index.summary(1, 0));
  await size(join(folder, "usage.db"));
  for (let round = 0; round < 2; round++) {
    await look("newest page", {});
    await look("a model", { model: common[4]! });
    await look("a model of 5 replies in all", { model: rare });
    await look("text: part of a model", { text: "CORE-3" });
    await look("text: %", { text: "%" });
    await look("text: _", { text: "_" });
    await look("text: a request id", { text: lastId });
    await look("text: the beginning of a request id", { text: lastId.slice(0, 10) });
    await look("an endpoint in the middle of the time", {
      endpoint: "/v1/messages",
      from: start + 30 * dayMs,
      to: start + 31 * dayMs,
    });
    await timed("summary of 30 days", () => index.summary(1, Math.floor(end / dayMs) - 29));
  }
  let exported = 0;
  await timed("export 100,000 replies", async () => {
    for (let before = null; exported < 100_000;) {
      const page = await index.page(1, filter({}), before, 1_000);
      exported += page.rows.length;
      if (page.next === null) break;
      before = page.next as never;
    }
  });

  async function look(name: string, part: Partial<UsageFilter>): Promise<void> {
    const page = await timed(name, () => index.page(1, filter(part), null, 50));
    console.log(`    ${page.rows.length} rows`);
    if (page.next !== null) await timed(`${name}, next page`, () => index.page(1, filter(part), page.next, 50));
  }
} finally {
  await usage?.close();
  await rm(folder, { recursive: true, force: true });
}

function filter(part: Partial<UsageFilter>): UsageFilter {
  return { model: null, endpoint: null, from: null, to: null, text: "", ...part };
}

async function timed<Result>(name: string, work: () => Result | Promise<Result>): Promise<Result> {
  const from = performance.now();
  const result = await work();
  console.log(`${(performance.now() - from).toFixed(1).padStart(10)} ms  ${name}`);
  return result;
}

async function size(file: string): Promise<void> {
  const found = await stat(file).catch(() => null);
  if (found !== null)
    console.log(`${(found.size / 1024 ** 2).toFixed(0).padStart(10)} MiB ${file.slice(folder.length + 1)}`);
}

/** Replies spread evenly over 60 days, in the order of their time. Gives the last request id. */
function fill(): string {
  migrate(journalFile);
  const database = new Database(journalFile);
  database.run("PRAGMA synchronous = OFF");
  const insert = database.prepare(`
    INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model, input_fresh,
      input_cached, output, reasoning, input_cents, cached_input_cents, output_cents, billed_tokens, estimated)
    VALUES (?, 'charge', ?, ?, 0, 100, 0, ?, ?, 500, 100, 80, 20, 50, 5, 200, 100, 0)`);
  let last = "";
  for (let row = 0; row < rows;) {
    database.transaction(() => {
      for (const until = Math.min(row + 100_000, rows); row < until; row++) {
        const at = start + Math.floor(((end - start) * row) / rows);
        const account = row % 2 === 0 ? 1 : 2 + (row % accounts);
        const isRare = row % Math.ceil(rows / 5) === 0 && account === 1;
        const id = mintRequestId(at);
        if (account === 1) last = id;
        insert.run(id, account, at, endpoints[row % 3]!, isRare ? rare : common[(row * 7) % common.length]!);
      }
    })();
  }
  database.close();
  return last;
}
