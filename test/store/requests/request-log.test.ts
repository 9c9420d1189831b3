// The request log: what was refused or failed is kept, bounded however much there is of it, and found together with the
// journal's lines by every filter, page by page.
import { Database } from "bun:sqlite";
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dayMs } from "../../../src/core/units.ts";
import {
  anyRequest,
  type FailedBatch,
  type LogFilter,
  type LogPage,
  type LogPlace,
} from "../../../src/core/request-log.ts";
import type { RefusalName } from "../../../src/core/refusals.ts";
import { remote } from "../../../src/core/workers.ts";
import type { Model } from "../../../src/core/types.ts";
import {
  failedAccountRowsMax,
  type RequestLogTables,
  type Search,
} from "../../../src/store/requests/request-log-tables.ts";
import { migrate } from "../../../src/store/ledger/migrate.ts";
import { KeptRequestLog } from "../../../src/store/requests/kept-request-log.ts";
import { openRequestLog } from "../../../src/store/requests/open-request-log.ts";
import {
  failedAccountMinuteMax,
  failedKindsMax,
  failedMinuteMax,
  FailedRequests,
} from "../../../src/telemetry/failed-requests.ts";
import { RequestRecord } from "../../../src/telemetry/request-record.ts";

const now = Date.UTC(2026, 2, 28, 12);
const folder = mkdtempSync(join(tmpdir(), "tollgate-request-log-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let folders = 0;

type Given = Readonly<{ id?: string; account?: number | null; reason?: RefusalName; model?: string; atMs?: number }>;
let ids = 0;

function refused({ id, account = 1, reason = "busy", model, atMs = 0 }: Given = {}): RequestRecord {
  const record = new RequestRecord(id ?? `req_refused${ids++}`, "/v1/messages", now + atMs, 50_000 + atMs);
  record.account = account;
  record.key = account === null ? null : 1;
  record.refusal = reason;
  record.status = 429;
  if (model !== undefined) record.model = { id: model } as Model;
  record.endedAt = 50_000 + atMs + 5;
  return record;
}

describe("until they are written", () => {
  test("a refusal is a row without texts, and what is taken is gone", () => {
    const failed = new FailedRequests();
    const record = refused({ id: "req_one", model: "core-3" });
    const round = record.beginRound(50_001);
    round.node = "gpu";
    round.startedAt = 50_003;
    round.firstPieceAt = 50_004;
    expect(failed.add(record)).toBe(true);
    expect(failed.take()).toEqual({
      rows: [
        {
          requestId: "req_one",
          at: now + 5,
          account: 1,
          key: 1,
          endpoint: "/v1/messages",
          model: "core-3",
          status: 429,
          reason: "busy",
          cause: null,
          course: { node: "gpu", waitMs: 2, sentMs: 3, firstTokenMs: 4, durationMs: 5 },
          input: 0,
          output: 0,
          more: 0,
        },
      ],
      more: [],
      lost: 0,
    });
    expect(failed.take()).toEqual({ rows: [], more: [], lost: 0 });
  });

  test("a flood of one account has so many rows a minute, and the rest is counted, also after the last row was taken", () => {
    const failed = new FailedRequests();
    for (let i = 0; i < failedAccountMinuteMax + 40; i++) failed.add(refused());
    expect(failed.add(refused({ reason: "malformed" }))).toBe(true); // another reason is told
    expect(failed.add(refused({ account: 2 }))).toBe(true); // and others are not kept from it
    const { rows, more } = failed.take();
    expect([rows.length, rows[failedAccountMinuteMax - 1]!.more, more]).toEqual([failedAccountMinuteMax + 2, 40, []]);
    for (let i = 0; i < 12_340; i++) expect(failed.add(refused())).toBe(false);
    expect(failed.take()).toEqual({ rows: [], more: [[rows[failedAccountMinuteMax - 1]!.requestId, 12_340]], lost: 0 });
    expect(failed.add(refused({ atMs: 60_000 }))).toBe(true); // the next minute
  });

  test("a flood of many accounts and models is bounded, and each of them is counted", () => {
    const failed = new FailedRequests();
    const asked = 2 * (failedMinuteMax + failedKindsMax);
    for (let account = 1; account <= asked; account++) failed.add(refused({ account }));
    const { rows, lost } = failed.take();
    expect(rows.length).toBeLessThanOrEqual(failedMinuteMax + failedKindsMax);
    expect(rows.reduce((sum, { more }) => sum + 1 + more, lost)).toBe(asked);
  });
});

/** A ledger with lines of two accounts, five minutes apart, and a log beside it. */
class Site {
  readonly path = join(folder, `${folders++}`);
  readonly ledger: Database;
  readonly store: ReturnType<typeof openRequestLog>;

  constructor(lines = 0, search?: Search) {
    writeFileSync(`${this.path}.ledger`, "");
    migrate(`${this.path}.ledger`);
    this.ledger = new Database(`${this.path}.ledger`);
    const insert = this.ledger.prepare(`
      INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model, input_fresh,
        input_cached, output, reasoning, billed_tokens, estimated, key_id, node, wait_ms, sent_ms, first_token_ms, duration_ms)
      VALUES (?, 'charge', ?, ?, 0, 0, 0, '/v1/messages', ?, 10, 0, 5, 0, ?, 0, ?, ?, ?, 3, 40, 900)`);
    this.ledger.transaction(() => {
      for (let i = 0; i < lines; i++) {
        const node = i % 7 === 0 ? "slow" : "gpu";
        insert.run(`req_served${String(i).padStart(6, "0")}`, 1 + (i % 2), now - (lines - i) * 300_000, `core-${i % 3}`, i, 1 + (i % 5 === 0 ? 1 : 0), node, i % 11); // prettier-ignore
      }
    })();
    this.store = openRequestLog(`${this.path}.db`, `${this.path}.ledger`, 7 * dayMs, search);
  }

  async add(records: readonly RequestRecord[], at = now): Promise<void> {
    const failed = new FailedRequests();
    for (const record of records) failed.add(record);
    await this.store.add(failed.take(), at);
  }

  page(filter: Partial<LogFilter> = {}, before: LogPlace | null = null, limit = 50): Promise<LogPage> {
    return this.store.page({ ...anyRequest, ...filter }, before, limit, now);
  }

  /** All that fits, read page by page. */
  async ids(filter: Partial<LogFilter> = {}, limit = 7): Promise<string[]> {
    const found: string[] = [];
    for (let page = await this.page(filter, null, limit); ; page = await this.page(filter, page.next, limit)) {
      expect(page.rows.length).toBeLessThanOrEqual(limit);
      found.push(...page.rows.map(({ requestId }) => requestId));
      if (page.next === null) return found;
    }
  }

  [Symbol.dispose](): void {
    this.store.close();
    this.ledger.close();
  }
}

const served = (filter: (i: number) => boolean, lines: number): string[] =>
  Array.from({ length: lines }, (_, i) => lines - 1 - i)
    .filter(filter)
    .map((i) => `req_served${String(i).padStart(6, "0")}`);

describe("served and failed together", () => {
  const lines = 60;
  let site: Site;
  beforeEach(() => {
    site = new Site(lines);
    return () => site[Symbol.dispose]();
  });

  test("come by their time, page by page, none twice and none left out", async () => {
    const minute = 60_000;
    await site.add([refused({ id: "req_failedA", atMs: -12 * minute }), refused({ id: "req_failedB", account: 2 })]);
    const all = served(() => true, lines);
    const expected = ["req_failedB", ...all.slice(0, 2), "req_failedA", ...all.slice(2)];
    for (const limit of [1, 2, 3, 7, 100]) expect([limit, await site.ids({}, limit)]).toEqual([limit, expected]);
    expect(await site.ids({ reason: "served" })).toEqual(all);
    expect(await site.ids({ reason: "failed" })).toEqual(["req_failedB", "req_failedA"]);
  });

  test("come by their time on a page also where a thread handed its own in later", async () => {
    await site.add([refused({ id: "req_second", atMs: -20 }), refused({ id: "req_fourth", atMs: 0 })]);
    await site.add([refused({ id: "req_first", atMs: -30 }), refused({ id: "req_third", atMs: -10 })]);
    const ids = (await site.page({ reason: "failed" })).rows.map(({ requestId }) => requestId);
    expect(ids).toEqual(["req_fourth", "req_third", "req_second", "req_first"]);
  });

  test.each<[string, Partial<LogFilter>, (i: number) => boolean, string[]]>([
    ["an account", { account: 2 }, (i) => i % 2 === 1, ["req_failedB"]],
    ["nobody", { account: 0 }, () => false, ["req_failedN"]],
    ["a key", { account: 1, key: 2 }, (i) => i % 2 === 0 && i % 5 === 0, []],
    ["a model", { model: "core-1" }, (i) => i % 3 === 1, ["req_failedA"]],
    ["a node", { node: "slow" }, (i) => i % 7 === 0, []],
    ["a wait", { waitMinMs: 9 }, (i) => i % 11 >= 9, []],
    ["a first token", { firstTokenMinMs: 41 }, () => false, []],
    ["tokens", { tokensMin: 15 }, () => true, []],
    ["a cost", { billedMin: 50 }, (i) => i >= 50, []],
    ["a status", { status: [400, 499] }, () => false, ["req_failedN", "req_failedB", "req_failedA"]],
    ["the status of what was served", { status: [200, 200] }, () => true, []],
    ["a reason", { reason: "invalid_api_key" }, () => false, ["req_failedN"]],
    ["a time", { from: now - 10 * 300_000, to: now - 5 * 300_000 }, (i) => i >= 50 && i < 55, []],
    ["the time of the newest", { from: now }, () => false, ["req_failedN", "req_failedB", "req_failedA"]],
    ["a beginning of its id", { requestId: "req_served00001" }, (i) => i >= 10 && i < 20, []],
    ["the id of a refused one's reply", { requestId: "msg_failedA" }, () => false, ["req_failedA"]],
    ["an id that is none", { requestId: "%" }, () => false, []],
  ])("are found by %s", async (_, filter, isServed, failed) => {
    await site.add([
      refused({ id: "req_failedA", model: "core-1" }),
      refused({ id: "req_failedB", account: 2, atMs: 1 }),
      refused({ id: "req_failedN", account: null, reason: "invalid_api_key", atMs: 2 }),
    ]);
    expect(await site.ids(filter)).toEqual([...failed, ...served(isServed, lines)]);
  });

  test("one that failed after a part of it was charged is one row, with its cost", async () => {
    const id = served(() => true, lines)[3]!;
    const record = refused({ id, reason: "answer_misfit" });
    record.usage = { inputFresh: 1, inputCached: 1, output: 3, reasoning: 0 };
    await site.add([record]);
    expect((await site.page({ requestId: id })).rows).toMatchObject([
      { requestId: id, reason: "answer_misfit", input: 2, output: 3, billedTokens: lines - 4, inputCents: null },
    ]);
    expect(await site.ids()).toHaveLength(lines);
  });
});

test("a search that finds little gives up after a while, says how far it came, and goes on from there", async () => {
  using site = new Site(60, { lines: 10, ms: 0 });
  await site.add([refused({ id: "req_failedA" }), refused({ id: "req_failedB", atMs: -50 * 300_000 })]);
  const rare = (before: LogPlace | null) =>
    site.store.page({ ...anyRequest, tokensMin: 0, from: now - 61 * 300_000 }, before, 7, now);
  expect((await rare(null)).rows).toHaveLength(7);
  const found: string[] = [];
  const stops: (number | null)[] = [];
  const filter = { ...anyRequest, account: 1, billedMin: 0, key: 1 };
  for (let before: LogPlace | null = null; ;) {
    const page: LogPage = await site.store.page({ ...filter, model: null }, before, 50, now);
    found.push(...page.rows.map(({ requestId }) => requestId));
    stops.push(page.searchedTo);
    before = page.next;
    if (before === null) break;
  }
  expect(stops.length).toBeGreaterThan(2);
  expect(stops[0]).toBe(now - 10 * 300_000);
  expect(stops.at(-1)).toBeNull();
  const lines = served((i) => i % 2 === 0 && i % 5 !== 0, 60);
  const older = lines.findIndex((id) => id < "req_served000010");
  expect(found).toEqual(["req_failedA", ...lines.slice(0, older), "req_failedB", ...lines.slice(older)]);
});

describe("kept and let go of", () => {
  test("rows are counted on, and go when they are too old, too many, or their account is erased", async () => {
    using site = new Site();
    const [first, other] = [refused({ id: "req_first" }), refused({ id: "req_other", account: 2 })];
    await site.add([first, other]);
    await site.store.add({ rows: [], more: [["req_first", 12_340]], lost: 7 }, now);
    expect((await site.page()).rows.map(({ requestId, more }) => [requestId, more])).toContainEqual([
      "req_first",
      12_340,
    ]);
    expect((await site.page()).gone).toBe(7);
    await site.store.erase(2);
    expect((await site.page()).rows.map(({ requestId }) => requestId)).toEqual(["req_first"]);
    for (const suffix of ["", "-wal"])
      expect(readFileSync(`${site.path}.db${suffix}`).includes("req_other")).toBe(false);
    expect((await site.store.page(anyRequest, null, 50, now + 8 * dayMs)).rows).toEqual([]); // even before they are removed
    await site.store.prune(now + 8 * dayMs);
    expect((await site.page()).rows).toEqual([]);
  });

  test("an account's oldest make room for its newest, and are counted", async () => {
    using site = new Site();
    const rows = Array.from({ length: failedAccountRowsMax + 3 }, (_, i) => ({
      ...new FailedRequestsRow(i),
    }));
    await site.store.add(
      { rows: [{ ...new FailedRequestsRow(-1), account: 9, requestId: "req_other" }], more: [], lost: 0 },
      now,
    );
    await site.store.add({ rows, more: [], lost: 0 } as FailedBatch, now);
    expect((await site.page()).gone).toBe(3);
    expect((await site.page({ requestId: "req_row000002" })).rows).toEqual([]);
    expect((await site.page({ requestId: "req_row000003" })).rows).toHaveLength(1);
    expect((await site.page({ account: 9 })).rows).toHaveLength(1);
  });

  test("a file that cannot be read is begun again", async () => {
    const file = join(folder, "damaged.db");
    writeFileSync(file, "no database at all, but a text that is long enough to be read as one".repeat(100));
    writeFileSync(`${file}.ledger`, "");
    migrate(`${file}.ledger`);
    const store = openRequestLog(file, `${file}.ledger`, dayMs);
    expect((await store.page(anyRequest, null, 50, now)).rows).toEqual([]);
    store.close();
  });
});

class FailedRequestsRow {
  readonly requestId: string;
  readonly at = now;
  readonly account = 1;
  readonly key = 1;
  readonly endpoint = "/v1/messages";
  readonly model = "";
  readonly status = 429;
  readonly reason = "busy";
  readonly cause = null;
  readonly course = { node: null, waitMs: null, sentMs: null, firstTokenMs: null, durationMs: 0 };
  readonly input = 0;
  readonly output = 0;
  readonly more = 0;
  constructor(place: number) {
    this.requestId = `req_row${String(place).padStart(6, "0")}`;
  }
}

test("what its node said is kept, also in a file of an earlier version", async () => {
  using site = new Site();
  site.store.close();
  const file = new Database(`${site.path}.db`);
  file.run("ALTER TABLE failed_requests DROP COLUMN cause");
  file.run("ALTER TABLE failed_requests RENAME TO failed");
  file.run("DROP TABLE counters");
  file.run("CREATE TABLE gone (id INTEGER PRIMARY KEY CHECK (id = 1), requests INTEGER NOT NULL) STRICT");
  file.run("INSERT INTO gone (id, requests) VALUES (1, 9)");
  file.run("PRAGMA user_version = 1");
  file.run(`INSERT INTO failed (request_id, at, account_id, key_id, endpoint, model, status, reason, input, output, more)
    VALUES ('req_before', ${now - 5}, 1, 1, '/v1/messages', '', 429, 'busy', 0, 0, 0)`);
  file.close();
  const store = openRequestLog(`${site.path}.db`, `${site.path}.ledger`, 7 * dayMs);
  const record = refused({ id: "req_now", reason: "node_failed" });
  const [first, second] = [record.beginRound(1), record.beginRound(2)];
  Object.assign(first, { node: "gpu", cause: "status 500: CUDA out of memory" });
  expect(second.node).toBeNull(); // no other node was had
  const failed = new FailedRequests();
  failed.add(record);
  await store.add(failed.take(), now);
  expect((await store.page(anyRequest, null, 5, now)).rows.map(({ requestId, cause }) => [requestId, cause])).toEqual([
    ["req_now", "status 500: CUDA out of memory"],
    ["req_before", null],
  ]);
  expect((await store.page(anyRequest, null, 5, now)).gone).toBe(9);
  store.close();
});

test("whoever looks something up finds what was refused just before, and a file is its owner's alone", async () => {
  const dataFolder = mkdtempSync(join(folder, "data-"));
  const journalFile = join(dataFolder, "tollgate.db");
  writeFileSync(journalFile, "");
  migrate(journalFile);
  const logged: string[] = [];
  const log = KeptRequestLog.inFile({
    dataFolder,
    journalFile,
    keepMs: 7 * dayMs,
    clock: { wall: () => now + 1_000, monotonic: () => 0 },
    log: (_level, message) => void logged.push(message),
  });
  const failed = new FailedRequests();
  log.follow(() => [failed.take()]);
  failed.add(refused({ id: "req_now" }));
  expect((await log.page(anyRequest, null, 5)).rows).toMatchObject([{ requestId: "req_now", account: 1 }]);
  expect(statSync(join(dataFolder, "requests.db")).mode & 0o777).toBe(0o600);
  await log.keep(0);
  failed.add(refused());
  expect((await log.page(anyRequest, null, 5)).rows).toEqual([]);
  await log.close();
  expect(logged).toEqual([]);
});

test("an outage of whoever keeps it is in the log once at its begin and once at its end", async () => {
  const logged: string[] = [];
  let isAway = false;
  const keeper = remote<RequestLogTables>(async () => {
    if (isAway) throw new Error("away");
  });
  const clock = { wall: () => now, monotonic: () => 0 };
  const log = new KeptRequestLog({
    keeper,
    keepMs: dayMs,
    clock,
    log: (level, message) => void logged.push(`${level} ${message}`),
  });
  let rows: FailedBatch["rows"] = [];
  log.follow(() => [{ rows, more: [], lost: 0 }]);
  const some = new FailedRequests();
  some.add(refused());
  rows = some.take().rows;
  for (const next of [false, true, true, true, false, false, true, true]) {
    isAway = next;
    await log.write();
    await log.keep(dayMs);
  }
  expect(logged).toEqual([
    "error the request log cannot be written",
    "info the request log is written again",
    "error the request log cannot be written",
  ]);
  isAway = false;
  await log.close();
});
