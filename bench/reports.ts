// How long does the report of a month take from sums, and from the journal's lines, in a data folder and on PostgreSQL?
//
//   bun bench/reports.ts [--lines 1000000] [--looks 5] [--scattered] [--quick]
//
// Each account asks for a few models by one endpoint; `--scattered`: each line has whatever model, endpoint and key chance gives,
// so that sums by day are half as many as lines.
import { Database as Sqlite } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReportAsked, ReportRow } from "../src/core/report.ts";
import { mintRequestId } from "../src/core/request-id.ts";
import { dayMs } from "../src/core/units.ts";
import { migrate as migrateFolder } from "../src/store/ledger/migrate.ts";
import { PostgresServer } from "../src/store/postgres/connection.ts";
import { Database } from "../src/store/postgres/database.ts";
import { migrate } from "../src/store/postgres/migrations.ts";
import { sumNextDay } from "../src/store/postgres/usage-days.ts";
import { PostgresUsage } from "../src/store/postgres/usage.ts";
import { SqliteQuestions } from "../src/store/questions.ts";
import { reportQuestion } from "../src/store/usage/report.ts";
import { UsageIndex } from "../src/store/usage/usage-index.ts";
import { TestPostgres } from "../test/fixtures/postgres.ts";
import { randomOf } from "../test/fixtures/random.ts";
import { readFlags } from "./flags.ts";
import { keepResult } from "./result.ts";
import { median } from "./statistics.ts";

const defaults = { lines: 1_000_000, looks: 5, scattered: false };
const accounts = 1_000;
const from = Date.UTC(2026, 9, 1);
const until = Date.UTC(2026, 10, 1);
const models = ["core-3", "core-3-pro", "mini", "embed", "open-01"];
const columns = [
  ...["billing_key", "kind", "account_id", "at", "period", "used", "credit_delta", "endpoint", "model", "input_fresh"],
  ...[
    "input_cached",
    "output",
    "reasoning",
    "billed_tokens",
    "estimated",
    "key_id",
    "end_user_id",
    "tags",
    "cost_center",
  ],
];

function* linesOf(count: number, isScattered: boolean): Generator<(string | number | null)[]> {
  const random = randomOf(7);
  const below = (limit: number): number => Math.floor(random() * limit);
  for (let line = 0; line < count; line++) {
    const at = from + Math.floor(((until - from) * line) / count);
    const account = 1 + Math.floor(accounts * random() ** (isScattered ? 1 : 2));
    const key = 1 + below(2);
    const model = models[isScattered ? below(5) : (account + Math.floor(3 * random() ** 2)) % 5]!;
    const isMessages = isScattered ? random() < 0.5 : account % 3 === 0;
    const tags = account % 3 === 1 ? `project=${account % 40}${random() < 0.5 ? ",env=prod" : ""}` : null;
    yield [
      ...[mintRequestId(at), "charge", account, at, Math.floor(at / dayMs), 0, 0],
      ...[
        isMessages ? "/v1/messages" : "/v1/chat/completions",
        model,
        below(900),
        100,
        below(200),
        20,
        below(1_000),
        0,
      ],
      ...[
        key,
        account % 5 === 0 && key > 1 ? 1 + below(20) : null,
        tags,
        account % 2 === 1 ? `CC-${account % 30}` : null,
      ],
    ];
  }
}

const asks: readonly Partial<ReportAsked>[] = [
  ...[["account"], ["account", "model"], ["account", "key"], ["account", "end_user"], ["cost_center"], ["tag"]],
  ...[
    ["account", "model", "cost_center"],
    ["account", "tag"],
  ],
].map((by) => ({ by }) as Partial<ReportAsked>);

const sumsOf = (rows: readonly ReportRow[]): string =>
  (["requests", "input", "cached", "output", "billed"] as const)
    .map((sum) => rows.reduce((all, row) => all + row[sum], 0))
    .join(" ");

if (import.meta.main) {
  const flags = readFlags(defaults, { lines: 20_000, looks: 2 });
  const folder = mkdtempSync(join(tmpdir(), "bench-reports-"));
  await using postgres = await TestPostgres.start();
  const server = new PostgresServer(postgres.url());
  const [database, file] = [new Database(server), join(folder, "tollgate.db")];
  try {
    const connection = await server.connect();
    await migrate(connection);
    connection.close();
    migrateFolder(file);
    const sqlite = new Sqlite(file);
    const insert = sqlite.prepare(
      `INSERT INTO journal (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    );
    const tsv = Bun.file(join(folder, "lines.tsv")).writer();
    sqlite.transaction(() => {
      for (const line of linesOf(flags.lines, flags.scattered)) {
        insert.run(...line);
        tsv.write(`${line.map((value) => value ?? "\\N").join("\t")}\n`);
      }
    })();
    await tsv.end();
    await Bun.$`psql ${postgres.url()} -qc ${`\\copy journal (${columns.join(", ")}) FROM '${join(folder, "lines.tsv")}'`}`;
    while (await sumNextDay(database));
    await Bun.$`psql ${postgres.url()} -qc ANALYZE`;
    const here = UsageIndex.open(join(folder, "usage.db"), file);
    while (here.catchUp());
    const there = new PostgresUsage(database);
    const questions = new SqliteQuestions(sqlite);
    const lines = (asked: ReportAsked) =>
      reportQuestion(asked, { summedTo: 0, near: () => ({ where: "", values: [] }) });
    let failures = 0;
    const timed = async (ask: () => Promise<unknown>): Promise<readonly [ms: number, rows: readonly ReportRow[]]> => {
      const times: number[] = [];
      let rows: unknown;
      for (let look = 0; look < flags.looks; look++) {
        const begun = performance.now();
        rows = await ask();
        times.push(performance.now() - begun);
      }
      return [median(times), rows as readonly ReportRow[]];
    };
    const rows: string[][] = [];
    for (const some of asks) {
      const asked = { from, until, by: [], account: null, tag: null, costCenter: null, rowsMax: 200_000, ...some };
      const row = [asked.by.join(", ")];
      for (const [sums, read] of [
        [async () => here.report(asked).rows, async () => questions.rows(...lines(asked))],
        [async () => (await there.report(asked)).rows, () => database.ask(...lines(asked))],
      ] as const) {
        const [[sumsMs, summed], [linesMs, whole]] = [await timed(sums), await timed(read)];
        if (sumsOf(summed) !== sumsOf(whole) || summed.length !== whole.length) failures += 1;
        row.push(sumsMs.toFixed(0), linesMs.toFixed(0), (linesMs / sumsMs).toFixed(1));
      }
      rows.push(row);
    }
    here.close();
    sqlite.close();
    await keepResult({
      bench: "reports",
      variant: flags.scattered ? "scattered" : "",
      question: "The report of a month from sums, and from its lines",
      columns: ["by", ...["folder", "PostgreSQL"].flatMap((store) => [`${store}: ms`, "from lines", "times faster"])],
      rows,
      chart: null,
      failures,
      notes: [`${flags.lines} lines of ${accounts} accounts; the median of ${flags.looks} looks each.`],
    });
  } finally {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
