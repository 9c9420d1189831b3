// Brings accounts, key limits and invitations in line with a file, in one unit: all of it or nothing. What the file does not
// name stays as it is, and a second time nothing changes. Secrets are neither read from the file nor shown.
import { type Static, Type } from "@sinclair/typebox";
import { limitsDetail, type NewLimits } from "../account/people/account-keys.ts";
import { invitationInWords } from "../account/sign-in/access-links.ts";
import { AccountError } from "../account/people/accounts.ts";
import { theServer } from "../account/audit.ts";
import type { Unit } from "../account/office.ts";
import type { AccountRecord, AuditAction } from "../account/records.ts";
import type { AccountId } from "../core/types.ts";
import { planId, tokens, when } from "./fields.ts";
import { expiryOf } from "./link-expiry.ts";
import { type Actor, checkMayTouchOperators, entryBy } from "./verb.ts";
import { invitationMs } from "./verbs/accounts.ts";
import { otherLimits } from "./verbs/keys.ts";

const closed = { additionalProperties: false } as const;
const email = Type.String({ minLength: 3, description: "An e-mail address." });

const key = Type.Object({ name: Type.String({ description: "The name of a key." }), ...otherLimits }, closed);
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

export const shop = {
  accounts: Type.Optional(
    Type.Array(account, { maxItems: 10_000, description: "The accounts.", placeholder: "ACCOUNTS", flag: null }),
  ),
  invitations: Type.Optional(
    Type.Array(invitation, {
      maxItems: 10_000,
      description: "The invitations.",
      placeholder: "INVITATIONS",
      flag: null,
    }),
  ),
  dry_run: Type.Optional(Type.Boolean({ description: "Show what would changewithout changing anything." })),
};

export type Shop = Readonly<{
  accounts?: readonly Static<typeof account>[];
  invitations?: readonly Static<typeof invitation>[];
  dry_run?: boolean;
}>;

/** A line for each change; empty: everything is as the file says. */
export type Applied = Readonly<{ changes: readonly string[]; dry_run: boolean }>;

/** Throws AccountError naming the place in the file, and then nothing is written. */
export async function applied(unit: Unit, actor: Actor, wanted: Shop): Promise<Applied> {
  const { accounts = [], invitations = [], dry_run = false } = wanted;
  const applying = new Applying(unit, actor, !dry_run);
  refuseTwins("accounts", accounts);
  refuseTwins("invitations", invitations);
  for (const [at, each] of accounts.entries()) await within(`accounts[${at}]`, () => applying.account(each));
  for (const [at, each] of invitations.entries()) await within(`invitations[${at}]`, () => applying.invitation(each));
  return { changes: applying.changes, dry_run };
}

class Applying {
  readonly changes: string[] = [];
  readonly #unit: Unit;
  readonly #actor: Actor;
  readonly #isReal: boolean;

  constructor(unit: Unit, actor: Actor, isReal: boolean) {
    this.#unit = unit;
    this.#actor = actor;
    this.#isReal = isReal;
  }

  async account(wanted: NonNullable<Shop["accounts"]>[number]): Promise<void> {
    const { accounts, sessions } = this.#unit;
    const { email, plan, operator, disabled, keys = [] } = wanted;
    const record = await accounts.recordOf(email);
    if (operator === true || record?.operator === true) checkMayTouchOperators(this.#actor);
    if (record === null) return this.#create(wanted);
    const { id } = record;
    if (plan !== undefined && plan !== record.plan) {
      const detail = `from ${record.plan} to ${plan}`;
      await this.#change(`~ ${email}: plan ${detail}`, "account.plan", id, detail, () => accounts.changePlan(id, plan));
    }
    if (operator !== undefined && operator !== record.operator) {
      const detail = operator ? "an operator" : "no operator";
      await this.#change(`~ ${email}: ${detail}`, "account.operator", id, detail, async () => {
        if (!operator) await accounts.checkNotLastOperator(id);
        await accounts.setOperator(id, operator);
      });
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

  async #create({
    email,
    plan,
    credit,
    operator,
    disabled,
    keys = [],
  }: NonNullable<Shop["accounts"]>[number]): Promise<void> {
    const { accounts } = this.#unit;
    if (keys.length > 0) throw new AccountError(`${email} is new and has no keys of a name yet`);
    if (disabled === true) throw new AccountError(`${email} is new: create it without disabled`);
    const given = { email, plan: accounts.planStill(plan ?? null), credit: credit ?? 0, operator: operator === true };
    const detail = `plan ${given.plan}, credit ${given.credit}${given.operator ? ", an operator" : ""}`;
    if (plan !== undefined && given.plan !== plan) throw new AccountError(`there is no plan ${JSON.stringify(plan)}`);
    this.changes.push(`+ ${email}: ${detail}`);
    if (!this.#isReal) return;
    const { id } = await accounts.create(given);
    this.#note("account.create", id, detail);
  }

  async #limit({ id, email }: AccountRecord, { name, ...wanted }: Static<typeof key>): Promise<void> {
    const { accountKeys } = this.#unit;
    const found = (await accountKeys.list(id)).find((one) => one.name === name);
    if (found === undefined) throw new AccountError(`${email} has no key with the name ${JSON.stringify(name)}`);
    const differs = Object.entries(wanted).filter(
      ([field, value]) => JSON.stringify(found[field as keyof NewLimits]) !== JSON.stringify(value),
    );
    if (differs.length === 0) return;
    const limits: NewLimits = Object.fromEntries(differs);
    const detail = limitsDetail(found.id, limits);
    await this.#change(`~ ${email}, key "${name}": ${detail}`, "key.limits", id, detail, () =>
      accountKeys.limit(id, found.id, limits),
    );
  }

  /** An address has one invitation, or an account. */
  async invitation({ email, plan, credit = 0, expires }: NonNullable<Shop["invitations"]>[number]): Promise<void> {
    const { accounts, links, now } = this.#unit;
    if ((await accounts.recordOf(email)) !== null) return;
    const open = await links.invitations(invitationsMax);
    if (open.some((link) => link.email?.toLowerCase() === email.toLowerCase())) return;
    const expiresAt = expiryOf(expires, now, invitationMs);
    const wanted = await accounts.invitation({ email, plan, credit, expiresAt });
    this.changes.push(`+ invitation of ${email}: plan ${wanted.plan}, credit ${credit}`);
    if (!this.#isReal) return;
    const { link } = await links.make(wanted);
    this.#note("invitation.create", theServer, invitationInWords(link));
  }

  async #change(
    words: string,
    action: AuditAction,
    subject: AccountId,
    detail: string,
    make: () => Promise<unknown>,
  ): Promise<void> {
    this.changes.push(words);
    if (!this.#isReal) return;
    await make();
    this.#note(action, subject, detail);
  }

  #note(action: AuditAction, subject: AccountId, detail: string): void {
    this.#unit.auditLog.append(entryBy(this.#actor, this.#unit.now, action, subject, detail));
  }
}

const invitationsMax = 10_000;

function refuseTwins(what: string, rows: readonly Readonly<{ email: string }>[]): void {
  const places = new Map<string, number>();
  for (const [at, { email }] of rows.entries()) {
    const before = places.get(email.toLowerCase());
    if (before !== undefined)
      throw new AccountError(`${what}[${at}].email: ${email} stands in ${what}[${before}], too`);
    places.set(email.toLowerCase(), at);
  }
}

async function within(place: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    if (thrown instanceof AccountError) throw new AccountError(`${place}: ${thrown.message}`);
    throw thrown;
  }
}
