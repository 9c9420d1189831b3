// What is kept beside the ledger on PostgreSQL, next to the same on SQLite: charts, the request log, stored responses. The same
// is put in, by one gateway or by several at once, and the same comes out.
import { Database as Sqlite } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ActivityRow, activitySplits, spanOf } from "../../../src/core/activity.ts";
import { rangeNames } from "../../../src/core/over-time.ts";
import { dayMs, hourMs } from "../../../src/core/units.ts";
import { refuse } from "../../../src/core/refusals.ts";
import { ActivityTables } from "../../../src/store/activity/activity-tables.ts";
import { openActivity } from "../../../src/store/activity/open-activity.ts";
import {
  anyRequest,
  type FailedRow,
  type LogFilter,
  type LogPage,
  type LogPlace,
} from "../../../src/core/request-log.ts";
import { migrate as migrateSqlite } from "../../../src/store/ledger/migrate.ts";
import { ResponseTables } from "../../../src/store/postgres/response-tables.ts";
import { PostgresResponses } from "../../../src/store/postgres/responses.ts";
import { openStoredResponses } from "../../../src/store/responses/stored-responses-file.ts";
import type { KeptResponse } from "../../../src/store/responses/kept-text.ts";
import { StoredResponseTable } from "../../../src/store/responses/stored-responses-table.ts";
import { requestLogIn } from "../../../src/store/postgres/served-lines.ts";
import { openRequestLog } from "../../../src/store/requests/open-request-log.ts";
import type { RequestLogTables } from "../../../src/store/requests/request-log-tables.ts";
import { KeptActivity } from "../../../src/store/activity/kept-activity.ts";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { takeJob } from "../../../src/store/postgres/jobs.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { PostgresProxy } from "../../fixtures/postgres-proxy.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { noPostgres, somePort, TestPostgres } from "../../fixtures/postgres.ts";
import { randomOf } from "../../fixtures/random.ts";

const now = Date.UTC(2026, 2, 28, 12, 30, 20);

describe.skipIf(noPostgres)("beside the ledger", () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-postgres-beside-"));
  let postgres: TestPostgres;
  let client: Bun.SQL;
  let database: Database;

  beforeAll(async () => {
    postgres = await TestPostgres.start();
    const url = await postgres.database("beside");
    const server = new PostgresServer(url);
    const connection = await server.connect();
    await migrate(connection);
    connection.close();
    client = new Bun.SQL({ url, max: 1 });
    database = new Database(server);
  }, 60_000);
  afterAll(async () => {
    await database.close();
    await client.close();
    await postgres[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  describe("charts", () => {
    const random = randomOf(5);
    const below = (limit: number) => Math.floor(random() * limit);
    const kinds = ["all", ...activitySplits, "reason"] as const;
    const rowAt = (at: number): ActivityRow => {
      const kind = kinds[below(kinds.length)]!;
      return {
        at: at - (at % 60_000),
        kind,
        name: kind === "all" ? "" : ["", "a", "b'\"\\", "c,{}"][below(4)]!,
        counts: [1 + below(9), below(9), below(9), below(9), below(9), below(900), below(90), below(900)],
        wait: [below(81), 1 + below(5)],
        firstToken: below(2) === 0 ? [] : [80, 2, 3, 1],
      };
    };

    test("show what the file of one server shows, with two gateways that add at once", async () => {
      const file = openActivity(join(folder, "activity.db"));
      const [one, other] = [new ActivityTables(database), new ActivityTables(database)];
      for (let round = 0; round < 8; round += 1) {
        const at = now - [0, 30_000, 2 * hourMs, 25 * hourMs, 40 * dayMs, 89 * dayMs, 95 * dayMs, 0][round]!;
        const rows = Array.from({ length: 40 }, () => rowAt(at));
        await file.add(rows, now);
        await Promise.all([one.add(rows.slice(0, 25), now), other.add(rows.slice(25), now)]);
      }
      for (const range of rangeNames) {
        const span = spanOf(range, now);
        for (const split of activitySplits) {
          for (const name of [null, "a"]) {
            expect(await one.read(span, split, name)).toEqual(await file.read(span, split, name));
          }
          const byName = (totals: readonly { name: string }[]) => totals.toSorted((a, b) => (a.name < b.name ? -1 : 1));
          expect(byName(await one.totals(split, now - 5 * hourMs))).toEqual(
            byName(await file.totals(split, now - 5 * hourMs)),
          );
        }
      }
      expect(await one.reasons(now - hourMs, now)).toEqual(await file.reasons(now - hourMs, now));
      file.close();
    }, 60_000);

    test("keep the busiest of many names in a step, and lose no request", async () => {
      await client.unsafe("DELETE FROM activity");
      const keeper = new ActivityTables(database);
      const counts = [1, 1, 0, 0, 0, 0, 0, 0];
      for (let part = 0; part < 4; part += 1) {
        const names = Array.from({ length: 60 }, (_, index) => `m${part}-${index}`);
        const rows = [...names, "busy", "busy"].map((name): ActivityRow => ({
          at: now - (now % 60_000),
          kind: "model",
          name,
          counts,
          wait: [],
          firstToken: [1, 1],
        }));
        await keeper.add(rows, now);
      }
      const [row] = await client.unsafe(
        `SELECT sum(requests)::int AS requests, count(*) FILTER (WHERE name <> '')::int AS names,
           max(CASE WHEN name = 'busy' THEN requests END)::int AS busy FROM activity WHERE step_ms = 60000`,
      );
      expect(row).toEqual({ requests: 4 * 62, names: 100, busy: 8 });
    }, 60_000);

    test("say what is counted before they are asked, and a failure is in the log alone", async () => {
      const logged: string[] = [];
      const kept = new KeptActivity({
        keeper: new ActivityTables(new Database(new PostgresServer("postgres://nobody@127.0.0.1:1/none"))),
        clock: { wall: () => now, monotonic: () => 0 },
        log: (_level, message) => void logged.push(message),
      });
      kept.follow(() => [rowAt(now)]);
      await kept.write();
      expect(logged).toEqual(["activity for the charts cannot be written"]);
      expect(String(await kept.reasons(0, 1).catch((thrown: unknown) => thrown))).toContain(
        "activity for the charts cannot be read",
      );
      await kept.close();
    }, 60_000);
  });

  describe("stored responses", () => {
    const limits = { keepMs: 30 * dayMs, accountBytesMax: 10_000, accountCountMax: 5, conversationBytesMax: 5_000 };
    const item = (stem: string, text: string, index = 0) => ({
      id: `msg_${stem}_${index}`,
      type: "message",
      content: text,
    });
    const kept = (stem: string, question: unknown, answer: string, previous: string | null = null): KeptResponse => ({
      account: 1,
      id: `resp_${stem}`,
      previousId: previous === null ? null : `resp_${previous}`,
      input: JSON.stringify(Array.isArray(question) ? question : [{ role: "user", content: question }]),
      output: JSON.stringify([item(stem, answer), item(stem, `${answer} again`, 1)]),
      settings: JSON.stringify({ id: `resp_${stem}`, model: "core-3" }),
    });
    const wholePage = { limit: 100, order: "asc", after: null } as const;
    const usesOf = async () =>
      (await client.unsafe(
        "SELECT account_id::int, responses::int, bytes::int FROM stored_responses_use WHERE responses <> 0 ORDER BY 1",
      )) as object;
    const sumsOf = async () =>
      (await client.unsafe(
        "SELECT account_id::int, count(*)::int AS responses, sum(bytes)::int AS bytes FROM stored_responses GROUP BY 1 ORDER BY 1",
      )) as object;

    test("are found as in the file of one server: conversations, items, lists, limits", async () => {
      const random = randomOf(3);
      const below = (limit: number) => Math.floor(random() * limit);
      const memory = openStoredResponses(join(folder, "responses.db"));
      const [file, tables] = [new StoredResponseTable(memory, limits), new ResponseTables(database, limits)];
      const stems: string[] = [];
      for (let round = 0; round < 40; round += 1) {
        const stem = `s${round}`;
        const some = () => stems[below(stems.length)] ?? "none";
        const reference = { type: "item_reference", id: `msg_${some()}_${below(3)}` };
        const listed = { type: "item_reference", id: `msg_${some()}_in0` };
        const question = [["a", "\u0000 and \ud800 \u20ac", "\u{1f600}".repeat(200), "x".repeat(1_200)][below(4)]!];
        const response = {
          ...kept(
            stem,
            below(3) === 0 ? [reference, { role: "user", content: question[0] }, listed] : question[0]!,
            `answer ${round}`,
            below(3) === 0 ? null : some(),
          ),
          account: 1 + below(2),
        };
        file.keepAll([response], now + round);
        await tables.keepAll([response], now + round);
        stems.push(stem);
        for (const account of [1, 2]) {
          const previous = below(2) === 0 ? null : `resp_${some()}`;
          const ids = [
            `msg_${some()}_0`,
            `msg_${some()}_1`,
            `msg_${some()}_in0`,
            `msg_${some()}_in1`,
            "nonsense",
            "msg_'_0",
          ];
          const found = await tables.find(account, previous, ids, now);
          const inOrder = (texts: typeof found) =>
            texts === "too_large"
              ? texts
              : {
                  ...texts,
                  items: (JSON.parse(texts.items) as { id: string }[]).map((each) => JSON.stringify(each)).sort(),
                };
          expect(inOrder(found)).toEqual(inOrder(file.find(account, previous, ids, now)));
          const id = `resp_${some()}`;
          expect(await tables.response(account, id, now)).toEqual(file.response(account, id, now));
          expect(await tables.input(account, id, wholePage, now)).toEqual(file.input(account, id, wholePage, now));
          if (below(6) === 0) expect(await tables.delete(account, id, now)).toBe(file.delete(account, id, now));
        }
        expect(await usesOf()).toEqual(await sumsOf());
      }
      const ids = (memory.query("SELECT id FROM responses ORDER BY id").all() as { id: string }[]).map(({ id }) => id);
      expect(
        (await client.unsafe("SELECT id FROM stored_responses ORDER BY id")).map(({ id }: { id: string }) => id),
      ).toEqual(ids);
      memory.close();
    }, 60_000);

    test("kept by several gateways at once are summed right, expire once, and an erased account keeps nothing", async () => {
      const gateways = [new ResponseTables(database, limits), new ResponseTables(database, limits)];
      const all = Array.from({ length: 60 }, (_, i) => ({ ...kept(`m${i}`, "q", "a"), account: 3 + (i % 4) }));
      await Promise.all(all.map((response, i) => gateways[i % 2]!.keepAll([response], now + i)));
      await gateways[0]!.keepAll([all[59]!], now + 59); // once more: it is there already
      expect(await usesOf()).toEqual(await sumsOf());
      const [{ most }] = await client.unsafe("SELECT max(responses)::int AS most FROM stored_responses_use");
      expect(most).toBe(5);
      await gateways[0]!.erase(3, true);
      await gateways[1]!.erase(4, false);
      await gateways[1]!.keepAll(
        [
          { ...all[0]!, id: "resp_late" },
          { ...all[1]!, id: "resp_later" },
        ],
        now,
      );
      expect(await gateways[0]!.response(3, "resp_late", now)).toBeNull();
      expect(await gateways[0]!.response(4, "resp_later", now)).not.toBeNull();
      await Promise.all(
        gateways.map(async (each) => {
          while (await each.expire(now + 31 * dayMs));
        }),
      );
      expect(await sumsOf()).toEqual([]);
      expect(await usesOf()).toEqual([]);
    }, 60_000);

    test("are kept when a database answers again that was away at first", async () => {
      const proxy = new PostgresProxy(somePort()); // nobody answers there
      const through = new Database(new PostgresServer(postgres.url("beside", proxy.port)));
      let isKept = false;
      const keeping = new ResponseTables(through, limits).keepAll([kept("away", "q", "a")], now).then(() => {
        isKept = true;
      });
      const asked = await takeJob(through, "none", "nobody", 1).catch((error: Error) => error.name);
      expect(asked).toBe("StoreUnavailable");
      expect(isKept).toBe(false);
      proxy.upstream = postgres.port;
      await keeping;
      expect(await new ResponseTables(database, limits).response(1, "resp_away", now)).not.toBeNull();
      await through.close();
      proxy.close();
    }, 60_000);

    test("are in a Worker, and whoever keeps one waits for it", async () => {
      const logged: string[] = [];
      const open = () =>
        new PostgresResponses(
          postgres.url("beside"),
          { keepMs: 30 * dayMs, accountBytesMax: 9_000_000 },
          (_, message) => void logged.push(message),
        );
      const [one, other] = [open(), open()];
      const { id, previousId, ...texts } = kept("worker", "one?", "1");
      await one.keep(9, { ...texts, id, previousResponseId: previousId });
      expect(JSON.parse((await other.response(9, id)) as string)).toMatchObject({ id, output: [{ content: "1" }, {}] });
      expect(await other.find(9, { previousResponseId: id, itemIds: [] })).toMatchObject({ missingId: null });
      expect(await other.delete(9, id)).toBe(true);
      expect(await one.response(9, id)).toBeNull();
      await Promise.all([one.close(), other.close()]);
      expect(logged).toEqual([]);
      const away = new PostgresResponses(
        "postgres://nobody@127.0.0.1:1/none",
        { keepMs: dayMs, accountBytesMax: 9_000_000 },
        (_, message) => void logged.push(message),
      );
      await away.keep(9, { ...texts, id, previousResponseId: previousId }); // in silence
      expect(logged).toContain("responses are not stored");
      expect(await away.response(9, id)).toEqual(refuse("quota_unverified")); // nobody is told that it is gone
      await away.close();
    }, 60_000);

    test("of an account whose row another session keeps locked wait alone", async () => {
      const logged: string[] = [];
      const tables = new ResponseTables(database, limits);
      const responses = new PostgresResponses(
        postgres.url("beside"),
        limits,
        (_, message) => void logged.push(message),
      );
      const keep = (account: number, stem: string) =>
        responses.keep(account, { ...kept(stem, "q", "a"), previousResponseId: null });
      await Promise.all([keep(30, "before"), keep(31, "beside")]);
      await client.begin(async (session) => {
        await session.unsafe("SELECT 1 FROM stored_responses_use WHERE account_id = 30 FOR UPDATE");
        // Those of one moment are kept together.
        await Promise.all([keep(30, "locked"), keep(31, "free")]);
        await keep(31, "later");
        expect(await responses.response(31, "resp_free")).toBeString();
        expect(await responses.response(31, "resp_later")).toBeString();
        expect(await responses.response(30, "resp_before")).toBeString();
        expect(await responses.response(30, "resp_locked")).toBeNull();
        // What is too old goes, but for that account's.
        expect(await tables.expire(Date.now() + 31 * dayMs)).toBe(false);
        expect(await responses.response(31, "resp_free")).toBeNull();
        expect(await responses.response(30, "resp_before")).toBeString();
      });
      await eventually("it is kept", async () => (await responses.response(30, "resp_locked")) !== null);
      await responses.close();
      expect(logged).toEqual([]);
    }, 60_000);
  });

  describe("the request log", () => {
    const lines = 60;
    const idOf = (i: number) => `req_served${String(i).padStart(6, "0")}`;
    const columns = `billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model, input_fresh, input_cached,
      output, reasoning, billed_tokens, estimated, key_id, node, wait_ms, sent_ms, first_token_ms, duration_ms`;
    const failed = (requestId: string, given: Partial<FailedRow> = {}): FailedRow => ({
      requestId,
      at: now,
      account: 1,
      key: 1,
      endpoint: "/v1/messages",
      model: "",
      status: 429,
      reason: "busy",
      cause: null,
      course: { node: null, waitMs: null, sentMs: null, firstTokenMs: null, durationMs: 5 },
      input: 0,
      output: 0,
      more: 0,
      ...given,
    });
    let file: ReturnType<typeof openRequestLog>;
    let log: RequestLogTables;

    beforeAll(async () => {
      const ledger = join(folder, "log.ledger");
      migrateSqlite(ledger);
      const sqlite = new Sqlite(ledger);
      for (let i = 0; i < lines; i += 1) {
        // Several of one moment, and what is no reply, as coder calls are not.
        const at = now - (lines - i - (i % 4 === 1 ? 1 : 0)) * 300_000;
        const values = `('${idOf(i)}', 'charge', ${1 + (i % 2)}, ${at}, 0, 0, 0, '/v1/messages', 'core-${i % 3}', 10, 0, 5, 0, ${i}, 0,
          ${i % 5 === 0 ? 2 : 1}, '${i % 7 === 0 ? "slow" : "gpu"}', ${i % 11}, 3, 40, 900)`;
        for (const text of [`INSERT INTO journal (${columns}) VALUES ${values}`]) {
          sqlite.run(text);
          await client.unsafe(text);
        }
      }
      await client.unsafe(`INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta)
        VALUES ('credit:a-b', 'credit', 1, ${now - 1_000}, 0, 0, 9)`);
      sqlite.close();
      file = openRequestLog(join(folder, "log.db"), ledger, 7 * dayMs);
      log = requestLogIn(database, 7 * dayMs);
      const batch = {
        rows: [
          failed("req_failedA", { at: now - 12 * 60_000, model: "core-1" }),
          failed("req_failedB", {
            account: 2,
            cause: "status 500: CUDA out of memory",
            course: { node: "gpu", waitMs: 1, sentMs: 2, firstTokenMs: 3, durationMs: 4 },
          }),
          failed("req_failedN", { account: 0, key: 0, reason: "invalid_api_key", status: 401, at: now + 1 }),
          failed(idOf(30), { at: now + 2, reason: "answer_misfit", status: 200, input: 7, output: 9 }),
        ],
        more: [["req_failedA", 12_340]] as const,
        lost: 3,
      };
      await file.add({ ...batch, more: [] }, now);
      await file.add({ rows: [], more: batch.more, lost: 0 }, now);
      await log.add({ ...batch, more: [] }, now);
      await log.add({ rows: [], more: batch.more, lost: 0 }, now);
    });
    afterAll(() => file.close());

    const page = (of: RequestLogTables, filter: LogFilter, before: LogPlace | null, limit: number, at = now) =>
      of.page(filter, before, limit, at);
    async function all(read: (before: LogPlace | null) => LogPage | Promise<LogPage>, limit: number) {
      const found: unknown[] = [];
      for (let before: LogPlace | null = null; ;) {
        const { rows, next, gone } = await read(before);
        expect([rows.length <= limit, gone]).toEqual([true, 3]);
        found.push(...rows);
        if (next === null) return found;
        before = next;
      }
    }
    /** Lines of one moment come in the order of their ids there, and of their numbers here: which are the same. */
    const filters: readonly Partial<LogFilter>[] = [
      {},
      { account: 2 },
      { account: 0 },
      { account: 1, key: 2 },
      { model: "core-1" },
      { node: "slow" },
      { endpoint: "/v1/messages", waitMinMs: 9 },
      { firstTokenMinMs: 41 },
      { durationMinMs: 5 },
      { tokensMin: 15 },
      { billedMin: 50 },
      { status: [400, 499] },
      { status: [200, 200] },
      { reason: "failed" },
      { reason: "served" },
      { reason: "busy" },
      { from: now - 10 * 300_000, to: now - 5 * 300_000 },
      { requestId: "req_served00001" },
      { requestId: "msg_failedA" },
      { requestId: "%" },
      { account: 2, requestId: "req_served00002" },
    ];

    test.each(filters)("finds by %p what the file of one server finds, in pages of any size", async (given) => {
      const filter = { ...anyRequest, ...given };
      for (const limit of [1, 7, 100]) {
        const expected = await all((before) => file.page(filter, before, limit, now), limit);
        expect(await all((before) => page(log, filter, before, limit), limit)).toEqual(expected);
      }
    });

    test("a search that finds little gives up after a while and goes on from there", async () => {
      const slow = requestLogIn(database, 7 * dayMs, { lines: 10, ms: 0 });
      const filter = { ...anyRequest, billedMin: 1, key: 2 };
      const stops: (number | null)[] = [];
      const found: unknown[] = [];
      for (let before: LogPlace | null = null; ;) {
        const part: LogPage = await page(slow, filter, before, 50);
        found.push(...part.rows);
        stops.push(part.searchedTo);
        if (part.next === null) break;
        before = part.next;
      }
      expect(stops.length).toBeGreaterThan(2);
      expect(stops.at(-1)).toBeNull();
      expect(found).toEqual([...(await file.page(filter, null, 50, now)).rows]);
    });

    test("two gateways that write at once lose nothing, and too old, too many and erased ones go", async () => {
      await client.unsafe("DELETE FROM failed_requests");
      await client.unsafe("DELETE FROM counters WHERE name = 'failed_gone'");
      const rows = Array.from({ length: 10_003 }, (_, i) => failed(`req_row${String(i).padStart(6, "0")}`));
      const other = [failed("req_other", { account: 9, more: 2 }), failed("req_another", { account: 8 })];
      const add = (some: FailedRow[]) => log.add({ rows: some, more: [], lost: 0 }, now);
      await Promise.all([add(rows.slice(0, 5_000)), add(other), add(rows.slice(5_000))]);
      const count = async () =>
        (await client.unsafe(
          "SELECT account_id::int, count(*)::int FROM failed_requests GROUP BY 1 ORDER BY 1",
        )) as object;
      expect(await count()).toEqual([
        { account_id: 1, count: 10_000 },
        { account_id: 8, count: 1 },
        { account_id: 9, count: 1 },
      ]);
      expect((await page(log, anyRequest, null, 1)).gone).toBe(3);
      await log.erase(8);
      expect((await page(log, { ...anyRequest, account: 8 }, null, 9)).rows).toEqual([]);
      await log.keep(7 * dayMs, now + 8 * dayMs);
      expect(await count()).toEqual([]);
      await log.keep(0, now);
      await add(other);
      expect(await count()).toEqual([]);
    }, 60_000);
  });
});
