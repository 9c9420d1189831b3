// Lanes on a real PostgreSQL, beside the same accounting on SQLite: the statements do what the simulation thinks they do.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isRefusal } from "../../../src/core/refusals.ts";
import { type Pace, systemPace } from "../../../src/store/postgres/pace.ts";
import type { Refusal } from "../../../src/core/types.ts";
import {
  call,
  type Connection,
  isFailed,
  PostgresServer,
  type Server,
  StatementError,
} from "../../../src/store/postgres/connection.ts";
import type { OpenHold, OpenSearch, Operation, Rules } from "../../../src/store/postgres/decide.ts";
import { GoneLanes } from "../../../src/store/postgres/gone-lanes.ts";
import { Lane } from "../../../src/store/postgres/lane.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import * as sql from "../../../src/store/postgres/statements.ts";
import { ask, coderAsk, model, Office, output, plans } from "../../account/office.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { noPostgres, TestPostgres } from "../../fixtures/postgres.ts";
import { by } from "../../fixtures/principals.ts";
import { randomOf } from "../../fixtures/random.ts";

const rules: Rules = { plans, siteUrl: "http://site", maxWaitMs: 600_000, inputRequestsPerMinute: 3_000 };

describe.skipIf(noPostgres)("a lane", () => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await TestPostgres.start();
  }, 60_000);
  afterAll(() => postgres[Symbol.asyncDispose]());

  async function books(name: string, through = (server: Server) => server) {
    const url = await postgres.database(name);
    const server = new PostgresServer(url);
    const connection = await server.connect();
    await migrate(connection);
    connection.close();
    const client = new Bun.SQL({ url, max: 2 });
    const decided = new Map<OpenHold, Refusal | null>();
    const open = async (gateway: string, pace: Pace = systemPace) => {
      const lane = new Lane({
        ...{ server: through(server), gateway, version: "test", rules, pace, log: () => {} },
        configDigest: () => "",
        decided: (hold, refusal) => void decided.set(hold, refusal),
      });
      await lane.open();
      return lane;
    };
    return { client, open, decided, server };
  }

  const addAccount = (client: Bun.SQL, id: number, plan: string, credit: number) =>
    client.unsafe(
      `INSERT INTO accounts (id, email, plan, credit, key_hash, operator, created_at, key_created_at)
       VALUES ($1::text::bigint, $2, $3, $4::text::bigint, sha256($2::text::bytea), false, 0, 0)`,
      [String(id), `a${id}@x`, plan, String(credit)],
    );
  const hashOf = (text: string) => Bun.SHA256.hash(text, "base64");

  test("decides and books as SQLite does, request by request", async () => {
    const { client, open } = await books("alike");
    const lane = await open("g");
    const office = new Office();
    // Today, so that both are in the same periods.
    office.now = Date.now();
    const random = randomOf(7);
    const below = (limit: number) => Math.floor(random() * limit);
    const keys: (number | undefined)[][] = [];
    for (const [index, plan] of (["free", "plus", "standard"] as const).entries()) {
      const { id } = await office.accounts.create({ email: `a${index + 1}@x`, plan });
      await addAccount(client, id, plan, 0);
      const key = await office.accountKeys.create(id, { name: "limited", limit_day: 9_000, limit_month: 20_000 });
      await client.unsafe(
        `INSERT INTO api_keys (account_id, id, name, key_hash, created_at, tokens_per_day, tokens_per_month)
         VALUES ($1::text::bigint, $2::text::int, 'limited', sha256($3::text::bytea), 0, 9000, 20000)`,
        [String(id), String(key.id), `k${id}`],
      );
      const people = { name: "people", forwards_users: true, limit_end_user_day: 9_000 };
      const { id: ofPeople } = await office.accountKeys.create(id, people);
      await client.unsafe(
        `INSERT INTO api_keys (account_id, id, name, key_hash, created_at, forwards_users, end_user_tokens_per_day)
         VALUES ($1::text::bigint, $2::text::int, 'people', sha256($3::text::bytea), 0, 1, 9000)`,
        [String(id), String(ofPeople), `p${id}`],
      );
      keys.push([undefined, key.id, ofPeople]);
    }
    for (let number = 0; number < 150; number += 1) {
      const account = 1 + below(3);
      const key = keys[account - 1]![below(3)];
      const asked =
        random() < 0.2
          ? coderAsk()
          : ask([0, 100, 4_096][below(3)]!, { model: model("core-3", { kind: "flat", cents: 335 }) });
      const reads = below(500);
      office.now = Date.now();
      const requestId = `r${number}`;
      const isOfPeople = key === keys[account - 1]![2];
      const endUser = isOfPeople ? ["ann", "bob", "carl", ""][below(4)]! : null;
      const here = office.admission.admit(by(account, key), asked, reads, requestId, office.moment, endUser);
      const keyHash = hashOf(key === undefined ? `a${account}@x` : `${isOfPeople ? "p" : "k"}${account}`);
      const operation: Operation = {
        ...{ op: "admit", account, key: key ?? 1, keyHash, ask: asked, inputTokens: reads, requestId, endUser },
      };
      const there = (await lane.put(operation)) as OpenHold | Refusal;
      if (isRefusal(here)) {
        expect(there).toMatchObject({ refusal: here.refusal });
        continue;
      }
      expect(isRefusal(there) ? there : there.requestId).toBe(requestId);
      const usage = { ...output(below(4_000)), inputFresh: below(600) };
      if (random() < 0.2) {
        here[Symbol.dispose]();
        expect(await lane.put({ op: "release", hold: there as OpenHold })).toBe("released");
        continue;
      }
      await here.settle(usage, false, Date.now());
      expect(await lane.put({ op: "settle", hold: there as OpenHold, usage, estimated: false })).toBe("settled");
    }
    const columns = "kind, account_id, period, used, credit_delta, model, output, billed_tokens, key_id, end_user_id";
    const lines = `SELECT ${columns}, billing_key FROM journal ORDER BY billing_key`;
    const plain = (rows: readonly object[]) => rows.map((row) => Object.values(row).map(String).join(" "));
    expect(plain(await client.unsafe(lines))).toEqual(plain(office.database.query(lines).all() as object[]));
    const uses = "SELECT account_id, key_id, day, used FROM key_use ORDER BY 1, 2, 3";
    expect(plain(await client.unsafe(uses))).toEqual(plain(office.database.query(uses).all() as object[]));
    const people = "SELECT account_id, id, key_id, name, first_day, last_day FROM end_users ORDER BY 1, 2";
    expect(plain(await client.unsafe(people))).toEqual(plain(office.database.query(people).all() as object[]));
    const ofPeople = "SELECT account_id, end_user_id, day, used FROM end_user_use ORDER BY 1, 2, 3";
    expect(plain(await client.unsafe(ofPeople))).toEqual(plain(office.database.query(ofPeople).all() as object[]));
    const [left] = await client.unsafe("SELECT sum(held)::int AS held, sum(holds)::int AS holds FROM accounts");
    expect(left).toEqual({ held: 0, holds: 0 });
    expect(await client.unsafe("SELECT * FROM holds")).toHaveLength(0);
    await lane.close();
    expect((await client.unsafe("SELECT gone_at FROM lanes"))[0].gone_at).not.toBeNull();
    await client.close();
  }, 60_000);

  test("of a program that a newer one shuts out commits nothing from then on, and what it held is given back", async () => {
    const { client, open, server } = await books("shut_out");
    await addAccount(client, 1, "free", 1_000_000);
    const lane = await open("old");
    const admit = (requestId: string): Operation => ({
      ...{ op: "admit", account: 1, key: 1, keyHash: hashOf("a1@x"), ask: ask(4_096), inputTokens: 0, requestId },
      endUser: null,
    });
    const hold = (await lane.put(admit("r1"))) as OpenHold;
    const connection = await server.connect();
    const journal = () => client.unsafe("SELECT billing_key FROM journal");
    const held = async () => (await client.unsafe("SELECT held::int, holds FROM accounts"))[0] as object;
    // A newer one beside which this one may work changes nothing for it.
    await migrate(connection, { schema: 98, oldestProgram: 1 });
    expect(await lane.put({ op: "settle", hold, usage: output(10), estimated: false })).toBe("settled");
    const second = (await lane.put(admit("r2"))) as OpenHold;
    expect(await held()).not.toEqual({ held: 0, holds: 0 });
    await migrate(connection, { schema: 99, oldestProgram: 98 });
    expect(await held()).toEqual({ held: 0, holds: 0 });
    const settled = lane.put({ op: "settle", hold: second, usage: output(10), estimated: false });
    const third = lane.put(admit("r3"));
    settled.catch(() => {});
    third.catch(() => {});
    await eventually("it knows", async () => lane.unwritable?.includes("programs before version 98") === true);
    expect(String(await open("another old").catch((thrown: unknown) => thrown))).toContain("update this one");
    expect(await journal()).toHaveLength(1);
    expect(await client.unsafe("SELECT * FROM holds")).toHaveLength(0);
    // Whatever waited is decided anew where the tables are for it again.
    await client.unsafe("UPDATE ledger_meta SET schema = 1, oldest_program = 1");
    expect(await settled).toBe("settled");
    expect(await lane.put({ op: "release", hold: (await third) as OpenHold })).toBe("released");
    expect(await journal()).toHaveLength(2);
    expect(await held()).toEqual({ held: 0, holds: 0 });
    connection.close();
    await lane.close();
    await client.close();
  }, 60_000);

  test("two gateways together let an end user spend no more than the key lets each", async () => {
    const { client, open } = await books("people");
    await addAccount(client, 1, "free", 1_000_000);
    await client.unsafe(
      `INSERT INTO api_keys (account_id, id, name, key_hash, created_at, forwards_users, end_user_tokens_per_day)
       VALUES (1, 2, 'people', sha256('p'::bytea), 0, 1, 10000)`,
    );
    const lanes = await Promise.all([open("a"), open("b")]);
    const admit = (requestId: string, endUser: string) =>
      lanes[Number(requestId) % 2]!.put({
        ...{ op: "admit", account: 1, key: 2, keyHash: hashOf("p"), inputTokens: 0, requestId, endUser },
        ask: ask(4_096),
      }) as Promise<OpenHold | Refusal>;
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => admit(String(index), index < 8 ? "ann" : "bob")),
    );
    const admitted = answers.filter((answer) => !isRefusal(answer)) as OpenHold[];
    expect(admitted.map(({ record }) => record.endUser).sort()).toEqual(["ann", "ann", "bob", "bob"]);
    for (const hold of admitted) {
      const lane = lanes[Number(hold.requestId) % 2]!;
      expect(await lane.put({ op: "settle", hold, usage: output(4_096), estimated: false })).toBe("settled");
    }
    expect(await admit("20", "ann")).toMatchObject({ refusal: "end_user_quota_exceeded" });
    expect(await client.unsafe("SELECT name FROM end_users ORDER BY name")).toEqual([{ name: "ann" }, { name: "bob" }]);
    for (const lane of lanes) await lane.close();
    await client.close();
  }, 60_000);

  test("searches of the day are held, counted where they found something, and given back by who is gone", async () => {
    const { client, open, server } = await books("searches");
    await addAccount(client, 1, "free", 0);
    const lane = await open("a");
    const other = await open("b");
    const take = (of: Lane) => of.put({ op: "search", account: 1 }) as Promise<OpenSearch | null>;
    const [one, two, three, four] = [await take(lane), await take(other), await take(lane), await take(other)];
    expect([one, two, three].every((search) => search !== null)).toBe(true);
    expect(four).toBeNull(); // three a day
    expect(await lane.put({ op: "search call", search: one! })).toBe(true);
    await lane.put({ op: "search end", search: one!, kept: true });
    await other.put({ op: "search end", search: two!, kept: false });
    const rows = "SELECT searches_used::int AS used, searches_held AS held, holds FROM accounts";
    expect(await client.unsafe(rows)).toEqual([{ used: 1, held: 1, holds: 0 }]);
    expect(await client.unsafe("SELECT kind, used::int AS used FROM journal")).toEqual([{ kind: "search", used: 1 }]);
    expect(await client.unsafe("SELECT calls FROM search_calls")).toEqual([{ calls: 1 }]);
    // The gateway that holds the third is gone.
    const mark = "SELECT batch::text || ' ' || seen_at::text AS mark FROM lanes WHERE id = $1";
    const [{ mark: seen }] = await client.unsafe(mark, [lane.id!]);
    const connection = await server.connect();
    const gone = [call(sql.begin), call(sql.markGone, lane.id!, seen), call(sql.lockHolders, lane.id!, null)];
    for (const outcome of await connection.send([...gone, call(sql.giveBack, lane.id!, null), call(sql.commit)])) {
      expect(isFailed(outcome)).toBe(false);
    }
    connection.close();
    expect(await client.unsafe(rows)).toEqual([{ used: 1, held: 0, holds: 0 }]);
    // What it found in the meantime counts where one is left.
    await lane.put({ op: "search end", search: three!, kept: true });
    expect(await client.unsafe(rows)).toEqual([{ used: 2, held: 0, holds: 0 }]);
    for (const each of [lane, other]) await each.close();
    await client.close();
  }, 60_000);

  test("two gateways together spend no more than there is", async () => {
    const { client, open } = await books("together");
    await addAccount(client, 1, "free", 100_000);
    const lanes = await Promise.all([open("a"), open("b")]);
    const admit = (lane: Lane, requestId: string) =>
      lane.put({
        ...{ op: "admit", account: 1, key: 1, keyHash: hashOf("a1@x"), inputTokens: 0, requestId },
        ask: ask(4_096),
      } as Operation) as Promise<OpenHold | Refusal>;
    const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => admit(lanes[index % 2]!, `r${index}`)));
    const admitted = answers.filter((answer) => !isRefusal(answer)) as OpenHold[];
    // 30,000 of the day and 100,000 bought.
    expect(admitted.length).toBe(Math.floor(130_000 / 4_096));
    expect(new Set(answers.filter(isRefusal).map(({ refusal }) => refusal))).toEqual(new Set(["quota_exceeded"]));
    const ends = admitted.map((hold) =>
      lanes[answers.indexOf(hold) % 2]!.put({ op: "settle", hold, usage: output(4_096), estimated: false }),
    );
    expect(new Set(await Promise.all(ends))).toEqual(new Set(["settled"]));
    const [row] = await client.unsafe("SELECT credit::int, held::int, holds, allowance_used::int FROM accounts");
    expect(row).toEqual({ credit: 130_000 - 31 * 4_096, held: 0, holds: 0, allowance_used: 30_000 });
    for (const lane of lanes) await lane.close();
    await client.close();
  }, 60_000);

  test("a COMMIT whose answer is lost is read back, and its answers are told", async () => {
    let losing = 0;
    const lossy = (server: Server): Server => ({
      async connect() {
        const inner = await server.connect();
        const connection: Connection = {
          close: () => inner.close(),
          async send(calls) {
            const outcomes = await inner.send(calls);
            if (calls.at(-1)?.statement.name !== "commit" || losing === 0) return outcomes;
            losing -= 1;
            inner.close();
            return calls.map(() => new StatementError(null, "the answer is lost"));
          },
        };
        return connection;
      },
    });
    const { client, open } = await books("lost", lossy);
    await addAccount(client, 1, "free", 0);
    const lane = await open("g");
    const admit = {
      op: "admit",
      account: 1,
      key: 1,
      keyHash: hashOf("a1@x"),
      inputTokens: 0,
      requestId: "r",
      endUser: null,
    } as const;
    losing = 1;
    const hold = (await lane.put({ ...admit, ask: ask(100) })) as OpenHold;
    losing = 1;
    expect(await lane.put({ op: "settle", hold, usage: output(100), estimated: false })).toBe("settled");
    expect(lane.counts).toMatchObject({ readBack: 2, unknown: 2, batches: 2 });
    expect(await client.unsafe("SELECT billing_key FROM journal")).toEqual([{ billing_key: "r" }] as never);
    await lane.close();
    await client.close();
  }, 60_000);

  test("an operation that the tables refuse fails alone", async () => {
    const { client, open } = await books("refused");
    await addAccount(client, 1, "free", 0);
    const lane = await open("g");
    const admit = (requestId: string) =>
      lane.put({
        ...{ op: "admit", account: 1, key: 1, keyHash: hashOf("a1@x"), inputTokens: 0, requestId, ask: ask(10) },
      } as Operation) as Promise<OpenHold>;
    await client.unsafe(
      "INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta) VALUES ('r2', 'credit', 1, 0, 0, 0, 0)",
    );
    const holds = await Promise.all(["r1", "r2", "r3"].map(admit));
    const ends = await Promise.allSettled(
      holds.map((hold) => lane.put({ op: "settle", hold, usage: output(1), estimated: false })),
    );
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    await lane.put({ op: "look", account: 1 });
    expect(await client.unsafe("SELECT * FROM holds")).toHaveLength(0);
    await lane.close();
    await client.close();
  }, 60_000);

  /** A pace whose clock is set forward by hand. */
  const handPace = () => {
    let ahead = 0;
    const pace: Pace = { ...systemPace, monotonic: () => systemPace.monotonic() + ahead };
    return { pace, pass: (ms: number) => void (ahead += ms) };
  };
  const addKey = (client: Bun.SQL) =>
    client.unsafe(
      `INSERT INTO api_keys (account_id, id, name, key_hash, created_at, tokens_per_day)
       VALUES (1, 2, 'limited', sha256('k1'::bytea), 0, 20000)`,
    );
  const heldOf = (client: Bun.SQL) =>
    client.unsafe(
      `SELECT accounts.held::int, holds, accounts.begun, accounts.expected::int, accounts.waiting_held::int,
         api_keys.held::int AS of_key, api_keys.begun AS key_begun, (SELECT count(*)::int FROM holds) AS rows
       FROM accounts JOIN api_keys ON account_id = accounts.id`,
    );
  const nothing = { held: 0, holds: 0, begun: 0, expected: 0, waiting_held: 0, of_key: 0, key_begun: 0, rows: 0 };
  const admitted = (lane: Lane, requestId: string, key = 1, inputTokens = 0, asked = ask(4_096)) =>
    lane.put({
      ...{
        op: "admit",
        account: 1,
        key,
        keyHash: hashOf(key === 1 ? "a1@x" : "k1"),
        inputTokens,
        requestId,
        ask: asked,
      },
    } as Operation) as Promise<OpenHold>;

  test("what a gateway held that is gone is given back, and its ends are charged if they fit", async () => {
    const { client, open, server } = await books("gone");
    await addAccount(client, 1, "free", 0);
    await addKey(client);
    const lane = await open("g");
    const holds = [
      await admitted(lane, "r1"),
      await admitted(lane, "r2", 2),
      await admitted(lane, "r3", 1, 0, coderAsk()),
      await admitted(lane, "r4", 1, 100_000), // waits for the others
    ];
    expect(holds.map(({ record }) => record.waits)).toEqual([false, false, false, true]);
    expect((await heldOf(client))[0]).toMatchObject({
      held: 3 * 4_096,
      holds: 4,
      begun: 2,
      waiting_held: 4_096,
      rows: 4,
    });
    const { pace, pass } = handPace();
    const gone = new GoneLanes(server, pace, () => {});
    for (let looks = 0; looks < 18; looks += 1) {
      await gone.look();
      pass(1_000);
    }
    gone.close();
    expect(gone.counts).toEqual({ lanes: 1, holds: 4 });
    expect(await heldOf(client)).toEqual([nothing] as never);
    // It was only away for a while.
    expect(await lane.put({ op: "settle", hold: holds[0]!, usage: output(4_096), estimated: false })).toBe("settled");
    expect(await lane.put({ op: "settle", hold: holds[1]!, usage: output(65_000), estimated: false })).toBe("void");
    expect(await lane.put({ op: "release", hold: holds[2]! })).toBe("released");
    expect(lane.counts).toMatchObject({ gone: 1, void: 1 });
    expect(await heldOf(client)).toEqual([nothing] as never);
    await lane.close();
    await client.close();
  }, 60_000);

  test("holds of no open request are given back by their own lane", async () => {
    const { pace, pass } = handPace();
    const { client, open } = await books("orphans");
    await addAccount(client, 1, "free", 0);
    await addKey(client);
    const lane = await open("g", pace);
    const hold = await admitted(lane, "r1", 2);
    await client.unsafe(
      `INSERT INTO holds (request_id, lane, account_id, key_id, tokens, cost, waits, made_at)
       SELECT 'lost', lane, account_id, key_id, 100, 50, false, 0 FROM holds`,
    );
    await client.unsafe(
      "UPDATE accounts SET held = held + 100, holds = holds + 1, begun = begun + 1, expected = expected + 50",
    );
    await client.unsafe("UPDATE api_keys SET held = held + 100, begun = begun + 1, expected = expected + 50");
    pass(61_000);
    await lane.put({ op: "look", account: 1 });
    await lane.put({ op: "release", hold });
    expect(lane.counts.orphans).toBe(1);
    expect(await heldOf(client)).toEqual([nothing] as never);
    await lane.close();
    await client.close();
  }, 60_000);

  test("the connection says what came of each statement", async () => {
    const url = await postgres.database("statements");
    const connection = await new PostgresServer(url).connect();
    const run = (text: string) => call({ name: text, text });
    const [began, failed, after, commit] = await connection.send([
      ...[run("BEGIN"), run("SELECT 1 / 0"), run("SELECT 1"), run("COMMIT")],
    ]);
    expect([began, failed, after, commit].map((one) => (isFailed(one!) ? one.state : "done"))).toEqual([
      ...["done", "22012", "25P02", "40000"],
    ]);
    connection.close();
  });

  test("what a batch sends is prepared and planned once, so that nothing waits for the answer before it", async () => {
    const url = await postgres.database("prepared");
    const connection = await new PostgresServer(url).connect();
    await migrate(connection);
    for (let batch = 0; batch < 7; batch += 1) {
      await connection.send([call(sql.begin), call(sql.setUp), call(sql.lockAccounts, "{1}"), call(sql.commit)]);
    }
    const text =
      "SELECT statement, generic_plans::int AS generic, custom_plans::int AS custom FROM pg_prepared_statements";
    const [found] = await connection.send([call({ name: "prepared", text })]);
    if (found === undefined || isFailed(found)) throw found ?? new Error("no answer");
    for (const { text } of [sql.begin, sql.setUp, sql.lockAccounts, sql.commit]) {
      const row = found.find(({ statement }) => statement === text);
      expect(row).toMatchObject({ statement: text, custom: 0 });
      expect(row!["generic"]).toBeGreaterThanOrEqual(7); // migrations begin and commit as well
    }
    connection.close();
  });

  test("a hold is found by its key, also by a plan that was made while there was none", async () => {
    const url = await postgres.database("plans");
    const connection = await new PostgresServer(url).connect();
    await migrate(connection);
    const explain = { name: "explain", text: `EXPLAIN ${sql.deleteHolds.text}` };
    await connection.send([call({ name: "vacuum", text: "VACUUM ANALYZE holds" })]);
    const [, , plan] = await connection.send([
      call(sql.begin),
      call(sql.setUp),
      call(explain, "{a}"),
      call(sql.rollback),
    ]);
    expect(JSON.stringify(plan)).toContain("holds_pkey");
    connection.close();
  });
});
