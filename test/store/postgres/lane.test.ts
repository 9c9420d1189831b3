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
import type { OpenHold, OpenSearch, LaneOperation, LaneRules } from "../../../src/store/postgres/decide.ts";
import { lockedInWords } from "../../../src/store/postgres/locked-accounts.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { verifyBooks } from "../../../src/store/postgres/verify.ts";
import { boundsOf } from "../../../src/store/verify/quota-bounds.ts";
import { GoneLanes } from "../../../src/store/postgres/gone-lanes.ts";
import { Lane } from "../../../src/store/postgres/lane.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import * as sql from "../../../src/store/postgres/statements.ts";
import { ask, coderAsk, model, Office, output, plans } from "../../account/office.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { noPostgres, TestPostgres } from "../../fixtures/postgres.ts";
import { by } from "../../fixtures/principals.ts";
import { randomOf } from "../../fixtures/random.ts";

const rules: LaneRules = { plans, siteUrl: "http://site", maxWaitMs: 600_000, inputRequestsPerMinute: 3_000 };

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
        server: through(server),
        gateway,
        version: "test",
        rules,
        pace,
        log: () => {},
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
      const here = office.admission.admit(
        { ...by(account, key), ask: asked, inputTokens: reads, requestId, endUser },
        office.moment,
      );
      const keyHash = hashOf(key === undefined ? `a${account}@x` : `${isOfPeople ? "p" : "k"}${account}`);
      const operation: LaneOperation = {
        op: "admit",
        account,
        key: key ?? 1,
        keyHash,
        ask: asked,
        inputTokens: reads,
        requestId,
        endUser,
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
    const admit = (requestId: string): LaneOperation => ({
      op: "admit",
      account: 1,
      key: 1,
      keyHash: hashOf("a1@x"),
      ask: ask(4_096),
      inputTokens: 0,
      requestId,
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

  test("two gateways together believe one request what is beyond the balance, and the others what was expected", async () => {
    const { client, open } = await books("overdraft");
    await addAccount(client, 1, "free", 0);
    const lanes = await Promise.all([open("a"), open("b")]);
    const usage = { ...output(10), inputFresh: 20_000 };
    const holds: OpenHold[] = [];
    for (let number = 0; number < 30; number += 1) {
      const admit = { op: "admit", account: 1, key: 1, keyHash: hashOf("a1@x"), ask: ask(10), inputTokens: 0 } as const;
      const more = { expected: { input: 990, output: 0 }, requestId: `r${number}`, endUser: null };
      holds.push((await lanes[number % 2]!.put({ ...admit, ...more })) as OpenHold);
    }
    const ends = holds.map((hold, number) => lanes[number % 2]!.put({ op: "settle", hold, usage, estimated: false }));
    const answers = (await Promise.all(ends)).map((answer) => JSON.stringify(answer)).sort();
    const cut = JSON.stringify({ charged: { ...usage, inputFresh: 990 } });
    expect(answers).toEqual(['"settled"', ...Array<string>(29).fill(cut)]);
    const [left] = await client.unsafe("SELECT credit::int, held::int, expected::int, begun FROM accounts");
    expect(left).toEqual({ credit: 30_000 - 20_010 - 29 * 1_000, held: 0, expected: 0, begun: 0 });
    const rows = await client.unsafe("SELECT input_fresh::int AS input, estimated FROM journal ORDER BY 1 DESC, 2");
    expect(
      (rows as { input: number; estimated: number }[]).map(({ input, estimated }) => [input, Number(estimated)]),
    ).toEqual([[20_000, 0], ...Array(29).fill([990, 1])]);
    await Promise.all(lanes.map((lane) => lane.close()));
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
        op: "admit",
        account: 1,
        key: 2,
        keyHash: hashOf("p"),
        inputTokens: 0,
        requestId,
        endUser,
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
    const database = new Database(server);
    expect((await verifyBooks(database, boundsOf(plans))).violations).toEqual([]); // one is open
    await database.close();
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
        op: "admit",
        account: 1,
        key: 1,
        keyHash: hashOf("a1@x"),
        inputTokens: 0,
        requestId,
        ask: ask(4_096),
      } as LaneOperation) as Promise<OpenHold | Refusal>;
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
        op: "admit",
        account: 1,
        key: 1,
        keyHash: hashOf("a1@x"),
        inputTokens: 0,
        requestId,
        ask: ask(10),
      } as LaneOperation) as Promise<OpenHold>;
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
      op: "admit",
      account: 1,
      key,
      keyHash: hashOf(key === 1 ? "a1@x" : "k1"),
      inputTokens,
      requestId,
      ask: asked,
    } as LaneOperation) as Promise<OpenHold>;

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

  /** A session that keeps rows locked until it is told to end. */
  const locking = async (client: Bun.SQL, rows: string) => {
    const session = await client.reserve();
    await session.unsafe("BEGIN");
    await session.unsafe("SET LOCAL application_name = 'an operator'");
    await session.unsafe(`SELECT 1 FROM ${rows} FOR UPDATE`);
    return async () => {
      await session.unsafe("ROLLBACK");
      void session.release();
    };
  };
  const admitsOf = (lane: Lane, account: number, requestId: string) =>
    lane.put({
      op: "admit",
      account,
      key: 1,
      keyHash: hashOf(`a${account}@x`),
      inputTokens: 0,
      requestId,
      ask: ask(10),
    } as LaneOperation) as Promise<OpenHold>;

  test.each([
    ["its own row", "accounts WHERE id = 1"],
    ["the row of a key", "api_keys WHERE account_id = 1"],
  ])(
    "an account of which another session has %s locked waits alone, and is served when it is free",
    async (_, rows) => {
      const { client, open } = await books(`locked_${rows.slice(0, 3)}`);
      for (const id of [1, 2, 3]) await addAccount(client, id, "free", 0);
      await addKey(client);
      const lane = await open("g");
      const isKey = rows.startsWith("api_keys");
      const unlock = await locking(client, rows);
      const order: string[] = [];
      const noted = (what: string, work: Promise<OpenHold>) =>
        work.then((hold) => {
          order.push(what);
          return hold;
        });
      // They are one batch, and what comes later finds the account locked.
      const first = noted("first", admitted(lane, "r1", isKey ? 2 : 1));
      const others = [admitsOf(lane, 2, "r2"), admitsOf(lane, 3, "r3")].map((work) => noted("other", work));
      await Promise.all(others);
      await eventually("the account is found locked", async () => lane.locked.length > 0);
      const second = noted("second", admitted(lane, "r4", isKey ? 2 : 1));
      for (let turn = 0; turn < 20; turn += 1) await noted("other", admitsOf(lane, 2, `later ${turn}`));
      expect(new Set(order)).toEqual(new Set(["other"]));
      expect(lane.locked.map(({ account }) => account)).toEqual([1]);
      const named = () => lane.locked[0]!.by;
      await eventually("it is known who has it", async () => named().length > 0);
      expect(named().map(({ application }) => application)).toEqual(["an operator"]);
      expect(lockedInWords(lane.locked[0]!)).toMatch(
        /^account 1 has been locked in the database for \d+ s by an operator \(process \d+, in a transaction for \d+ s\): its requests wait$/,
      );
      expect([lane.writable, lane.still]).toEqual([true, null]);
      await unlock();
      await Promise.all([first, second]);
      expect(order.slice(-2)).toEqual(["first", "second"]);
      await eventually("nothing is locked", async () => lane.locked.length === 0);
      expect((await client.unsafe("SELECT holds FROM accounts WHERE id = 1"))[0]).toEqual({ holds: 2 });
      for (const hold of [await first, await second]) await lane.put({ op: "release", hold });
      await lane.close();
      await client.close();
    },
    60_000,
  );

  test("an account that was locked is served also where PostgreSQL has no connection left for who looks", async () => {
    let connections = 0;
    const full = Promise.reject(new StatementError("53300", "sorry, too many clients already"));
    full.catch(() => {});
    const { client, open } = await books("no_connection", (server) => ({
      connect: () => (++connections > 1 ? full : server.connect()),
    }));
    for (const id of [1, 2]) await addAccount(client, id, "free", 0);
    const lane = await open("g");
    const unlock = await locking(client, "accounts WHERE id = 1");
    const first = admitsOf(lane, 1, "r1");
    await eventually("the account is found locked", async () => lane.locked.length > 0);
    const other = await admitsOf(lane, 2, "r2");
    await eventually("who looks asked for a connection", async () => connections > 2);
    await unlock();
    for (const hold of [await first, other]) await lane.put({ op: "release", hold });
    await eventually("nothing is locked", async () => lane.locked.length === 0);
    await lane.close();
    await client.close();
  }, 60_000);

  test("who keeps a table from all gateways, as who makes an index, is named", async () => {
    const { client, open } = await books("locked_table");
    for (const id of [1, 2]) await addAccount(client, id, "free", 0);
    const lane = await open("g");
    const session = await client.reserve();
    await session.unsafe("BEGIN");
    await session.unsafe("SET LOCAL application_name = 'an operator'");
    await session.unsafe("LOCK TABLE holds IN SHARE MODE");
    const both = [admitsOf(lane, 1, "r1"), admitsOf(lane, 2, "r2")];
    const names = () => lane.locked.map(({ by }) => by.map(({ application }) => application).join());
    await eventually("both are named", async () => names().join() === "an operator,an operator");
    await session.unsafe("ROLLBACK");
    void session.release();
    for (const hold of await Promise.all(both)) await lane.put({ op: "release", hold });
    await lane.close();
    await client.close();
  }, 60_000);

  test("what a gateway held that is gone is given back also where one of its accounts is locked, that one's later", async () => {
    const { client, open, server } = await books("gone_locked");
    for (const id of [1, 2, 3]) await addAccount(client, id, "free", 0);
    const lane = await open("g");
    for (const id of [1, 2, 3]) await admitsOf(lane, id, `r${id}`);
    const unlock = await locking(client, "accounts WHERE id = 2");
    const { pace, pass } = handPace();
    const gone = new GoneLanes(server, pace, () => {});
    for (let looks = 0; looks < 18; looks += 1) {
      await gone.look();
      pass(1_000);
    }
    const holds = async () =>
      (await client.unsafe("SELECT holds FROM accounts ORDER BY id")).map(
        (row: Readonly<{ holds: number }>) => row.holds,
      );
    expect([await holds(), gone.counts]).toEqual([[0, 1, 0], { lanes: 1, holds: 2 }]);
    await unlock();
    await gone.look();
    expect([await holds(), gone.counts]).toEqual([[0, 0, 0], { lanes: 1, holds: 3 }]);
    gone.close();
    await lane.close();
    await client.close();
  }, 60_000);

  test("holds without an open request are released by their own lane", async () => {
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
    for (let batch = 0; batch < 12; batch += 1) {
      await connection.send([call(sql.begin), sql.setUpFor(), call(sql.lockAccounts, "{1}"), call(sql.commit)]);
    }
    const text =
      "SELECT statement, generic_plans::int AS generic, custom_plans::int AS custom FROM pg_prepared_statements";
    const [found] = await connection.send([call({ name: "prepared", text })]);
    if (found === undefined || isFailed(found)) throw found ?? new Error("no answer");
    const setUp = sql.setUpFor().statement;
    for (const { text } of [sql.begin, setUp, sql.lockAccounts, sql.commit]) {
      const row = found.find(({ statement }) => statement === text);
      // What says that plans are made once comes too late for its own.
      expect(row).toMatchObject({ statement: text, custom: text === setUp.text ? 5 : 0 });
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
      sql.setUpFor(),
      call(explain, "{a}"),
      call(sql.rollback),
    ]);
    expect(JSON.stringify(plan)).toContain("holds_pkey");
    connection.close();
  });
});
