// What a server's books are, wherever they are kept.
import type { UsageQueries } from "../account/usage-queries.ts";
import type { Config } from "../config/config.ts";
import type { LiveCatalog } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { AccountId } from "../core/types.ts";
import type { FileStore } from "../files/file-store.ts";
import type { KeptActivity } from "../store/activity/kept-activity.ts";
import type { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import type { KeptResponses } from "../store/responses/kept-responses.ts";
import type { LedgerWatch } from "../store/verify/verify-watch.ts";
import type { Accounting, AccountingOptions } from "./accounting.ts";
import type { PostgresAccounting } from "./postgres-accounting.ts";

export type BooksParts = Readonly<{
  config: Config;
  catalog: LiveCatalog;
  clock: Clock;
  log: Log;
  port: number;
  onFatal(error: Error): void;
  onCommit: NonNullable<AccountingOptions["onCommit"]>;
}>;

export type OpenedBooks = Readonly<{
  accounting: Accounting;
  usage: UsageQueries;
  activity: KeptActivity;
  requestLog: KeptRequestLog;
  /** Writes what is kept of an account to a file; rejects where the ledger cannot be read. */
  writeExport(email: string, descriptor: number, withConversations: boolean): Promise<void>;
  /** Of the ledger; 0 where that is not a file. */
  databaseBytes(): number;
  /** Checks the ledger, once it began. */
  watch: Pick<LedgerWatch, "state" | "begin" | "plansChanged">;
  storedResponses: KeptResponses | null;
  /** Null: no files are taken. */
  files: FileStore | null;
  /** Removes the stored responses and files of an account, wherever they are; `forEver`: none of it are kept anymore. */
  eraseResponses(account: AccountId, forEver: boolean): Promise<void>;
  /** Whether a request is open at another gateway; null: there is none. */
  isOpenElsewhere: ((requestId: string) => Promise<boolean>) | null;
  sealingKey: Uint8Array;
  /** Shares the nodes' slots with other gateways from its `exchange` on; null: there are none. */
  shareNodes: PostgresAccounting["shareNodes"] | null;
  /** How this gateway does among others; null: there are none. */
  laneState: PostgresAccounting["laneState"] | null;
  adopt(config: Config): Promise<void>;
}>;
