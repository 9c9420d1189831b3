// What the operators' charts are made of: counted by minute, kept in minutes and hours over restarts, and bounded
// however many names there are.
import { Database } from "bun:sqlite";
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ActivityRow, durationBucket, percentile, spanOf } from "../../../src/core/activity.ts";
import { activityNamesMax } from "../../../src/core/limits.ts";
import { activitySeriesMax } from "../../../src/store/activity/activity-sums.ts";
import { dayMs, hourMs } from "../../../src/core/units.ts";
import { KeptActivity } from "../../../src/store/activity/kept-activity.ts";
import { openActivity } from "../../../src/store/activity/open-activity.ts";
import { ActivityCounts, activityMinutesMax } from "../../../src/telemetry/activity-counts.ts";
import { RequestRecord } from "../../../src/telemetry/request-record.ts";
import type { Model } from "../../../src/core/types.ts";

const folder = mkdtempSync(join(tmpdir(), "tollgate-activity-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const now = Date.UTC(2026, 2, 28, 12, 30, 20);
const minute = 60_000;

type Given = Readonly<{ at?: number; model?: string | null; node?: string; account?: number; waitMs?: number }>;

/** An answered request that came 2 s before `at` and whose first piece was there after its wait and 100 ms. */
function answered({ at = now, model = "core-3", node = "gpu", account = 1, waitMs = 5 }: Given = {}): RequestRecord {
  const record = new RequestRecord("req", "/v1/messages", at - 2_000, 50_000);
  record.model = model === null ? null : ({ id: model } as Model);
  record.account = account;
  record.status = 200;
  const round = record.beginRound(50_000);
  round.node = node;
  round.startedAt = 50_000 + waitMs;
  round.firstPieceAt = 50_000 + waitMs + 100;
  record.ending = "end";
  record.usage = { inputFresh: 10, inputCached: 5, output: 7, reasoning: 0 };
  record.endedAt = 52_000;
  return record;
}

function refused(refusal: "too_many_requests" | "node_failed", at = now): RequestRecord {
  const record = new RequestRecord("req", "/v1/messages", at, 50_000);
  record.refusal = refusal;
  record.endedAt = 50_000;
  return record;
}

let files = 0;
const newFile = (): string => join(folder, `activity-${files++}.db`);

describe("counted and kept", () => {
  let counts: ActivityCounts;
  let store: ReturnType<typeof openActivity>;
  beforeEach(() => {
    counts = new ActivityCounts();
    store = openActivity(newFile());
    return () => store.close();
  });

  test("a request counts for its model, node and account in the minute of its end", async () => {
    counts.count(answered());
    counts.count(answered({ model: "core-3-pro", node: "other", account: 2, waitMs: 3_000 }));
    counts.count(answered({ at: now - 3 * minute }));
    await store.add(counts.take(), now);
    expect(counts.take()).toEqual([]);
    const { all, series } = await store.read(spanOf("1h", now), "model", null);
    expect(new Date(spanOf("1h", now).from).toISOString()).toBe("2026-03-28T11:31:00.000Z");
    expect(all.steps.requests).toHaveLength(60);
    expect([all.steps.requests[59], all.steps.requests[58], all.steps.requests[56]]).toEqual([2, 0, 1]);
    expect(all.total).toMatchObject({ requests: [3], answered: [3], input: [45], cachedInput: [15], output: [21] });
    expect(series.map(({ name, total }) => [name, total.requests[0]])).toEqual([
      ["core-3", 2],
      ["core-3-pro", 1],
    ]);
    const [, slow] = (await store.read(spanOf("24h", now), "node", null)).series;
    expect(slow!.name).toBe("other");
    expect(Math.abs(slow!.total.waitP95[0]! / 3_000 - 1)).toBeLessThan(0.1);
    expect(Math.abs(slow!.total.firstTokenP50[0]! / 3_100 - 1)).toBeLessThan(0.1);
    expect((await store.read(spanOf("7d", now), "account", null)).series.map(({ name }) => name)).toEqual(["1", "2"]);
  });

  test("keys are told apart within their accounts", async () => {
    const other = answered({ account: 2 });
    other.key = 3;
    for (const record of [answered({ account: 2 }), other, other, answered()]) counts.count(record);
    await store.add(counts.take(), now);
    expect(
      (await store.read(spanOf("1h", now), "key", null)).series.map(({ name, total }) => [name, total.requests[0]]),
    ).toEqual([
      ["2 3", 2],
      ["1 1", 1],
      ["2 1", 1],
    ]);
  });

  test("one account's or key's own are told without those of others", async () => {
    for (const account of [1, 2, 2]) counts.count(answered({ account, waitMs: account * 1_000 }));
    await store.add(counts.take(), now);
    const { all, series } = await store.read(spanOf("24h", now), "account", "2");
    expect([all.total.requests, series]).toEqual([[2], []]);
    expect(Math.abs(all.total.waitP50[0]! / 2_000 - 1)).toBeLessThan(0.1);
    expect((await store.read(spanOf("24h", now), "key", "1 1")).all.total.requests).toEqual([1]);
    expect((await store.read(spanOf("24h", now), "account", "3")).all.total.requests).toEqual([0]);
  });

  test("a file of the version before, with a table for each step, keeps its charts", async () => {
    for (const hours of [0, 1, 30, 30, 60]) counts.count(answered({ at: now - hours * hourMs }));
    const file = newFile();
    const before = openActivity(file);
    await before.add(counts.take(), now);
    const expected = [
      await before.read(spanOf("1h", now), "model", null),
      await before.read(spanOf("30d", now), "model", null),
    ];
    before.close();
    const database = new Database(file);
    for (const [name, stepMs] of [
      ["minutes", minute],
      ["hours", hourMs],
      ["days", dayMs],
    ]) {
      const columns =
        "kind, at, name, requests, answered, refused, failed, departed, input, cached_input, output, wait, first_token";
      database.run(`CREATE TABLE ${name} AS SELECT ${columns} FROM activity WHERE step_ms = ${stepMs}`);
    }
    database.run("DROP TABLE activity");
    database.run("PRAGMA user_version = 2");
    database.close();
    const after = openActivity(file);
    expect([
      await after.read(spanOf("1h", now), "model", null),
      await after.read(spanOf("30d", now), "model", null),
    ]).toEqual(expected);
    expect(expected[1]!.all.total.requests).toEqual([5]);
    after.close();
  });

  test("refusals of clients and failures of ours are told apart, with their reasons", async () => {
    for (let time = 0; time < 3; time++) counts.count(refused("too_many_requests"));
    counts.count(refused("node_failed"));
    counts.count(refused("node_failed", now - dayMs));
    const gone = answered();
    gone.ending = "cancelled";
    counts.count(gone);
    await store.add(counts.take(), now);
    const { all } = await store.read(spanOf("1h", now), "model", null);
    expect(all.total).toMatchObject({ requests: [5], answered: [0], refused: [3], failed: [1], left: [1] });
    expect(await store.reasons(Date.UTC(2026, 2, 28), now + minute)).toEqual([
      { reason: "too_many_requests", requests: 3 },
      { reason: "node_failed", requests: 1 },
    ]);
  });

  test("what was written in parts is one, and old minutes and hours are let go of", async () => {
    const ages = [0, 0, hourMs, 30 * hourMs, 80 * dayMs];
    for (const age of ages) {
      counts.count(answered({ at: now - age }));
      await store.add(counts.take(), now - age);
    }
    expect((await store.read(spanOf("1h", now), "model", null)).all.total.requests).toEqual([2]);
    expect((await store.read(spanOf("24h", now), "model", null)).all.total.requests).toEqual([3]);
    expect((await store.read(spanOf("7d", now), "model", null)).all.total.requests).toEqual([4]);
    expect((await store.read(spanOf("90d", now), "model", null)).all.total.requests).toEqual([5]);
    await store.add([], now + 20 * dayMs);
    expect((await store.read(spanOf("90d", now + 20 * dayMs), "model", null)).all.total.requests).toEqual([4]);
    expect((await store.read(spanOf("1h", now), "model", null)).all.total.requests).toEqual([0]);
  });

  test("of 1,000 names in a minute the busiest are kept, the rest are one, and nothing is lost", async () => {
    for (let time = 0; time < 50; time++) counts.count(answered({ model: "busy" }));
    for (let part = 0; part < 20; part++) {
      for (let name = 0; name < 50; name++) counts.count(answered({ model: `model-${part}-${name}` }));
      const rows = counts.take();
      expect(rows.filter(({ kind }) => kind === "model").length).toBeLessThanOrEqual(activityNamesMax + 1);
      await store.add(rows, now);
    }
    for (const range of ["1h", "7d"] as const) {
      const { all, series } = await store.read(spanOf(range, now), "model", null);
      expect(all.total.requests).toEqual([1_050]);
      expect(series).toHaveLength(activitySeriesMax);
      expect(series[0]).toMatchObject({ name: "busy", total: { requests: [50] } });
      expect(series.at(-1)!.name).toBeNull();
      expect(series.reduce((sum, { total }) => sum + total.requests[0]!, 0)).toBe(1_050);
    }
  });

  test("what nobody takes is bounded", async () => {
    for (let place = 0; place < 100; place++) {
      for (let name = 0; name < 1_000; name++) {
        counts.count(answered({ at: now + place * minute, model: `m${name}`, node: `n${name}`, account: name }));
      }
    }
    expect(counts.take().length).toBeLessThanOrEqual(activityMinutesMax * (4 * (activityNamesMax + 1) + 2));
  });
});

test.each([
  [[5], 0.5, 5],
  [[1, 1, 1, 100], 0.5, 1],
  [[1, 1, 1, 100], 0.95, 100],
  [Array.from({ length: 1_000 }, (_, ms) => ms + 1), 0.95, 950],
  [[99_999_999], 0.5, 1_142_976],
])("of %p the percentile %d is %d, within 10 %", (values, part, wanted) => {
  const buckets = new Uint32Array(200);
  for (const value of values) buckets[durationBucket(value)]! += 1;
  expect(Math.abs(percentile(buckets, part)! / wanted - 1)).toBeLessThan(0.1);
});

test("nothing measured has no percentile", () => expect(percentile(new Uint32Array(80), 0.5)).toBeNull());

describe("the file", () => {
  const clock = { wall: () => now, monotonic: () => 0 };
  const row: ActivityRow = {
    at: now - (now % minute),
    kind: "all",
    name: "",
    counts: [1, 1, 0, 0, 0, 10, 0, 5],
    wait: [3, 1],
    firstToken: [],
  };

  test("keeps what was counted up to its close, and the next server goes on with it", async () => {
    const data = mkdtempSync(join(folder, "data-"));
    const logged: string[] = [];
    const open = () => KeptActivity.inFile(data, clock, (_level, message) => void logged.push(message));
    const first = open();
    const counted = [[row], [row, row]];
    first.follow(() => counted.pop() ?? []);
    expect((await first.read(spanOf("1h", now), "model", null)).all.total.requests).toEqual([2]);
    await first.close();
    const second = open();
    await second.add([row]);
    expect((await second.read(spanOf("1h", now), "model", null)).all.total.requests).toEqual([4]);
    await second.close();
    expect(statSync(join(data, "activity.db")).mode & 0o777).toBe(0o600);
    expect(logged).toEqual([]);
  });

  test("that could not be opened is opened as soon as it can be, under requests that never pause", async () => {
    const data = mkdtempSync(join(folder, "data-"));
    const first = KeptActivity.inFile(data, clock, () => {});
    await first.add([row]);
    await first.close();
    mkdirSync(join(data, "activity.db-wal")); // it cannot be opened, and is not damaged
    const file = KeptActivity.inFile(data, clock, () => {});
    await file.add([row]);
    rmSync(join(data, "activity.db-wal"), { recursive: true });
    await file.add([row]);
    expect((await file.read(spanOf("1h", now), "model", null)).all.total.requests).toEqual([2]);
    await file.close();
  });

  test("that is damaged is begun anew", async () => {
    const file = newFile();
    writeFileSync(file, "no database ".repeat(1_000));
    const store = openActivity(file);
    await store.add([row], now);
    expect((await store.read(spanOf("1h", now), "model", null)).all.total.requests).toEqual([1]);
    store.close();
  });

  test("that cannot be written is in the log, and nothing else waits for it", async () => {
    const logged: unknown[] = [];
    const file = KeptActivity.inFile("/proc/none", clock, (...line) => void logged.push(line));
    file.follow(() => [row]);
    await file.write();
    expect(logged).not.toEqual([]);
    await expect(file.read(spanOf("1h", now), "model", null)).rejects.toThrow("activity for the charts cannot be read");
    await file.close();
  });
});
