// Assembles the console of a server.
import { abilitiesInWords } from "../nodes/abilities.ts";
import { loadInWords } from "../nodes/engine-load.ts";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { KnownBrowsers } from "../account/known-browsers.ts";
import type { Accounting } from "../accounting.ts";
import type { ActivityQueries } from "../core/activity.ts";
import type { RequestLogQueries } from "../core/request-log.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { addressesOf, type BackupSchedule, type Config } from "../config/config.ts";
import type { AccountData } from "../console/account-data.ts";
import type { OperatorNode } from "../console/api.ts";
import { assets } from "../console/assets.ts";
import { BrowserAddresses } from "../console/browser-addresses.ts";
import { openProvider } from "../console/oidc/open-provider.ts";
import { openConsole } from "../console/console.ts";
import type { BackupFile, Backups, Configuration } from "../console/server-care.ts";
import { openStripe } from "../console/stripe.ts";
import type { SiteFiles } from "../docs/page-shell.ts";
import type { LiveRequests, Site } from "../http/site.ts";
import type { Log } from "../core/log.ts";
import type { NodePool, NodeState } from "../nodes/queue/pool.ts";
import { backupsName } from "../store/folder/data-folder.ts";
import { UsageFile } from "../store/usage/usage-file.ts";
import { AccountExports } from "./account-exports.ts";
import { nodeReports } from "./node-lines.ts";
import { eraseAccount, type Work } from "./operations.ts";
import type { Reloader } from "./reload.ts";

export type ServingConsole = Readonly<{
  openSite(requests: LiveRequests): Site;
  /** Where its fonts and its icon are, for pages beside it. */
  siteFiles(): Promise<SiteFiles | null>;
  /** What an operator should know of how browsers come here. */
  notices(): readonly string[];
  /** Lets go of its files. */
  close(): Promise<void>;
}>;

type Parts = Readonly<{
  accounting: Accounting;
  activity: ActivityQueries;
  requestLog: RequestLogQueries;
  catalog: Catalog;
  pool: NodePool;
  work: Work;
  reloader: Reloader;
  /** The one in force. */
  backupSchedule: () => BackupSchedule | null;
  /** True where the built-in demo node answers. */
  demo: boolean;
  port: number;
  /** The data folder's own. */
  sealingKey: Uint8Array;
  clock: Clock;
  log: Log;
}>;

export async function makeConsole(config: Config, parts: Parts): Promise<ServingConsole> {
  const { accounting, activity, requestLog, catalog, pool, work, reloader, backupSchedule, demo, port, sealingKey } =
    parts;
  const { clock, log } = parts;
  const { accounts, accountKeys, sessions, purchases, purchaseRecords, auditLog, links, identities, ledger } =
    accounting;
  const payment = config.stripe === null ? null : await openStripe(config.stripe);
  const usage = new UsageFile(config.dataFolder, accounting.databaseFile, log);
  const nodes = {
    states: () => {
      const states = pool.states();
      return nodeReports(states, catalog).map((report, at) => nodeOf(report, states[at]!));
    },
    get waiting() {
      return pool.waiting;
    },
    serves: (modelId: string) => pool.serves(modelId),
    takes: (modelId: string) => pool.takes(modelId),
  };
  const exports = new AccountExports(config.dataFolder, accounting.databaseFile, clock);
  const accountData: AccountData = {
    export: (account, asking) => exports.open(account, asking),
    erase: async ({ email }, inSameCommit) => (await eraseAccount(work, email, inSameCommit)).name,
  };
  const addresses = new BrowserAddresses(config.addressHeader, log);
  const configuration: Configuration = {
    file: config.file,
    get loadedAt() {
      return reloader.loadedAt;
    },
    reload: () => reloader.applyAndLog(),
  };
  return {
    openSite: (requests) =>
      openConsole(
        {
          accounts,
          accountKeys,
          sessions,
          purchases,
          purchaseRecords,
          auditLog,
          usage,
          activity,
          requestLog,
          reserved: ledger,
          catalog,
          nodes,
          accountData,
          configuration,
          backups: backupsIn(resolve(config.dataFolder, backupsName), backupSchedule, work),
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
          oidc:
            config.oidc === null
              ? null
              : openProvider(config.oidc, addressesOf(config, port).baseUrl, sealingKey, clock),
          links,
          identities,
          addresses,
          browsers: new KnownBrowsers(sealingKey),
        },
        requests,
      ),
    siteFiles: async () => siteFilesAmong([...(await assets()).keys()]),
    notices: () => (addresses.notice === null ? [] : [addresses.notice]),
    close: () => usage.close(),
  };
}

/** What went wrong is the operator's to see. */
const backupsIn = (
  folder: string,
  schedule: () => BackupSchedule | null,
  { backup }: Pick<Work, "backup">,
): Backups => ({
  folder,
  get schedule() {
    return schedule();
  },
  list: (max) => filesIn(folder).slice(0, max),
  async make(name) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const { bytes } = await backup(join(folder, name), () => {}); // no command waits for lines about its progress
      return { bytes };
    } catch (error) {
      return { failed: error instanceof Error ? error.message : String(error) };
    }
  },
});

/** Backups in a folder, the newest first. */
function filesIn(folder: string): BackupFile[] {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  const files = readdirSync(folder).flatMap((name) => {
    const found = name.endsWith(".db") ? statSync(join(folder, name), { throwIfNoEntry: false }) : undefined;
    return found?.isFile() === true ? { name, bytes: found.size, madeAt: Math.floor(found.mtimeMs) } : [];
  });
  return files.toSorted((one, other) => other.madeAt - one.madeAt);
}

const nodeOf = (
  { context, abilities, ...report }: ReturnType<typeof nodeReports>[number],
  { load, slots, quickness: { firstPieceMs, tokensPerSecond } }: NodeState,
): OperatorNode => ({
  ...report,
  slots,
  load: load === null ? null : loadInWords(load),
  context_tokens: context,
  abilities: abilities.map((model) => ({
    name: model.name,
    context_tokens: model.contextTokens,
    words: abilitiesInWords(model),
  })),
  below: [...report.below],
  first_token_ms: firstPieceMs,
  tokens_per_second: tokensPerSecond,
  models: { ...report.models },
});

/** Their names hold a hash of their content. */
function siteFilesAmong(paths: readonly string[]): SiteFiles | null {
  const [textFont, codeFont, icon] = [/\/inter-\w+\.woff2$/, /\/jetbrains-mono-\w+\.woff2$/, /\/icon-\w+\.svg$/].map(
    (name) => paths.find((path) => name.test(path)),
  );
  if (textFont === undefined || codeFont === undefined || icon === undefined) return null;
  return { textFont, codeFont, icon };
}
