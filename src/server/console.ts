// Assembles the console of a server; loaded with the first request to it.
import { abilitiesInWords } from "../nodes/abilities.ts";
import { loadInWords } from "../nodes/engine-load.ts";
import { version } from "../../package.json" with { type: "json" };
import { namesOf } from "../account/people/account-names.ts";
import { KnownBrowsers } from "../account/sign-in/known-browsers.ts";
import type { UsageQueries } from "../account/usage-queries.ts";
import type { Accounting } from "../books/accounting.ts";
import type { ActivityQueries } from "../core/activity.ts";
import type { RequestLogQueries } from "../core/request-log.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { isExpected } from "../core/expected-error.ts";
import { allows } from "../core/plans.ts";
import { addressesOf, type BackupSchedule, type Config } from "../config/config.ts";
import type { AccountData } from "../console/account-data.ts";
import type { OperatorNode } from "../console/api/nodes.ts";
import type { ConsoleWebhook } from "../console/api/server.ts";
import { assets } from "../console/assets.ts";
import { BrowserAddresses } from "../console/browser-addresses.ts";
import { openProvider } from "../console/oidc/open-provider.ts";
import { openConsole } from "../console/console.ts";
import type { ConsoleParts, NodesView } from "../console/parts.ts";
import type { Configuration } from "../console/server-care.ts";
import { openStripe } from "../console/stripe.ts";
import type { SiteFiles } from "../docs/page-shell.ts";
import type { LiveRequests, Site } from "../http/site.ts";
import type { Log } from "../core/log.ts";
import type { NodePool, NodeState } from "../nodes/queue/pool.ts";
import { type NodeLine, nodeLines } from "../nodes/queue/line-view.ts";
import type { WebhookState } from "../notices/deliveries.ts";
import type { Fleet, Work } from "../office/work.ts";
import type { Alerts } from "./alerts.ts";
import type { AccountExports } from "./kept/account-exports.ts";
import { backupsOf } from "./kept/backup-files.ts";
import { hadModels, type ModelReport, modelReport, seenNode } from "./fleet/model-report.ts";
import type { NodeCare } from "./fleet/node-care.ts";
import { lineReport } from "./fleet/line-report.ts";
import { lineAccountsShownMax, nodeReports } from "./fleet/node-report.ts";
import type { LazyNotices } from "./lazy-notices.ts";
import type { Reloader } from "./reload.ts";
import type { ServedModels } from "./fleet/served-models.ts";

export type ServingConsole = Site &
  Readonly<{
    /** What an operator should know of how browsers come here. */
    notices(): readonly string[];
  }>;

type Parts = Readonly<{
  requests: LiveRequests;
  accounting: Accounting;
  usage: UsageQueries;
  activity: ActivityQueries;
  requestLog: RequestLogQueries;
  files: ConsoleParts["conversations"];
  exports: Pick<AccountExports, "open">;
  catalog: Catalog;
  pool: NodePool;
  served: Pick<ServedModels, "areOwn">;
  nodeCare: NodeCare;
  notices: Pick<LazyNotices, "states" | "findings">;
  work: Work & Readonly<{ fleet: Fleet }>;
  reloader: Pick<Reloader, "loadedAt">;
  backupSchedule: () => BackupSchedule | null;
  alerts: Alerts;
  /** True where the built-in demo node answers. */
  demo: boolean;
  port: number;
  sealingKey: Uint8Array;
  clock: Clock;
  log: Log;
}>;

export async function makeConsole(config: Config, parts: Parts): Promise<ServingConsole> {
  const { requests } = parts;
  const { accounting, usage, activity, requestLog, files, exports, catalog, pool, served, nodeCare, work, reloader } =
    parts;
  const { backupSchedule, alerts, demo, port, notices, sealingKey, clock, log } = parts;
  const { office, passwords, sessions, reserved, everywhere } = accounting;
  const payment = config.stripe === null ? null : await openStripe(config.stripe);
  const nodes: NodesView = {
    states: async () => {
      const states = pool.states();
      const lines = nodeLines(pool.seen(), lineAccountsShownMax);
      const waiting = [...lines.values()].flatMap(({ most }) => most.map(({ account }) => account));
      const emailOf = await namesOf(office, waiting);
      const emailed = ({ account, waiting: requests }: NodeLine["most"][number]) => ({
        id: account,
        email: emailOf(account),
        waiting: requests,
      });
      return nodeReports(states, lines, catalog).map((report, at) =>
        nodeOf(report, states[at]!, (lines.get(report.name)?.most ?? []).map(emailed)),
      );
    },
    test: async (name) => {
      const tested = await orRefused(() => nodeCare.test(name));
      if ("refused" in tested) return tested;
      const { model, firstTokenMs, tookMs, problem } = tested;
      const first_token_ms = firstTokenMs === null ? null : Math.round(firstTokenMs);
      return { name, model, first_token_ms, took_ms: Math.round(tookMs), problem };
    },
    models: () => modelsOf(modelReport(catalog, served.areOwn, pool.states().map(seenNode)), catalog, pool),
    line: () => lineReport(pool, office, config.databaseUrl === null ? null : config.gateway),
    get waiting() {
      return pool.waiting;
    },
    had: () => hadModels(catalog, pool.states().map(seenNode)),
    takes: (modelId: string) => pool.takes(modelId),
  };
  const accountData: AccountData = { export: (account, asking) => exports.open(account, asking) };
  const addresses = new BrowserAddresses(config.addressHeader, log);
  const configuration: Configuration = {
    file: config.file,
    gateway: config.databaseUrl === null ? null : config.gateway,
    get loadedAt() {
      return reloader.loadedAt;
    },
  };
  const backups = backupsOf(config, backupSchedule, work);
  const site = openConsole(
    {
      office,
      passwords,
      work,
      sessions,
      usage,
      activity,
      requestLog,
      conversations: files,
      reserved,
      everywhere,
      catalog,
      nodes,
      accountData,
      configuration,
      alerts,
      webhooks: { list: () => notices.states().map(webhookOf) },
      backups,
      payment,
      assets,
      clock,
      log,
      baseUrl: addressesOf(config, port).baseUrl,
      samplesUrl: config.baseUrl,
      version,
      demo,
      signUp: config.signUp,
      passwordSignIn: config.passwords,
      accountDeletion: config.accountDeletion,
      oidc:
        config.oidc === null ? null : openProvider(config.oidc, addressesOf(config, port).baseUrl, sealingKey, clock),
      addresses,
      machineTokens: { lifeMs: config.machineTokenMs, secret: sealingKey },
      browsers: new KnownBrowsers(sealingKey),
    },
    requests,
  );
  return { ...site, notices: () => (addresses.notice === null ? [] : [addresses.notice]) };
}

/** Reports what an operator can put right. */
async function orRefused<Done>(act: () => Promise<Done>): Promise<Done | Readonly<{ refused: string }>> {
  try {
    return await act();
  } catch (error) {
    if (!isExpected(error)) throw error;
    return { refused: (error as Error).message };
  }
}

const webhookOf = ({ config, lastSentAt, ...state }: WebhookState): ConsoleWebhook => ({
  name: config.name,
  host: config.host,
  format: config.format,
  signed: config.secret !== null,
  events: [...config.events],
  ...state,
  last_sent_at: lastSentAt === null ? null : new Date(lastSentAt).toISOString(),
});

/** With the plans that may use each: those that it names, of those that do not name others. */
const modelsOf = (
  { served }: ModelReport,
  { models, plans }: Pick<Catalog, "models" | "plans">,
  pool: Pick<NodePool, "takes">,
): ReturnType<NodesView["models"]> =>
  served.map(({ context, node_model: _, images: __, ...report }) => {
    const allowing = Object.values(plans).filter((plan) => allows(plan, models.get(report.id)!));
    return {
      ...report,
      aliases: [...report.aliases],
      nodes: [...report.nodes],
      below: [...report.below],
      up: pool.takes(report.id),
      context_tokens: context,
      plans: allowing.length === Object.keys(plans).length ? null : allowing.map(({ name }) => name),
    };
  });

const nodeOf = (
  report: ReturnType<typeof nodeReports>[number],
  { load, slots, quickness: { firstPieceP50, firstPieceP99, tokensPerSecond } }: NodeState,
  most: OperatorNode["line"]["most"],
): OperatorNode => {
  const { context, abilities, waiting, waiting_accounts, waiting_since, ...rest } = report;
  const { waiting_by_priority: _, expected_first_token_ms: __, ...facts } = rest;
  return {
    ...facts,
    line: { waiting, accounts: waiting_accounts, since: waiting_since, most },
    slots,
    load: load === null ? null : loadInWords(load),
    context_tokens: context,
    abilities: abilities.map((model) => ({
      name: model.name,
      context_tokens: model.contextTokens,
      words: abilitiesInWords(model),
    })),
    below: [...report.below],
    first_token_p50_ms: firstPieceP50,
    first_token_p99_ms: firstPieceP99,
    tokens_per_second: tokensPerSecond,
    models: { ...report.models },
  };
};

/** Where its fonts and its icon are, for pages beside it: their names hold a hash of their content. */
export async function siteFiles(): Promise<SiteFiles | null> {
  const paths = [...(await assets()).keys()];
  const [textFont, codeFont, icon] = [/\/inter-\w+\.woff2$/, /\/jetbrains-mono-\w+\.woff2$/, /\/icon-\w+\.svg$/].map(
    (name) => paths.find((path) => name.test(path)),
  );
  if (textFont === undefined || codeFont === undefined || icon === undefined) return null;
  return { textFont, codeFont, icon };
}
