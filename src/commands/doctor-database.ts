// The part of `tollgate doctor` about the PostgreSQL database that keeps the ledger, and its gateways.
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  accountsByPlan,
  gatewayFacts,
  newestFiles,
  type GatewayFacts,
  recentInput,
  serverFacts,
  type ServerFacts,
} from "../store/postgres/server-facts.ts";
import { gatewayConnectionsMax } from "../store/postgres/limits.ts";
import { schemaVersion } from "../store/postgres/schema.ts";
import { lookAtServer } from "../store/postgres/start.ts";
import { outdated, type TablesState } from "../store/postgres/tables-state.ts";
import type { FolderLook } from "./doctor-folder.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

const what = "database";
/** An admission waits for one commit: clients notice more than this. */
const commitSlowMs = 20;
const roundTripSlowMs = 5;
const snapshotLongMs = 60_000;
/** The server's clock decides windows and days: a different one shows only in displayed times. */
const clockToleranceMs = 5_000;

/** `files`: where this gateway keeps files; null: it takes none. */
export async function lookAtDatabase(url: string, files: FilesPlace | null): Promise<FolderLook> {
  const { connection, state } = await lookAtServer(url);
  try {
    const facts = await serverFacts(connection);
    const gateways = state.made ? await gatewayFacts(connection) : [];
    return {
      findings: [
        tablesFinding(state),
        ...findingsOfServer(facts),
        ...findingsOfGateways(facts, gateways),
        ...(files === null || !state.made ? [] : findingsOfFiles(files, await newestFiles(connection), gateways)),
      ],
      newestLineAt: null,
      byPlan: state.made ? await accountsByPlan(connection) : [],
      recentInput: state.made ? await recentInput(connection) : [],
    };
  } finally {
    connection.close();
  }
}

/** The state of the ledger, without creating any of it. */
function tablesFinding(state: TablesState): Finding {
  if (!state.made) {
    if (state.foreign !== null) {
      const needs = "Tollgate needs a database of its own";
      return problem(what, `it has a table "${state.foreign}" of another program: ${needs}`);
    }
    if (state.mayMake === false) return problem(what, "it is empty, and this user may not make tables in it");
    return ok(what, "it is empty: the first gateway makes the tables");
  }
  const { meta } = state;
  if (meta.closed) return problem(what, "the books in it were moved elsewhere: they are closed");
  const isOld = outdated(meta);
  if (isOld !== null) return problem(what, isOld);
  const tables = `its tables are version ${meta.schema}`;
  if (meta.schema === schemaVersion) return ok(what, tables);
  return meta.schema < schemaVersion
    ? ok(what, `${tables}, which becomes ${schemaVersion} at the next start of a gateway`)
    : ok(what, `${tables}, made by a newer Tollgate, beside which this one may work`);
}

export function findingsOfServer(facts: ServerFacts): readonly Finding[] {
  const { version, roundTripMs, commitMs, connections, oldestSnapshotMs, clockAheadMs } = facts;
  const times = `a round trip takes ${milliseconds(roundTripMs)}, a commit ${commitMs === null ? "cannot be timed" : milliseconds(commitMs)}`;
  const isSlow = roundTripMs > roundTripSlowMs || (commitMs ?? 0) > commitSlowMs;
  const findings: Finding[] = [
    (isSlow ? warning : ok)(
      what,
      `PostgreSQL ${version ?? "of unknown version"}: ${times}${isSlow ? ": every request waits for two commits" : ""}`,
    ),
    ...durability(facts),
  ];
  if (facts.autovacuum === false) {
    findings.push(warning(what, "autovacuum is off: old versions of rows are never cleaned up"));
  }
  if (oldestSnapshotMs !== null && oldestSnapshotMs > snapshotLongMs) {
    const minutes = Math.round(oldestSnapshotMs / 60_000);
    const how = "look for it in pg_stat_activity; take backups from a standby";
    findings.push(
      warning(what, `a transaction has been open for ${minutes} minutes, and tables grow meanwhile: ${how}`),
    );
  }
  if (facts.isPooled) {
    findings.push(
      warning(
        what,
        "a pooler gives each transaction another session: add ?prepare=false to the address, unless the pooler supports prepared statements (PgBouncer 1.21 does)",
      ),
    );
  }
  if (!facts.keepsTimeouts) {
    findings.push(problem(what, "transaction timeouts do not work: a stalled gateway would stall the others"));
  }
  if (connections !== null && connections.most - connections.open < gatewayConnectionsMax) {
    const { open, most } = connections;
    findings.push(
      warning(
        what,
        `${open} of ${most} connections are open, a gateway needs ${gatewayConnectionsMax}: raise max_connections`,
      ),
    );
  }
  if (clockAheadMs !== null && Math.abs(clockAheadMs) > clockToleranceMs) {
    const seconds = Math.round(Math.abs(clockAheadMs) / 1_000);
    findings.push(
      warning(what, `its clock is ${seconds} s ${clockAheadMs > 0 ? "ahead of" : "behind"} this machine's`),
    );
  }
  return findings;
}

/** What survives a failure of its machine. */
function durability({ fsync, synchronousCommit, synchronousStandbyNames, standbys }: ServerFacts): readonly Finding[] {
  if (fsync === false) return [problem(what, "fsync is off: a power cut loses charges, or all of it")];
  if (synchronousCommit === "off") {
    return [problem(what, "synchronous_commit is off: a crash loses the latest charges; set it to on")];
  }
  const isWaitedFor = (synchronousStandbyNames ?? "") !== "" && synchronousCommit !== "local";
  const count = standbys?.length ?? 0;
  if (isWaitedFor && standbys !== null && !standbys.some(({ sync }) => sync !== "async")) {
    return [problem(what, "a commit waits for a synchronous standby, and none is connected: nothing can be written")];
  }
  if (isWaitedFor)
    return [ok(what, "each charge is on a synchronous standby before it is acknowledged: a failover loses nothing")];
  if (count > 0) {
    return [
      warning(
        what,
        `${count} standby, and none synchronous: a failover may lose the latest charges (synchronous_standby_names)`,
      ),
    ];
  }
  return [ok(what, "no standby: durability is that of its disk, and no request is admitted while it is down")];
}

export function findingsOfGateways(
  { connections }: Pick<ServerFacts, "connections">,
  gateways: readonly GatewayFacts[],
): readonly Finding[] {
  const alive = gateways.filter(({ isGone }) => !isGone);
  if (alive.length === 0) return [ok("gateways", "none is alive")];
  const findings = [ok("gateways", `${alive.length} alive: ${list(alive.map(({ gateway }) => gateway))}`)];
  const versions = new Set(alive.map(({ version }) => version));
  if (versions.size > 1) findings.push(warning("gateways", `run different versions: ${list([...versions])}`));
  const byDigest = Map.groupBy(alive, ({ configDigest }) => configDigest);
  if (byDigest.size > 1) {
    const groups = [...byDigest.values()].map((group) => list(group.map(({ gateway }) => gateway)));
    findings.push(
      warning(
        "gateways",
        `have different configurations of models, plans, nodes, limits or sign-up: ${groups.join(" against ")}`,
      ),
    );
  }
  const needed = (alive.length + 1) * gatewayConnectionsMax; // one more while they are replaced
  if (connections !== null && needed > connections.most) {
    findings.push(
      warning("gateways", `need ${needed} connections, and PostgreSQL has ${connections.most}: raise max_connections`),
    );
  }
  return findings;
}

/** `isOwn`: in the data folder, since the configuration names none. */
export type FilesPlace = Readonly<{ folder: string; isOwn: boolean }>;

export function findingsOfFiles(
  { folder, isOwn }: FilesPlace,
  newest: readonly string[],
  gateways: readonly Pick<GatewayFacts, "isGone">[],
): readonly Finding[] {
  const missing = newest.filter((id) => !existsSync(join(folder, id.slice(-2), id))).length;
  const remedy = "name a folder that all gateways share in [files] folder";
  if (missing > 0) {
    return [problem("files", `${missing} of the newest ${newest.length} files are not in ${folder}: ${remedy}`)];
  }
  const alive = gateways.filter(({ isGone }) => !isGone).length;
  if (isOwn && alive > 1) {
    return [warning("files", `${alive} gateways are alive, and this one keeps files in its data folder: ${remedy}`)];
  }
  return [ok("files", `are in ${folder}`)];
}

const milliseconds = (ms: number): string => `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
const list = (names: readonly string[]): string => [...new Set(names)].sort().join(", ");
