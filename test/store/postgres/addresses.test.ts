// Addresses beside that of one server: several hosts of which one takes writes, and a pooler before it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { problemOfDatabaseUrl } from "../../../src/config/database-url.ts";
import { addressesOf } from "../../../src/core/database-addresses.ts";
import { call, type Connection, isFailed, PostgresServer } from "../../../src/store/postgres/connection.ts";
import { databaseAndUser } from "../../../src/store/postgres/place-of-url.ts";
import { openServer } from "../../../src/store/postgres/start.ts";
import { temporaryFolder } from "../../commands/program.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { missing } from "../../fixtures/optional.ts";
import { noPostgres, somePort, TestPostgres } from "../../fixtures/postgres.ts";

test("one address of several hosts is one of each", () => {
  const ofTwo = "postgres://u:p%40s@one:5432,two/books?target_session_attrs=read-write&sslmode=verify-full";
  expect(addressesOf(ofTwo)).toEqual([
    "postgres://u:p%40s@one:5432/books?sslmode=verify-full",
    "postgres://u:p%40s@two/books?sslmode=verify-full",
  ]);
  expect(addressesOf("postgres://one/books")).toEqual(["postgres://one/books"]);
  expect(addressesOf("postgres://one,[::1]:7/books?target_session_attrs=primary")).toEqual([
    "postgres://one/books",
    "postgres://[::1]:7/books",
  ]);
  expect(problemOfDatabaseUrl(ofTwo)).toBeNull();
  expect(databaseAndUser(ofTwo)).toBe('the database "books" on one:5432, two:5432 as u');
});

test("an address that asks for a server without writes is refused as that, a broken one as before", () => {
  for (const wanted of ["any", "standby", "prefer-standby", "read-only"]) {
    expect(problemOfDatabaseUrl(`postgres://one,two/books?target_session_attrs=${wanted}`)).toBe(
      "may have no other target_session_attrs than read-write: the ledger is written to",
    );
  }
  expect(problemOfDatabaseUrl("postgres://one,two:port/books")).toContain("must be an address such as");
  expect(problemOfDatabaseUrl("postgres://one,two")).toContain("it names no database");
});

describe.skipIf(noPostgres)("a server", () => {
  const folder = temporaryFolder();
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await TestPostgres.start();
  }, 60_000);
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });
  const one = (port: number) => `127.0.0.1:${port}`;
  const portOf = async (connection: Connection): Promise<unknown> => {
    const [found] = await connection.send([call({ name: "port", text: "SELECT inet_server_port() AS port" })]);
    if (found === undefined || isFailed(found)) throw found ?? new Error("no answer");
    return found[0]!["port"];
  };

  test("is found among hosts that nobody answers at or that take no writes, and again after a failover", async () => {
    const standby = await postgres.standby();
    const hosts = [somePort(), standby.port, postgres.port].map(one).join(",");
    const server = new PostgresServer(`postgres://tollgate@${hosts}/postgres?target_session_attrs=read-write`);
    for (let turn = 0; turn < 2; turn += 1) {
      const connection = await server.connect();
      expect(await portOf(connection)).toBe(postgres.port);
      connection.close();
    }
    await postgres.kill();
    expect(await server.connect().catch((error: Error) => error.message)).toMatch(/standby|connect|closed/i);
    await standby.promote();
    const connection = await eventually("it is found", () => server.connect().catch(() => null));
    expect(await portOf(connection)).toBe(standby.port);
    connection.close();
    await postgres[Symbol.asyncDispose]();
    postgres = standby;
    await postgres.ask("ALTER SYSTEM RESET synchronous_standby_names");
    await postgres.ask("SELECT pg_reload_conf()");
  }, 120_000);

  test("is found behind a host that lets clients in and answers nothing, as a pooler whose server is away", async () => {
    const letsIn = Buffer.from("R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", "latin1"); // AuthenticationOk, ReadyForQuery
    using mute = Bun.listen<{ isIn: boolean }>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (client) => void (client.data = { isIn: false }),
        data(client) {
          if (!client.data.isIn) client.write(letsIn);
          client.data.isIn = true;
        },
      },
    });
    const hosts = [mute.port, postgres.port].map(one).join(",");
    const connection = await new PostgresServer(`postgres://tollgate@${hosts}/postgres`).connect();
    expect(await portOf(connection)).toBe(postgres.port);
    connection.close();
  }, 20_000);

  const pooler = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].find((file) => Bun.which(file) !== null) ?? null;
  const noPooler = missing("PgBouncer", pooler !== null, "apt-get install pgbouncer", false);

  test.skipIf(noPooler)(
    "behind a pooler of transactions says what the address needs, and works with it",
    async () => {
      const url = new URL(await postgres.database("pooled"));
      const port = somePort();
      chmodSync(folder.path, 0o755);
      const file = join(folder.path, "pgbouncer.ini");
      const settings = ["auth_type = any", "pool_mode = transaction", "unix_socket_dir =", "listen_addr = 127.0.0.1"];
      writeFileSync(
        file,
        `[databases]\npooled = host=127.0.0.1 port=${url.port} user=tollgate pool_size=1\n[pgbouncer]\nlisten_port = ${port}\n${settings.join("\n")}\n`,
      );
      const asUser = process.getuid?.() === 0 ? ["setpriv", "--reuid=postgres", "--clear-groups"] : [];
      await using bouncer = Bun.spawn([...asUser, pooler!, file], { stdout: "ignore", stderr: "ignore" });
      const address = `postgres://tollgate@${one(port)}/pooled`;
      await eventually("the pooler answers", async () => {
        const connection = await new PostgresServer(address).connect().catch(() => null);
        connection?.close();
        return connection !== null;
      });
      const asked = { name: "asked", text: "SELECT $1::text AS said", isPrepared: true };
      const problems = async (url: string): Promise<readonly string[]> => {
        const server = await openServer(url);
        const connections = [await server.connect(), await server.connect()];
        const found: string[] = [];
        for (let turn = 0; turn < 3; turn += 1) {
          for (const connection of connections) {
            const [outcome] = await connection.send([call(asked, "it")]);
            if (outcome !== undefined && isFailed(outcome)) found.push(outcome.message);
          }
        }
        for (const connection of connections) connection.close();
        return found;
      };
      const said = await problems(address);
      expect(said.length).toBeGreaterThan(0);
      for (const each of said) {
        expect(each).toMatch(/: behind a pooler such as PgBouncer the address needs \?prepare=false at its end$/);
      }
      expect(await problems(`${address}?prepare=false`)).toEqual([]);
      bouncer.kill();
    },
    120_000,
  );
});
