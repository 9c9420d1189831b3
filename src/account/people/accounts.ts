// Accounts as the command line and the console see them, in a unit of the office (office.ts).
import { assert } from "../../core/assert.ts";
import type { Catalog } from "../../core/catalog.ts";
import { creditGrantMaxTokens, emailMaxLength, linkMaxMs } from "../../core/limits.ts";
import { firstPlan, isPlan, limitOf, planOf } from "../../core/plans.ts";
import { type AccountId, defaultKey, type Ms, type PlanId } from "../../core/types.ts";
import { dayMs } from "../../core/units.ts";
import type { Draft } from "../draft.ts";
import { endingOf, hashApiKey, mintApiKey } from "./keys.ts";
import { coderWindowName, coderWindowOf, dayName, dayOf } from "../money/quota.ts";
import type { AccountRecord, NewAccessLink, OfficeRecords, PlanCount, Standings, TeamMember } from "../records.ts";
import type { UsageRow } from "../usage-row.ts";

/** A request about an account cannot be carried out; the message is one line for people. */
export class AccountError extends Error {
  override readonly name = "AccountError";
}

export class EmailTaken extends AccountError {
  constructor(email: string) {
    // Names without one are those of teams.
    super(
      email.includes("@")
        ? `an account with the e-mail ${email} exists already`
        : `a team named ${email} exists already`,
    );
  }
}

export type NewAccount = Readonly<{
  email: string;
  plan?: string | undefined;
  /** Opening credit in balance tokens. */
  credit?: number | undefined;
  /** Of `Passwords.hashNew`; absent: it has no password. */
  passwordHash?: string | undefined;
  operator?: boolean | undefined;
  /** A team's: `email` is its name. */
  team?: boolean | undefined;
}>;

export type Invitation = Readonly<{ email: string | null; plan?: string | undefined; credit: number; expiresAt: Ms }> &
  Partial<IntoTeam>;
type IntoTeam = Pick<NewAccessLink, "team" | "tokensPerDay" | "tokensPerMonth">;
const noTeam: IntoTeam = { team: null, tokensPerDay: null, tokensPerMonth: null };

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
  /** Whose e-mail is the name of a team. */
  team: boolean;
  disabled: boolean;
  created_at: string;
}>;

/** In the words of `tollgate accounts show --json`; amounts in balance tokens, null where the plan does not limit them. */
export type AccountView = Readonly<{
  id: AccountId;
  email: string;
  plan: PlanId;
  disabled: boolean;
  /** Whom its use is booked to from now on; null: nobody. */
  cost_center: string | null;
  allowance: Readonly<{ day: string; granted: number | null; left: number | null }>;
  credit: number;
  reserved: number;
  spendable: number | null;
  coder_calls: Readonly<{ window: string; used: number; limit: number | null }>;
  searches: Readonly<{ day: string; used: number; limit: number | null }>;
}>;

/** A broken invariant: its number, the account (null where it has none) and what does not fit. */
export type Violation = Readonly<{ invariant: string; account: AccountId | null; detail: string }>;
export type Verification = Readonly<{ accounts: number; violations: readonly Violation[] }>;

type Parts = Readonly<{
  records: OfficeRecords;
  standings: Standings;
  plans: Catalog["plans"];
  draft: Draft;
  now: Ms;
}>;

export class Accounts {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  // -------------------------------------------------------------- what there is

  /** True before the first account was made. */
  async none(): Promise<boolean> {
    return (await this.#parts.records.list(0, 1)).length === 0;
  }

  /** How many there are, without those that were erased. */
  async count(): Promise<number> {
    return this.#parts.standings.count();
  }

  /** How many accounts there are of each plan, also of those that are not configured. */
  async byPlan(): Promise<readonly PlanCount[]> {
    return this.#parts.records.byPlan();
  }

  /** Whether an account may see all the others, and is not disabled. */
  async hasOperator(): Promise<boolean> {
    return (await this.#parts.records.operators()).length > 0;
  }

  /** Accounts in the order of their ids, from the one after `after`. */
  async list({ after = 0, limit = 1_000_000 } = {}): Promise<AccountSummary[]> {
    return (await this.#parts.records.list(after, limit)).map(summaryOf);
  }

  /** Null: there is no such account. As this unit leaves it, which holds for all below. */
  async record(id: AccountId): Promise<AccountRecord | null> {
    const { records, draft } = this.#parts;
    return draft.record(id, await records.byId(id));
  }

  async recordOf(email: string): Promise<AccountRecord | null> {
    const { records, draft } = this.#parts;
    const record = await records.byEmail(email);
    const id = record?.id ?? draft.made(email);
    return id === null ? null : draft.record(id, record);
  }

  /** As `recordOf`, of each of them: a thousand are one round trip to a database server. */
  async recordsOf(emails: readonly string[]): Promise<readonly (AccountRecord | null)[]> {
    const { records, draft } = this.#parts;
    const found = new Map((await records.byEmails(emails)).map((record) => [record.email.toLowerCase(), record]));
    return emails.map((email) => {
      const record = found.get(email.toLowerCase()) ?? null;
      const id = record?.id ?? draft.made(email);
      return id === null ? null : draft.record(id, record);
    });
  }

  /** Throws AccountError for an unknown e-mail. */
  async ofEmail(email: string): Promise<AccountRecord> {
    const record = await this.recordOf(email);
    if (record === null) throw new AccountError(`no account has the e-mail ${email}`);
    return record;
  }

  /** Whether it may still be used, and has the password that it had when it was read: who said that may come in. */
  async isAsItWas({ id, passwordHash }: AccountRecord): Promise<boolean> {
    const now = await this.record(id);
    return now !== null && now.disabledAt === null && now.passwordHash === passwordHash;
  }

  async show(id: AccountId): Promise<AccountView> {
    const record = await this.#existing(id);
    const { id: _, plan, openReservations: __, ...numbers } = await this.#numbers(record);
    const { email, disabledAt, costCenter: cost_center } = record;
    return { id, email, plan, disabled: disabledAt !== null, cost_center, ...numbers };
  }

  /** What `show` shows, and the number of open reservations. */
  async numbers(
    id: AccountId,
  ): Promise<Omit<AccountView, "email" | "disabled" | "cost_center"> & Readonly<{ openReservations: number }>> {
    return this.#numbers(await this.#existing(id));
  }

  /** The account's replies, newest first. */
  async usage(id: AccountId, limit: number): Promise<readonly UsageRow[]> {
    return this.#parts.records.usage(id, limit);
  }

  // -------------------------------------------------------------- accounts

  /** Of accounts for which none is named. */
  get planOfNew(): PlanId {
    return firstPlan(this.#parts.plans).id;
  }

  /** A plan that was chosen before, while there is such a plan. */
  planStill(plan: PlanId | null): PlanId {
    return plan !== null && isPlan(this.#parts.plans, plan) ? plan : this.planOfNew;
  }

  /** Throws AccountError for a bad or known e-mail, a bad plan or a bad amount. */
  async create({
    email,
    plan = this.planOfNew,
    credit = 0,
    passwordHash,
    operator = false,
    team = false,
  }: NewAccount): Promise<CreatedAccount> {
    const { records, draft, now: at } = this.#parts;
    if (team) checkTeamName(email);
    else checkEmail(email);
    const planId = this.#plan(plan);
    if (credit !== 0) checkAmount(credit);
    if ((await this.recordOf(email)) !== null) throw new EmailTaken(email);
    const id = await records.next("accounts");
    const key = mintApiKey();
    const ofKey = { keyHash: hashApiKey(key), keyEnding: endingOf(key), passwordHash: passwordHash ?? null };
    draft.changes.push({ change: "create", account: id, email, plan: planId, ...ofKey, operator, team, at });
    if (credit > 0) this.#buy(id, 0, credit, `opening:${id}`);
    return { id, email, plan: planId, api_key: key };
  }

  /** Acts at once: today's use stays, the amounts are the new plan's. */
  async changePlan(id: AccountId, plan: string): Promise<void> {
    await this.checkNotErased(id);
    this.#parts.draft.changes.push({ change: "plan", account: id, plan: this.#plan(plan) });
  }

  /** Of lines from then on: those that there are stay as they were booked. */
  async setCostCenter(id: AccountId, costCenter: string | null): Promise<void> {
    await this.checkNotErased(id);
    this.#parts.draft.changes.push({ change: "cost_center", account: id, costCenter });
  }

  /** A disabled account's key and sessions are refused at once; what runs may end. Enabling acts when it is on disk. */
  async setDisabled(id: AccountId, disabled: boolean): Promise<void> {
    const { draft, now } = this.#parts;
    if (disabled) {
      const { disabledAt } = await this.#existing(id);
      if (disabledAt === null) draft.takenBack.push({ change: "disabled", account: id, at: null });
    } else await this.checkNotErased(id);
    draft.changes.push({ change: "disabled", account: id, at: disabled ? now : null });
    if (disabled) await this.#revokeInTeams(id);
  }

  /** Throws AccountError for a bad or known name. */
  async renameTeam(id: AccountId, name: string): Promise<void> {
    await this.checkNotErased(id);
    checkTeamName(name);
    const owner = await this.recordOf(name);
    if (owner !== null && owner.id !== id) throw new EmailTaken(name);
    this.#parts.draft.changes.push({ change: "name", account: id, name });
  }

  /** Those who came first are first. */
  async members(team: AccountId): Promise<readonly TeamMember[]> {
    const { records, draft } = this.#parts;
    return draft.members(team, await records.membersOf(team));
  }

  /** Null: the account is not in the team. */
  async member(team: AccountId, account: AccountId): Promise<TeamMember | null> {
    return (await this.members(team)).find((member) => member.account === account) ?? null;
  }

  /** The keys that a person has in a team are void at once. */
  async revokeIn(team: AccountId, member: AccountId): Promise<void> {
    const { records, draft, now: at } = this.#parts;
    for (const key of draft.keys(team, await records.keysOf(team))) {
      if (key.limits?.member !== member || key.revokedAt !== null) continue;
      draft.takenBack.push({ change: "restore_key", account: team, key });
      draft.changes.push({ change: "revoke_key", account: team, key: key.id, at });
    }
  }

  async #revokeInTeams(id: AccountId): Promise<void> {
    for (const { team } of await this.#parts.records.teamsOf(id)) await this.revokeIn(team, id);
  }

  /** Throws AccountError where that would leave no operator. */
  async setOperator(id: AccountId, operator: boolean): Promise<void> {
    await this.checkPerson(id);
    if (!operator) await this.checkNotLastOperator(id);
    this.#parts.draft.changes.push({ change: "operator", account: id, operator });
  }

  /** The old key is void at once and the new one is shown this once. */
  async rotateKey(id: AccountId): Promise<{ api_key: string }> {
    const { draft, now: at } = this.#parts;
    await this.checkNotErased(id);
    const key = mintApiKey();
    draft.changes.push({ change: "key", account: id, keyHash: hashApiKey(key), keyEnding: endingOf(key), at });
    return { api_key: key };
  }

  /** Null: no sign-in with a password from then on. Sessions are the caller's business. */
  async setPassword(id: AccountId, passwordHash: string | null): Promise<void> {
    await this.checkPerson(id);
    this.#parts.draft.changes.push({ change: "password", account: id, passwordHash });
  }

  /**
   * Takes away who the account was: e-mail, key, password, sessions and notes. Its lines stay, so that the books do, under
   * a name that says nothing. Throws AccountError while a request of it is open: it is disabled before.
   */
  async erase(id: AccountId): Promise<ErasedAccount> {
    const { draft, now: at } = this.#parts;
    const { email } = await this.#existing(id);
    await this.checkNothingOpen(id);
    await this.#revokeInTeams(id);
    const name = await this.#nameOfErased(id);
    const keyHash = hashApiKey(mintApiKey()); // of no key
    draft.changes.push({ change: "erase", account: id, email, name, keyHash, at });
    return { id, name };
  }

  // -------------------------------------------------------------- credit

  /** Adds purchased credit. The same reference counts once, however often it comes: `credited` is false for a repeated one. */
  async addCredit(id: AccountId, tokens: number, reference?: string): Promise<{ credited: boolean }> {
    await this.checkNotErased(id);
    const isOnce = reference === undefined; // a fresh one
    return this.credit(id, tokens, isOnce ? `purchase:${crypto.randomUUID()}` : `credit:${reference}`);
  }

  /** The account that a reference of `addCredit` was credited to; null where it is new. */
  async creditedTo(reference: string): Promise<AccountRecord | null> {
    const owner = await this.#parts.records.ownerOfEntry(`credit:${reference}`);
    return owner === null ? null : this.record(owner);
  }

  /** Whether the journal has a line with this billing key. */
  async hasEntry(billingKey: string): Promise<boolean> {
    return (await this.#parts.records.ownerOfEntry(billingKey)) !== null;
  }

  /** The same billing key counts once. Deleted accounts have what they paid for, too. It can be spent when it is on disk. */
  async credit(id: AccountId, tokens: number, billingKey: string): Promise<{ credited: boolean }> {
    checkAmount(tokens);
    // On disk, all ill-formed texts of one length are the same.
    if (!billingKey.isWellFormed()) throw new AccountError("a reference must be well-formed text");
    const before = (await this.#existing(id)).credit;
    const { records, draft } = this.#parts;
    const isKnown = draft.entries.some((entry) => entry.billingKey === billingKey);
    if (isKnown || (await records.ownerOfEntry(billingKey)) !== null) return { credited: false };
    this.#buy(id, before + draft.creditOf(id), tokens, billingKey);
    return { credited: true };
  }

  // -------------------------------------------------------------- links

  /** An invitation that can be kept: throws AccountError for a bad or known e-mail, a bad plan, amount or time. */
  async invitation({
    email,
    plan = this.planOfNew,
    credit,
    expiresAt,
    ...into
  }: Invitation): Promise<NewAccessLink & Readonly<{ kind: "invitation" }>> {
    if (email !== null) {
      checkEmail(email);
      // Who has an account joins a team with it.
      if (into.team === undefined && (await this.recordOf(email)) !== null) throw new EmailTaken(email);
    }
    if (credit !== 0) checkAmount(credit);
    checkExpiry(expiresAt, this.#parts.now);
    const of = { email, plan: this.#plan(plan), credit, expiresAt };
    return { kind: "invitation", account: null, ...of, ...noTeam, ...into };
  }

  /** A link by which the account's password is set, or the account is connected with an identity provider. */
  async passwordLink(id: AccountId, expiresAt: Ms): Promise<NewAccessLink> {
    const { plan } = await this.checkPerson(id);
    checkExpiry(expiresAt, this.#parts.now);
    return { kind: "password", account: id, email: null, plan, credit: 0, expiresAt, ...noTeam };
  }

  // -------------------------------------------------------------- what is refused

  /** Throws AccountError for the last enabled operator: no one could enable others again. */
  async checkNotLastOperator(id: AccountId): Promise<void> {
    const { email, operator } = await this.#existing(id);
    if (!operator) return;
    const { records, draft } = this.#parts;
    for (const other of new Set([...(await records.operators()), ...draft.raised()])) {
      const record = other === id ? null : await this.record(other);
      if (record?.operator === true && record.disabledAt === null) return;
    }
    throw new AccountError(`${email} is the only operator; make another one first`);
  }

  /** Throws AccountError for a deleted account. */
  async checkNotErased(id: AccountId): Promise<AccountRecord> {
    const record = await this.#existing(id);
    if (isErased(record)) throw new AccountError(`${record.email} is a deleted account`);
    return record;
  }

  /** The same for a team: nobody signs in to it. */
  async checkPerson(id: AccountId): Promise<AccountRecord> {
    const record = await this.checkNotErased(id);
    if (record.team) throw new AccountError(`${record.email} is a team, to which nobody signs in`);
    return record;
  }

  /** Throws AccountError while a request of the account is open. */
  async checkNothingOpen(id: AccountId): Promise<void> {
    const { standings, now } = this.#parts;
    const record = await this.#existing(id);
    const { holds } = await standings.of(record, now);
    if (holds === 0) return;
    throw new AccountError(`${record.email} is disabled and has ${holds} open requests; delete it when they ended`);
  }

  // --------------------------------------------------------------

  async #numbers(record: AccountRecord): ReturnType<Accounts["numbers"]> {
    const { standings, plans, draft, now } = this.#parts;
    const { held, holds, used, ...standing } = await standings.of(record, now);
    const credit = standing.credit + draft.creditOf(record.id);
    const { unlimited, tokensPerDay, coderCallsPerWindow, searchesPerDay, id: plan } = planOf(plans, record.plan);
    const day = dayName(dayOf(now));
    const left = Math.max(0, tokensPerDay - used.allowance);
    return {
      id: record.id,
      plan,
      allowance: { day, granted: unlimited ? null : tokensPerDay, left: unlimited ? null : left },
      credit,
      reserved: held,
      spendable: unlimited ? null : left + credit - held,
      coder_calls: {
        window: coderWindowName(coderWindowOf(now)),
        used: used.coder_calls,
        limit: limitOf(coderCallsPerWindow),
      },
      searches: { day, used: used.searches, limit: limitOf(searchesPerDay) },
      openReservations: holds,
    };
  }

  /** `before`: the credit that there is. */
  #buy(account: AccountId, before: number, tokens: number, billingKey: string): void {
    const { draft, now: at } = this.#parts;
    const never = { period: 0, used: 0, reply: null } as const;
    draft.entries.push({ billingKey, kind: "credit", account, key: defaultKey, at, creditDelta: tokens, ...never });
    draft.changes.push({ change: "purchased", account, credit: before + tokens, at });
  }

  /** Such names are reserved, but older accounts may have one. */
  async #nameOfErased(id: AccountId): Promise<string> {
    for (let attempt = 1; ; attempt += 1) {
      const name = attempt === 1 ? `deleted-${id}@invalid` : `deleted-${id}-${attempt}@invalid`;
      const owner = await this.recordOf(name);
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

  async #existing(id: AccountId): Promise<AccountRecord> {
    const record = await this.record(id);
    assert(record !== null, `account ${id} exists`);
    return record;
  }
}

function summaryOf({ id, email, plan, credit, operator, team, disabledAt, createdAt }: AccountRecord): AccountSummary {
  const created_at = new Date(createdAt).toISOString();
  return { id, email, plan, credit, operator, team, disabled: disabledAt !== null, created_at };
}

/** What stands in the place of the e-mail of a deleted account. */
const erasedName = /^deleted-[\d-]+@invalid$/i;

/** An older account may have such a name, from before it was reserved. */
export const isErased = ({ email, disabledAt, passwordHash }: AccountRecord): boolean =>
  erasedName.test(email) && disabledAt !== null && passwordHash === null;

/**
 * What browsers take in a field for e-mail addresses (HTML's rule): ASCII alone, so that no two names look alike, and none
 * has invisible characters. A domain with other letters has an ASCII form, `xn--...`, which shows what it is.
 */
const emailShape =
  /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

export const isEmail = (email: string): boolean => email.length <= emailMaxLength && emailShape.test(email);

/** Of new accounts; those from before keep what they have. */
export function checkEmail(email: string): void {
  const shown = JSON.stringify(email.slice(0, emailMaxLength));
  if (/[^\x21-\x7e]/.test(email)) {
    throw new AccountError(
      `${shown} is not an e-mail address that is accepted: use plain letters (a-z), digits and signs, and ` +
        "the xn-- form of a domain with other letters",
    );
  }
  if (!isEmail(email)) {
    throw new AccountError(`${shown} is not an e-mail address`);
  }
  if (erasedName.test(email)) throw new AccountError(`${email} is a name of deleted accounts`);
}

const teamNameMaxLength = 64;

/** Without an @, a name is nobody's e-mail address; without odd spaces and signs, no two look alike. */
function checkTeamName(name: string): void {
  if (name.length <= teamNameMaxLength && /^[\p{L}\p{N}](?:[\p{L}\p{N} ._-]*[\p{L}\p{N}])?$/u.test(name)) return;
  const shown = JSON.stringify(name.slice(0, teamNameMaxLength));
  throw new AccountError(
    `a team's name has up to ${teamNameMaxLength} letters, digits, spaces and . _ -, not ${shown}`,
  );
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
