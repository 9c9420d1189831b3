// Assembles the relays of a server that has several threads, with what they share with the main thread.
import { join } from "node:path";
import type { Accounting } from "../books/accounting.ts";
import { distinctModels, type LiveCatalog } from "../core/catalog.ts";
import type { ActivityRow } from "../core/activity.ts";
import type { FailedBatch } from "../core/request-log.ts";
import type { Clock } from "../core/clock.ts";
import { type Config, splitConfig } from "../config/config.ts";
import type { StoredResponses } from "../dialects/stored-responses.ts";
import { checkPortFree } from "../http/free-port.ts";
import type { Counted } from "../http/metrics/metric.ts";
import { Metrics } from "../http/metrics/metrics.ts";
import type { OtherThreads } from "../http/other-threads.ts";
import type { Log } from "../core/log.ts";
import type { NodePool } from "../nodes/queue/pool.ts";
import type { FollowedNodes } from "../threads/followed-nodes.ts";
import type { RelayRules } from "../threads/messages.ts";
import { type LastWords, Relays } from "../threads/relays.ts";

export type ServingRelays = OtherThreads &
  Readonly<{
    /** Where the complete server listens, for them alone. */
    unix: string;
    /** Resolves when they listen; rejects with what the system says about the address. */
    listen(): Promise<void>;
    /** Resolves when all go by what concerns them of another configuration, or of other models with the same one. */
    adopt(config?: Config): Promise<void>;
    /** What of the charts they counted since it was last asked for. */
    activity(): Promise<readonly ActivityRow[]>;
    failed(): Promise<readonly FailedBatch[]>;
    /** Resolves when they take no new work; `stopped` when they have ended, after `graceMs` and a moment at most. */
    stop(graceMs: number): Promise<Readonly<{ stopped: Promise<unknown> }>>;
  }>;

type Parts = Readonly<{
  accounting: Pick<Accounting, "keys" | "admission">;
  catalog: LiveCatalog;
  pool: NodePool;
  storedResponses: StoredResponses | null;
  port: number;
  sealingKey: Uint8Array;
  nodes: FollowedNodes;
  secrets: () => readonly string[];
  clock: Clock;
  log: Log;
  onFatal(error: Error): void;
  onLastWords(last: LastWords): void;
}>;

export function startRelays(config: Config, parts: Parts): ServingRelays {
  const { accounting, catalog, pool, storedResponses, port, sealingKey, nodes, secrets, clock, log } = parts;
  const { onFatal, onLastWords } = parts;
  const { keys, admission } = accounting;
  const unix = join(config.dataFolder, "relays.sock");
  const rulesOf = (configured: Config): RelayRules => ({
    models: distinctModels(catalog),
    plans: catalog.plans,
    creditPacksTokens: catalog.creditPacksTokens,
    options: splitConfig(configured).live,
    secrets: secrets(),
  });
  let adopted = config;
  const relays = new Relays(
    config.threads,
    { fixed: splitConfig(config).fixed, port, unix, sealingKey, rules: rulesOf(config) },
    {
      keys,
      admission,
      models: () => catalog.models,
      pool,
      storedResponses,
      nodes,
      clock,
      log,
      onFatal,
      onLastWords,
    },
  );
  keys.onVoid = () => relays.voidKeys();
  return {
    unix,
    async listen() {
      checkPortFree(config.host, port);
      await relays.listen();
    },
    get openRequests() {
      return relays.openRequests;
    },
    openRequestsOf: (account) => relays.openRequestsOf(account),
    get heldEnds() {
      return relays.heldEnds;
    },
    async withTheirs(own) {
      const all = new Metrics();
      all.addCounted(own.counted());
      for (const counted of await relays.reports("metrics")) all.addCounted(counted as readonly Counted[]);
      return all;
    },
    activity: async () => (await relays.reports("activity")).flat() as ActivityRow[],
    failed: async () => (await relays.reports("failed")).flat() as FailedBatch[],
    adopt(next = adopted) {
      adopted = next;
      return relays.adopt(rulesOf(next));
    },
    stop: (graceMs) => relays.stop(graceMs),
  };
}
