// The tables: both databases have what is described once, and PostgreSQL's are made and extended on a real server.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { journalColumns } from "../../../src/store/ledger/batch.ts";
import { call, PostgresServer } from "../../../src/store/postgres/connection.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { systemPace } from "../../../src/store/postgres/pace.ts";
import * as postgres from "../../../src/store/postgres/schema.ts";
import * as statements from "../../../src/store/postgres/statements.ts";
import { type Column, columnTypes, tableNames, tables } from "../../../src/store/tables.ts";
import { type Databases, noPostgres, startDatabases } from "../../fixtures/postgres.ts";
import { memoryDatabase } from "../memory-storage.ts";

/** Of every column of a table that both stores have: its type in a database, and whether it may be null. */
const described = (store: "sqlite" | "postgres") =>
  tableNames.map((table) => [
    table,
    Object.entries<Column>(tables[table].columns).map(([name, { kind, mayBeNull }]) => ({
      name,
      type: columnTypes[kind][store],
      mayBeNull,
    })),
  ]);

test("SQLite has the tables that both stores have, column by column", () => {
  const database = memoryDatabase();
  const own: readonly string[] = ["sequence"]; // of the journal: in PostgreSQL it would be a lock of all gateways
  const found = tableNames.map((table) => {
    type Info = Readonly<{ name: string; type: string; notnull: number; pk: number }>;
    const columns = database.query<Info, [string]>("SELECT * FROM pragma_table_info(?)").all(table);
    return [
      table,
      columns
        .filter(({ name }) => !own.includes(name))
        .map(({ name, type, notnull, pk }) => ({
          name,
          type: type.toLowerCase(),
          mayBeNull: notnull === 0 && pk === 0,
        })),
    ];
  });
  expect(found).toEqual(described("sqlite"));
});

test("lines of the journal are written in the order of its columns", () => {
  expect(Object.keys(tables.journal.columns)).toEqual([...journalColumns]);
});

test("what waits for locks reads nothing else", () => {
  expect(statements.lockAccounts.text).toContain("FOR UPDATE");
  expect(statements.lockAccounts.text).not.toMatch(/\bJOIN\b|\bquota_use\b|\bkey_use\b|\bapi_keys\b|FROM holds/);
});

describe("on a server", () => {
  let server: Databases;
  beforeAll(async () => {
    server = await startDatabases();
  }, 60_000);
  afterAll(() => server[Symbol.asyncDispose]());

  test("gateways that start at once make the tables once", async () => {
    const url = await server.database("made");
    const connections = await Promise.all([1, 2, 3].map(() => new PostgresServer(url).connect()));
    await Promise.all(connections.map((connection) => migrate(connection)));
    const client = new Bun.SQL({ url, max: 1 });
    expect(await client.unsafe("SELECT schema, oldest_program, closed FROM ledger_meta")).toEqual([
      { schema: postgres.schemaVersion, oldest_program: postgres.oldestProgram, closed: false },
    ] as never);
    for (const connection of connections) connection.close();
    await client.close();
  });

  test("it has the tables that both stores have, column by column", async () => {
    const url = await server.database("described");
    const connection = await new PostgresServer(url).connect();
    await migrate(connection);
    const client = new Bun.SQL({ url, max: 1 });
    type Info = Readonly<{ name: string; type: string; nullable: string }>;
    const found = [];
    for (const table of tableNames) {
      const names = Object.keys(tables[table].columns);
      const columns: readonly Info[] = await client.unsafe(
        `SELECT column_name AS name, data_type AS type, is_nullable AS nullable FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = '${table}' ORDER BY ordinal_position`,
      );
      found.push([
        table,
        columns
          .filter(({ name }) => names.includes(name)) // beside them: sums that gateways share
          .map(({ name, type, nullable }) => ({ name, type, mayBeNull: nullable === "YES" })),
      ]);
    }
    expect(found as unknown[]).toEqual(described("postgres"));
    connection.close();
    await client.close();
  });

  test("what an older program left is extended, and what it wrote stays", async () => {
    const url = await server.database("older");
    const client = new Bun.SQL({ url, max: 1 });
    const connection = await new PostgresServer(url).connect();
    await migrate(connection);
    await client.unsafe("ALTER TABLE accounts DROP COLUMN inputs_count, DROP COLUMN waiting_held");
    await client.unsafe("DROP TABLE key_use");
    await client.unsafe("INSERT INTO counters VALUES ('accounts', 7)");
    await client.unsafe("UPDATE ledger_meta SET schema = -1");
    await migrate(connection);
    expect((await client.unsafe("SELECT inputs_count, waiting_held FROM accounts")).length).toBe(0);
    expect((await client.unsafe("SELECT * FROM key_use")).length).toBe(0);
    expect(await client.unsafe("SELECT value::int FROM counters")).toEqual([{ value: 7 }] as never);
    connection.close();
    await client.close();
  });

  test.skipIf(noPostgres)(
    "who extends the tables keeps nobody waiting behind who reads them for long",
    async () => {
      const url = await server.database("read");
      const connection = await new PostgresServer(url).connect();
      await migrate(connection);
      const [reader, writer] = [new Bun.SQL({ url, max: 1 }), new Bun.SQL({ url, max: 1 })];
      await writer.unsafe("ALTER TABLE accounts DROP COLUMN inputs_count");
      await writer.unsafe("UPDATE ledger_meta SET schema = -1");
      const dump = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      const dumping = reader.begin(async (session) => {
        await session.unsafe("SET LOCAL application_name = 'pg_dump'");
        await session.unsafe("LOCK TABLE accounts, journal IN ACCESS SHARE MODE");
        begun.resolve();
        await dump.promise;
      });
      await begun.promise;
      let tries = 0;
      let at = 0;
      // Between two tries others have the tables.
      const after = (ms: number, run: () => void): (() => void) => {
        tries += 1;
        at += ms;
        void writer.unsafe("UPDATE accounts SET credit = 0").then(run);
        return () => {};
      };
      const pace = { ...systemPace, monotonic: () => at, after };
      const error = await migrate(connection, undefined, pace).catch((thrown: unknown) => thrown);
      expect(String(error)).toMatch(
        /others have them locked: wait for the end of pg_dump \(process \d+, in a transaction/,
      );
      expect(tries).toBeGreaterThan(5);
      dump.resolve();
      await dumping;
      await migrate(connection);
      expect((await writer.unsafe("SELECT inputs_count FROM accounts")).length).toBe(0);
      connection.close();
      await Promise.all([reader.close(), writer.close()]);
    },
    60_000,
  );

  test.skipIf(noPostgres)(
    "tables that lack nothing are extended without a lock on them",
    async () => {
      const url = await server.database("whole");
      const connection = await new PostgresServer(url).connect();
      await migrate(connection);
      const writer = new Bun.SQL({ url, max: 1 });
      await writer.unsafe("UPDATE ledger_meta SET schema = -1");
      await writer.begin(async (session) => {
        await session.unsafe("LOCK TABLE accounts, journal, holds IN ROW EXCLUSIVE MODE");
        await migrate(connection, undefined, { ...systemPace, after: () => expect.unreachable() });
      });
      connection.close();
      await writer.close();
    },
    60_000,
  );

  test.each([
    [
      "a newer program",
      "UPDATE ledger_meta SET schema = 99, oldest_program = 99",
      "a newer Tollgate has made the tables",
    ],
    ["books that were moved", "UPDATE ledger_meta SET closed = true", "were moved elsewhere"],
  ])("%s is told in one sentence", async (what, change, message) => {
    const url = await server.database(what.replaceAll(" ", "_"));
    const connection = await new PostgresServer(url).connect();
    await migrate(connection);
    const client = new Bun.SQL({ url, max: 1 });
    await client.unsafe(change);
    expect(String(await migrate(connection).catch((thrown: unknown) => thrown))).toContain(message);
    connection.close();
    await client.close();
  });

  test("tables of another program are left alone", async () => {
    const url = await server.database("others");
    const client = new Bun.SQL({ url, max: 1 });
    await client.unsafe("CREATE TABLE accounts (id int)");
    const connection = await new PostgresServer(url).connect();
    const error = await migrate(connection).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain('has a table "accounts" of another program');
    const made = "SELECT to_regclass('journal') AS journal, to_regclass('ledger_meta') AS meta";
    expect(await client.unsafe(made)).toEqual([{ journal: null, meta: null }] as never);
    connection.close();
    await client.close();
  });

  test.skipIf(noPostgres)("a database that cannot keep every text is refused, and left alone", async () => {
    const url = await server.database("latin", "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    const connection = await new PostgresServer(url).connect();
    const error = await migrate(connection).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain("keeps text as LATIN1");
    const [tables] = await connection.send([
      call({ name: "tables", text: "SELECT to_regclass('ledger_meta') AS meta" }),
    ]);
    expect(tables).toEqual([{ meta: null }]);
    connection.close();
  });
});
