// Accounts as the command line and the console see them. A method that changes something resolves once the change is on
// disk.
import { assert } from "../core/assert.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { creditGrantMaxTokens, emailMaxLength, linkMaxMs } from "../core/limits.ts";
import { dayMs } from "../core/units.ts";
import { firstPlan, isPlan, limitOf, planOf } from "../core/plans.ts";
import type { Soon } from "../core/soon.ts";
import { type AccountId, defaultKey, type Ms, type PlanId, StoreUnavailable } from "../core/types.ts";
import type { NewAccessLink } from "./access-links.ts";
import type { InSameCommit, Journal } from "./journal.ts";
import { endingOf, hashApiKey, mintApiKey, type Keys } from "./keys.ts";
import type { Ledger } from "./ledger.ts";
import { LoadedAccount } from "./loaded-account.ts";
import { Passwords, type PasswordTurn } from "./passwords.ts";
import { coderWindowName, coderWindowOf, dayName, dayOf } from "./quota.ts";
import type { AccountRecord, AccountRecords, PlanCount } from "./records.ts";
import type { UsageRow } from "./usage-row.ts";

/** A request about an account cannot be carried out; the message is one line for whoever asked. */
export class AccountError extends Error {
  override readonly name = "AccountError";
}

export class EmailTaken extends AccountError {
  constructor(email: string) {
    super(`an account with the e-mail ${email} exists already`);
  }
}

export type NewAccount = Readonly<{
  email: string;
  plan?: string;
  /** Opening credit in balance tokens. */
  credit?: number;
  password?: string;
  operator?: boolean;
}>;

export type Invitation = Readonly<{ email: string | null; plan?: string | undefined; credit: number; expiresAt: Ms }>;

/** `api_key` is shown this once: only its hash is kept. */
export type CreatedAccount = Readonly<{ id: AccountId; email: string; plan: PlanId; api_key: string }>;

/** `name` stands where its e-mail was. */
export type ErasedAccount = Readonly<{ id: AccountId; name: string }>;

export type AccountSummary = Readonly<{
  id: AccountId;
  email: string;
  plan: PlanId;
  credit: number;
  operator: boolean;
  disabled: boolean;
  created_at: string;
}>;

/** In the words of `tollgate accounts show --json`; amounts in balance tokens, null where the plan does not limit them. */
export type AccountView = Readonly<{
  id: AccountId;
  email: string;
  plan: PlanId;
  disabled: boolean;
  allowance: Readonly<{ day: string; granted: number | null; left: number | null }>;
  credit: number;
  reserved: number;
  spendable: number | null;
  coder_calls: Readonly<{ window: string; used: number; limit: number | null }>;
  searches: Readonly<{ day: string; used: number; limit: number | null }>;
}>;

/** A broken invariant: its number, the account (null where it is nobody's) and what does not fit. */
export type Violation = Readonly<{ invariant: string; account: AccountId | null; detail: string }>;
export type Verification = Readonly<{ accounts: number; violations: readonly Violation[] }>;
/** Recomputes every balance from the journal. */
export type Verify = () => Promise<Verification>;

type Parts = Readonly<{
  records: AccountRecords;
  ledger: Ledger;
  keys: Keys;
  journal: Journal;
  plans: Catalog["plans"];
  clock: Clock;
  verify: Verify;
  passwords?: Pick<Passwords, "hash" | "verify" | "ofNobody">;
}>;

/** Ready to be set, if nobody else has set one since the old one was checked. */
export type PasswordReplacement = Readonly<{
  isOvertaken(): Soon<boolean>;
  apply(inSameCommit?: InSameCommit): Promise<void>;
  /** Hashes. */
  before: string;
  after: string;
}>;

export class Accounts {
  readonly #parts: Parts;
  readonly #passwords: NonNullable<Parts["passwords"]>;
  /** Null until somebody asked, as the next. */
  #lastId: AccountId | null = null;
  #count: number | null = null;
  /** E-mails whose accounts are on their way to disk, in lower case. */
  readonly #creating = new Set<string>();
  /** The last line of each account that disables or enables it, while it is on its way to disk. */
  readonly #disabling = new Map<AccountId, number>();
  /** New passwords that are not on disk yet: the sequence of the last. */
  readonly #newPasswords = new Map<AccountId, number>();
  /** From the start of an erasure on: what began earlier gives the account nothing anymore. */
  readonly #erasing = new Set<AccountId>();
  /** Purchases on their way to disk, so that the same reference twice at once is one purchase. */
  readonly #buying = new Map<string, Promise<void>>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#passwords = parts.passwords ?? new Passwords();
  }

  /** True before the first account was made. */
  get none(): boolean {
    return (this.#lastId ?? this.#parts.records.lastId()) === 0;
  }

  /** Of accounts for which none is named. */
  get planOfNew(): PlanId {
    return firstPlan(this.#parts.plans).id;
  }

  /** How many accounts there are of each plan, also of those that are not configured. */
  byPlan(): readonly PlanCount[] {
    return this.#parts.records.byPlan();
  }

  /** Whether an account may see all the others, and is not disabled. */
  get hasOperator(): boolean {
    return this.#parts.records.operators().length > 0;
  }

  /** Throws AccountError for a bad or known e-mail, a bad plan or a bad amount. */
  async create(
    { email, plan = this.planOfNew, credit = 0, password, operator = false }: NewAccount,
    inSameCommit?: (account: AccountId) => void,
    turn?: PasswordTurn,
  ): Promise<CreatedAccount> {
    const { records, ledger, journal, plans, clock } = this.#parts;
    checkEmail(email);
    const planId = this.#plan(plan);
    if (credit !== 0) checkAmount(credit);
    const passwordHash = password === undefined ? null : await this.#passwords.hash(checkPassword(password), turn);
    const folded = email.toLowerCase();
    if (this.#creating.has(folded) || records.byEmail(email) !== null) {
      throw new EmailTaken(email);
    }
    const id = (this.#lastId ??= records.lastId()) + 1;
    this.#lastId = id;
    const key = mintApiKey();
    const keyHash = hashApiKey(key);
    const account = new LoadedAccount(id, planOf(plans, planId), 0, keyHash);
    ledger.add(account);
    this.#creating.add(folded);
    try {
      const at = clock.wall();
      const sequence = journal.change({
        change: "create",
        account: id,
        email,
        plan: planId,
        keyHash,
        keyEnding: endingOf(key),
        passwordHash,
        operator,
        at,
      });
      inSameCommit?.(id);
      if (credit > 0) this.#buy(account, credit, `opening:${id}`);
      await journal.durable(sequence);
      if (this.#count !== null) this.#count += 1;
    } catch (thrown) {
      ledger.remove(id);
      throw thrown;
    } finally {
      this.#creating.delete(folded);
    }
    return { id, email, plan: planId, api_key: key };
  }

  /** Accounts in the order of their ids, from the one after `after`. */
  async list({ after = 0, limit = 1_000_000 } = {}): Promise<AccountSummary[]> {
    return this.#parts.records.list(after, limit).map(summaryOf);
  }

  /** The same, of those whose e-mail contains `text`, in any case. */
  search(text: string, after: AccountId, limit: number): AccountSummary[] {
    return this.#parts.records.search(text, after, limit).map(summaryOf);
  }

  /** Null: there is no such account. */
  record(account: AccountId): AccountRecord | null {
    return this.#parts.records.byId(account);
  }

  recordOf(email: string): AccountRecord | null {
    return this.#parts.records.byEmail(email);
  }

  /** How many there are, without those that were erased. The disk is asked once. */
  get count(): number {
    if (this.#count !== null) return this.#count;
    const count = this.#parts.records.count();
    // What is on its way may be on disk already, and would be counted again when it is known to be.
    if (this.#creating.size === 0 && this.#erasing.size === 0) this.#count = count;
    return count;
  }

  /** Throws AccountError for an unknown e-mail, as everything below that takes one. */
  async show(email: string): Promise<AccountView> {
    return this.#view(this.#byEmail(email));
  }

  async showById(account: AccountId): Promise<AccountView> {
    return this.#view(this.#byId(account));
  }

  /** What `show` shows, and the number of open reservations; without a look at the disk for an account in memory. */
  numbers(id: AccountId): Omit<AccountView, "email" | "disabled"> & Readonly<{ openReservations: number }> {
    return { ...this.#numbers(id), openReservations: this.#parts.ledger.account(id).holds };
  }

  /** Acts at once: today's use stays, the amounts are the new plan's. */
  async changePlan(email: string, plan: string, inSameCommit?: (before: AccountRecord) => void): Promise<void> {
    const before = this.#byEmail(email);
    return this.changePlanById(before.id, plan, () => inSameCommit?.(before));
  }

  async changePlanById(id: AccountId, plan: PlanId, inSameCommit?: InSameCommit): Promise<void> {
    const { ledger, journal, plans } = this.#parts;
    this.checkNotErased(id);
    this.#plan(plan);
    const account = ledger.account(this.#byId(id).id);
    const sequence = journal.change({ change: "plan", account: id, plan });
    inSameCommit?.();
    await journal.durable(sequence);
    account.plan = planOf(plans, plan); // a reload may have taken it away by now
  }

  /**
   * A disabled account's key and sessions are refused at once; what runs may end. Enabling acts when it is on disk.
   * Rejects with StoreUnavailable, when everything is as it was.
   */
  async setDisabled(id: AccountId, disabled: boolean, inSameCommit?: InSameCommit): Promise<void> {
    const { ledger, keys, journal, clock } = this.#parts;
    if (!disabled) this.checkNotErased(id);
    const account = ledger.account(this.#byId(id).id);
    account.disabled ||= disabled;
    if (disabled) keys.forget(account);
    const sequence = journal.change({ change: "disabled", account: id, at: disabled ? clock.wall() : null });
    this.#disabling.set(id, sequence);
    inSameCommit?.();
    const isLast = (): boolean => this.#disabling.get(id) === sequence;
    try {
      await journal.durable(sequence);
      if (isLast()) account.disabled = disabled;
    } catch (thrown) {
      // One that it came after may be lost as well: the disk says how it was.
      if (isLast()) account.disabled = this.#byId(id).disabledAt !== null;
      throw thrown;
    } finally {
      if (isLast()) this.#disabling.delete(id);
    }
  }

  /**
   * Adds purchased credit. The same reference counts once, however often it comes: `credited` is false for a repeated
   * one. Resolves when the credit is on disk; it can be spent from then on.
   */
  async addCredit(
    email: string,
    tokens: number,
    reference?: string,
    inSameCommit?: (account: AccountId) => void,
  ): Promise<{ credited: boolean }> {
    const { id } = this.#byEmail(email);
    this.checkNotErased(id);
    const withIt = (): void => inSameCommit?.(id);
    if (reference !== undefined) return this.addCreditById(id, tokens, `credit:${reference}`, withIt);
    checkAmount(tokens);
    return this.#credit(id, tokens, `purchase:${crypto.randomUUID()}`, withIt); // nobody has that
  }

  /** The account that a reference of `addCredit` was credited to; null where it is new. */
  creditedTo(reference: string): AccountRecord | null {
    const owner = this.#parts.records.ownerOfEntry(`credit:${reference}`);
    return owner === null ? null : this.#byId(owner);
  }

  /** The same billing key counts once. Deleted accounts have what they paid for, too. */
  async addCreditById(
    id: AccountId,
    tokens: number,
    billingKey: string,
    inSameCommit?: InSameCommit,
  ): Promise<{ credited: boolean }> {
    checkAmount(tokens);
    // On disk, all ill-formed texts of one length are the same.
    if (!billingKey.isWellFormed()) throw new AccountError("a reference must be well-formed text");
    const other = this.#buying.get(billingKey);
    if (other !== undefined) {
      await other;
      return { credited: false };
    }
    if (this.#parts.records.ownerOfEntry(billingKey) !== null) return { credited: false };
    return this.#credit(id, tokens, billingKey, inSameCommit);
  }

  async #credit(
    id: AccountId,
    tokens: number,
    billingKey: string,
    inSameCommit?: InSameCommit,
  ): Promise<{ credited: boolean }> {
    const { ledger, journal } = this.#parts;
    const sequence = this.#buy(ledger.account(this.#byId(id).id), tokens, billingKey);
    inSameCommit?.();
    const bought = journal.durable(sequence);
    this.#buying.set(billingKey, bought);
    try {
      await bought;
    } finally {
      this.#buying.delete(billingKey);
    }
    return { credited: true };
  }

  /** The old key is void at once and the new one is shown this once; resolves when that is on disk. */
  async rotateKey(email: string, inSameCommit?: (account: AccountId) => void): Promise<{ api_key: string }> {
    const { id } = this.#byEmail(email);
    return this.#rotate(id, () => inSameCommit?.(id));
  }

  async rotateKeyById(account: AccountId, inSameCommit?: InSameCommit): Promise<{ api_key: string }> {
    return this.#rotate(this.#byId(account).id, inSameCommit);
  }

  /**
   * Disables the account and takes away who it was: e-mail, key, password, sessions and notes. Its lines stay, so that
   * the books do, under a name that says nothing. `before` erases what is kept elsewhere, while the e-mail still names
   * the account: an erasure that failed can be asked for again. Throws AccountError while a request is open.
   */
  async erase(
    email: string,
    before: (account: AccountId) => Promise<void>,
    inSameCommit?: InSameCommit,
  ): Promise<ErasedAccount> {
    const { id } = this.#byEmail(email);
    await this.setDisabled(id, true);
    this.checkNothingOpen(id);
    this.#erasing.add(id);
    try {
      await before(id);
      return await this.finishErasure(email, inSameCommit);
    } finally {
      this.#erasing.delete(id); // what is on disk says it now, or the account is still there
    }
  }

  /** Throws AccountError while a request of the account is open. */
  checkNothingOpen(id: AccountId): void {
    const { holds } = this.#parts.ledger.account(id);
    if (holds === 0) return;
    throw new AccountError(
      `${this.#byId(id).email} is disabled and has ${holds} open requests; delete it when they ended`,
    );
  }

  /** The last step of `erase`: takes away who it was. */
  async finishErasure(email: string, inSameCommit?: InSameCommit): Promise<ErasedAccount> {
    const { ledger, keys, journal, clock } = this.#parts;
    const record = this.#byEmail(email);
    const { id } = record;
    const account = ledger.account(id);
    const name = this.#nameOfErased(id);
    const keyHash = hashApiKey(mintApiKey()); // nobody's
    const sequence = journal.change({ change: "erase", account: id, email, name, keyHash, at: clock.wall() });
    inSameCommit?.();
    await journal.durable(sequence);
    keys.replace(account, keyHash);
    ledger.endUsers.erased(id);
    if (this.#count !== null && !isErased(record)) this.#count -= 1;
    return { id, name };
  }

  /** Throws PasswordsBusy. The account's sessions are the caller's business. */
  async changePasswordById(id: AccountId, password: string, inSameCommit?: InSameCommit): Promise<void> {
    this.checkNotErased(id);
    const passwordHash = await this.#passwords.hash(checkPassword(password));
    await this.#setPassword(id, passwordHash, inSameCommit);
  }

  /** As `changePasswordById`, to none: nobody signs in with a password from then on. */
  forgetPassword(id: AccountId, inSameCommit?: InSameCommit): Promise<void> {
    return this.#setPassword(id, null, inSameCommit);
  }

  /** A new password for who says the old one; null where that is wrong. Throws PasswordsBusy. */
  async replacementOfPassword(
    id: AccountId,
    old: string,
    password: string,
    turn?: PasswordTurn,
  ): Promise<PasswordReplacement | null> {
    const { passwordHash: before } = this.#byId(id);
    if (before === null || !(await this.#passwords.verify(old, before, turn))) return null;
    const after = await this.#passwords.hash(checkPassword(password), turn);
    return {
      isOvertaken: () => this.hasAnotherPassword(id, before),
      apply: (inSameCommit) => this.#setPassword(id, after, inSameCommit),
      before,
      after,
    };
  }

  /** Whether that of a hash was replaced, or is being replaced. */
  hasAnotherPassword(id: AccountId, hash: string): boolean {
    return this.#newPasswords.has(id) || this.#byId(id).passwordHash !== hash;
  }

  /** Puts one hash in the place of another. Throws AccountError where that is not the account's anymore. */
  async replacePassword(id: AccountId, before: string, after: string, inSameCommit?: InSameCommit): Promise<void> {
    if (this.hasAnotherPassword(id, before)) throw new AccountError("the password was changed meanwhile");
    await this.#setPassword(id, after, inSameCommit);
  }

  /**
   * The account of an e-mail and password, or null. Unknown e-mails and accounts without a password cost the same
   * work as a wrong password, so that the time says nothing. Throws PasswordsBusy.
   */
  async signIn(email: string, password: string, turn?: PasswordTurn): Promise<AccountRecord | null> {
    const { records, ledger } = this.#parts;
    const record = records.byEmail(email);
    const nobodys = await this.#passwords.ofNobody();
    const matches = await this.#passwords.verify(password, record?.passwordHash ?? nobodys, turn);
    if (!matches || record === null || record.passwordHash === null) return null;
    // The account may have changed meanwhile; an old password must not open a session after that.
    const now = records.byId(record.id);
    const isAsItWas = now !== null && now.passwordHash === record.passwordHash && !ledger.account(now.id).disabled;
    return isAsItWas ? now : null;
  }

  /** An invitation that can be kept: throws AccountError for a bad or known e-mail, a bad plan, amount or time. */
  invitation(
    { email, plan = this.planOfNew, credit, expiresAt }: Invitation,
    now: Ms,
  ): NewAccessLink & Readonly<{ kind: "invitation" }> {
    if (email !== null) {
      checkEmail(email);
      if (this.#creating.has(email.toLowerCase()) || this.recordOf(email) !== null) throw new EmailTaken(email);
    }
    if (credit !== 0) checkAmount(credit);
    checkExpiry(expiresAt, now);
    return { kind: "invitation", account: null, email, plan: this.#plan(plan), credit, expiresAt };
  }

  /** A plan that was chosen before, while there is such a plan. */
  planStill(plan: PlanId | null): PlanId {
    return plan !== null && isPlan(this.#parts.plans, plan) ? plan : this.planOfNew;
  }

  /** A link by which the account's password is set, or the account is connected with an identity provider. */
  passwordLink(id: AccountId, expiresAt: Ms, now: Ms): NewAccessLink {
    this.checkNotErased(id);
    checkExpiry(expiresAt, now);
    return { kind: "password", account: id, email: null, plan: this.#byId(id).plan, credit: 0, expiresAt };
  }

  /** Throws AccountError where that would leave no operator. */
  async setOperator(id: AccountId, operator: boolean, inSameCommit?: InSameCommit): Promise<void> {
    const { journal } = this.#parts;
    this.checkNotErased(id);
    if (!operator) this.checkNotLastOperator(id);
    const sequence = journal.change({ change: "operator", account: id, operator });
    inSameCommit?.();
    await journal.durable(sequence);
  }

  /** Throws AccountError for the one operator that is not disabled: nobody could sign in to let others in again. */
  checkNotLastOperator(id: AccountId): void {
    const { records, ledger } = this.#parts;
    const { email, operator } = this.#byId(id);
    if (!operator) return;
    // Memory knows it earlier than the disk where somebody is disabled.
    const others = records.operators().filter((other) => other !== id && !ledger.account(other).disabled);
    if (others.length === 0) throw new AccountError(`${email} is the only operator; make another one first`);
  }

  /** Throws AccountError for an account that was deleted: there is nobody to give it anything. */
  checkNotErased(id: AccountId): void {
    const record = this.#byId(id);
    if (isErased(record) || this.#erasing.has(id)) throw new AccountError(`${record.email} is a deleted account`);
  }

  /** The account's replies, newest first. */
  async usage(email: string, limit: number): Promise<readonly UsageRow[]> {
    return this.#parts.records.usage(this.#byEmail(email).id, limit);
  }

  async usageById(account: AccountId, limit: number): Promise<readonly UsageRow[]> {
    return this.#parts.records.usage(account, limit);
  }

  /** Recomputes the balances of all accounts from the journal and compares them with the disk and the memory. */
  verify(): Promise<Verification> {
    return this.#parts.verify();
  }

  #view({ id, email, disabledAt }: AccountRecord): AccountView {
    const { id: _, plan, ...numbers } = this.#numbers(id);
    return { id, email, plan, disabled: disabledAt !== null, ...numbers };
  }

  #numbers(id: AccountId): Omit<AccountView, "email" | "disabled"> {
    const { ledger, clock } = this.#parts;
    const now = clock.wall();
    const account = ledger.account(id);
    const day = dayName(dayOf(now));
    const { unlimited } = account.plan;
    return {
      id,
      plan: account.plan.id,
      allowance: unlimited
        ? { day, granted: null, left: null }
        : { day, granted: account.plan.tokensPerDay, left: ledger.allowanceLeft(account, now) },
      credit: account.credit,
      reserved: account.held,
      spendable: unlimited ? null : ledger.spendable(account, now),
      coder_calls: {
        window: coderWindowName(coderWindowOf(now)),
        used: ledger.use(account, "coder_calls", coderWindowOf(now)).used,
        limit: limitOf(account.plan.coderCallsPerWindow),
      },
      searches: {
        day,
        used: ledger.use(account, "searches", dayOf(now)).used,
        limit: limitOf(account.plan.searchesPerDay),
      },
    };
  }

  #buy(account: LoadedAccount, tokens: number, billingKey: string): number {
    const { ledger, journal, clock } = this.#parts;
    ledger.appended(account);
    return journal.append({
      billingKey,
      kind: "credit",
      account: account.id,
      key: defaultKey,
      at: clock.wall(),
      period: 0,
      used: 0,
      creditDelta: tokens,
      reply: null,
    });
  }

  /** In the turn of the call, unless the account was erased while its password was hashed. */
  async #setPassword(id: AccountId, passwordHash: string | null, inSameCommit?: InSameCommit): Promise<void> {
    const { journal } = this.#parts;
    this.checkNotErased(id);
    const sequence = journal.change({ change: "password", account: id, passwordHash });
    this.#newPasswords.set(id, sequence);
    inSameCommit?.();
    try {
      await journal.durable(sequence);
    } finally {
      if (this.#newPasswords.get(id) === sequence) this.#newPasswords.delete(id);
    }
  }

  async #rotate(id: AccountId, inSameCommit?: InSameCommit): Promise<{ api_key: string }> {
    this.checkNotErased(id);
    const { ledger, keys, journal, clock } = this.#parts;
    const account = ledger.account(id);
    const key = mintApiKey();
    const keyHash = hashApiKey(key);
    keys.replace(account, keyHash);
    try {
      const keyEnding = endingOf(key);
      const sequence = journal.change({ change: "key", account: id, keyHash, keyEnding, at: clock.wall() });
      inSameCommit?.();
      await journal.durable(sequence);
    } catch (thrown) {
      // The disk still has an older key, and a restart would take it: so must this process, unless a later rotation
      // has come in between. The one before may be lost as well, so that the disk is asked which.
      if (thrown instanceof StoreUnavailable && account.keyHash === keyHash) {
        keys.replace(account, this.#byId(id).keyHash);
      }
      throw thrown;
    }
    return { api_key: key };
  }

  /** Nobody can take such a name, but an account may have it from a time when anybody could. */
  #nameOfErased(id: AccountId): string {
    for (let attempt = 1; ; attempt += 1) {
      const name = attempt === 1 ? `deleted-${id}@invalid` : `deleted-${id}-${attempt}@invalid`;
      const owner = this.#parts.records.byEmail(name);
      if (owner === null || owner.id === id) return name;
    }
  }

  #plan(plan: string): PlanId {
    const { plans } = this.#parts;
    if (!isPlan(plans, plan)) {
      throw new AccountError(`no plan is called ${plan}; the plans are ${Object.keys(plans).join(", ")}`);
    }
    return plan;
  }

  #byEmail(email: string): AccountRecord {
    const record = this.#parts.records.byEmail(email);
    if (record === null) throw new AccountError(`no account has the e-mail ${email}`);
    return record;
  }

  #byId(account: AccountId): AccountRecord {
    const record = this.#parts.records.byId(account);
    assert(record !== null, `account ${account} exists`);
    return record;
  }
}

function summaryOf({ id, email, plan, credit, operator, disabledAt, createdAt }: AccountRecord): AccountSummary {
  const created_at = new Date(createdAt).toISOString();
  return { id, email, plan, credit, operator, disabled: disabledAt !== null, created_at };
}

/** What stands in the place of the e-mail of a deleted account. */
const erasedName = /^deleted-[\d-]+@invalid$/i;

/** One that is called so may be from a time when anybody could take the name. */
export const isErased = ({ email, disabledAt, passwordHash }: AccountRecord): boolean =>
  erasedName.test(email) && disabledAt !== null && passwordHash === null;

/**
 * What browsers take in a field for e-mail addresses (HTML's rule): ASCII alone, so that no two names look alike, and none
 * has characters that nobody sees. A domain with other letters has an ASCII form, `xn--...`, which shows what it is.
 */
const emailShape =
  /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** Of new accounts; those from before keep what they have. */
function checkEmail(email: string): void {
  const shown = JSON.stringify(email.slice(0, emailMaxLength));
  if (/[^\x21-\x7e]/.test(email)) {
    throw new AccountError(
      `${shown} is not an e-mail address that can be told from others: use plain letters (a-z), digits and signs, and ` +
        "the xn-- form of a domain with other letters",
    );
  }
  if (email.length > emailMaxLength || !emailShape.test(email)) {
    throw new AccountError(`${shown} is not an e-mail address`);
  }
  if (erasedName.test(email)) throw new AccountError(`${email} is a name of deleted accounts`);
}

function checkAmount(tokens: number): void {
  if (!Number.isSafeInteger(tokens) || tokens < 1 || tokens > creditGrantMaxTokens) {
    throw new AccountError(
      `credit is a whole number of balance tokens from 1 to ${creditGrantMaxTokens}, not ${tokens}`,
    );
  }
}

function checkExpiry(expiresAt: Ms, now: Ms): void {
  if (expiresAt > now && expiresAt <= now + linkMaxMs) return;
  throw new AccountError(`a link expires within ${linkMaxMs / dayMs} days from now`);
}

function checkPassword(password: string): string {
  if (password === "") throw new AccountError("a password must not be empty");
  return password;
}
