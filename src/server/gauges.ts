// What a server's parts tell Prometheus at each scrape, beside what is counted.
import type { Accounting } from "../books/accounting.ts";
import type { Gauge } from "../http/metrics/metric.ts";
import type { EngineLoad } from "../nodes/engine-load.ts";
import type { SeenLine } from "../nodes/queue/line-view.ts";
import type { NodePool } from "../nodes/queue/pool.ts";
import { mostFirst, workOf } from "../nodes/queue/served-work.ts";
import type { LaneState } from "../books/postgres-accounting.ts";
import type { Share } from "../store/postgres/shares.ts";
import type { KeptResponses } from "../store/responses/kept-responses.ts";
import type { LedgerState } from "../store/verify/ledger-report.ts";
import type { LedgerWatch } from "../store/verify/verify-watch.ts";
import type { LazyNotices } from "./lazy-notices.ts";
import type { ScheduledBackups } from "./kept/scheduled-backups.ts";

export type GaugedParts = Readonly<{
  accounting: Pick<Accounting, "journal" | "admission">;
  /** Null, and no shares: the ledger is in the data folder. */
  laneState: (() => LaneState) | null;
  nodeShares(): ReadonlyMap<string, Share>;
  watch: Pick<LedgerWatch, "state">;
  storedResponses: Pick<KeptResponses, "waitingBytes"> | null;
  pool: Pick<NodePool, "waiting" | "states" | "cacheCounts" | "seen">;
  backups: Pick<ScheduledBackups, "lastMadeAt">;
  notices: Pick<LazyNotices, "states">;
}>;

export function* gaugesOf(parts: GaugedParts): Generator<Gauge> {
  const { accounting, watch, storedResponses, pool, backups, notices } = parts;
  const { journal, admission } = accounting;
  const { lastMadeAt } = backups;
  yield* ledgerGauges(watch.state);
  if (parts.laneState !== null) yield* laneGauges(parts.laneState());
  yield* shareGauges(parts.nodeShares());
  if (lastMadeAt !== null) {
    yield {
      name: "tollgate_backup_timestamp_seconds",
      help: "Time of the last scheduled backup.",
      value: lastMadeAt / 1000,
    };
  }
  for (const { config, sent, failed, dropped, waiting } of notices.states()) {
    const of = (result: string) => ({ webhook: config.name, result });
    const help = "Notices to webhooks: sent, failed attempts, and given up.";
    for (const [result, value] of Object.entries({ sent, failed, dropped })) {
      yield { name: "tollgate_notices_total", help, value, labels: of(result), type: "counter" };
    }
    yield {
      name: "tollgate_notices_waiting",
      help: "Notices waiting for delivery to a webhook.",
      value: waiting,
      labels: { webhook: config.name },
    };
  }
  yield { name: "tollgate_queue_waiting", help: "Requests waiting for a node.", value: pool.waiting };
  yield {
    name: "tollgate_balance_waiting",
    help: "Requests waiting until others of their account are charged.",
    value: admission.line.length,
  };
  yield { name: "tollgate_journal_pending", help: "Journal entries on their way to disk.", value: journal.pending };
  if (storedResponses !== null) {
    yield {
      name: "tollgate_stored_responses_waiting_bytes",
      help: "Stored responses on their way to disk.",
      value: storedResponses.waitingBytes,
    };
  }
  yield* cacheGauges(pool.cacheCounts);
  yield* workGauges(pool.seen());
  for (const { name: node, health, since, lastError, drainedAt, busy, slots, load } of pool.states()) {
    const labels = { node };
    for (const each of ["well", "cooling", "down", "starting"] as const) {
      yield {
        name: "tollgate_node_health",
        help: "1 for the node's health: well, cooling (it reported that it is busy), down or starting.",
        value: each === health ? 1 : 0,
        labels: { node, health: each },
      };
    }
    yield {
      name: "tollgate_node_health_since_timestamp_seconds",
      help: "Time at which the node's health last changed.",
      value: since / 1000,
      labels,
    };
    if (lastError !== null) {
      yield {
        name: "tollgate_node_last_error_timestamp_seconds",
        help: "Time of the node's last error that no client caused; the log has the error.",
        value: lastError.at / 1000,
        labels,
      };
    }
    yield {
      name: "tollgate_node_well",
      help: "1 if the node takes requests.",
      value: health === "well" ? 1 : 0,
      labels,
    };
    yield {
      name: "tollgate_node_drained",
      help: "1 if an operator drained the node.",
      value: drainedAt === null ? 0 : 1,
      labels,
    };
    yield { name: "tollgate_node_busy", help: "Requests running on the node.", value: busy, labels };
    yield { name: "tollgate_node_slots", help: "Requests that the node may run at once.", value: slots, labels };
    if (load !== null) yield* loadGauges(load, labels);
  }
}

function* cacheGauges({ expectedTokens, reportedTokens }: NodePool["cacheCounts"]): Generator<Gauge> {
  for (const [name, help, value] of [
    [
      "expected",
      "Input tokens expected in nodes' prompt caches, of answers whose node reports cached tokens.",
      expectedTokens,
    ],
    ["reported", "Input tokens of the same answers that their nodes reported as cached.", reportedTokens],
  ] as const) {
    yield { name: `tollgate_prefix_cache_${name}_tokens_total`, help, value, type: "counter" };
  }
}

/** Accounts that metrics name: those with the most work of the last hour. */
const accountsMax = 10;

function* workGauges({ served, now }: Pick<SeenLine, "served" | "now">): Generator<Gauge> {
  for (const [priority, value] of Object.entries(served.work)) {
    const help = "Work that nodes have done: an input token that was read counts 1, an output token 4.";
    yield { name: "tollgate_work_total", help, value, labels: { priority }, type: "counter" };
  }
  const rows = mostFirst([served.accounts], now);
  const all = rows.reduce((sum, row) => sum + workOf(row), 0);
  let others = 1;
  for (const row of rows.filter(({ key }) => key !== null).slice(0, accountsMax)) {
    const value = all === 0 ? 0 : workOf(row) / all;
    others -= value;
    yield { ...accountShare, value, labels: { account: String(row.key) } };
  }
  if (all > 0 && rows.length > accountsMax) yield { ...accountShare, value: others, labels: { account: "others" } };
}

const accountShare = {
  name: "tollgate_account_work_ratio",
  help: "Part of the last hour's work, of the accounts with the most of it.",
};

function* laneGauges({ counts, given, locked }: LaneState): Generator<Gauge> {
  const counters: readonly (readonly [name: string, help: string, value: number])[] = [
    ["batches", "Batches that this gateway committed.", counts.batches],
    ["operations", "Request operations in committed batches.", counts.operations],
    ["conflicts", "Batch attempts repeated because other sessions held the locks.", counts.conflicts],
    ["unknown", "Batch attempts whose outcome was unknown at first.", counts.unknown],
    ["read_back", "Batches of unknown outcome that turned out to be committed.", counts.readBack],
    ["gone", "Times that others, or a failover, declared this gateway dead.", counts.gone],
    ["lost_commits", "Times that the database lost acknowledged commits.", counts.lostCommits],
    ["void", "Charges not made, because their hold had been released and the balance was too small.", counts.void],
    ["cut", "Clients cut off because the outcome of their charge was unknown.", counts.cut],
    ["orphans", "Released holds that had no open request.", counts.orphans],
    ["lanes_given_up", "Times that this gateway found another one dead.", given.lanes],
    ["holds_given_back", "Holds of dead gateways that this one released.", given.holds],
  ];
  for (const [name, help, value] of counters)
    yield { name: `tollgate_lane_${name}_total`, help, value, type: "counter" };
  for (const { account, forMs, by } of locked) {
    yield {
      name: "tollgate_lane_locked_seconds",
      help: "Time that another database session has locked an account, so that its requests wait.",
      value: forMs / 1000,
      labels: {
        account: String(account),
        process: by.map(({ pid }) => pid).join(","),
        application: by.map(({ application }) => application ?? "").join(","),
      },
    };
  }
}

function* shareGauges(shares: ReadonlyMap<string, Share>): Generator<Gauge> {
  for (const [node, { granted, target }] of shares) {
    const labels = { node };
    yield {
      name: "tollgate_node_share_granted",
      help: "Slots of the node that belong to this gateway.",
      value: granted,
      labels,
    };
    yield { name: "tollgate_node_share_target", help: "Slots of the node due to this gateway.", value: target, labels };
  }
}

/** Where slots follow it. */
function* loadGauges({ running, waiting, cacheUse }: EngineLoad, labels: Readonly<{ node: string }>): Generator<Gauge> {
  const of = "by its last report, from all its clients";
  yield { name: "tollgate_node_engine_running", help: `Requests that the engine runs, ${of}.`, value: running, labels };
  yield {
    name: "tollgate_node_engine_waiting",
    help: `Requests that wait inside the engine, ${of}.`,
    value: waiting,
    labels,
  };
  if (cacheUse === null) return;
  yield {
    name: "tollgate_node_engine_cache_ratio",
    help: "Share of the engine's cache that running requests use.",
    value: cacheUse,
    labels,
  };
}

/** Times are left out until they are known: 0 would be a check in 1970. */
function* ledgerGauges({ violations, checkedAt, durationMs, wholePassAt }: LedgerState): Generator<Gauge> {
  yield {
    name: "tollgate_ledger_violations",
    help: "Contradictions in the ledger; the log names them.",
    value: violations.length,
  };
  if (checkedAt === null || durationMs === null) return;
  yield {
    name: "tollgate_ledger_check_timestamp_seconds",
    help: "Time of the ledger's last check, which runs once a minute.",
    value: checkedAt / 1000,
  };
  yield {
    name: "tollgate_ledger_check_duration_seconds",
    help: "Duration of that check, mostly spent resting.",
    value: durationMs / 1000,
  };
  if (wholePassAt === null) return;
  yield {
    name: "tollgate_ledger_whole_pass_timestamp_seconds",
    help: "Time at which the check last completed its walk over all accounts.",
    value: wholePassAt / 1000,
  };
}
