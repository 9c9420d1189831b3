// Teams, in a unit of the office: an account that nobody signs in to, and the people who spend from it by keys of their own,
// each as much as the team says. Whose keys those are, and that they are void when somebody leaves, is in account-keys.ts
// and accounts.ts.
import { AccountError, type Accounts, type AccountView } from "./accounts.ts";
import type { Draft } from "../draft.ts";
import type { AccessLink, AccountRecord, OfficeRecords, Standings, TeamMember } from "../records.ts";
import type { AccountId, Ms } from "../../core/types.ts";

const membersMax = 2_000;

export type TeamParts = Readonly<{
  records: OfficeRecords;
  standings: Standings;
  accounts: Accounts;
  draft: Draft;
  now: Ms;
}>;

/** Absent: as it was; null: any number. */
export type MemberTerms = Readonly<{
  role?: TeamMember["role"] | undefined;
  limit_day?: number | null | undefined;
  limit_month?: number | null | undefined;
}>;

/** In the words of `tollgate teams members list --json`. */
export type MemberView = Readonly<{
  id: AccountId;
  email: string;
  role: TeamMember["role"];
  limit_day: number | null;
  limit_month: number | null;
  /** Balance tokens of today and this month (UTC). */
  used_day: number;
  used_month: number;
  joined_at: string;
}>;

export type TeamView = Omit<AccountView, "email"> & Readonly<{ name: string; members: readonly MemberView[] }>;

export class Teams {
  readonly #parts: TeamParts;

  constructor(parts: TeamParts) {
    this.#parts = parts;
  }

  /** Throws AccountError where no team is called so. */
  async named(name: string): Promise<AccountRecord> {
    const record = await this.#parts.accounts.recordOf(name);
    if (record?.team !== true) throw new AccountError(`no team is called ${name}`);
    return record;
  }

  /** Without those that were deleted. */
  async all(): Promise<readonly AccountRecord[]> {
    return (await this.#parts.records.teams()).filter(
      ({ disabledAt, email }) => disabledAt === null || !email.includes("@"),
    );
  }

  /** Those of a person, with what the person is there. */
  async of(account: AccountId): Promise<readonly (readonly [AccountRecord, TeamMember])[]> {
    const { records, accounts } = this.#parts;
    const found = await records.teamsOf(account);
    return Promise.all(found.map(async (member) => [(await accounts.record(member.team))!, member] as const));
  }

  async show({ id }: Pick<AccountRecord, "id">): Promise<TeamView> {
    const { email: name, ...account } = await this.#parts.accounts.show(id);
    return { ...account, name, members: await this.members(id) };
  }

  async members(team: AccountId): Promise<readonly MemberView[]> {
    return this.#viewsOf(team, await this.#parts.accounts.members(team));
  }

  async member(member: TeamMember): Promise<MemberView> {
    return (await this.#viewsOf(member.team, [member]))[0]!;
  }

  /** Throws AccountError for who is in it, or is nobody who may be. */
  async add(
    team: AccountId,
    account: AccountId,
    { role = "member", limit_day, limit_month }: MemberTerms,
  ): Promise<void> {
    const { accounts, now: joinedAt } = this.#parts;
    await accounts.checkNotErased(team);
    const { email, disabledAt } = await accounts.checkPerson(account);
    if (disabledAt !== null) throw new AccountError(`${email} is disabled`);
    const members = await accounts.members(team);
    if (members.some((member) => member.account === account)) throw new AccountError(`${email} is in the team already`);
    if (members.length >= membersMax) throw new AccountError(`a team has at most ${membersMax} members`);
    const caps = { tokensPerDay: limit_day ?? null, tokensPerMonth: limit_month ?? null };
    this.#put({ team, account, role, ...caps, joinedAt });
  }

  /** Acts when it is on disk; what runs keeps what it holds. */
  async update(team: AccountId, account: AccountId, { role, limit_day, limit_month }: MemberTerms): Promise<void> {
    const had = await this.#existing(team, account);
    this.#put({
      ...had,
      role: role ?? had.role,
      tokensPerDay: limit_day === undefined ? had.tokensPerDay : limit_day,
      tokensPerMonth: limit_month === undefined ? had.tokensPerMonth : limit_month,
    });
  }

  /** The person's keys in the team are void at once. */
  async remove(team: AccountId, account: AccountId): Promise<void> {
    const member = await this.#existing(team, account);
    this.#parts.draft.takenBack.push({ change: "member", account: team, member });
    this.#parts.draft.changes.push({ change: "remove_member", account: team, member: account });
    await this.#parts.accounts.revokeIn(team, account);
  }

  /** By an invitation, which the caller uses up; one into no team does nothing. */
  async join({ team, tokensPerDay, tokensPerMonth }: AccessLink, account: AccountId): Promise<void> {
    if (team !== null) await this.add(team, account, { limit_day: tokensPerDay, limit_month: tokensPerMonth });
  }

  #put(member: TeamMember): void {
    this.#parts.draft.changes.push({ change: "member", account: member.team, member });
  }

  async #existing(team: AccountId, account: AccountId): Promise<TeamMember> {
    const member = await this.#parts.accounts.member(team, account);
    if (member === null) throw new AccountError("who is no member of the team cannot be changed there");
    return member;
  }

  async #viewsOf(team: AccountId, members: readonly TeamMember[]): Promise<readonly MemberView[]> {
    const { accounts, standings, now } = this.#parts;
    const ids = members.map(({ account }) => account);
    const uses = await standings.ofMembers(team, ids, now);
    const records = await Promise.all(ids.map((id) => accounts.record(id)));
    return members.map(({ account, role, tokensPerDay, tokensPerMonth, joinedAt }, at) => ({
      id: account,
      email: records[at]!.email,
      role,
      limit_day: tokensPerDay,
      limit_month: tokensPerMonth,
      used_day: uses[at]!.day,
      used_month: uses[at]!.month,
      joined_at: new Date(joinedAt).toISOString(),
    }));
  }
}
