// What a unit of the office that may write reads: what it decides by is locked. An account's row stands for all that the account
// has: its keys, sessions and requests.
//
// Locks are taken in everybody's order (statements.ts): accounts by their numbers, then the rest. An account that a unit meets
// late is locked without waiting; where somebody has it, the unit runs again from its start and begins with all that it knows of.
import type {
  AccessLink,
  AccountRecord,
  DeviceCode,
  KeyRecord,
  Mail,
  OperatorToken,
  PurchaseRequest,
  SessionRecord,
  TeamMember,
} from "../../account/records.ts";
import type { AccountId, KeyId, Ms } from "../../core/types.ts";
import { arrayOf, call } from "./connection.ts";
import type { Session } from "./database.ts";
import type { Numbered } from "../store-records.ts";
import { PostgresRecords } from "./records.ts";

const lock = "SELECT 1 FROM accounts WHERE id = ANY($1::text::bigint[]) ORDER BY accounts.id FOR UPDATE";
const lockAccounts = { name: "lock accounts", text: lock };
const lockAccountsAtOnce = { name: "lock accounts at once", text: `${lock} NOWAIT` };
const lockCounter = {
  name: "lock counter",
  text: `INSERT INTO counters (name, value) VALUES ($1::text, 0) ON CONFLICT (name) DO UPDATE SET value = counters.value`,
};

export class LockingRecords extends PostgresRecords {
  /** Of all attempts of the unit. */
  readonly #known: Set<AccountId>;
  readonly #locked = new Set<AccountId>();
  readonly #records = new Map<AccountId, Promise<AccountRecord | null>>();
  /** E-mails without an account: if another unit takes one meanwhile, this one runs again. */
  readonly #free = new Set<string>();
  #highest = 0;

  constructor(transaction: Session, known: Set<AccountId>) {
    super(transaction);
    this.#known = known;
  }

  /** Those that an earlier attempt met. */
  lockKnown(): Promise<void> {
    return this.#under([...this.#known], async () => {});
  }

  /** Asked once: a locked row stays as it is. */
  override byId(account: AccountId): Promise<AccountRecord | null> {
    const known = this.#records.get(account);
    if (known !== undefined) return known;
    const read = this.#ofAccount(account, () => super.byId(account));
    this.#records.set(account, read);
    return read;
  }

  override async byEmail(email: string): Promise<AccountRecord | null> {
    if (this.#free.has(email)) return null;
    const read = () => super.byEmail(email);
    const found = await this.#ofWhomItIs(read, ({ id }) => id);
    if (found !== null) this.#records.set(found.id, Promise.resolve(found));
    return found;
  }

  override async byEmails(emails: readonly string[]): Promise<readonly AccountRecord[]> {
    const read = () => super.byEmails(emails);
    let found = await read();
    while (found.some(({ id }) => !this.#locked.has(id))) {
      const ids = found.map(({ id }) => id);
      found = await this.#under(ids, read);
    }
    for (const record of found) this.#records.set(record.id, Promise.resolve(record));
    const taken = new Set(found.map(({ email }) => email.toLowerCase()));
    for (const email of emails) if (!taken.has(email.toLowerCase())) this.#free.add(email);
    return found;
  }

  override keysOf(account: AccountId): Promise<readonly KeyRecord[]> {
    return this.#ofAccount(account, () => super.keysOf(account));
  }

  override membersOf(team: AccountId): Promise<readonly TeamMember[]> {
    return this.#ofAccount(team, () => super.membersOf(team));
  }

  override teamsOf(account: AccountId): Promise<readonly TeamMember[]> {
    return this.#ofAccount(account, () => super.teamsOf(account));
  }

  override endUsersNamed(account: AccountId, name: string): Promise<readonly Readonly<{ id: number; key: KeyId }>[]> {
    return this.#ofAccount(account, () => super.endUsersNamed(account, name));
  }

  override sessionsOf(account: AccountId): Promise<readonly SessionRecord[]> {
    return this.#ofAccount(account, () => super.sessionsOf(account));
  }

  override request(id: number): Promise<PurchaseRequest | null> {
    return this.#ofWhomItIs(
      () => super.request(id),
      ({ account }) => account,
    );
  }

  override pendingRequests(account: AccountId | null): Promise<number> {
    return this.#ofAccount(account, () => super.pendingRequests(account));
  }

  override async link(tokenHash: string): Promise<AccessLink | null> {
    const found = await super.link(tokenHash);
    return this.#ofAccount(found?.account ?? null, () => this.#late(() => super.link(tokenHash, true)));
  }

  override async linkById(id: number): Promise<AccessLink | null> {
    const found = await super.linkById(id);
    return this.#ofAccount(found?.account ?? null, () => this.#late(() => super.linkById(id, true)));
  }

  /** Who looks at all of them makes one that is not among them: one at a time. */
  override openInvitations(limit: number, team?: AccountId): Promise<readonly AccessLink[]> {
    return this.#counted("access_links", () => super.openInvitations(limit, team));
  }

  /** As invitations. */
  override operatorTokens(limit: number): Promise<readonly OperatorToken[]> {
    return this.#counted("operator_tokens", () => super.operatorTokens(limit));
  }

  override keyWith(hash: "keyHash" | "familyHash", is: string): Promise<KeyRecord | null> {
    return this.#ofWhomItIs(
      () => super.keyWith(hash, is),
      ({ account }) => account,
    );
  }

  override deviceCode(hash: "deviceHash" | "userCodeHash", is: string): Promise<DeviceCode | null> {
    return this.#late(() => super.deviceCode(hash, is, true));
  }

  override mail(once: string): Promise<Mail | null> {
    return this.#late(() => super.mail(once, true));
  }

  override dueMails(by: Ms, limit: number): Promise<readonly Mail[]> {
    return this.#late(() => super.dueMails(by, limit, true));
  }

  /** A person who is new is made, or connected, by one at a time: two who come at once are one. */
  override async accountOfIdentity(issuer: string, subject: string): Promise<AccountId | null> {
    const read = () => super.accountOfIdentity(issuer, subject);
    return (await this.#ofWhomItIs(read, (account) => account)) ?? this.#counted("accounts", read);
  }

  protected override lastOf(table: Numbered): Promise<number> {
    return this.#counted(table, () => super.lastOf(table));
  }

  #counted<Value>(table: Numbered, read: () => Promise<Value>): Promise<Value> {
    return this.#late(async () => {
      const [, value] = await Promise.all([this.transaction.run([call(lockCounter, table)]), read()]);
      return value;
    });
  }

  #ofAccount<Value>(account: AccountId | null, read: () => Promise<Value>): Promise<Value> {
    return this.#under(account === null ? [] : [account], read);
  }

  /** Records whose owner is unknown until they are read. */
  async #ofWhomItIs<Value>(
    read: () => Promise<Value | null>,
    accountOf: (value: Value) => AccountId,
  ): Promise<Value | null> {
    let found = await read();
    while (found !== null && !this.#locked.has(accountOf(found))) found = await this.#under([accountOf(found)], read);
    return found;
  }

  /** Sent together: what is read is as it was when the locks were there. */
  async #under<Value>(accounts: readonly AccountId[], read: () => Promise<Value>): Promise<Value> {
    const wanted = accounts.filter((account) => !this.#locked.has(account));
    if (wanted.length === 0) return read();
    const inOrder = [...new Set(wanted)].sort((a, b) => a - b);
    const waits = inOrder[0]! > this.#highest;
    for (const account of inOrder) {
      this.#known.add(account);
      this.#locked.add(account);
    }
    this.#highest = Math.max(this.#highest, inOrder.at(-1)!);
    const locking = this.transaction.run([call(waits ? lockAccounts : lockAccountsAtOnce, arrayOf(inOrder))]);
    const [value] = await Promise.all([read(), locking]);
    return value;
  }

  /** Of what comes behind all accounts. */
  #late<Value>(read: () => Promise<Value>): Promise<Value> {
    this.#highest = Infinity;
    return read();
  }
}
