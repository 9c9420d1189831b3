// The usage page on PostgreSQL beside the index on SQLite: the same lines, the same answers, whether their days are summed up
// already or not.
import { Database as Sqlite } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  everyAccount,
  type UsageFilter,
  type UsagePlace,
  type UsageQueries,
} from "../../../src/account/usage-queries.ts";
import { usageSplits } from "../../../src/core/over-time.ts";
import { accountSorts } from "../../../src/core/account-columns.ts";
import type { AccountsAsked } from "../../../src/account/accounts-page.ts";
import { dayMs, hourMs } from "../../../src/core/units.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { ReportRow } from "../../../src/core/report.ts";
import { reportGroups } from "../../../src/core/report-columns.ts";
import { requestLogIn } from "../../../src/store/postgres/served-lines.ts";
import { KeptRequestLog } from "../../../src/store/requests/kept-request-log.ts";
import { mintRequestId } from "../../../src/core/request-id.ts";
import { migrate as migrateSqlite } from "../../../src/store/ledger/migrate.ts";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { PostgresUsage } from "../../../src/store/postgres/usage.ts";
import { sumNextDay } from "../../../src/store/postgres/usage-days.ts";
import { usageInFile } from "../../../src/store/usage/usage-file.ts";
import { type Databases, startDatabases } from "../../fixtures/postgres.ts";
import { randomOf } from "../../fixtures/random.ts";

const models = ["core-3", "Core-3-pro", "100%_sure", "open-01"];
const endpoints = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];
const today = Math.floor(Date.now() / dayMs);
const start = (today - 5) * dayMs;

type Line = Readonly<Record<string, string | number | null>>;
const random = randomOf(11);
const below = (limit: number) => Math.floor(random() * limit);
const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)]!;

function linesOf(count: number): Line[] {
  return Array.from({ length: count }, (_, index) => {
    const at = start + Math.floor((index * 5.5 * dayMs) / count);
    const kind = index % 9 === 0 ? "credit" : index % 7 === 0 ? "coder_usage" : "charge";
    const isReply = kind !== "credit";
    const key = 1 + below(3);
    return {
      billing_key: mintRequestId(at),
      kind,
      account_id: 1 + below(3),
      at,
      period: Math.floor(at / dayMs),
      used: 0,
      credit_delta: isReply ? 0 : 1,
      endpoint: isReply ? endpoints[below(3)]! : null,
      model: isReply ? models[below(4)]! : null,
      input_fresh: isReply ? below(50) : null,
      input_cached: isReply ? below(9) : null,
      output: isReply ? below(90) : null,
      reasoning: isReply ? below(5) : null,
      billed_tokens: isReply ? below(1_000) : null,
      tags: isReply ? pick([null, "a", "a,b", "b,ab"]) : null,
      cost_center: isReply ? pick([null, "R&D"]) : null,
      estimated: isReply ? below(2) : null,
      key_id: key,
      end_user_id: isReply && key > 1 && below(2) === 0 ? key - 1 : null,
      node: isReply ? ["gpu", "other"][below(2)]! : null,
    };
  });
}

describe("usage", () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-postgres-usage-"));
  const lines = linesOf(700);
  let postgres: Databases;
  let url: string;
  let client: Bun.SQL;
  let database: Database;
  let here: ReturnType<typeof usageInFile>;
  let there: PostgresUsage;

  beforeAll(async () => {
    postgres = await startDatabases();
    url = await postgres.database("usage");
    const server = new PostgresServer(url);
    const connection = await server.connect();
    await migrate(connection);
    connection.close();
    client = new Bun.SQL({ url, max: 1 });
    await client.unsafe(`CREATE TABLE IF NOT EXISTS end_users (account_id bigint, id int, key_id int, name text,
      first_day int, last_day int, PRIMARY KEY (account_id, id))`);
    const file = join(folder, "tollgate.db");
    migrateSqlite(file);
    const sqlite = new Sqlite(file);
    const columns = Object.keys(lines[0]!);
    const insert = `INSERT INTO journal (${columns.join(", ")}) VALUES`;
    const rows: string[] = [];
    sqlite.transaction(() => {
      for (const line of lines) {
        sqlite.run(`${insert} (${columns.map(() => "?").join(", ")})`, Object.values(line));
        const values = Object.values(line).map((value) =>
          typeof value === "string" ? `'${value}'` : (value ?? "NULL"),
        );
        rows.push(`(${values.join(", ")})`);
      }
    })();
    await client.unsafe(`${insert} ${rows.join(", ")}`);
    const keys = "INSERT INTO api_keys (account_id, id, name, key_hash, created_at) VALUES (1, 2, 'second', NULL, 0)";
    const people = [1, 2, 3].flatMap((account) => [
      `INSERT INTO end_users (account_id, id, key_id, name, first_day, last_day) VALUES (${account}, 1, 2, 'ann', 0, 0)`,
      `INSERT INTO end_users (account_id, id, key_id, name, first_day, last_day) VALUES (${account}, 2, 3, NULL, 0, 0)`,
    ]);
    for (const text of [keys, ...people]) {
      sqlite.run(text);
      await client.unsafe(text);
    }
    sqlite.close();
    database = new Database(server);
    here = usageInFile(folder, file, () => {});
    there = new PostgresUsage(database);
  }, 60_000);
  afterAll(async () => {
    await here.close();
    await database.close();
    await client.close();
    await postgres[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  async function pagesOf(usage: UsageQueries, account: number, filter: UsageFilter, limit: number) {
    const rows: unknown[] = [];
    for (let place: UsagePlace | null = null; ;) {
      const page = await usage.page(account, filter, place, limit);
      expect(page.rows.length).toBeLessThanOrEqual(limit);
      rows.push(...page.rows);
      // As it travels through a browser.
      place = page.next === null ? null : { at: page.next.at, sequence: String(page.next.sequence) };
      if (place === null) return rows;
    }
  }

  const someTime = () => start + below(6 * 24) * hourMs;
  const filters = (): UsageFilter => ({
    model: pick([null, null, pick(models), "unknown"]),
    endpoint: pick([null, null, pick(endpoints)]),
    key: pick([null, null, 2, 9]),
    endUser: pick([null, null, null, "ann", "nobody"]),
    from: pick([null, someTime()]),
    to: pick([null, someTime()]),
    text: pick(["", "", "CORE", "%", "0%_s", "'", "nothing", String(pick(lines)["billing_key"]).slice(0, 13), "\0"]),
  });

  async function alike(): Promise<void> {
    for (let round = 0; round < 25; round += 1) {
      const [filter, account, limit] = [filters(), 1 + below(4), pick([1, 3, 50])];
      const expected = await pagesOf(here, account, filter, limit);
      expect([filter, await pagesOf(there, account, filter, limit)]).toEqual([filter, expected]);
    }
    for (const account of [everyAccount, 1, 2, 3, 4]) {
      const fromDay = today - below(6);
      const expected = await here.summary(account, fromDay);
      const found = await there.summary(account, fromDay);
      const inOrder = (summary: typeof expected) => ({
        ...summary,
        days: summary.days.toSorted((a, b) => a.day - b.day || (a.model < b.model ? -1 : 1)),
        endUsers: account === everyAccount ? [] : summary.endUsers,
      });
      expect(inOrder(found)).toEqual(inOrder(expected));
    }
    for (let round = 0; round < 40; round += 1) {
      const by = pick(usageSplits);
      const account = by === "account" ? everyAccount : pick([everyAccount, 1, 2, 4]);
      const { model, endpoint, key, endUser } = filters();
      const stepMs = pick([hourMs, dayMs, 3 * dayMs]);
      const from = round === 0 ? 0 : stepMs < dayMs ? someTime() : start + below(3) * dayMs;
      const until = round === 0 ? start + 10 * dayMs : from + stepMs * (1 + below(9));
      const filter = { model, endpoint, key, endUser: endUser ?? null };
      const asked = { account, from, until, stepMs, by, filter };
      const sorted = async (usage: UsageQueries) =>
        (await usage.overTime(asked)).steps.map((row) => JSON.stringify(Object.entries(row).sort())).sort();
      const expected = await sorted(here);
      expect([asked, await sorted(there)]).toEqual([asked, expected]);
      // and they are what the journal has
      const fitting = lines.filter(
        (line) =>
          line["kind"] !== "credit" &&
          (account === everyAccount || line["account_id"] === account) &&
          Number(line["at"]) >= from &&
          Number(line["at"]) < until &&
          (model === null || line["model"] === model) &&
          (endpoint === null || line["endpoint"] === endpoint) &&
          (key === null || line["key_id"] === key) &&
          (filter.endUser === null || (filter.endUser === "ann" && line["end_user_id"] === 1)),
      );
      const rows = (await here.overTime(asked)).steps;
      const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((total, row) => total + of(row), 0);
      const wanted = (column: string) => fitting.reduce((total, line) => total + Number(line[column]), 0);
      expect([asked, sum(({ requests }) => requests)]).toEqual([asked, fitting.length]);
      expect(sum(({ input }) => input)).toBe(wanted("input_fresh") + wanted("input_cached"));
      expect([sum(({ output }) => output), sum(({ billedTokens }) => billedTokens)]).toEqual([
        wanted("output"),
        wanted("billed_tokens"),
      ]);
      const steps = new Set(fitting.map((line) => from + Math.floor((Number(line["at"]) - from) / stepMs) * stepMs));
      expect(new Set(rows.map(({ at }) => at))).toEqual(steps);
    }
  }

  const everyone: AccountsAsked = {
    text: "",
    plan: null,
    state: null,
    team: null,
    usedLeast: null,
    sort: "email",
    isDown: false,
    page: 1,
    allowances: [["free", 100]],
    today,
    monthStart: today - 4,
    pageRows: 50,
  };

  /** In both; they go again, for other tests have their own. */
  async function bothRun(texts: readonly string[]): Promise<void> {
    const sqlite = new Sqlite(join(folder, "tollgate.db"));
    for (const text of texts) {
      sqlite.run(text.replace(/\{(\d+)\}/g, "x'$1'"));
      await client.unsafe(text.replace(/\{(\d+)\}/g, "'\\x$1'"));
    }
    sqlite.close();
  }
  const hash = (account: number): string => `{${String(account).repeat(64)}}`;

  async function listsAccountsAlike(): Promise<void> {
    await bothRun([
      ...["Zoe", "adam", "50%_x", "eve", "crew"].map((name, at) => {
        const id = at + 1;
        const values = [
          id,
          `'${name}@x'`,
          id % 2 === 0 ? "'pro'" : "'free'",
          (7 * id) % 5,
          hash(id),
          id === 1,
          id,
          0,
          id === 4 ? 7 : "NULL",
          id === 2 ? "NULL" : 100 * id,
          id > 3 ? "NULL" : `'R&${id}'`,
          id === 5 ? 1 : "NULL",
        ];
        return `INSERT INTO accounts (id, email, plan, credit, key_hash, operator, created_at, key_created_at, disabled_at,
          key_used_at, cost_center, team) VALUES (${values.join(", ")})`;
      }),
      "INSERT INTO team_members (team_id, account_id, role, joined_at) VALUES (5, 1, 'admin', 0), (5, 2, 'member', 0)",
      `INSERT INTO sessions (id, token_hash, account_id, created_at, used_at, address, browser)
       VALUES (1, ${hash(6)}, 2, 0, 900, '', '')`,
      `INSERT INTO quota_use (account_id, quota, period, used)
       VALUES (1, 'allowance', ${today}, 95), (2, 'allowance', ${today}, 79), (3, 'allowance', ${today - 1}, 99)`,
    ]);
    const { rows } = await here.accounts(everyone);
    expect(rows.map(({ email, teams }) => [email, teams])).toEqual([
      ["50%_x@x", null],
      ["adam@x", "crew@x"],
      ["crew@x", null],
      ["eve@x", null],
      ["Zoe@x", "crew@x"],
    ]);
    for (const { id, month, monthTokens, today: day, activeAt } of rows) {
      const own = lines.filter((line) => line["account_id"] === id && line["kind"] !== "credit");
      const sum = (of: readonly Line[], ...columns: readonly string[]) =>
        of.reduce((all, line) => columns.reduce((more, column) => more + Number(line[column]), all), 0);
      const since = (from: number) => own.filter(({ at }) => Number(at) >= from * dayMs);
      const tokens = sum(since(today - 4), "input_fresh", "input_cached", "output");
      expect([day, month, monthTokens]).toEqual([
        sum(since(today), "billed_tokens"),
        sum(since(today - 4), "billed_tokens"),
        tokens,
      ]);
      expect(activeAt).toBe(id === 2 ? 900 : 100 * id);
    }
    for (const sort of accountSorts) {
      for (const isDown of [false, true]) {
        for (const asked of [
          { ...everyone, sort, isDown },
          { ...everyone, sort, isDown, page: 2, pageRows: 2 },
          { ...everyone, sort, isDown, page: 9e15, pageRows: 2 },
        ])
          expect([asked, await there.accounts(asked)]).toEqual([asked, await here.accounts(asked)]);
      }
    }
    for (const [filter, found] of [
      [{ text: "%_" }, ["50%_x@x"]],
      [{ text: "ZO" }, ["Zoe@x"]],
      [{ text: "' OR 1=1 --" }, []],
      [{ state: "disabled" }, ["eve@x"]],
      [{ state: "operator" }, ["Zoe@x"]],
      [{ state: "team" }, ["crew@x"]],
      [{ team: "CREW@x" }, ["adam@x", "Zoe@x"]],
      [
        {
          usedLeast: 800,
          allowances: [
            ["free", 100],
            ["pro", 100],
          ],
        },
        ["Zoe@x"],
      ],
      [{ usedLeast: 0, allowances: [["pro", 100]] }, ["adam@x", "eve@x"]],
      [{ plan: "gone" }, []],
    ] as const) {
      for (const usage of [here, there]) {
        const { rows: fit, total } = await usage.accounts({ ...everyone, ...filter });
        expect([filter, fit.map(({ email }) => email), total]).toEqual([filter, [...found], found.length]);
      }
    }
    // Few are summed one by one, and so many in one go.
    const crowd = Array.from({ length: 5_000 }, (_, at) => {
      const hash = `{${String(at).padStart(64, "0")}}`;
      return `(${100 + at}, 'n${at}@x', 'free', 0, ${hash}, false, 0, 0)`;
    });
    await bothRun([
      `INSERT INTO accounts (id, email, plan, credit, key_hash, operator, created_at, key_created_at)
       VALUES ${crowd.join(", ")}`,
    ]);
    for (const sort of ["today", "month"] as const)
      expect(await there.accounts({ ...everyone, sort, isDown: true })).toEqual(
        await here.accounts({ ...everyone, sort, isDown: true }),
      );
    await bothRun(["accounts", "team_members", "sessions", "quota_use"].map((table) => `DELETE FROM ${table}`));
  }

  test("answers as on SQLite while no day is summed", alike, 60_000);
  test("lists accounts as on SQLite", listsAccountsAlike, 60_000);

  test("answers the same when some days are summed, and when all are that are over", async () => {
    expect(await sumNextDay(database)).toBe(true);
    expect(await sumNextDay(database)).toBe(true);
    await alike();
    while (await sumNextDay(database));
    const [mark] = await client.unsafe("SELECT value::int FROM counters WHERE name = 'served_day'");
    expect(mark.value).toBeGreaterThanOrEqual(today - 2);
    expect(mark.value).toBeLessThan(today);
    await alike();
    await listsAccountsAlike();
  }, 60_000);

  test("two gateways that sum the same days count each once", async () => {
    const sums = "SELECT sum(requests)::int AS requests FROM served_days WHERE account_id > 0";
    const before = await client.unsafe(sums);
    for (const table of ["served_days", "served_months", "tagged_days"]) await client.unsafe(`DELETE FROM ${table}`);
    await client.unsafe("UPDATE counters SET value = -1 WHERE name = 'served_day'");
    const all = async () => {
      while (await sumNextDay(database));
    };
    await Promise.all([all(), all(), all()]);
    expect(await client.unsafe(sums)).toEqual(before);
  }, 60_000);

  test("a report sums the lines by any columns, alike on both, and says where a folded day would be cut", async () => {
    const log = () => {};
    const file = join(folder, "tollgate.db");
    const keepMs = 7 * dayMs;
    const sqlite = KeptRequestLog.inFile({ dataFolder: folder, journalFile: file, keepMs, clock: systemClock, log });
    const keeper = requestLogIn(database, keepMs);
    const beside = new KeptRequestLog({ keeper, keepMs, clock: systemClock, log });
    const nameOfEndUser = (line: Line) => (line["end_user_id"] === 1 ? "ann" : null);
    for (let round = 0; round < 25; round += 1) {
      const times = round === 0 ? [0, today * dayMs + 2 * dayMs] : [someTime() + below(hourMs), someTime()].sort();
      const [from, until] = times as [number, number];
      const account = pick([null, null, 1, 4]);
      const by = reportGroups.filter((group) => group === "account" || below(2) === 0);
      const [tag, costCenter] = [pick([null, null, "a", "b"]), pick([null, null, "R&D"])];
      const asked = { from, until, account, by, tag, costCenter, rowsMax: 10_000 };
      const sums = new Map<string, number[]>();
      for (const line of lines) {
        const isAsked = line["kind"] !== "credit" && (account === null || line["account_id"] === account);
        if (!isAsked || Number(line["at"]) < from || Number(line["at"]) >= until) continue;
        if (tag !== null && line["tags"]?.toString().split(",").includes(tag) !== true) continue;
        if (costCenter !== null && line["cost_center"] !== costCenter) continue;
        const endUserId = by.includes("end_user") ? line["end_user_id"] : 0;
        const names = by.map(
          (group) =>
            line[{ account: "account_id", key: "key_id", end_user: "", tag: "tags" }[group as "key"] ?? group] ??
            (group === "end_user" ? nameOfEndUser(line) : null),
        );
        const sum = sums.get(JSON.stringify([names, endUserId])) ?? [0, 0, 0, 0, 0];
        const [fresh, cached] = [Number(line["input_fresh"]), Number(line["input_cached"])];
        const added = [1, fresh + cached, cached, Number(line["output"]), Number(line["billed_tokens"])];
        sums.set(
          JSON.stringify([names, endUserId]),
          sum.map((one, at) => one + added[at]!),
        );
      }
      const asHere = await here.report(asked);
      expect([asked, await there.report(asked)]).toEqual([asked, asHere]);
      expect(asHere.cutsFoldedDay).toBe(false);
      const found = asHere.rows.map(({ requests, input, cached, output, billed }) => [
        requests,
        input,
        cached,
        output,
        billed,
      ]);
      const inOrder = (rows: number[][]) => rows.map((row) => JSON.stringify(row)).sort();
      expect(inOrder(found)).toEqual(inOrder([...sums.values()]));
      expect(asHere.rows.map(({ billed }) => billed)).toEqual(found.map((row) => row[4]!).sort((a, b) => b - a));
    }

    const fold = `INSERT INTO journal_folds (account_id, day, kind, period, model, endpoint, lines, used, credit_delta,
      input_fresh, input_cached, output, reasoning, billed_tokens, key_id)
      VALUES (1, 100, 'charge', 100, 'core-3', '/v1/messages', 7, 0, 0, 5, 3, 2, 1, 9, 2)`;
    const booked = `INSERT INTO cost_center_folds (account_id, day, model, endpoint, key_id, cost_center, lines,
      input_fresh, input_cached, output, billed_tokens) VALUES (1, 100, 'core-3', '/v1/messages', 2, 'R&D', 3, 2, 1, 1, 4)`;
    const writer = new Sqlite(file);
    for (const rows of [fold, booked]) {
      await client.unsafe(rows);
      writer.run(rows);
    }
    const hash = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    for (const [id, plan, credit, used] of [
      [1, "small", 0, 95],
      [2, "small", 0, 94],
      [3, "small", 7, 100],
      [4, "large", 0, 100],
      [5, "small", -3, 130],
    ] as const) {
      const key = hash.replace(/^./, String(id));
      const account = `INSERT INTO accounts (id, email, plan, credit, key_hash, operator, created_at, key_created_at)
        VALUES (${id}, 'a${id}@x', '${plan}', ${credit}, `;
      const use = `INSERT INTO quota_use (account_id, quota, period, used) VALUES (${id}, 'allowance', 50, ${used})`;
      writer.run(`${account} unhex('${key}'), 0, 0, 0)`);
      writer.run(use);
      await client.unsafe(`${account} decode('${key}', 'hex'), false, 0, 0)`);
      await client.unsafe(`UPDATE accounts SET allowance_day = 50, allowance_used = ${used} WHERE id = ${id}`);
    }
    const owed = `team_id, account_id, role, tokens_per_day, tokens_per_month, joined_at`;
    const key =
      "account_id, id, name, created_at, tokens_per_day, tokens_per_month, end_user_tokens_per_day, member_id";
    for (const rows of [
      "UPDATE accounts SET mail_address = 'a@x' WHERE id IN (3, 4, 5)",
      "UPDATE accounts SET credit_after_purchase = 100, purchased_at = 7 WHERE id = 3",
      "UPDATE accounts SET team = 1 WHERE id = 2",
      `INSERT INTO api_keys (${key}) VALUES (4, 2, 'ci', 0, 100, NULL, 10, NULL), (2, 2, 'hers', 0, NULL, 200, NULL, 4)`,
      `INSERT INTO team_members (${owed}) VALUES (2, 4, 'member', 90, NULL, 0)`,
      `INSERT INTO key_use (account_id, key_id, day, used) VALUES (4, 2, 50, 79), (4, 2, 49, 99), (2, 2, 50, 80), (2, 2, 40, 110)`,
      `INSERT INTO end_users (account_id, id, key_id, name, first_day, last_day) VALUES (4, 9, 2, 'eve', 1, 1)`,
      `INSERT INTO end_user_use (account_id, end_user_id, day, used) VALUES (4, 9, 50, 9)`,
      `INSERT INTO mails (once, kind, details, created_at, tries, kept_until)
       VALUES ('statement 4 2026-10', 'statement', '', 0, 0, 0)`,
    ]) {
      writer.run(rows);
      await client.unsafe(rows);
    }
    writer.run("UPDATE journal_folded SET sequence = 1, billing_key = '', at = ?", [101 * dayMs - 1]);
    writer.close();
    // A version without these sums has folded what they say, and closed all its days.
    await here.close();
    for (const end of ["", "-wal", "-shm"]) rmSync(join(folder, `usage.db${end}`), { force: true });
    here = usageInFile(folder, file, () => {});
    for (const text of [
      "DROP TABLE served_days, served_months, tagged_days",
      "DELETE FROM counters WHERE name = 'served_day'",
      `INSERT INTO counters (name, value) VALUES ('folded_at', ${101 * dayMs}), ('usage_day', ${today})`,
      "UPDATE ledger_meta SET schema = 12",
    ])
      await client.unsafe(text);
    const connection = await new PostgresServer(url).connect();
    await migrate(connection);
    connection.close();
    const any = { account: null, tag: null, costCenter: null, rowsMax: 10 };
    const of = (from: number, until: number) => ({ ...any, from, until, by: reportGroups });
    for (const usage of [here, there]) {
      const names = {
        account: 1,
        team: null,
        member: null,
        key: "second",
        model: "core-3",
        endpoint: "/v1/messages",
        end_user: null,
      };
      const rows = [
        { ...names, cost_center: null, tag: null, requests: 4, input: 5, cached: 2, output: 1, billed: 5 },
        { ...names, cost_center: "R&D", tag: null, requests: 3, input: 3, cached: 1, output: 1, billed: 4 },
      ];
      expect(await usage.report(of(100 * dayMs, 101 * dayMs))).toEqual({ rows, cutsFoldedDay: false });
      expect(await usage.report(of(100 * dayMs - hourMs, 101 * dayMs))).toEqual({ rows, cutsFoldedDay: false });
      expect(await usage.report(of(100 * dayMs + hourMs, 102 * dayMs))).toEqual({ rows: [], cutsFoldedDay: true });
      expect(await usage.report({ ...of(0, 50 * dayMs), by: [] })).toEqual({ rows: [], cutsFoldedDay: false });
    }
    const whole = { ...of(0, today * dayMs), rowsMax: 10_000 };
    // Rows that were billed alike have no order.
    const rowsOf = async (usage: UsageQueries) =>
      (await usage.report(whole)).rows.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
    const before = await rowsOf(here);
    expect(await rowsOf(there)).toEqual(before);
    while (await sumNextDay(database));
    expect(await rowsOf(there)).toEqual(before);
    // An erased account's tags go from the sums as well.
    await bothRun(["UPDATE journal SET tags = NULL WHERE account_id = 1"]);
    await here.erase(1);
    await there.erase(1);
    const after = await rowsOf(here);
    expect(await rowsOf(there)).toEqual(after);
    const sumsOf = (rows: readonly ReportRow[]) => rows.reduce((sum, { billed }) => sum + billed, 0);
    expect(after.filter(({ account, tag }) => account === 1 && tag !== null)).toEqual([]);
    expect(sumsOf(after)).toBe(sumsOf(before));
    expect(after.length).toBeLessThan(before.length);
    for (const log of [sqlite, beside]) {
      const limits = [["small", 95] as const, ["large", 950] as const];
      expect(await log.nearLimit(50, limits, 9)).toEqual([
        { account: 5, plan: "small", used: 130 },
        { account: 1, plan: "small", used: 95 },
      ]);
      expect(await log.nearLimit(51, limits, 9)).toEqual([]);
      const plans = [["small", 100] as const, ["large", 1_000] as const];
      const told = (await log.toTell(50, 31, plans)).map(
        ({ once, member, name, used, most }) => `${once}: ${name} ${member ?? "-"} ${used} of ${most}`,
      );
      expect(told).toEqual([
        "allowance day 2 0 80 50:  - 94 of 100",
        "allowance day 3 0 95 50:  - 100 of 100",
        "allowance day 5 0 95 50:  - 130 of 100",
        "credit purchase 3 0 80 7:  - 93 of 100",
        "end_user day 4 9 80 50: eve - 9 of 10",
        "key month 2 2 95 31: hers 4 190 of 200",
        "member day 2 4 80 50:  4 80 of 90",
      ]);
      expect(await log.untold("statement ", " 2026-10", 1)).toEqual([2, 3, 5]);
      await log.close();
    }
  }, 60_000);
});
