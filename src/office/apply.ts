// Brings accounts, key limits, teams and invitations in line with a file, in one unit: all of it or nothing. What the file does not
// name stays as it is, and a second time nothing changes. Secrets are neither read from the file nor shown.
import type { AuditAction } from "../core/audit-actions.ts";
import { type Static, Type } from "@sinclair/typebox";
import { limitInWords, limitsDetail, type NewLimits } from "../account/people/account-keys.ts";
import { invitationInWords } from "../account/sign-in/access-links.ts";
import { AccountError } from "../account/people/accounts.ts";
import { Teams } from "../account/people/teams.ts";
import { theServer } from "../account/audit.ts";
import type { Office, Unit } from "../account/office.ts";
import type { AccessLink, AccountRecord } from "../account/records.ts";
import { momentOfText } from "../core/iso-time.ts";
import type { AccountId } from "../core/types.ts";
import { planId, text, tokens, when } from "./fields.ts";
import { expiryOf } from "./link-expiry.ts";
import { type Actor, checkMayTouchOperators, entryBy } from "./verb.ts";
import { invitationMs } from "./verbs/accounts.ts";
import { otherLimits } from "./verbs/keys.ts";
import { memberTerms } from "./verbs/teams.ts";

/** What a database server commits within the time of one unit: 2,000 new accounts took 1 to 2 s. */
const rowsMax = 2_000;

const closed = { additionalProperties: false } as const;
const email = text("An e-mail address.", "EMAIL");

const key = Type.Object({ name: text("The name of a key.", "NAME"), ...otherLimits }, closed);
const account = Type.Object(
  {
    email,
    plan: Type.Optional(planId("Its plan.")),
    credit: Type.Optional(tokens(0, "Balance tokens that a new account starts with.")),
    operator: Type.Optional(Type.Boolean({ description: "Whether it sees and changes all accounts in the console." })),
    disabled: Type.Optional(Type.Boolean({ description: "Whether its keys are refused." })),
    keys: Type.Optional(Type.Array(key, { description: "Limits of its named keys." })),
  },
  closed,
);
const invitation = Type.Object(
  {
    email,
    plan: Type.Optional(planId("The plan of the new account.")),
    credit: Type.Optional(tokens(0, "Balance tokens that the new account starts with.")),
    expires: Type.Optional(when("When the link expires.")),
  },
  closed,
);

const member = Type.Object(
  {
    email,
    role: Type.Optional(memberTerms.role),
    limit_day: Type.Optional(memberTerms.limit_day),
    limit_month: Type.Optional(memberTerms.limit_month),
  },
  closed,
);
const team = Type.Object(
  {
    name: text("What it is called.", "NAME"),
    plan: Type.Optional(planId("Its plan.")),
    credit: Type.Optional(tokens(0, "Balance tokens that a new team starts with.")),
    disabled: Type.Optional(Type.Boolean({ description: "Whether its keys are refused." })),
    members: Type.Optional(
      Type.Array(member, { maxItems: rowsMax, description: "Who is in it, and what they may use." }),
    ),
  },
  closed,
);

export const shop = {
  accounts: Type.Optional(
    Type.Array(account, { maxItems: rowsMax, description: "The accounts.", placeholder: "ACCOUNTS", flag: null }),
  ),
  invitations: Type.Optional(
    Type.Array(invitation, {
      maxItems: rowsMax,
      description: "The invitations.",
      placeholder: "INVITATIONS",
      flag: null,
    }),
  ),
  teams: Type.Optional(
    Type.Array(team, { maxItems: rowsMax, description: "The teams.", placeholder: "TEAMS", flag: null }),
  ),
  dry_run: Type.Optional(Type.Boolean({ description: "Show what would change without changing anything." })),
};

export type Shop = Readonly<{
  accounts?: readonly Static<typeof account>[];
  invitations?: readonly Static<typeof invitation>[];
  teams?: readonly Static<typeof team>[];
  dry_run?: boolean;
}>;

/** How the line of a new invitation begins. */
export const invited = "+ invitation of ";

/** A line for each change; empty: everything is as the file says. */
export type Applied = Readonly<{ changes: readonly string[]; dry_run: boolean }>;

type WantedAccount = Static<typeof account>;
type WantedInvitation = Static<typeof invitation>;
type WantedTeam = Static<typeof team>;

/** Ends a unit without writing anything. */
class Rehearsed extends Error {}

/** Throws AccountError naming the place in the file, and then nothing is written. A rehearsal finds what the real one would. */
export async function applied(office: Office, actor: Actor, wanted: Shop): Promise<Applied> {
  const { accounts = [], invitations = [], teams = [], dry_run = false } = wanted;
  refuseTwins("accounts", accounts, ({ email }) => email.toLowerCase());
  refuseTwins("invitations", invitations, ({ email }) => email.toLowerCase());
  for (const [at, { keys = [] }] of accounts.entries()) refuseTwins(`accounts[${at}].keys`, keys, ({ name }) => name);
  refuseTwins("teams", teams, ({ name }) => name.toLowerCase());
  for (const [at, { members = [] }] of teams.entries()) {
    refuseTwins(`teams[${at}].members`, members, ({ email }) => email.toLowerCase());
  }
  let changes: readonly string[] = [];
  try {
    await office.change(async (unit) => {
      const applying = new Applying(unit, actor);
      await applying.all(accounts, invitations);
      for (const [at, each] of teams.entries()) await within(`teams[${at}]`, () => applying.team(each));
      changes = applying.changes;
      if (dry_run) throw new Rehearsed();
    });
  } catch (thrown) {
    if (!(thrown instanceof Rehearsed)) throw thrown;
  }
  return { changes, dry_run };
}

class Applying {
  readonly changes: string[] = [];
  readonly #unit: Unit;
  readonly #actor: Actor;
  /** By e-mail in lower case. */
  readonly #invited = new Map<string, AccessLink>();

  constructor(unit: Unit, actor: Actor) {
    this.#unit = unit;
    this.#actor = actor;
  }

  async all(accounts: readonly WantedAccount[], invitations: readonly WantedInvitation[]): Promise<void> {
    const records = await this.#unit.accounts.recordsOf(accounts.map(({ email }) => email));
    // Who becomes an operator comes first, so that those who were may go.
    const raises = ({ operator, disabled }: WantedAccount): boolean => operator === true || disabled === false;
    const inOrder = [...accounts.keys()].sort((a, b) => Number(raises(accounts[b]!)) - Number(raises(accounts[a]!)));
    for (const at of inOrder) await within(`accounts[${at}]`, () => this.#account(accounts[at]!, records[at]!));
    if (invitations.length === 0) return;
    for (const link of await this.#unit.links.invitations(invitationsMax)) {
      if (link.email !== null) this.#invited.set(link.email.toLowerCase(), link);
    }
    const joined = await this.#unit.accounts.recordsOf(invitations.map(({ email }) => email));
    for (const [at, each] of invitations.entries()) {
      if (joined[at] === null) await within(`invitations[${at}]`, () => this.#invitation(each));
    }
  }

  /** Who is not named stays in it. */
  async team({ name, plan, credit, disabled, members = [] }: WantedTeam): Promise<void> {
    const { accounts } = this.#unit;
    const teams = new Teams(this.#unit.teams);
    const had = await accounts.recordOf(name);
    const id = had === null ? await this.#newTeam(name, plan, credit) : (await teams.named(name)).id;
    if (had !== null && plan !== undefined && plan !== had.plan) {
      const detail = `from ${had.plan} to ${plan}`;
      await this.#change(`~ ${name}: plan ${detail}`, "account.plan", id, detail, () => accounts.changePlan(id, plan));
    }
    if (disabled !== undefined && disabled !== (had !== null && had.disabledAt !== null)) {
      const action = disabled ? "account.disable" : "account.enable";
      await this.#change(`~ ${name}: ${disabled ? "disabled" : "enabled"}`, action, id, "", () =>
        accounts.setDisabled(id, disabled),
      );
    }
    for (const [at, { email, ...terms }] of members.entries()) {
      await within(`members[${at}]`, async () => {
        const person = await accounts.ofEmail(email);
        const member = await accounts.member(id, person.id);
        const is = { role: member?.role, limit_day: member?.tokensPerDay, limit_month: member?.tokensPerMonth };
        const differ = Object.entries(terms).filter(([term, value]) => is[term as keyof typeof is] !== value);
        if (member !== null && differ.length === 0) return;
        const words = differ.map(([term, value]) => `${term} ${value ?? "none"}`).join(", ");
        const detail = `account ${person.id}${words === "" ? "" : `, ${words}`}`;
        const line = `${member === null ? "+" : "~"} ${name}, member ${email}${words === "" ? "" : `: ${words}`}`;
        await this.#change(line, "team.member", id, detail, () =>
          member === null ? teams.add(id, person.id, terms) : teams.update(id, person.id, terms),
        );
      });
    }
  }

  async #newTeam(name: string, plan: string | undefined, credit: number | undefined): Promise<AccountId> {
    const { id, plan: of } = await this.#unit.accounts.create({ email: name, plan, credit: credit ?? 0, team: true });
    const detail = `plan ${of}, credit ${credit ?? 0}`;
    this.changes.push(`+ team ${name}: ${detail}`);
    this.#note("team.create", id, detail);
    return id;
  }

  async #account(wanted: WantedAccount, record: AccountRecord | null): Promise<void> {
    const { accounts, sessions } = this.#unit;
    const { email, plan, operator, disabled, keys = [] } = wanted;
    if (operator === true || record?.operator === true) checkMayTouchOperators(this.#actor);
    if (record === null) return this.#create(wanted);
    const { id } = record;
    if (plan !== undefined && plan !== record.plan) {
      const detail = `from ${record.plan} to ${plan}`;
      await this.#change(`~ ${email}: plan ${detail}`, "account.plan", id, detail, () => accounts.changePlan(id, plan));
    }
    if (operator !== undefined && operator !== record.operator) {
      const detail = operator ? "an operator" : "no operator";
      await this.#change(`~ ${email}: ${detail}`, "account.operator", id, detail, () =>
        accounts.setOperator(id, operator),
      );
    }
    if (disabled !== undefined && disabled !== (record.disabledAt !== null)) {
      const action = disabled ? "account.disable" : "account.enable";
      await this.#change(`~ ${email}: ${disabled ? "disabled" : "enabled"}`, action, id, "", async () => {
        if (disabled) await accounts.checkNotLastOperator(id);
        await accounts.setDisabled(id, disabled);
        if (disabled) await sessions.endAll(id, null);
      });
    }
    for (const each of keys) await this.#limit(record, each);
  }

  async #create({ email, plan, credit, operator, disabled, keys = [] }: WantedAccount): Promise<void> {
    const { accounts } = this.#unit;
    if (keys.length > 0) throw new AccountError(`${email} is new and has no keys of a name yet`);
    if (disabled === true) throw new AccountError(`${email} is new: create it without disabled`);
    const given = { email, plan: accounts.planStill(plan ?? null), credit: credit ?? 0, operator: operator === true };
    const detail = `plan ${given.plan}, credit ${given.credit}${given.operator ? ", an operator" : ""}`;
    if (plan !== undefined && given.plan !== plan) throw new AccountError(`there is no plan ${JSON.stringify(plan)}`);
    const { id } = await accounts.create(given);
    this.changes.push(`+ ${email}: ${detail}`);
    this.#note("account.create", id, detail);
  }

  async #limit({ id, email }: AccountRecord, { name, ...wanted }: Static<typeof key>): Promise<void> {
    const { accountKeys } = this.#unit;
    const found = (await accountKeys.list(id)).find((one) => one.name === name);
    if (found === undefined) throw new AccountError(`${email} has no key with the name ${JSON.stringify(name)}`);
    const had = (field: string) => found[field as keyof NewLimits];
    const differs = Object.entries(wanted).filter(([field, value]) => sameOf(had(field)) !== sameOf(value));
    if (differs.length === 0) return;
    const limits: NewLimits = Object.fromEntries(differs);
    const words = differs.map(
      ([field, value]) => `${field} from ${limitInWords(had(field))} to ${limitInWords(value)}`,
    );
    const detail = limitsDetail(found.id, limits);
    await this.#change(`~ ${email}, key "${name}": ${words.join(", ")}`, "key.limits", id, detail, () =>
      accountKeys.limit(id, found.id, limits),
    );
  }

  /** An address has one invitation, or an account. */
  async #invitation({ email, plan, credit, expires }: WantedInvitation): Promise<void> {
    const { accounts, links, now } = this.#unit;
    const had = this.#invited.get(email.toLowerCase());
    if (had !== undefined) {
      if ((plan ?? had.plan) === had.plan && (credit ?? had.credit) === had.credit) return;
      const is = `plan ${had.plan}, credit ${had.credit}`;
      throw new AccountError(`${email} has invitation ${had.id} with ${is}: withdraw it first, and its link is void`);
    }
    const expiresAt = expiryOf(expires, now, invitationMs);
    const wanted = await accounts.invitation({ email, plan, credit: credit ?? 0, expiresAt });
    const { link } = await links.make(wanted);
    this.changes.push(`${invited}${email}: plan ${link.plan}, credit ${link.credit}`);
    this.#note("invitation.create", theServer, invitationInWords(link));
  }

  async #change(
    words: string,
    action: AuditAction,
    subject: AccountId,
    detail: string,
    make: () => Promise<unknown>,
  ): Promise<void> {
    await make();
    this.changes.push(words);
    this.#note(action, subject, detail);
  }

  #note(action: AuditAction, subject: AccountId, detail: string): void {
    this.#unit.auditLog.append(entryBy(this.#actor, this.#unit.now, action, subject, detail));
  }
}

/** More than a file makes; a database of many years has no more that are open. */
const invitationsMax = 100_000;

function refuseTwins<Row>(what: string, rows: readonly Row[], nameOf: (row: Row) => string): void {
  const places = new Map<string, number>();
  for (const [at, row] of rows.entries()) {
    const name = nameOf(row);
    const before = places.get(name);
    if (before !== undefined) throw new AccountError(`${what}[${at}]: ${name} stands in ${what}[${before}], too`);
    places.set(name, at);
  }
}

/** The same text for two limits that mean the same: one moment, or lists of the same members. An empty list is no limit. */
function sameOf(limit: unknown): string {
  if (Array.isArray(limit)) {
    const members = [...new Set(limit.map(String))].sort((one, other) => (one < other ? -1 : 1));
    return members.length === 0 ? "null" : JSON.stringify(members);
  }
  return JSON.stringify((typeof limit === "string" ? momentOfText(limit) : null) ?? limit);
}

async function within(place: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    if (thrown instanceof AccountError) throw new AccountError(`${place}: ${thrown.message}`);
    throw thrown;
  }
}
