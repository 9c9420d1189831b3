// Assembles the accounting on a PostgreSQL server: what requests ask goes through the gateway's lane, all else is a transaction
// of its own.
import type { Accounting, AccountingOptions } from "./accounting.ts";
import { Passwords } from "../account/sign-in/passwords.ts";
import { CommandError } from "../core/expected-error.ts";
import { keyHintMs } from "../store/postgres/limits.ts";
import type { Log } from "../core/log.ts";
import type { Ms } from "../core/types.ts";
import { allGateways } from "../store/postgres/all-gateways.ts";
import { PostgresBooks } from "../store/postgres/books.ts";
import { Database } from "../store/postgres/database.ts";
import type { LaneCounts } from "../store/postgres/lane.ts";
import { type LockedAccount, lockedInWords } from "../store/postgres/locked-accounts.ts";
import { NodeShares, type SharingPool } from "../store/postgres/node-shares.ts";
import { PostgresOffice, PostgresSessions } from "../store/postgres/office.ts";
import { systemPace } from "../store/postgres/pace.ts";
import { inOneSentence, openServer } from "../store/postgres/start.ts";
import { leaseOn } from "../store/postgres/jobs.ts";
import { tellOnceOn } from "../store/postgres/told-once.ts";
import { SharedTries } from "../store/postgres/shared-tries.ts";
import { noBackup } from "../store/postgres/no-backup.ts";
import { Upkeep } from "../store/postgres/upkeep.ts";
import { PostgresWatch, verifyBooks } from "../store/postgres/verify.ts";
import { boundsOf } from "../store/verify/quota-bounds.ts";

export type PostgresAccountingOptions = Pick<AccountingOptions, "catalog" | "siteUrl" | "clock" | "onCommit"> &
  Readonly<{
    url: string;
    /** Its name among the gateways of the database. */
    gateway: string;
    version: string;
    gatherMs: Ms;
    maxWaitMs: Ms;
    inputRequestsPerMinute: number;
    /** Of what all gateways should have alike. */
    configDigest: string;
    usageKeepDays: number | null;
    log: Log;
  }>;

/** What the console and commands need, on a connection of their own; no request is served. */
export type OpenDatabase = ReturnType<typeof officeOn> & Readonly<{ database: Database }> & AsyncDisposable;

/** Throws CommandError, in one sentence, where the database cannot be used. */
export async function openPostgresOffice({
  url,
  catalog,
  clock,
}: Pick<PostgresAccountingOptions, "url" | "catalog" | "clock">): Promise<OpenDatabase> {
  const database = new Database(await openServer(url));
  return { ...officeOn(database, { catalog, clock }), database, [Symbol.asyncDispose]: () => database.close() };
}

export async function openPostgresAccounting(options: PostgresAccountingOptions): Promise<PostgresAccounting> {
  const { url, gateway, version, catalog, siteUrl, clock, log, gatherMs, maxWaitMs, onCommit } = options;
  const { inputRequestsPerMinute, configDigest, usageKeepDays } = options;
  const server = await openServer(url);
  const database = new Database(server);
  const books = await inOneSentence(url, () =>
    PostgresBooks.open({
      server,
      gateway,
      version,
      configDigest,
      log,
      gatherMs,
      rules: { plans: catalog.plans, siteUrl, maxWaitMs, inputRequestsPerMinute },
      ...(onCommit === undefined ? {} : { onCommit }),
    }),
  );
  database.outdated = () => books.gone.outdated;
  const keys = {
    principal: (key: string) => books.principal(key),
    principalNow: (key: string) => books.principalNow(key),
    ofHash: (keyHash: string) => books.ofHash(keyHash),
    onVoid: () => {},
  };
  const holder = `${gateway}/${crypto.randomUUID()}`;
  const tries = new SharedTries(database, holder);
  const upkeep = new Upkeep({ database, holder, keepDays: usageKeepDays, clock, log });
  let watched: PostgresWatch | null = null;
  // Other gateways revoke keys and change their limits: relays find out by asking again.
  const looks = setInterval(() => keys.onVoid(), keyHintMs);
  return {
    ...officeOn(database, { catalog, clock }),
    database,
    books,
    keys,
    admission: books,
    searches: books.searches,
    planOf: (account) => books.planOf(account),
    reserved: {
      get heldTokens() {
        return books.lane.heldTokens;
      },
    },
    everywhere: {
      ...allGateways(database),
      triesElsewhere: () => tries.elsewhere(),
      tellTry: (event) => tries.tell(event),
    },
    memory: null,
    finds: { batches: books, tellOnce: tellOnceOn(database), lease: leaseOn(database, holder) },
    journal: {
      get pending() {
        return books.lane.pending;
      },
    },
    get unwritable() {
      return books.unwritable;
    },
    diskFreeBytes: null,
    laneState: () => ({
      counts: books.lane.counts,
      given: books.gone.counts,
      locked: books.lane.locked,
      hindrances: books.lane.locked.map(lockedInWords),
      unready: books.unready,
    }),
    backup: () => Promise.reject(new CommandError(noBackup)),
    retain: (keepDays) => upkeep.retain(keepDays),
    watch() {
      watched = new PostgresWatch({ database, plans: catalog.plans, holder, clock, log });
      return watched;
    },
    shareNodes: (pool) => new NodeShares({ server, pool, lane: () => books.lane.id, pace: systemPace, log }),
    adopt: (digest) => books.adopt(digest),
    async close() {
      clearInterval(looks);
      watched?.close();
      await upkeep.close();
      await books.close();
      await database.close();
    },
  };
}

export type PostgresAccounting = Accounting &
  Readonly<{
    database: Database;
    books: PostgresBooks;
    watch(): PostgresWatch;
    /** This gateway's shares of the nodes' slots, once `exchange` was called. */
    shareNodes(pool: SharingPool): NodeShares;
    /** How this gateway does among those of the database. */
    laneState(): LaneState;
    adopt(configDigest: string): Promise<void>;
  }>;

/** `given`: what this gateway gave back of others that were gone. `unready`: why requests should go to another, in words. */
export type LaneState = Readonly<{
  counts: Readonly<LaneCounts>;
  given: Readonly<{ lanes: number; holds: number }>;
  locked: readonly LockedAccount[];
  /** The same for people. */
  hindrances: readonly string[];
  unready: string | null;
}>;

const officeOn = (database: Database, { catalog, clock }: Pick<PostgresAccountingOptions, "catalog" | "clock">) => ({
  office: new PostgresOffice({ database, catalog, clock }),
  passwords: new Passwords(),
  sessions: new PostgresSessions(database),
  verify: () => verifyBooks(database, boundsOf(catalog.plans)),
});
