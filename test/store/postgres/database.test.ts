// The transactions beside the lane's, on a real server and through a network that loses answers.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { StoreUnavailable } from "../../../src/core/types.ts";
import { call, PostgresServer, StatementError } from "../../../src/store/postgres/connection.ts";
import { CommitUnknown, Database } from "../../../src/store/postgres/database.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { accounts, counters } from "../../../src/store/postgres/schema.ts";
import { PostgresProxy } from "../../fixtures/postgres-proxy.ts";
import { noPostgres, TestPostgres } from "../../fixtures/postgres.ts";

const caught = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "nothing",
    (thrown: unknown) => thrown,
  );
const run = (text: string) => call({ name: text.slice(0, 20), text });

describe.skipIf(noPostgres)("on a server", () => {
  let server: TestPostgres;
  let url: string;
  const opened: Database[] = [];
  const open = (at = url, max?: number): Database => {
    const database = new Database(new PostgresServer(at), undefined, max);
    opened.push(database);
    return database;
  };
  const add = (name: string, value: number) => [
    run(
      `INSERT INTO counters VALUES ('${name}', ${value}) ON CONFLICT (name) DO UPDATE SET value = counters.value + ${value}`,
    ),
  ];
  const valueOf = async (name: string): Promise<number | undefined> => {
    const found = await open().read(({ db }) => db.select().from(counters).where(eq(counters.name, name)));
    return found[0]?.value;
  };

  beforeAll(async () => {
    server = await TestPostgres.start();
    url = await server.database("books");
    const connection = await new PostgresServer(url).connect();
    await migrate(connection);
    connection.close();
  }, 60_000);
  afterAll(async () => {
    for (const database of opened) await database.close();
    await server[Symbol.asyncDispose]();
  });

  test("numbers up to 2^53 and bytes come back as they went in, prepared or not", async () => {
    for (const [id, at] of [
      [Number.MAX_SAFE_INTEGER, url],
      [7, `${url}?prepare=false`],
    ] as const) {
      const database = open(at);
      const row = {
        id,
        email: `a"b\\${id}@x`,
        plan: "free",
        credit: -id,
        keyHash: new Uint8Array(32).fill(id === 7 ? 9 : 200),
        passwordHash: null,
        operator: id === 7,
        createdAt: 1,
        keyCreatedAt: 2,
      };
      await database.transaction(({ db }) => db.insert(accounts).values(row));
      const [found] = await database.read(({ db }) => db.select().from(accounts).where(eq(accounts.id, id)));
      const { keyHash, ...rest } = found!;
      expect(new Uint8Array(keyHash)).toEqual(row.keyHash);
      const { keyHash: _, ...expected } = row;
      expect(rest).toMatchObject({ ...expected, disabledAt: null });
    }
    const [sums] = await open().read(({ db }) =>
      db.select({ count: sql<number>`count(*)`.mapWith(Number) }).from(accounts),
    );
    expect(sums).toEqual({ count: 2 });
  });

  test("what a transaction throws takes back what it wrote, and its connection goes on", async () => {
    const database = open(url, 1);
    const thrown = await caught(
      database.transaction(async (session) => {
        await session.run(add("taken back", 1));
        throw new Error("no");
      }),
    );
    expect(thrown).toEqual(new Error("no"));
    const broken = await caught(
      database.transaction((session) => session.run([run("INSERT INTO counters VALUES (NULL, 1)")])),
    );
    expect([(broken as StatementError).name, (broken as StatementError).state]).toEqual(["StatementError", "23502"]);
    const wrong = await caught(database.transaction((session) => session.run([run("SELECT nonsense")])));
    expect(wrong).toBeInstanceOf(StoreUnavailable);
    expect(await caught(database.read((session) => session.run(add("read", 1))))).toBeInstanceOf(StoreUnavailable);
    await database.transaction((session) => session.run(add("kept", 2)));
    expect([await valueOf("taken back"), await valueOf("kept")]).toEqual([undefined, 2]);
  });

  test("what is to be written at the end is committed with it, or fails with it", async () => {
    const database = open();
    await database.transaction(async (session) => session.atEnd(add("at end", 3)));
    const error = await caught(
      database.transaction(async (session) =>
        session.atEnd([...add("at end", 3), run("INSERT INTO counters VALUES ('at end', 1)")]),
      ),
    );
    expect([(error as StatementError).name, (error as StatementError).state]).toEqual(["StatementError", "23505"]);
    expect(await valueOf("at end")).toBe(3);
  });

  test("who deadlock with each other both come through", async () => {
    await open().transaction((session) => session.run([...add("one", 0), ...add("two", 0)]));
    const met = Promise.withResolvers<void>();
    let inside = 0;
    const both = (first: string, then: string) =>
      open().transaction(async (session) => {
        await session.run(add(first, 1));
        if ((inside += 1) === 2) met.resolve();
        await met.promise;
        await session.run(add(then, 1));
      });
    await Promise.all([both("one", "two"), both("two", "one")]);
    expect([await valueOf("one"), await valueOf("two"), inside]).toEqual([2, 2, 3]);
  });

  test("a connection that was cut off while it was idle costs nobody anything", async () => {
    const database = open(url, 1);
    const pid = () => database.transaction((session) => session.run([run("SELECT pg_backend_pid() AS pid")]));
    const [[before]] = (await pid()) as [[{ pid: number }]];
    await open().transaction((session) => session.run([run(`SELECT pg_terminate_backend(${before!.pid})`)]));
    const [[after]] = (await pid()) as [[{ pid: number }]];
    expect(after!.pid).not.toBe(before!.pid);
  });

  test("more than there are connections for wait, and no longer than they may", async () => {
    const database = open(url, 2);
    const held = Promise.withResolvers<void>();
    const long = [1, 2].map(() => database.transaction(() => held.promise));
    expect(await caught(database.read(async () => 1, 50))).toBeInstanceOf(StoreUnavailable);
    const later = database.read((session) => session.run([run("SELECT 1 AS one")]));
    held.resolve();
    expect(await later).toEqual([[{ one: 1 }]] as never);
    await Promise.all(long);
  });

  test("a network that falls silent costs its own transaction alone, which ends in time", async () => {
    const proxy = new PostgresProxy(server.port);
    const database = open(server.url("books", proxy.port));
    await database.read((session) => session.run([run("SELECT 1")]));
    proxy.swallows = true;
    const error = await caught(database.transaction((session) => session.run([run("SELECT 1")]), { limitMs: 100 }));
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).not.toBeInstanceOf(CommitUnknown);
    proxy.swallows = false;
    expect(await database.read((session) => session.run([run("SELECT 1 AS one")]))).toEqual([[{ one: 1 }]] as never);
    proxy.close();
  });

  test("where the answer to a COMMIT is lost, it says that nobody knows", async () => {
    const proxy = new PostgresProxy(server.port);
    const database = open(server.url("books", proxy.port));
    await database.read((session) => session.run([run("SELECT 1")]));
    const lost = proxy.loseAnswers(100);
    const error = await caught(database.transaction((session) => session.run(add("unknown", 5)), { limitMs: 300 }));
    await lost;
    expect(error).toBeInstanceOf(CommitUnknown);
    expect(await valueOf("unknown")).toBe(5);
    proxy.close();
  });

  test("without a server it says so", async () => {
    const error = await caught(
      open("postgres://tollgate@127.0.0.1:1/books").read((session) => session.run([run("SELECT 1")])),
    );
    expect(error).toBeInstanceOf(StoreUnavailable);
  });
});
