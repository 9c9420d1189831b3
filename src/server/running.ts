// A running server as the options see it: where each change of a live one is put in force. See `config/options.ts`.
import type { Accounting } from "../books/accounting.ts";
import type { LiveValues, Running } from "../config/running.ts";
import type { NodePool } from "../nodes/queue/pool.ts";
import { dayMs } from "../core/units.ts";
import type { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import type { FileStore } from "../files/file-store.ts";
import type { KeptResponses } from "../store/responses/kept-responses.ts";
import type { LedgerWatch } from "../store/verify/verify-watch.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import type { ServingNodes } from "./fleet/nodes.ts";
import type { Mailing } from "./mailing.ts";
import type { LazyNotices } from "./lazy-notices.ts";
import type { OwnedTools } from "./owned-tools.ts";
import { type ServedModels, textOf } from "./fleet/served-models.ts";
import type { ScheduledBackups } from "./kept/scheduled-backups.ts";

type Parts = Readonly<{
  values: LiveValues;
  accounting: Pick<Accounting, "admission" | "retain">;
  requestLog: Pick<KeptRequestLog, "keep">;
  watch: Pick<LedgerWatch, "plansChanged">;
  storedResponses: Pick<KeptResponses, "limit"> | null;
  files: Pick<FileStore, "limits"> | null;
  serving: Pick<ServingNodes, "replace">;
  pool: NodePool;
  ownedTools: OwnedTools;
  backups: Pick<ScheduledBackups, "follow">;
  notices: Pick<LazyNotices, "configure">;
  mailing: Pick<Mailing, "follow">;
  served: ServedModels;
  tracing: Tracing;
}>;

export const runningOf = (parts: Parts): Running => {
  const { values, accounting, requestLog, watch, storedResponses, files, serving, pool } = parts;
  const { ownedTools, backups, notices, mailing, served, tracing } = parts;
  return {
    values,
    useNodes(configs) {
      const { nodes, arrivals } = serving.replace(configs);
      pool.reconfigure(nodes, undefined, arrivals);
    },
    waitAtMost(ms) {
      accounting.admission.line.maxWaitMs = ms;
      pool.waitAtMost(ms);
    },
    sharePrefixCaches: (shares) => pool.sharePrefixCaches(shares),
    useSearch: (search) => ownedTools.useSearch(search),
    useMcpServers: (servers) => ownedTools.useServers(servers),
    limitInputRequests: (perMinute) => void (accounting.admission.inputRequestsPerMinute = perMinute),
    limitFiles(limits) {
      if (files !== null) files.limits = limits;
    },
    limitStoredResponses: (limits) => storedResponses?.limit(limits),
    trace: (telemetry) => tracing.follow({ telemetry }),
    keepUsage: (days) => accounting.retain(days),
    keepFailed: (days) => requestLog.keep(days * dayMs),
    backUp: (schedule) => backups.follow(schedule),
    useWebhooks: (webhooks) => notices.configure(webhooks),
    useMail: (mail) => mailing.follow(mail),
    offer(offered) {
      served.offer(offered);
      watch.plansChanged();
    },
    useOutputBudget: (tokens, next) => served.useBudget(tokens, next),
    showListedModels: (shows) => served.showListed(shows),
    isOtherCatalog: (next) => textOf(served.catalog) !== textOf(next),
  };
};
