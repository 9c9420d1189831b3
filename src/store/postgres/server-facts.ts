// What a PostgreSQL tells of itself that decides what the ledger keeps through a failure and how fast it is. Each fact is asked
// alone: other engines that speak its protocol know only some, and some need rights.
import type { PlanCount } from "../../account/records.ts";
import type { Ms } from "../../core/types.ts";
import { type RecentInput, recentInputSql } from "../recent-input.ts";
import { call, type Connection, isFailed, type Row } from "./connection.ts";
import { limited, systemPace } from "./pace.ts";

type Standby = Readonly<{ name: string; sync: string }>;
/** Null: the server does not tell it. */
export type ServerFacts = Readonly<{
  version: string | null;
  roundTripMs: Ms;
  /** Of a small write, median of some; null where it could not write. */
  commitMs: Ms | null;
  fsync: boolean | null;
  synchronousCommit: string | null;
  /** Those that a COMMIT waits for; empty where it waits for none. */
  synchronousStandbyNames: string | null;
  standbys: readonly Standby[] | null;
  autovacuum: boolean | null;
  /** How long the oldest transaction that keeps old rows from being cleaned away has been open. */
  oldestSnapshotMs: Ms | null;
  connections: Readonly<{ open: number; most: number }> | null;
  /** Whether statements of one session reach different ones of the server, as behind a pooler. */
  isPooled: boolean;
  keepsTimeouts: boolean;
  /** By how much its clock is ahead of this machine's. */
  clockAheadMs: Ms | null;
}>;

/** A gateway's process, by its row; `seenMs`: since its latest sign of life. */
export type GatewayFacts = Readonly<{
  gateway: string;
  lane: string;
  version: string;
  seenMs: Ms;
  isGone: boolean;
  configDigest: string;
  shares: readonly Readonly<{ node: string; granted: number; busy: number; waiting: number }>[];
}>;

const triesOfTime = 5;

/** Rejects with StatementError where the connection fails. */
export async function serverFacts(connection: Connection): Promise<ServerFacts> {
  const ask = async (text: string): Promise<Row | null> => {
    const rows = await asksMany(connection, text);
    return rows === null ? null : (rows[0] ?? {});
  };
  const setting = async (name: string): Promise<string | null> =>
    ((await ask(`SELECT current_setting('${name}') AS value`))?.["value"] as string | undefined) ?? null;
  const isOn = (value: string | null): boolean | null => (value === null ? null : value !== "off");
  const timed = async (text: string): Promise<Ms | null> => {
    const times: number[] = [];
    for (let turn = 0; turn < triesOfTime; turn += 1) {
      const startedAt = systemPace.monotonic();
      if ((await ask(text)) === null) return null;
      times.push(systemPace.monotonic() - startedAt);
    }
    return times.sort((a, b) => a - b)[triesOfTime >> 1]!;
  };

  const roundTripMs = (await timed("SELECT 1"))!;
  const commitMs = await timed(
    `INSERT INTO counters (name, value) VALUES ('times a commit was timed', 1)
     ON CONFLICT (name) DO UPDATE SET value = counters.value + 1`,
  );
  const before = systemPace.wall();
  const clock = await ask("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now");
  const sessions = new Set<unknown>();
  for (let turn = 0; turn < triesOfTime; turn += 1) sessions.add((await ask("SELECT pg_backend_pid() AS id"))?.["id"]);
  const standbys = await asksMany(
    connection,
    "SELECT application_name AS name, sync_state AS sync FROM pg_stat_replication",
  );
  const snapshot = await ask(
    `SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 * 1000 AS ms FROM pg_stat_activity
     WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()`,
  );
  const connections = await ask(
    `SELECT (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS open,
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most`,
  );
  return {
    version: (await setting("server_version"))?.split(" ")[0] ?? null, // without its distribution's
    roundTripMs,
    commitMs,
    fsync: isOn(await setting("fsync")),
    synchronousCommit: await setting("synchronous_commit"),
    synchronousStandbyNames: await setting("synchronous_standby_names"),
    standbys: standbys as readonly Standby[] | null,
    autovacuum: isOn(await setting("autovacuum")),
    oldestSnapshotMs: (snapshot?.["ms"] as number | undefined) ?? null,
    connections: connections as ServerFacts["connections"],
    isPooled: sessions.size > 1,
    keepsTimeouts: await keepsTimeouts(connection),
    clockAheadMs: clock === null ? null : (clock["now"] as number) - (before + systemPace.wall()) / 2,
  };
}

/** All gateways that were alive in the last day, those that are gone last. */
export async function gatewayFacts(connection: Connection): Promise<readonly GatewayFacts[]> {
  const lanes = await asksMany(
    connection,
    `SELECT id, gateway, version, config_digest, gone_at IS NOT NULL AS gone,
       greatest(0, extract(epoch FROM clock_timestamp() - coalesce(gone_at, seen_at)) * 1000)::float8 AS seen_ms
     FROM lanes ORDER BY gone_at IS NOT NULL, gateway, id LIMIT 1000`,
  );
  const shares = await asksMany(
    connection,
    "SELECT node, lane, granted, busy, waiting FROM node_shares WHERE lane <> '' ORDER BY node LIMIT 10000",
  );
  const byLane = Map.groupBy(shares ?? [], (row) => row["lane"] as string);
  return (lanes ?? []).map((row) => ({
    gateway: row["gateway"] as string,
    lane: row["id"] as string,
    version: row["version"] as string,
    seenMs: row["seen_ms"] as number,
    isGone: row["gone"] as boolean,
    configDigest: row["config_digest"] as string,
    shares: (byLane.get(row["id"] as string) ?? []).map((share) => ({
      node: share["node"] as string,
      granted: share["granted"] as number,
      busy: share["busy"] as number,
      waiting: share["waiting"] as number,
    })),
  }));
}

/** How many accounts there are of each plan, without those that are disabled. Looks at all of them. */
export async function accountsByPlan(connection: Connection): Promise<readonly PlanCount[]> {
  const text =
    "SELECT plan, count(*)::int AS accounts FROM accounts WHERE disabled_at IS NULL GROUP BY plan ORDER BY plan";
  return ((await asksMany(connection, text)) ?? []) as readonly PlanCount[];
}

export async function recentInput(connection: Connection): Promise<readonly RecentInput[]> {
  return ((await asksMany(connection, recentInputSql("at"))) ?? []) as readonly RecentInput[];
}

/** Of the newest files that are whole; none where the tables are older than files. */
export async function newestFiles(connection: Connection): Promise<readonly string[]> {
  const newest = "SELECT id FROM stored_files WHERE finished = 1 ORDER BY id DESC LIMIT 20";
  return ((await asksMany(connection, newest)) ?? []).map((row) => row["id"] as string);
}

/** Null where the server refuses the question. */
async function asksMany(connection: Connection, text: string): Promise<readonly Row[] | null> {
  const [outcome] = await limited(systemPace, connection.send([call({ name: text.slice(0, 40), text })]), () => {});
  if (outcome === undefined || !isFailed(outcome)) return outcome ?? null;
  if (outcome.state === null) throw outcome;
  return null;
}

async function keepsTimeouts(connection: Connection): Promise<boolean> {
  const texts = [
    "BEGIN",
    "SELECT set_config('lock_timeout', '4321', true)",
    "SELECT current_setting('lock_timeout') AS value",
    "ROLLBACK",
  ];
  const calls = texts.map((text) => call({ name: text, text }));
  const [, , shown] = await limited(systemPace, connection.send(calls), () => {});
  return shown !== undefined && !isFailed(shown) && shown[0]?.["value"] === "4321ms";
}
