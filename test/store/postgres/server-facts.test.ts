// What is asked of a real PostgreSQL for `doctor` and `gateways`, and what is said of it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findingsOfFiles, findingsOfGateways, findingsOfServer } from "../../../src/commands/doctor-database.ts";
import { findingLine } from "../../../src/commands/finding.ts";
import { type Connection, PostgresServer } from "../../../src/store/postgres/connection.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import {
  gatewayFacts,
  newestFiles,
  recentInput,
  serverFacts,
  type ServerFacts,
} from "../../../src/store/postgres/server-facts.ts";
import { noPostgres, TestPostgres } from "../../fixtures/postgres.ts";

describe.skipIf(noPostgres)("a real server", () => {
  let postgres: TestPostgres;
  let connection: Connection;
  let client: Bun.SQL;
  beforeAll(async () => {
    postgres = await TestPostgres.start();
    const url = await postgres.database("facts");
    connection = await new PostgresServer(url).connect();
    await migrate(connection);
    client = new Bun.SQL({ url, max: 1 });
  }, 60_000);
  afterAll(async () => {
    connection.close();
    await client.close();
    await postgres[Symbol.asyncDispose]();
  });

  test("tells what it keeps and how fast it is", async () => {
    const facts = await serverFacts(connection);
    const { fsync, synchronousCommit, synchronousStandbyNames, standbys, autovacuum, isPooled, keepsTimeouts } = facts;
    const told = { fsync, synchronousCommit, synchronousStandbyNames, standbys, autovacuum, isPooled, keepsTimeouts };
    expect(told).toEqual({
      fsync: true,
      synchronousCommit: "on",
      synchronousStandbyNames: "",
      standbys: [],
      autovacuum: true,
      isPooled: false,
      keepsTimeouts: true,
    });
    expect(Number.parseInt(facts.version!, 10)).toBeGreaterThanOrEqual(14);
    expect([facts.roundTripMs > 0, facts.commitMs! > 0, Math.abs(facts.clockAheadMs!) < 60_000]).toEqual([
      true,
      true,
      true,
    ]);
    expect(facts.connections!.most).toBe(57); // of 60, 3 are the administrator's
    expect(facts.connections!.open).toBeGreaterThanOrEqual(1);
    expect(findingsOfServer(facts).filter(({ level }) => level === "problem")).toEqual([]);
  });

  test("knows a transaction that is open for long", async () => {
    const reserved = await client.reserve();
    await reserved.unsafe("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await reserved.unsafe("SELECT count(*) FROM accounts");
    expect((await serverFacts(connection)).oldestSnapshotMs).toBeGreaterThan(0);
    await reserved.unsafe("ROLLBACK");
    void reserved.release();
    expect((await serverFacts(connection)).oldestSnapshotMs).toBe(0);
  });

  test("knows how much of each model's input was cached", async () => {
    expect(await recentInput(connection)).toEqual([]);
    await client.unsafe(
      `INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta, model, input_fresh, input_cached)
       VALUES ('a', 'charge', 1, 1, 0, 0, 0, 'm', 700, 100), ('b', 'charge', 2, 2, 0, 0, 0, 'm', 100, 100),
         ('c', 'charge', 1, 3, 0, 0, 0, 'n', 10, 0), ('d', 'credit', 1, 4, 0, 0, 5, NULL, NULL, NULL)`,
    );
    expect(await recentInput(connection)).toEqual([
      { model: "m", accounts: 2, input: 1_000, cached: 200 },
      { model: "n", accounts: 1, input: 10, cached: 0 },
    ]);
  });

  test("knows its gateways, with their shares, and those that are gone last", async () => {
    await client.unsafe(
      `INSERT INTO lanes (id, gateway, batch, seen_at, gone_at, version, config_digest) VALUES
       ('a/1', 'a', 4, now() - interval '1 hour', now() - interval '59 minutes', '1.0', 'x'), ('a/2', 'a', 9, now(), NULL, '1.1', 'x'),
       ('b/1', 'b', 9, now() - interval '2 seconds', NULL, '1.1', 'y')`,
    );
    await client.unsafe("INSERT INTO node_shares VALUES ('n', '', 0, 0, 0, 0, 0), ('n', 'a/2', 5, 3, 2, 1, 70)");
    await client`INSERT INTO stored_files VALUES ('file-b', 1, '', '', 1, 1, 1, 1), ('file-c', 1, '', '', 1, 1, 1, 0),
      ('file-a', 1, '', '', 1, 1, 1, 1)`;
    expect(await newestFiles(connection)).toEqual(["file-b", "file-a"]);
    const gateways = await gatewayFacts(connection);
    expect(gateways.map(({ lane, isGone }) => [lane, isGone])).toEqual([
      ["a/2", false],
      ["b/1", false],
      ["a/1", true],
    ]);
    expect(gateways[0]!.shares).toEqual([{ node: "n", granted: 5, busy: 3, waiting: 2 }]);
    expect(gateways[1]!.seenMs).toBeGreaterThanOrEqual(2_000);
    expect(gateways[2]!.seenMs).toBeGreaterThanOrEqual(59 * 60_000);
    expect(findingsOfGateways({ connections: { open: 1, most: 12 } }, gateways).map(findingLine))
      .toMatchInlineSnapshot(`
      [
        "ok       gateways        2 alive: a, b",
        "WARNING  gateways        have different configurations of models, plans, nodes, limits or sign-up: a against b",
        "WARNING  gateways        need 30 connections, and PostgreSQL has 12: raise max_connections",
      ]
    `);
  });
});

test("files are looked for where this gateway keeps them", () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-shared-"));
  mkdirSync(join(folder, "ab"));
  writeFileSync(join(folder, "ab/file-ab"), "");
  const gateways = [{ isGone: false }, { isGone: false }];
  const look = (isOwn: boolean, newest: string[]) =>
    findingsOfFiles({ folder, isOwn }, newest, gateways).map(({ level, detail }) => [level, detail]);
  const remedy = "name a folder that all gateways share in [files] folder";
  expect([look(false, ["file-ab"]), look(true, ["file-ab"]), look(false, ["file-ab", "file-cd"])]).toEqual([
    [["ok", `are in ${folder}`]],
    [["warning", `2 gateways are alive, and this one keeps files in its data folder: ${remedy}`]],
    [["problem", `1 of the newest 2 files are not in ${folder}: ${remedy}`]],
  ]);
  rmSync(folder, { recursive: true });
});

const well: ServerFacts = {
  version: "17.2",
  roundTripMs: 0.3,
  commitMs: 1.5,
  fsync: true,
  synchronousCommit: "on",
  synchronousStandbyNames: "",
  standbys: [],
  autovacuum: true,
  oldestSnapshotMs: 0,
  connections: { open: 10, most: 97 },
  isPooled: false,
  keepsTimeouts: true,
  clockAheadMs: 3,
};
const standby = { name: "s", sync: "async" };
const cases: readonly (readonly [string, Partial<ServerFacts>])[] = [
  ["well", {}],
  ["slow", { roundTripMs: 12, commitMs: 31 }],
  [
    "tells nothing",
    {
      version: null,
      commitMs: null,
      fsync: null,
      synchronousCommit: null,
      standbys: null,
      autovacuum: null,
      connections: null,
      oldestSnapshotMs: null,
      clockAheadMs: null,
      synchronousStandbyNames: null,
    },
  ],
  ["without fsync", { fsync: false }],
  ["asynchronous", { synchronousCommit: "off" }],
  ["an asynchronous standby", { standbys: [standby] }],
  ["a synchronous standby", { synchronousStandbyNames: "s", standbys: [{ ...standby, sync: "sync" }] }],
  ["a synchronous standby that is away", { synchronousStandbyNames: "s", standbys: [standby] }],
  [
    "all that can be wrong",
    {
      autovacuum: false,
      oldestSnapshotMs: 3_600_000,
      isPooled: true,
      keepsTimeouts: false,
      connections: { open: 95, most: 97 },
      clockAheadMs: -60_000,
    },
  ],
];

test.each(cases)("what is said of a server: %s", (_name, facts) => {
  expect(findingsOfServer({ ...well, ...facts }).map(findingLine)).toMatchSnapshot();
});
