// What a unit of the office adds to the books: nothing of it is anywhere else before the unit is committed.
import { changedLimits } from "../core/key-limits.ts";
import type { AccountId, Ms } from "../core/types.ts";
import type { Entry } from "./money/entry.ts";
import type { AccountChange } from "./journal.ts";
import type { AccountRecord, KeyRecord, TeamMember } from "./records.ts";

export class Draft {
  readonly changes: AccountChange[] = [];
  readonly entries: Entry[] = [];
  /** What would bring back, exactly as it was, what is taken away here (`people/taken-back.ts`). */
  readonly takenBack: AccountChange[] = [];
  /** The changes by account, as far as they were looked at: a unit may make 10,000 accounts, and asks for each. */
  readonly #ofAccount = new Map<AccountId, AccountChange[]>();
  readonly #made = new Map<string, AccountId>();
  #seen = 0;

  get isEmpty(): boolean {
    return this.changes.length === 0 && this.entries.length === 0;
  }

  /** An account as it will be: `before` is as the disk has it. */
  record(account: AccountId, before: AccountRecord | null): AccountRecord | null {
    return this.#of(account).reduce<AccountRecord | null>((record, change) => after(change, record), before);
  }

  /** The number of an account that is made here; null: none of that e-mail is. */
  made(email: string): AccountId | null {
    this.#look();
    return this.#made.get(email.toLowerCase()) ?? null;
  }

  /** Accounts that are operators by what is added here, unless something else that is added says otherwise. */
  raised(): readonly AccountId[] {
    return this.changes.flatMap((change) => {
      const isRaised =
        change.change === "create" || change.change === "operator"
          ? change.operator
          : change.change === "disabled" && change.at === null;
      return isRaised && "account" in change ? [change.account] : [];
    });
  }

  keys(account: AccountId, before: readonly KeyRecord[]): readonly KeyRecord[] {
    return this.#of(account).reduce<readonly KeyRecord[]>((keys, change) => {
      if (change.change === "new_key") return [...keys, change.key];
      if (change.change === "restore_key") return keys.map((key) => (key.id === change.key.id ? change.key : key));
      return keys.map((key) => ("key" in change && change.key === key.id ? keyAfter(change, key) : key));
    }, before);
  }

  members(team: AccountId, before: readonly TeamMember[]): readonly TeamMember[] {
    return this.#of(team).reduce<readonly TeamMember[]>((members, change) => {
      if (change.change !== "member" && change.change !== "remove_member") return members;
      const { member } = change;
      if (typeof member === "number") return members.filter(({ account }) => account !== member);
      return [...members.filter(({ account }) => account !== member.account), member];
    }, before);
  }

  /** Balance tokens that are added to an account's credit. */
  creditOf(account: AccountId): number {
    return this.entries.reduce((sum, entry) => (entry.account === account ? sum + entry.creditDelta : sum), 0);
  }

  #of(account: AccountId): readonly AccountChange[] {
    this.#look();
    return this.#ofAccount.get(account) ?? [];
  }

  #look(): void {
    for (; this.#seen < this.changes.length; this.#seen += 1) {
      const change = this.changes[this.#seen]!;
      if (!("account" in change)) continue;
      const { account } = change;
      const others = this.#ofAccount.get(account);
      if (others === undefined) this.#ofAccount.set(account, [change]);
      else others.push(change);
      if (change.change === "create") this.#made.set(change.email.toLowerCase(), account);
    }
  }
}

const noMail = { mailAddress: null, language: null, mailKinds: null } as const;

function after(change: AccountChange, record: AccountRecord | null): AccountRecord | null {
  if (change.change === "create") {
    const { account: id, email, plan, keyHash, keyEnding, passwordHash, operator, team = false, at } = change;
    const never = { keyUsedAt: null, disabledAt: null, costCenter: null, ...noMail } as const;
    return {
      id,
      email,
      plan,
      credit: 0,
      keyHash,
      keyEnding,
      passwordHash,
      operator,
      team,
      createdAt: at,
      keyCreatedAt: at,
      ...never,
    };
  }
  if (record === null) return null;
  switch (change.change) {
    case "name":
      return { ...record, email: change.name };
    case "plan":
      return { ...record, plan: change.plan };
    case "cost_center":
      return { ...record, costCenter: change.costCenter };
    case "mail_address":
      return { ...record, mailAddress: change.address };
    case "mail_kinds":
      return { ...record, mailKinds: change.kinds };
    case "language":
      return { ...record, language: change.language };
    case "key":
      return { ...record, keyHash: change.keyHash, keyEnding: change.keyEnding, keyCreatedAt: change.at };
    case "password":
      return { ...record, passwordHash: change.passwordHash };
    case "operator":
      return { ...record, operator: change.operator };
    case "disabled":
      return { ...record, disabledAt: change.at };
    case "erase": {
      const { name: email, keyHash } = change;
      const disabledAt: Ms = record.disabledAt ?? change.at;
      const nothing = { keyEnding: null, passwordHash: null, operator: false, costCenter: null, ...noMail } as const;
      return { ...record, email, keyHash, ...nothing, disabledAt };
    }
    default:
      return record;
  }
}

function keyAfter(change: AccountChange, key: KeyRecord): KeyRecord {
  switch (change.change) {
    case "key_name":
      return { ...key, name: change.name };
    case "key_limits":
      return { ...key, limits: changedLimits(key.limits, change.limits) };
    case "key_token": {
      const { keyHash, keyEnding, refreshHash, expiresAt } = change;
      return { ...key, keyHash, keyEnding, refreshHash, limits: changedLimits(key.limits, { expiresAt }) };
    }
    case "revoke_key":
      return { ...key, keyHash: null, familyHash: null, refreshHash: null, revokedAt: change.at };
    default:
      return key;
  }
}
