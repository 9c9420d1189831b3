// The deciders of accounts and of the console on PostgreSQL: the same methods as those in memory have, each a unit of work.
import { AccessLinks } from "../../account/access-links.ts";
import { AccountKeys } from "../../account/account-keys.ts";
import { Accounts, EmailTaken, type ErasedAccount, type PasswordReplacement } from "../../account/accounts.ts";
import { AuditLog } from "../../account/audit.ts";
import { Identities } from "../../account/identities.ts";
import type { InSameCommit } from "../../account/journal.ts";
import { Passwords, type PasswordTurn } from "../../account/passwords.ts";
import { type PurchaseRecords, Purchases } from "../../account/purchases.ts";
import { Sessions } from "../../account/sessions.ts";
import type {
  SoonAccountKeys,
  SoonAccounts,
  SoonAuditLog,
  SoonIdentities,
  SoonLinks,
  SoonPurchases,
  SoonSessions,
} from "../../account/soon.ts";
import { assert } from "../../core/assert.ts";
import type { Soonly } from "../../core/soon.ts";
import { type AccountId, type PlanId, StoreUnavailable } from "../../core/types.ts";
import { StatementError } from "./connection.ts";
import { PostgresRecords } from "./records.ts";
import { type Deciders, Units, type UnitsOptions } from "./unit-of-work.ts";

export type PostgresOffice = Readonly<{
  accounts: SoonAccounts;
  accountKeys: SoonAccountKeys;
  sessions: SoonSessions;
  purchases: SoonPurchases;
  purchaseRecords: Soonly<PurchaseRecords>;
  auditLog: SoonAuditLog;
  links: SoonLinks;
  identities: SoonIdentities;
}>;

export type OfficeOptions = Omit<UnitsOptions, "passwords"> & Readonly<{ passwords?: Passwords }>;

export function openOffice(options: OfficeOptions): PostgresOffice {
  const units = new Units({ ...options, passwords: options.passwords ?? new Passwords() });
  return {
    accounts: accountsOn(units, options),
    accountKeys: promised(AccountKeys, units, (deciders) => deciders.accountKeys),
    sessions: promised(Sessions, units, (deciders) => deciders.sessions),
    purchases: promised(Purchases, units, (deciders) => deciders.purchases),
    purchaseRecords: recordsOn(units),
    auditLog: withAppend(AuditLog, units, (deciders) => deciders.auditLog),
    links: promised(AccessLinks, units, (deciders) => deciders.links) as SoonLinks,
    identities: identitiesOn(units),
  };
}

/** Each method and property of a class, as a unit of work of its own or a part of the one that it is called in. */
function promised<Of extends object>(
  type: Readonly<{ prototype: Of }>,
  units: Units,
  of: (deciders: Deciders) => Of,
): Soonly<Of> {
  const made = {};
  for (const [name, { get }] of Object.entries(Object.getOwnPropertyDescriptors(type.prototype))) {
    if (name === "constructor") continue;
    type Method = (...given: unknown[]) => unknown;
    if (get === undefined) {
      const ask = (...given: unknown[]) =>
        units.run((deciders) => {
          const decider = of(deciders);
          return (decider[name as keyof Of] as Method).call(decider, ...given);
        });
      Object.defineProperty(made, name, { value: ask });
    } else {
      Object.defineProperty(made, name, { get: () => units.run((deciders) => of(deciders)[name as keyof Of]) });
    }
  }
  return made as Soonly<Of>;
}

/** What is appended in the same commit as a change is decided on with it, at once. */
function withAppend<Of extends AuditLog | Identities, Appended>(
  type: Readonly<{ prototype: Of & { append(what: Appended): unknown } }>,
  units: Units,
  of: (deciders: Deciders) => Of & { append(what: Appended): unknown },
) {
  const append = (what: Appended): number => {
    const { joined } = units;
    assert(joined !== null, "what goes with a change is appended while that is decided on");
    of(joined).append(what);
    return 0;
  };
  return over(promised(type, units, of), { append });
}

function accountsOn(units: Units, { catalog }: OfficeOptions): SoonAccounts {
  const all = promised(Accounts, units, ({ accounts }) => accounts);
  const ofPlans = new Accounts({ plans: catalog.plans } as ConstructorParameters<typeof Accounts>[0]);
  const setDisabled = (id: AccountId, disabled: boolean, inSameCommit?: InSameCommit): Promise<void> =>
    units.run(({ accounts }) => {
      // Who asked before may have been told so by what two gateways changed at once.
      if (disabled) accounts.checkNotLastOperator(id);
      return accounts.setDisabled(id, disabled, inSameCommit);
    });
  return over(all, {
    setDisabled,

    /** As the one in memory: whoever has open requests stays disabled. */
    async erase(
      email: string,
      before: (account: AccountId) => Promise<void>,
      inSameCommit?: InSameCommit,
    ): Promise<ErasedAccount> {
      const { id } = await all.show(email);
      await units.run(({ accounts }) => accounts.setDisabled(id, true));
      await all.checkNothingOpen(id);
      await before(id);
      return units.run(({ accounts }) => {
        accounts.checkNothingOpen(id);
        return accounts.finishErasure(email, inSameCommit);
      });
    },

    async replacementOfPassword(
      id: AccountId,
      old: string,
      password: string,
      turn?: PasswordTurn,
    ): Promise<PasswordReplacement | null> {
      const replacement = await all.replacementOfPassword(id, old, password, turn);
      if (replacement === null) return null;
      const { before, after } = replacement;
      return {
        isOvertaken: () => all.hasAnotherPassword(id, before),
        apply: (inSameCommit) => all.replacePassword(id, before, after, inSameCommit),
        before,
        after,
      };
    },

    // Known of the plans alone.
    get planOfNew() {
      return ofPlans.planOfNew;
    },
    planStill: (plan: PlanId | null) => ofPlans.planStill(plan),
  });
}

function identitiesOn(units: Units): SoonIdentities {
  const all = withAppend(Identities, units, ({ identities }) => identities);
  let last: Promise<unknown> = Promise.resolve();
  return over(all, {
    /**
     * One after the other in this gateway. Where another one was first, the person has an account, or is connected, by then:
     * what was taken back is done again, on that.
     */
    inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
      const again = (thrown: unknown): Promise<Result> => {
        const cause = thrown instanceof StoreUnavailable ? thrown.cause : null;
        const isTaken = cause instanceof StatementError && cause.state === uniqueViolation;
        if (thrown instanceof EmailTaken || isTaken) return work();
        throw thrown;
      };
      const done = last.then(() => work().catch(again));
      last = done.catch(() => {}); // told to who waits for `done`
      return done;
    },
  });
}

const uniqueViolation = "23505";

/** Questions that decide nothing. */
function recordsOn(units: Units): Soonly<PurchaseRecords> {
  const ask = <Name extends keyof PurchaseRecords>(name: Name) =>
    ((...given: unknown[]) =>
      units.database.read((session) => {
        const records = new PostgresRecords(session);
        return (records[name] as (...given: unknown[]) => Promise<unknown>).call(records, ...given);
      })) as unknown as Soonly<PurchaseRecords>[Name];
  return {
    request: ask("request"),
    lastRequestId: ask("lastRequestId"),
    requestsOf: ask("requestsOf"),
    requestsIn: ask("requestsIn"),
    lastDeletionRequest: ask("lastDeletionRequest"),
    pendingRequests: ask("pendingRequests"),
    paymentsOf: ask("paymentsOf"),
  };
}

/** `more` in the place of what `all` has of the same names. */
const over = <All extends object, More extends object>(all: All, more: More): Omit<All, keyof More> & More =>
  Object.defineProperties(Object.create(all), Object.getOwnPropertyDescriptors(more)) as Omit<All, keyof More> & More;
