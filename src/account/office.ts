// The office: what the console and commands ask and change of accounts, in units. A unit reads what is committed, decides and
// adds what is to be written; all of it is committed at once, or nothing.
//
//   SQLite       one unit at a time: the next one reads what the one before wrote (queued-office.ts)
//   PostgreSQL   each unit is a transaction that locks what it decides by (store/postgres/office.ts)
import type { KnownModels } from "../core/catalog.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Ms } from "../core/types.ts";
import { AccessLinks } from "./sign-in/access-links.ts";
import { AccountKeys } from "./people/account-keys.ts";
import { Accounts } from "./people/accounts.ts";
import { AuditLog } from "./audit.ts";
import type { DeviceParts } from "./sign-in/devices.ts";
import type { Draft } from "./draft.ts";
import { OperatorTokens } from "./sign-in/operator-tokens.ts";
import { Identities } from "./people/identities.ts";
import type { MailParts } from "./people/mails.ts";
import { Purchases } from "./money/purchases.ts";
import type { OfficeRecords, SessionRecords, Standings } from "./records.ts";
import type { TeamParts } from "./people/teams.ts";
import { Sessions } from "./sign-in/sessions.ts";

/** What one change of the office sees and does; everything in it becomes durable in one commit, or nothing does. */
export type Unit = Readonly<{
  accounts: Accounts;
  accountKeys: AccountKeys;
  sessions: Sessions;
  links: AccessLinks;
  /** For `new Devices`, whose code loads where machines sign in. */
  devices: DeviceParts;
  /** For `new Teams`, as above. */
  teams: TeamParts;
  purchases: Purchases;
  identities: Identities;
  tokens: OperatorTokens;
  auditLog: AuditLog;
  /** For `new Mails`, as above. */
  mails: MailParts;
  /** By the wall clock. */
  now: Ms;
}>;

export interface Office {
  /**
   * Decides and commits; resolves when it is durable. Rejects with what `work` threw, when nothing is written, or with
   * StoreUnavailable.
   *
   * `work` waits for nothing but the unit: passwords are hashed, files erased and other servers asked before or after it, since
   * others wait meanwhile. It may run twice, from its start and on what is committed then, so it changes nothing outside of the
   * unit. What it added, records of accounts and keys show; all else is as it was committed before.
   */
  change<Result>(work: (unit: Unit) => Promise<Result>): Promise<Result>;
  /** Reads alone: no queue, no locks. */
  read<Result>(work: (unit: Unit) => Promise<Result>): Promise<Result>;
}

export type UnitParts = Readonly<{
  records: OfficeRecords;
  sessions: SessionRecords;
  standings: Standings;
  catalog: Pick<Catalog, "plans"> & Partial<KnownModels>;
}>;

export function unitOf({ records, sessions, standings, catalog }: UnitParts, draft: Draft, now: Ms): Unit {
  const { plans } = catalog;
  const accounts = new Accounts({ records, standings, plans, draft, now });
  const accountKeys = new AccountKeys({ records, standings, accounts, catalog, draft, now });
  const auditLog = new AuditLog({ records, draft });
  return {
    accounts,
    accountKeys,
    sessions: new Sessions({ records: sessions, accounts, draft, now }),
    links: new AccessLinks({ records, draft, now }),
    devices: { records, accounts, accountKeys, auditLog, draft, now },
    teams: { records, standings, accounts, draft, now },
    purchases: new Purchases({ accounts, records, draft, now }),
    identities: new Identities({ records, draft, now }),
    tokens: new OperatorTokens({ records, draft, now }),
    auditLog,
    mails: { records, accounts, draft, now },
    now,
  };
}
