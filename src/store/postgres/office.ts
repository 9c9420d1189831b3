// The office on PostgreSQL: each unit is a transaction, which locks what it decides by. It runs again from its start where others
// were in the way, or gave away the same number, e-mail or billing key meanwhile.
import type { SessionRecord } from "../../account/records.ts";
import { Draft } from "../../account/draft.ts";
import { type Office, type Unit, unitOf, type UnitParts } from "../../account/office.ts";
import { isOver, type SessionLookup, sessionUseIntervalMs, tokenHashOf } from "../../account/sign-in/sessions.ts";
import type { Clock } from "../../core/clock.ts";
import { type AccountId, type Ms, StoreUnavailable } from "../../core/types.ts";
import { writesOf } from "./changes.ts";
import { StatementError } from "./connection.ts";
import type { Database } from "./database.ts";
import { callTimeoutMs } from "./limits.ts";
import { LockingRecords } from "./locking-records.ts";
import { type Pace, systemPace } from "./pace.ts";
import { PostgresRecords } from "./records.ts";

export type OfficeOptions = Pick<UnitParts, "catalog"> & Readonly<{ database: Database; clock: Clock; pace?: Pace }>;

/** How often a unit is decided again because what it wrote breaks a rule of a table. */
const refusedMax = 5;

export class PostgresOffice implements Office {
  readonly #options: OfficeOptions;
  readonly #pace: Pace;

  constructor(options: OfficeOptions) {
    this.#options = options;
    this.#pace = options.pace ?? systemPace;
  }

  async change<Result>(work: (unit: Unit) => Promise<Result>): Promise<Result> {
    const until = this.#pace.monotonic() + callTimeoutMs;
    const known = new Set<AccountId>();
    for (let refused = 1; ; refused += 1) {
      try {
        return await this.#options.database.transaction(
          async (session) => {
            const draft = new Draft();
            const records = new LockingRecords(session, known);
            await records.lockKnown();
            const result = await work(this.#unit(records, draft));
            session.atEnd(writesOf(draft.changes, draft.entries));
            return result;
          },
          { limitMs: Math.max(1, until - this.#pace.monotonic()) },
        );
      } catch (thrown) {
        if (!(thrown instanceof StatementError)) throw thrown;
        if (refused < refusedMax) continue;
        throw new StoreUnavailable(`the ledger does not take this change: ${thrown.message}`, { cause: thrown });
      }
    }
  }

  read<Result>(work: (unit: Unit) => Promise<Result>): Promise<Result> {
    return this.#options.database.read((session) => work(this.#unit(new PostgresRecords(session), new Draft())));
  }

  #unit(records: PostgresRecords, draft: Draft): Unit {
    const { catalog, clock } = this.#options;
    return unitOf({ records, sessions: records, standings: records, catalog }, draft, clock.wall());
  }
}

/** Other gateways end sessions and disable accounts: each look is one at the database. */
export class PostgresSessions implements SessionLookup {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async find(token: string, now: Ms): Promise<SessionRecord | null> {
    const tokenHash = tokenHashOf(token);
    const session = tokenHash === null ? null : await this.#open(tokenHash, now);
    if (session === null || now - session.usedAt < sessionUseIntervalMs) return session;
    const change = { change: "use_session", id: session.id, at: now } as const;
    await this.#database.transaction(async (transaction) => transaction.atEnd(writesOf([change], [])));
    return { ...session, usedAt: now };
  }

  async isOpen({ tokenHash }: SessionRecord, now: Ms): Promise<boolean> {
    return (await this.#open(tokenHash, now)) !== null;
  }

  #open(tokenHash: string, now: Ms): Promise<SessionRecord | null> {
    return this.#database.read(async (transaction) => {
      const records = new PostgresRecords(transaction);
      const session = await records.session(tokenHash);
      if (session === null || isOver(session, now)) return null;
      const owner = await records.byId(session.account);
      return owner?.disabledAt === null ? session : null;
    });
  }
}
