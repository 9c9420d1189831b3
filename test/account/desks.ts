// The office as tests ask it: each call is a unit of its own, and accounts are named by their numbers or e-mails. `also` is
// done in the same unit.
import type { AuditLog } from "../../src/account/audit.ts";
import type { AccountKeys, CreatedKey, KeyView, NewKey, NewLimits } from "../../src/account/people/account-keys.ts";
import type {
  Accounts,
  CreatedAccount,
  ErasedAccount,
  Invitation,
  NewAccount,
} from "../../src/account/people/accounts.ts";
import type { Office, Unit } from "../../src/account/office.ts";
import type { Passwords, PasswordTurn } from "../../src/account/sign-in/passwords.ts";
import type { Decided, Wanted } from "../../src/account/money/purchases.ts";
import type {
  AccessLink,
  AccountRecord,
  AuditEntry,
  Payment,
  OfficeRecords,
  PurchaseRequest,
  SessionRecord,
} from "../../src/account/records.ts";
import type { OpenedSession, SessionLookup } from "../../src/account/sign-in/sessions.ts";
import type { AccountId, KeyId } from "../../src/core/types.ts";

export type Also<Found = void> = (unit: Unit, found: Found) => unknown;
type Who = string | AccountId;
type Asked<Of, Names extends keyof Of> = Pick<Of, Names>;

const idOf = async ({ accounts }: Unit, who: Who): Promise<AccountId> =>
  typeof who === "number" ? who : (await accounts.ofEmail(who)).id;

export class Desks {
  readonly accounts: AccountsDesk;
  readonly accountKeys: KeysDesk;
  readonly sessions: SessionsDesk;
  readonly purchases: PurchasesDesk;
  readonly links: LinksDesk;
  readonly identities: IdentitiesDesk;
  readonly auditLog: AuditDesk;

  constructor(
    readonly units: Office,
    passwords: Passwords,
    lookup: SessionLookup,
  ) {
    const office = units;
    this.accounts = new AccountsDesk(office, passwords);
    this.accountKeys = new KeysDesk(office);
    this.sessions = new SessionsDesk(office, lookup);
    this.purchases = new PurchasesDesk(office);
    this.links = new LinksDesk(office);
    this.identities = new IdentitiesDesk(office);
    this.auditLog = new AuditDesk(office);
  }
}

/** Of a data folder's, or a database's. */
export const desksOf = ({
  office,
  passwords,
  sessions,
}: Readonly<{ office: Office; passwords: Passwords; sessions: SessionLookup }>): Desks =>
  new Desks(office, passwords, sessions);

class Desk {
  constructor(readonly office: Office) {}

  /** A change of an account, with what else is done in its unit. */
  protected on<Result>(
    who: Who,
    work: (unit: Unit, id: AccountId) => Promise<Result>,
    also?: Also<AccountRecord>,
  ): Promise<Result> {
    return this.office.change(async (unit) => {
      const id = await idOf(unit, who);
      const before = (await unit.accounts.record(id))!;
      const result = await work(unit, id);
      await also?.(unit, before);
      return result;
    });
  }
}

export class AccountsDesk
  extends Desk
  implements Asked<Accounts, "none" | "count" | "byPlan" | "hasOperator" | "list" | "record" | "recordOf">
{
  constructor(
    office: Office,
    readonly passwords: Passwords,
  ) {
    super(office);
  }

  none = () => this.office.read(({ accounts }) => accounts.none());
  count = () => this.office.read(({ accounts }) => accounts.count());
  byPlan = () => this.office.read(({ accounts }) => accounts.byPlan());
  hasOperator = () => this.office.read(({ accounts }) => accounts.hasOperator());
  list = (page?: { after?: number; limit?: number }) => this.office.read(({ accounts }) => accounts.list(page));
  record = (id: AccountId) => this.office.read(({ accounts }) => accounts.record(id));
  recordOf = (email: string) => this.office.read(({ accounts }) => accounts.recordOf(email));
  ofEmail = (email: string) => this.office.read(({ accounts }) => accounts.ofEmail(email));
  show = (who: Who) => this.office.read(async (unit) => unit.accounts.show(await idOf(unit, who)));
  numbers = (id: AccountId) => this.office.read(({ accounts }) => accounts.numbers(id));
  usage = (who: Who, limit: number) =>
    this.office.read(async (unit) => unit.accounts.usage(await idOf(unit, who), limit));
  creditedTo = (reference: string) => this.office.read(({ accounts }) => accounts.creditedTo(reference));
  checkNotLastOperator = (id: AccountId) => this.office.read(({ accounts }) => accounts.checkNotLastOperator(id));
  isAsItWas = (record: AccountRecord) => this.office.read(({ accounts }) => accounts.isAsItWas(record));
  invitation = (wanted: Invitation) => this.office.read(({ accounts }) => accounts.invitation(wanted));
  passwordLink = (id: AccountId, expiresAt: number) =>
    this.office.read(({ accounts }) => accounts.passwordLink(id, expiresAt));

  async create(
    { password, ...account }: Omit<NewAccount, "passwordHash"> & Readonly<{ password?: string | undefined }>,
    also?: Also<AccountId>,
  ): Promise<CreatedAccount> {
    const hashed = password === undefined ? {} : { passwordHash: await this.passwords.hashNew(password) };
    return this.office.change(async (unit) => {
      const created = await unit.accounts.create({ ...account, ...hashed });
      await also?.(unit, created.id);
      return created;
    });
  }

  changePlan = (who: Who, plan: string, also?: Also<AccountRecord>) =>
    this.on(who, ({ accounts }, id) => accounts.changePlan(id, plan), also);
  setDisabled = (who: Who, disabled: boolean, also?: Also<AccountRecord>) =>
    this.on(who, ({ accounts }, id) => accounts.setDisabled(id, disabled), also);
  setOperator = (who: Who, operator: boolean, also?: Also<AccountRecord>) =>
    this.on(who, ({ accounts }, id) => accounts.setOperator(id, operator), also);
  rotateKey = (who: Who, also?: Also<AccountRecord>) =>
    this.on(who, ({ accounts }, id) => accounts.rotateKey(id), also);
  addCredit = (who: Who, tokens: number, reference?: string, also?: Also<AccountRecord>) =>
    this.on(who, async (unit, id) => {
      const added = await unit.accounts.addCredit(id, tokens, reference);
      if (added.credited) await also?.(unit, (await unit.accounts.record(id))!);
      return added;
    });
  credit = (who: Who, tokens: number, billingKey: string) =>
    this.on(who, ({ accounts }, id) => accounts.credit(id, tokens, billingKey));

  async changePassword(who: Who, password: string, also?: Also<AccountRecord>): Promise<void> {
    const passwordHash = await this.passwords.hashNew(password);
    return this.on(who, ({ accounts }, id) => accounts.setPassword(id, passwordHash), also);
  }

  /** As a browser is let in: by the password, and in a unit that looks again. */
  async signIn(email: string, password: string, turn?: PasswordTurn): Promise<AccountRecord | null> {
    const owner = await this.passwords.owner(this.office, email, password, turn);
    if (owner === null) return null;
    return this.office.change(async ({ accounts }) => ((await accounts.isAsItWas(owner)) ? owner : null));
  }

  /** As `accounts delete` does it; `before` erases what is kept elsewhere. */
  async erase(
    who: Who,
    before: (id: AccountId) => Promise<void> = async () => {},
    also?: Also<AccountRecord>,
  ): Promise<ErasedAccount> {
    const id = await this.on(who, async ({ accounts }, account) => {
      await accounts.setDisabled(account, true);
      return account;
    });
    await this.office.read(({ accounts }) => accounts.checkNothingOpen(id));
    await before(id);
    return this.on(id, ({ accounts }) => accounts.erase(id), also);
  }
}

export class KeysDesk extends Desk implements Asked<AccountKeys, "list" | "namesOf"> {
  list = (account: AccountId) => this.office.read(({ accountKeys }) => accountKeys.list(account));
  namesOf = (account: AccountId) => this.office.read(({ accountKeys }) => accountKeys.namesOf(account));
  endUser = (account: AccountId, name: string) =>
    this.office.read(({ accountKeys }) => accountKeys.endUser(account, name));

  create(account: AccountId, wanted: NewKey, also?: Also<KeyId>): Promise<CreatedKey> {
    return this.office.change(async (unit) => {
      const created = await unit.accountKeys.create(account, wanted);
      await also?.(unit, created.id);
      return created;
    });
  }

  rename = (account: AccountId, id: KeyId, name: string, also?: Also<AccountRecord>): Promise<KeyView> =>
    this.on(account, ({ accountKeys }) => accountKeys.rename(account, id, name), also);
  limit = (account: AccountId, id: KeyId, wanted: NewLimits, also?: Also<AccountRecord>): Promise<KeyView> =>
    this.on(account, ({ accountKeys }) => accountKeys.limit(account, id, wanted), also);
  revoke = (account: AccountId, id: KeyId, also?: Also<AccountRecord>) =>
    this.on(account, ({ accountKeys }) => accountKeys.revoke(account, id), also);
  eraseEndUser = (account: AccountId, name: string, also?: Also<AccountRecord>) =>
    this.on(account, ({ accountKeys }) => accountKeys.eraseEndUser(account, name), also);
}

export class SessionsDesk extends Desk {
  constructor(
    office: Office,
    readonly lookup: SessionLookup,
  ) {
    super(office);
  }

  find: SessionLookup["find"] = (token, now) => this.lookup.find(token, now);
  isOpen: SessionLookup["isOpen"] = (session, now) => this.lookup.isOpen(session, now);
  list = (account: AccountId) => this.office.read(({ sessions }) => sessions.list(account));
  open = (account: AccountId, from: Pick<SessionRecord, "address" | "browser">): Promise<OpenedSession> =>
    this.office.change(({ sessions }) => sessions.open(account, from));
  end = (account: AccountId, id: number) => this.office.change(({ sessions }) => sessions.end(account, id));
  endAll = (account: AccountId, except: number | null) =>
    this.office.change(async ({ sessions }) => sessions.endAll(account, except));
}

export class PurchasesDesk extends Desk {
  ask = (account: AccountId, wanted: Wanted, note: string): Promise<PurchaseRequest> =>
    this.office.change(({ purchases }) => purchases.ask(account, wanted, note));
  paid = (payment: Payment) => this.office.change(({ purchases }) => purchases.paid(payment));
  approve = (request: Pick<PurchaseRequest, "id">, note: string, also?: Also) =>
    this.#decide(({ purchases }) => purchases.approve(request.id, note), also);
  decline = (request: Pick<PurchaseRequest, "id">, note: string, also?: Also) =>
    this.#decide(({ purchases }) => purchases.decline(request.id, note), also);
  withdraw = (request: Pick<PurchaseRequest, "id">) => this.#decide(({ purchases }) => purchases.withdraw(request.id));

  #decide(work: (unit: Unit) => Promise<Decided>, also?: Also): Promise<PurchaseRequest> {
    return this.office.change(async (unit) => {
      const { request, isNew } = await work(unit);
      if (isNew) await also?.(unit);
      return request;
    });
  }

  readonly #read = <Result>(work: (records: OfficeRecords) => Result) =>
    this.office.read(async ({ purchases }) => work(purchases.records)) as Promise<Awaited<Result>>;
  request = (id: number) => this.#read((records) => records.request(id));
  requestsOf = (...given: Parameters<OfficeRecords["requestsOf"]>) =>
    this.#read((records) => records.requestsOf(...given));
  requestsIn = (...given: Parameters<OfficeRecords["requestsIn"]>) =>
    this.#read((records) => records.requestsIn(...given));
  lastDeletionRequest = (account: AccountId) => this.#read((records) => records.lastDeletionRequest(account));
  pendingRequests = (account: AccountId | null) => this.#read((records) => records.pendingRequests(account));
  paymentsOf = (account: AccountId, limit: number) => this.#read((records) => records.paymentsOf(account, limit));
}

export class LinksDesk extends Desk {
  find = (token: string) => this.office.read(({ links }) => links.find(token));
  invitations = (limit: number) => this.office.read(({ links }) => links.invitations(limit));
  invite = (wanted: Invitation, also?: Also<AccessLink>) =>
    this.#made(async ({ accounts, links }) => links.make(await accounts.invitation(wanted)), also);
  makeForPassword = (id: AccountId, expiresAt: number, also?: Also<AccessLink>) =>
    this.#made(async ({ accounts, links }) => links.make(await accounts.passwordLink(id, expiresAt)), also);
  withdraw = (id: number, also?: Also) =>
    this.office.change(async (unit) => {
      await unit.links.withdraw(id);
      await also?.(unit);
    });

  #made(work: (unit: Unit) => ReturnType<Unit["links"]["make"]>, also?: Also<AccessLink>) {
    return this.office.change(async (unit) => {
      const made = await work(unit);
      await also?.(unit, made.link);
      return made;
    });
  }
}

export class IdentitiesDesk extends Desk {
  accountOf = (issuer: string, subject: string) =>
    this.office.read(({ identities }) => identities.accountOf(issuer, subject));
  of = (account: AccountId) => this.office.read(({ identities }) => identities.of(account));
  connect = (issuer: string, subject: string, account: AccountId, also?: Also) =>
    this.office.change(async (unit) => {
      unit.identities.connect(issuer, subject, account);
      await also?.(unit);
    });
}

export class AuditDesk extends Desk {
  list = (...asked: Parameters<AuditLog["list"]>) => this.office.read(({ auditLog }) => auditLog.list(...asked));
  count = (...asked: Parameters<AuditLog["count"]>) => this.office.read(({ auditLog }) => auditLog.count(...asked));
  note = (entry: Omit<AuditEntry, "id">) => this.office.change(async ({ auditLog }) => auditLog.append(entry));
}
