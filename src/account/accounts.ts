// The accounts as the command line and the console see them. Whatever changes something resolves once it is on disk.
import { assert } from "../assert.ts";
import type { Catalog } from "../catalog.ts";
import type { Clock } from "../clock.ts";
import { creditGrantMaxTokens, emailMaxLength } from "../limits.ts";
import { StoreUnavailable, type AccountId, type PlanId } from "../types.ts";
import type { Journal } from "./journal.ts";
import { hashApiKey, mintApiKey, type Keys } from "./keys.ts";
import type { Ledger } from "./ledger.ts";
import { LoadedAccount } from "./loaded-account.ts";
import { coderWindowName, coderWindowOf, dayName, dayOf } from "./quota.ts";
import type { AccountRecord, AccountRecords, UsageRow } from "./records.ts";

/** What was asked of an account cannot be done; the message is one line for whoever asked. */
export class AccountError extends Error {
  override readonly name = "AccountError";
}

export type NewAccount = Readonly<{
  email: string;
  plan?: string;
  /** Opening credit in balance tokens. */
  credit?: number;
  password?: string;
  operator?: boolean;
}>;

/** `api_key` is shown this once: only its hash is kept. */
export type CreatedAccount = Readonly<{ id: AccountId; email: string; plan: PlanId; api_key: string }>;

export type AccountSummary = Readonly<{
  id: AccountId;
  email: string;
  plan: PlanId;
  credit: number;
  operator: boolean;
  created_at: string;
}>;

/** In the words of `tollgate accounts show --json`; amounts in balance tokens. */
export type AccountView = Readonly<{
  id: AccountId;
  email: string;
  plan: PlanId;
  allowance: Readonly<{ day: string; granted: number; left: number }>;
  credit: number;
  reserved: number;
  spendable: number;
  coder_calls: Readonly<{ window: string; used: number; limit: number }>;
  searches: Readonly<{ day: string; used: number; limit: number }>;
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
}>;

export class Accounts {
  readonly #parts: Parts;
  #lastId: AccountId;
  /** E-mails whose accounts are on their way to disk, in lower case. */
  readonly #creating = new Set<string>();
  /** Purchases on their way to disk, so that the same reference twice at once is one purchase. */
  readonly #buying = new Map<string, Promise<void>>();

  /** Compared with where there is no password to compare with; made at the first sign-in. */
  #nobodysPasswordHash: Promise<string> | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#lastId = parts.records.lastId();
  }

  /** True before the first account was made. */
  get none(): boolean {
    return this.#lastId === 0;
  }

  /** Throws AccountError for a bad or known e-mail, a bad plan or a bad amount. */
  async create({ email, plan = "free", credit = 0, password, operator = false }: NewAccount): Promise<CreatedAccount> {
    const { records, ledger, journal, plans, clock } = this.#parts;
    checkEmail(email);
    const planId = this.#plan(plan);
    if (credit !== 0) checkAmount(credit);
    const passwordHash = password === undefined ? null : await Bun.password.hash(checkPassword(password));
    const folded = email.toLowerCase();
    if (this.#creating.has(folded) || records.byEmail(email) !== null) {
      throw new AccountError(`an account with the e-mail ${email} exists already`);
    }
    const id = (this.#lastId += 1);
    const key = mintApiKey();
    const keyHash = hashApiKey(key);
    const account = new LoadedAccount(id, plans[planId], 0, keyHash);
    ledger.add(account);
    this.#creating.add(folded);
    try {
      const at = clock.wall();
      let sequence = journal.change({
        change: "create",
        account: id,
        email,
        plan: planId,
        keyHash,
        passwordHash,
        operator,
        at,
      });
      if (credit > 0) sequence = this.#buy(account, credit, `opening:${id}`);
      await journal.durable(sequence);
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
    return this.#parts.records.list(after, limit).map(({ id, email, plan, credit, operator, createdAt }) => ({
      id,
      email,
      plan,
      credit,
      operator,
      created_at: new Date(createdAt).toISOString(),
    }));
  }

  /** Throws AccountError for an unknown e-mail, as everything below that takes one. */
  async show(email: string): Promise<AccountView> {
    return this.#view(this.#byEmail(email));
  }

  async showById(account: AccountId): Promise<AccountView> {
    return this.#view(this.#byId(account));
  }

  /** Acts at once: today's use stays, the amounts are the new plan's. */
  async changePlan(email: string, plan: string): Promise<void> {
    const { ledger, journal, plans } = this.#parts;
    const { id } = this.#byEmail(email);
    const planId = this.#plan(plan);
    const account = ledger.account(id);
    await journal.durable(journal.change({ change: "plan", account: id, plan: planId }));
    account.plan = plans[planId];
  }

  /**
   * Adds purchased credit. The same reference counts once, however often it comes: `credited` is false for a repeated
   * one. Resolves when the credit is on disk; it can be spent from then on.
   */
  async addCredit(email: string, tokens: number, reference?: string): Promise<{ credited: boolean }> {
    const { records, ledger, journal } = this.#parts;
    const { id } = this.#byEmail(email);
    checkAmount(tokens);
    const billingKey = reference === undefined ? `purchase:${crypto.randomUUID()}` : `credit:${reference}`;
    const other = this.#buying.get(billingKey);
    if (other !== undefined) {
      await other;
      return { credited: false };
    }
    if (records.hasEntry(billingKey)) return { credited: false };
    const bought = journal.durable(this.#buy(ledger.account(id), tokens, billingKey));
    this.#buying.set(billingKey, bought);
    try {
      await bought;
    } finally {
      this.#buying.delete(billingKey);
    }
    return { credited: true };
  }

  /** The old key is void at once and the new one is shown this once; resolves when that is on disk. */
  async rotateKey(email: string): Promise<{ api_key: string }> {
    return this.#rotate(this.#byEmail(email).id);
  }

  async rotateKeyById(account: AccountId): Promise<{ api_key: string }> {
    return this.#rotate(this.#byId(account).id);
  }

  async changePassword(email: string, password: string): Promise<void> {
    const { journal } = this.#parts;
    const passwordHash = await Bun.password.hash(checkPassword(password));
    await journal.durable(journal.change({ change: "password", account: this.#byEmail(email).id, passwordHash }));
  }

  /**
   * The account of an e-mail and password, or null. Unknown e-mails and accounts without a password cost the same
   * work as a wrong password, so that the time says nothing.
   */
  async signIn(email: string, password: string): Promise<AccountSummary | null> {
    const record = this.#parts.records.byEmail(email);
    this.#nobodysPasswordHash ??= Bun.password.hash(mintApiKey());
    const matches = await Bun.password.verify(password, record?.passwordHash ?? (await this.#nobodysPasswordHash));
    if (!matches || record === null || record.passwordHash === null) return null;
    const { id, plan, credit, operator, createdAt } = record;
    return { id, email: record.email, plan, credit, operator, created_at: new Date(createdAt).toISOString() };
  }

  /** The account's replies, newest first. */
  async usage(email: string, limit: number): Promise<readonly UsageRow[]> {
    return this.#parts.records.usage(this.#byEmail(email).id, limit);
  }

  async usageById(account: AccountId, limit: number): Promise<readonly UsageRow[]> {
    return this.#parts.records.usage(account, limit);
  }

  /** Balance tokens that the account's API replies cost since a moment. */
  async billedSince(account: AccountId, since: number): Promise<number> {
    return this.#parts.records.billedSince(account, since);
  }

  /** Recomputes the balances of all accounts from the journal and compares them with the disk and the memory. */
  verify(): Promise<Verification> {
    return this.#parts.verify();
  }

  #view({ id, email, plan }: AccountRecord): AccountView {
    const { ledger, clock } = this.#parts;
    const now = clock.wall();
    const account = ledger.account(id);
    const day = dayName(dayOf(now));
    return {
      id,
      email,
      plan: account.plan.id,
      allowance: { day, granted: account.plan.tokensPerDay, left: ledger.allowanceLeft(account, now) },
      credit: account.credit,
      reserved: account.held,
      spendable: ledger.spendable(account, now),
      coder_calls: {
        window: coderWindowName(coderWindowOf(now)),
        used: ledger.use(account, "coder_calls", coderWindowOf(now)).used,
        limit: account.plan.coderCallsPerWindow,
      },
      searches: {
        day,
        used: ledger.use(account, "searches", dayOf(now)).used,
        limit: account.plan.searchesPerDay,
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
      at: clock.wall(),
      period: 0,
      used: 0,
      creditDelta: tokens,
      reply: null,
    });
  }

  async #rotate(id: AccountId): Promise<{ api_key: string }> {
    const { ledger, keys, journal, clock } = this.#parts;
    const account = ledger.account(id);
    const before = account.keyHash;
    const key = mintApiKey();
    const keyHash = hashApiKey(key);
    keys.replace(account, keyHash);
    try {
      await journal.durable(journal.change({ change: "key", account: id, keyHash, at: clock.wall() }));
    } catch (thrown) {
      // The disk still has the old key, and a restart would take it: so must this process, unless a later rotation
      // has come in between.
      if (thrown instanceof StoreUnavailable && account.keyHash === keyHash) keys.replace(account, before);
      throw thrown;
    }
    return { api_key: key };
  }

  #plan(plan: string): PlanId {
    const { plans } = this.#parts;
    if (!Object.hasOwn(plans, plan)) {
      throw new AccountError(`no plan is called ${plan}; the plans are ${Object.keys(plans).join(", ")}`);
    }
    return plan as PlanId;
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

function checkEmail(email: string): void {
  if (email.length > emailMaxLength || !/^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(email)) {
    throw new AccountError(`${JSON.stringify(email)} is not an e-mail address`);
  }
}

function checkAmount(tokens: number): void {
  if (!Number.isSafeInteger(tokens) || tokens < 1 || tokens > creditGrantMaxTokens) {
    throw new AccountError(`credit is a whole number of tokens from 1 to ${creditGrantMaxTokens}, not ${tokens}`);
  }
}

function checkPassword(password: string): string {
  if (password === "") throw new AccountError("a password must not be empty");
  return password;
}
