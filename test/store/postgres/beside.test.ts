// What is kept beside the ledger on PostgreSQL, next to the same on SQLite: charts, the request log, stored responses. The same
// is put in, by one gateway or by several at once, and the same comes out.
import { Database as Sqlite } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ActivityRow, activityRanges, type ActivityRange, activitySplits } from "../../../src/core/activity.ts";
import { dayMs, hourMs } from "../../../src/core/limits.ts";
import { ActivityStore } from "../../../src/store/activity/activity-store.ts";
import { KeptActivity } from "../../../src/store/activity/kept-activity.ts";
import { PostgresActivity } from "../../../src/store/postgres/activity.ts";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { noPostgres, TestPostgres } from "../../fixtures/postgres.ts";
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
        ...{ at: at - (at % 60_000), kind, name: kind === "all" ? "" : ["", "a", "b'\"\\", "c,{}"][below(4)]! },
        counts: [1 + below(9), below(9), below(9), below(9), below(9), below(900), below(90), below(900)],
        ...{ wait: [below(81), 1 + below(5)], firstToken: below(2) === 0 ? [] : [80, 2, 3, 1] },
      };
    };

    test("show what the file of one server shows, with two gateways that add at once", async () => {
      const file = ActivityStore.open(join(folder, "activity.db"));
      const [one, other] = [new PostgresActivity(database), new PostgresActivity(database)];
      for (let round = 0; round < 8; round += 1) {
        const at = now - [0, 30_000, 2 * hourMs, 25 * hourMs, 40 * dayMs, 89 * dayMs, 95 * dayMs, 0][round]!;
        const rows = Array.from({ length: 40 }, () => rowAt(at));
        file.add(rows, now);
        await Promise.all([
          one.call({ order: "add", rows: rows.slice(0, 25), now }),
          other.call({ order: "add", rows: rows.slice(25), now }),
        ]);
      }
      const earlier = [{ at: now - (now % dayMs) - 3 * dayMs, name: "a", requests: 9, input: 1, cachedInput: 1, output: 2 }];
      for (const range of Object.keys(activityRanges) as ActivityRange[]) {
        expect(await one.call({ order: "began", range })).toEqual(file.began(range));
        for (const split of activitySplits) {
          const read = { order: "read", range, split, now, earlier } as const;
          expect(await one.call(read)).toEqual(file.read(range, split, now, earlier));
          const byName = (totals: readonly { name: string }[]) => totals.toSorted((a, b) => (a.name < b.name ? -1 : 1));
          expect(byName(await one.call({ order: "totals", split, from: now - 5 * hourMs }))).toEqual(
            byName(file.totals(split, now - 5 * hourMs)),
          );
        }
      }
      expect(await one.call({ order: "reasons", from: now - hourMs })).toEqual(file.reasons(now - hourMs));
      file.close();
    }, 60_000);

    test("keep the busiest of many names in a step, and lose no request", async () => {
      await client.unsafe("DELETE FROM activity");
      const keeper = new PostgresActivity(database);
      const counts = [1, 1, 0, 0, 0, 0, 0, 0];
      for (let part = 0; part < 4; part += 1) {
        const names = Array.from({ length: 60 }, (_, index) => `m${part}-${index}`);
        const rows = [...names, "busy", "busy"].map((name): ActivityRow => ({
          ...{ at: now - (now % 60_000), kind: "model", name, counts, wait: [], firstToken: [1, 1] },
        }));
        await keeper.call({ order: "add", rows, now });
      }
      const [row] = await client.unsafe(
        `SELECT sum(requests)::int AS requests, count(*) FILTER (WHERE name <> '')::int AS names,
           max(CASE WHEN name = 'busy' THEN requests END)::int AS busy FROM activity WHERE step_ms = 60000`,
      );
      expect(row).toEqual({ requests: 4 * 62, names: 100, busy: 8 });
    }, 60_000);

    test("say what is counted before they are asked, and a failure is in the log alone", async () => {
      const logged: string[] = [];
      const kept = new KeptActivity(
        new PostgresActivity(new Database(new PostgresServer("postgres://nobody@127.0.0.1:1/none"))),
        { wall: () => now, monotonic: () => 0 },
        (_level, message) => void logged.push(message),
      );
      kept.follow(() => [rowAt(now)]);
      await kept.write();
      expect(logged).toEqual(["what the charts show cannot be kept"]);
      expect(String(await kept.began("1h").catch((thrown: unknown) => thrown))).toContain("the activity cannot be read");
      await kept.close();
    }, 60_000);
  });
});
