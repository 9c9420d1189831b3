// The books in PostgreSQL over time: old lines are folded into sums once, by whichever gateway, and what contradicts itself is
// found, before and after.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dayMs } from "../../../src/core/units.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { fold } from "../../../src/store/postgres/folding.ts";
import { takeJob } from "../../../src/store/postgres/jobs.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { Upkeep, upkeepSlice } from "../../../src/store/postgres/upkeep.ts";
import { PostgresUsage } from "../../../src/store/postgres/usage.ts";
import { PostgresWatch, verifyBooks } from "../../../src/store/postgres/verify.ts";
import { plans } from "../../account/office.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { type Databases, startDatabases } from "../../fixtures/postgres.ts";

const today = Math.floor(Date.now() / dayMs);
const bounds = { allowance: 1e12, coder_calls: 1e12, searches: 1e12 };

describe("the books", () => {
  let postgres: Databases;
  let client: Bun.SQL;
  let database: Database;
  let number = 0;

  async function begin(): Promise<void> {
    const url = await postgres.database(`books${(number += 1)}`);
    const server = new PostgresServer(url);
    const connection = await server.connect();
    await migrate(connection);
    connection.close();
    client = new Bun.SQL({ url, max: 1 });
    database = new Database(server);
    await client.unsafe(`INSERT INTO accounts (id, email, plan, credit, key_hash, operator, created_at, key_created_at)
      SELECT i, i || '@x', 'free', 1000, sha256(i::text::bytea), false, 0, 0 FROM generate_series(1, 250) AS s (i)`);
    // Charges of 9 days at 200 cents: 5 billed tokens for 24 and so on; every third by the second key, some for an end user.
    await client.unsafe(`INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model,
        input_fresh, input_cached, output, reasoning, input_cents, cached_input_cents, output_cents, billed_tokens, key_id, end_user_id)
      SELECT 'req_' || i, 'charge', 1 + i % 250, (${today} - i % 9)::bigint * ${dayMs} + i, ${today} - i % 9,
        (500 + 2 * i * 200) / 1000, 0, '/v1/messages', 'm' || i % 3, i, 0, 0, 0, 200, 0, 0, (500 + 2 * i * 200) / 1000,
        1 + i % 3 % 2, CASE WHEN i % 3 = 1 THEN 1 END
      FROM generate_series(1, 1200) AS s (i)`);
    await client.unsafe(`INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta)
      SELECT 'credit:' || id, 'credit', id, ${(today - 9) * dayMs}, 0, 0, 1000 FROM accounts`);
    await client.unsafe(`INSERT INTO quota_use SELECT account_id, 'allowance', period, sum(used) FROM journal
      WHERE kind = 'charge' AND period < ${today} GROUP BY 1, 3`);
    await client.unsafe(`UPDATE accounts SET allowance_day = ${today}, allowance_used = coalesce(
      (SELECT sum(used) FROM journal WHERE account_id = accounts.id AND kind = 'charge' AND period = ${today}), 0)`);
    await client.unsafe(`INSERT INTO key_use SELECT account_id, key_id, period, sum(billed_tokens) FROM journal
      WHERE key_id = 2 GROUP BY 1, 2, 3`);
    await client.unsafe(`INSERT INTO end_user_use SELECT account_id, end_user_id, period, sum(billed_tokens) FROM journal
      WHERE end_user_id IS NOT NULL GROUP BY 1, 2, 3`);
    await client.unsafe(`INSERT INTO end_users (account_id, id, key_id, name, first_day, last_day)
      SELECT account_id, 1, 2, 'ann', min(period), max(period) FROM journal WHERE end_user_id = 1 GROUP BY 1`);
  }
  async function end(): Promise<void> {
    await database.close();
    await client.close();
  }
  beforeAll(async () => {
    postgres = await startDatabases();
  }, 60_000);
  afterAll(() => postgres[Symbol.asyncDispose]());

  const found = async () =>
    (await verifyBooks(database, bounds)).violations.map(({ invariant, detail }) => `${invariant} ${detail}`);
  const one = async (sql: string) => Object.values((await client.unsafe(sql))[0] as object)[0] as unknown;

  test("fold into sums that say the same, by two gateways at once, and purchases stay", async () => {
    await begin();
    const usage = new PostgresUsage(database);
    const sums = async () => ({
      all: (await usage.summary(0, 0)).total,
      days: (await usage.summary(7, today - 30)).days,
      billed: await one(
        "SELECT (coalesce((SELECT sum(billed_tokens) FROM journal), 0) + coalesce((SELECT sum(billed_tokens) FROM journal_folds), 0))::int",
      ),
    });
    const before = await sums();
    expect(await found()).toEqual([]);
    expect(await fold(database, 3, 100)).toBe(false); // no day is summed yet
    const all = async () => {
      while (await upkeepSlice(database, 3));
    };
    await Promise.all([all(), all()]);
    expect(await one(`SELECT count(*)::int FROM journal WHERE kind <> 'credit' AND at < ${(today - 3) * dayMs}`)).toBe(
      0,
    );
    expect(await one("SELECT sum(lines)::int FROM journal_folds")).toBeGreaterThan(500);
    expect(await one("SELECT count(*)::int FROM journal WHERE kind = 'credit'")).toBe(250);
    expect(await one(`SELECT count(*)::int FROM end_users WHERE name IS NOT NULL AND last_day < ${today - 3}`)).toBe(0);
    expect(await one("SELECT count(*)::int FROM end_users WHERE name IS NOT NULL")).toBeGreaterThan(0);
    expect(await sums()).toEqual(before);
    expect(await found()).toEqual([]);
    // An older line shows no more, and the page ends with the oldest that does.
    const page = await usage.page(
      1,
      { model: null, endpoint: null, key: null, from: null, to: null, text: "" },
      null,
      100,
    );
    expect<unknown[]>([page.rows.length, page.next]).toEqual([
      await one("SELECT count(*)::int FROM journal WHERE account_id = 1 AND kind = 'charge'"),
      null,
    ]);
    await end();
  }, 60_000);

  test.each([
    ["I1 credit", "UPDATE accounts SET credit = credit + 1 WHERE id = 9"],
    ["I1 allowance", "UPDATE quota_use SET used = used - 1 WHERE account_id = 10"],
    ["I1 allowance", "UPDATE accounts SET allowance_used = allowance_used + 1 WHERE id = 240"],
    ["I1 key 2", "UPDATE key_use SET used = used + 1 WHERE account_id = 11"],
    ["I1 end user 1", "DELETE FROM end_user_use WHERE account_id = 2"],
    ["I2 allowance", "UPDATE quota_use SET used = -5 WHERE account_id = 12"],
    ["I2 req_5", "UPDATE journal SET credit_delta = 1, used = used + 1 WHERE billing_key = 'req_5'"],
    ["I4 holds are 0 of 7", "UPDATE accounts SET held = 7 WHERE id = 250"],
    [
      "I4 holds are 0 of 0 tokens, their rows say 1",
      "INSERT INTO holds (request_id, lane, account_id, key_id, tokens, cost, waits, searches, made_at) VALUES ('r', 'l', 9, 1, 0, 0, false, 0, 0)",
    ],
    ["I5 req_6", "UPDATE journal SET input_cents = 900 WHERE billing_key = 'req_6'"],
    ["I10 req_7", "UPDATE journal SET account_id = 999 WHERE billing_key = 'req_7'"],
    ["I10 req_4", "UPDATE journal SET end_user_id = 77 WHERE billing_key = 'req_4'"],
  ])(
    "that break %s are found",
    async (what, spoil) => {
      if (number < 2) await begin();
      await client.unsafe("BEGIN");
      await client.unsafe("COMMIT");
      // What was spoiled is put back: each case begins with books that are well.
      const copies = ["accounts", "journal", "quota_use", "key_use", "end_user_use", "holds"];
      for (const table of copies) await client.unsafe(`CREATE TABLE copy_of_${table} AS SELECT * FROM ${table}`);
      await client.unsafe(spoil);
      const broken = await found();
      expect(broken.some((line) => line.startsWith(what))).toBe(true);
      for (const table of copies) {
        await client.unsafe(`DELETE FROM ${table}`);
        await client.unsafe(`INSERT INTO ${table} SELECT * FROM copy_of_${table}`);
        await client.unsafe(`DROP TABLE copy_of_${table}`);
      }
      expect(await found()).toEqual([]);
    },
    60_000,
  );

  test("are checked by the gateway that has the job, which tells what it found", async () => {
    const logged: string[] = [];
    const log = (_level: string, message: string) => void logged.push(message);
    const watchOf = (holder: string) =>
      new PostgresWatch({ database, plans, holder, clock: systemClock, log, intervalMs: 50, firstMs: 1 });
    expect(await takeJob(database, "verify", "another", 400)).toBe(true);
    expect(await takeJob(database, "verify", "third", 400)).toBe(false);
    const watch = watchOf("a");
    await client.unsafe("UPDATE accounts SET credit = credit + 1 WHERE id = 3");
    let nodesBusy = 33; // more than a request for several answers has
    watch.begin(() => ({ requests: 1, nodesBusy, waiting: 0 }));
    const broken = () => watch.state.violations.map(({ invariant }) => invariant).join(" ");
    await eventually("both are found", async () => broken() === "I1 I4");
    await client.unsafe("UPDATE accounts SET credit = credit - 1 WHERE id = 3");
    nodesBusy = 0;
    await eventually("all is well", async () => broken() === "");
    // It stands still while another takes the job: what it found is not its to tell anymore.
    await client.unsafe("UPDATE accounts SET credit = credit + 1 WHERE id = 3");
    await eventually("it is found", async () => broken() === "I1");
    await client.unsafe("UPDATE jobs SET holder = 'another', until = until + 3600000 WHERE name = 'verify'");
    await client.unsafe("UPDATE accounts SET credit = credit - 1 WHERE id = 3");
    await eventually("the other tells", async () => broken() === "");
    watch.close();
    expect(logged).toEqual([
      ...["the ledger breaks an invariant", "the ledger breaks an invariant", "the ledger keeps its invariants again"],
      ...["the ledger breaks an invariant", "the ledger keeps its invariants again"],
    ]);
    await end();
  }, 60_000);

  test("are kept up by a gateway as it runs", async () => {
    await begin();
    const upkeep = new Upkeep({
      database,
      holder: "a",
      keepDays: 2,
      clock: systemClock,
      log: () => {},
      firstMs: 1,
    });
    const mark = "SELECT coalesce((SELECT value FROM counters WHERE name = 'folded_at'), 0)::text";
    await eventually("all is folded", async () => (await one(mark)) === `${(today - 2) * dayMs}`);
    await upkeep.close();
    expect(await found()).toEqual([]);
    await end();
  }, 60_000);
});
