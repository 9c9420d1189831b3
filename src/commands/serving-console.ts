// The console of a server: what it works with, put together.
import { version } from "../../package.json" with { type: "json" };
import type { Accounting } from "../accounting.ts";
import type { Catalog } from "../catalog.ts";
import type { Clock } from "../clock.ts";
import { addressesOf, type Config } from "../config.ts";
import type { OperatorNode } from "../console/api.ts";
import { assets } from "../console/assets.ts";
import { openConsole } from "../console/console.ts";
import { openStripe } from "../console/stripe.ts";
import type { SiteFiles } from "../docs/reference-page.ts";
import type { LiveRequests, Site } from "../http/site.ts";
import type { Log } from "../log.ts";
import type { NodePool, NodeState } from "../nodes/pool.ts";
import { UsageFile } from "../store/usage-file.ts";

export type ServingConsole = Readonly<{
  openSite(requests: LiveRequests): Site;
  /** Where its fonts and its icon are, for pages beside it. */
  siteFiles(): Promise<SiteFiles | null>;
  /** Lets go of its files. */
  close(): Promise<void>;
}>;

type Parts = Readonly<{
  accounting: Accounting;
  catalog: Catalog;
  pool: NodePool;
  /** True where the built-in demo node answers. */
  demo: boolean;
  port: number;
  clock: Clock;
  log: Log;
}>;

export async function makeConsole(config: Config, parts: Parts): Promise<ServingConsole> {
  const { accounting, catalog, pool, demo, port, clock, log } = parts;
  const { accounts, sessions, purchases, purchaseRecords, auditLog, ledger } = accounting;
  const payment = config.stripe === null ? null : await openStripe(config.stripe);
  const usage = new UsageFile(config.dataFolder, accounting.databaseFile, log);
  const nodes = {
    states: () => pool.states().map(nodeOf),
    get waiting() {
      return pool.waiting;
    },
    serves: (modelId: string) => pool.serves(modelId),
  };
  return {
    openSite: (requests) =>
      openConsole(
        {
          accounts,
          sessions,
          purchases,
          purchaseRecords,
          auditLog,
          usage,
          reserved: ledger,
          catalog,
          nodes,
          payment,
          assets,
          clock,
          log,
          baseUrl: addressesOf(config, port).baseUrl,
          version,
          demo,
          ...config.console,
        },
        requests,
      ),
    siteFiles: async () => siteFilesAmong([...(await assets()).keys()]),
    close: () => usage.close(),
  };
}

const nodeOf = ({ name, health, engine, busy, slots, models, quickness }: NodeState): OperatorNode => ({
  name,
  health,
  engine: engine.kind,
  busy,
  slots,
  first_token_ms: quickness.firstPieceMs,
  tokens_per_second: quickness.tokensPerSecond,
  models: { ...models },
});

/** Their names hold a hash of their content. */
function siteFilesAmong(paths: readonly string[]): SiteFiles | null {
  const [textFont, codeFont, icon] = [/\/inter-\w+\.woff2$/, /\/jetbrains-mono-\w+\.woff2$/, /\/icon-\w+\.svg$/].map(
    (name) => paths.find((path) => name.test(path)),
  );
  if (textFont === undefined || codeFont === undefined || icon === undefined) return null;
  return { textFont, codeFont, icon };
}
