// Accounts: made, invited, shown, changed and deleted.
import { Type } from "@sinclair/typebox";
import { invitationInWords, type MadeLink, pathOf } from "../../account/sign-in/access-links.ts";
import type { Unit } from "../../account/office.ts";
import type { AccountView } from "../../account/people/accounts.ts";
import { CommandError } from "../../core/expected-error.ts";
import { passwordLinkMs } from "../../core/limits.ts";
import { Mails } from "../../account/people/mails.ts";
import type { AccessLink, NewAccessLink, SessionRecord } from "../../account/records.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { dayMs } from "../../core/units.ts";
import { orNull, password, planId, text, tokens, when, wholeNumber } from "../fields.ts";
import { expiryOf, expiryProblem } from "../link-expiry.ts";
import { formatPairs, formatTable } from "../table.ts";
import { accountVerb, type Actor, verb, checkMayTouchOperators } from "../verb.ts";
import type { Work } from "../work.ts";

/** The usual lifetime of an invitation. */
export const invitationMs = 7 * dayMs;

export const create = verb({
  name: "accounts create",
  summary: "Create an account and show its API key once",
  details: "The plans are free, plus, standard and pro, or those of [[plans]] in the configuration.",
  words: ["email"],
  fields: {
    email: text("The e-mail address of the new account.", "EMAIL"),
    plan: Type.Optional(planId("Its plan; without it the first one.")),
    credit: Type.Optional(tokens(0, "Balance tokens to start with.")),
    password: Type.Optional(password("Lets its owner sign in to the console.")),
    operator: Type.Optional(Type.Boolean({ description: "Let it see and change all accounts in the console." })),
  },
  scope: "people",
  makesFolder: true,
  async prepare({ passwords }, { actor, input: { password, ...account } }) {
    if (account.operator === true) checkMayTouchOperators(actor);
    const hashed = password === undefined ? {} : { passwordHash: await passwords.hashNew(password) };
    return ({ accounts }) => accounts.create({ ...account, ...hashed });
  },
  audit: {
    action: "account.create",
    subject: ({ id }) => id,
    detail: ({ input: { credit = 0, operator = false } }, { plan }) =>
      `plan ${plan}, credit ${credit}${operator ? ", an operator" : ""}`,
  },
  print({ id, email, plan, api_key }) {
    const pairs = formatPairs([
      ["id", String(id)],
      ["e-mail", email],
      ["plan", plan],
      ["API key", api_key],
    ]);
    return `${pairs}\nThe key is shown this once: only its hash is kept.`;
  },
});

export const invite = verb({
  name: "accounts invite",
  summary: "Create a link that makes one account",
  details: `The person who opens it chooses an address and a password, or signs in with the identity provider. With [mail], the address also gets it by e-mail. ${whenInWords()}`,
  fields: {
    email: Type.Optional(text("The only address that may use it; without it any address may.", "EMAIL")),
    plan: Type.Optional(planId("The plan of the new account; without it the first one.")),
    credit: Type.Optional(tokens(0, "Balance tokens to start with.")),
    expires: Type.Optional(when("When the link expires; 7d unless you say otherwise.")),
  },
  scope: "people",
  problem: expiryProblem,
  async change(unit, { actor, input: { email = null, plan: wanted, credit = 0, expires } }, work) {
    const expiresAt = expiryOf(expires, unit.now, invitationMs);
    return invited(unit, work, actor, await unit.accounts.invitation({ email, plan: wanted, credit, expiresAt }));
  },
  audit: {
    action: "invitation.create",
    detail: (_, made) => invitationInWords(made),
  },
  print: invitationPrinted,
});

export const list = verb({
  name: "accounts list",
  summary: "List all accounts",
  fields: {
    after: Type.Optional(wholeNumber(0, "Only accounts with larger ids.", "ID")),
    limit: Type.Optional(wholeNumber(1, "How many at most.", "N")),
  },
  scope: "read",
  read: ({ accounts }, { input }) => accounts.list(input),
  print: (accounts) =>
    formatTable(
      ["id", "e-mail", "plan", "credit", "operator", "disabled", "created"],
      accounts.map(({ id, email, plan, credit, operator, disabled, created_at }) => [
        ...[String(id), email, plan, credit, operator, disabled, created_at],
      ]),
    ),
});

export const show = accountVerb({
  name: "accounts show",
  summary: "Show the plan, balance and use of an account",
  scope: "read",
  read: ({ accounts }, { account }) => accounts.show(account.id),
  print: accountInWords,
});

export const plan = accountVerb({
  name: "accounts plan",
  summary: "Change the plan of an account",
  words: ["plan"],
  fields: { plan: planId("The new plan.") },
  scope: "people",
  audit: { action: "account.plan", detail: ({ account, input }) => `from ${account.plan} to ${input.plan}` },
  async change({ accounts }, { account, input }) {
    await accounts.changePlan(account.id, input.plan);
    return accounts.show(account.id);
  },
  print: accountInWords,
});

export const costCenter = accountVerb({
  name: "accounts update",
  summary: "Set the cost center of an account or a key",
  details: "What was used before stays where it was booked. The word none takes a cost center away.",
  fields: {
    cost_center: orNull(text("The cost center, which reports and statements show.", "NAME", { maxLength: 100 })),
    key: Type.Optional(wholeNumber(1, "Only of this key, in place of the account's: its number in the list.", "ID")),
  },
  scope: "people",
  audit: {
    action: "account.cost_center",
    detail: ({ input: { cost_center, key } }) =>
      `${key === undefined ? "" : `key ${key}: `}${cost_center === null ? "none" : JSON.stringify(cost_center)}`,
  },
  async change({ accounts, accountKeys }, { account: { id }, input: { cost_center, key } }) {
    const costCenter = cost_center?.trim() || null;
    if (key === undefined) await accounts.setCostCenter(id, costCenter);
    else await accountKeys.setCostCenter(id, key, costCenter);
    return accounts.show(id);
  },
  print: accountInWords,
});

export const address = accountVerb({
  name: "accounts address",
  summary: "Set where the mail of an account goes",
  details: "It needs no confirmation by its owner. The word none takes the address away.",
  words: ["address"],
  fields: { address: orNull(text("Its e-mail address.", "ADDRESS")) },
  scope: "people",
  audit: { action: "account.address", detail: ({ input: { address } }) => (address === null ? "none" : "another one") },
  async change({ accounts, mails }, { account: { id }, input: { address } }) {
    await accounts.checkPerson(id);
    new Mails(mails).setAddress(id, address);
    return { address };
  },
  print: ({ address }) => (address === null ? "Its mail goes nowhere." : `Its mail goes to ${address}.`),
});

export const credit = accountVerb({
  name: "accounts credit",
  summary: "Add credit to an account",
  words: ["tokens"],
  fields: {
    tokens: tokens(1, "Balance tokens to add."),
    reference: Type.Optional(text("Identifies the payment; the same reference is credited only once.", "R")),
    reason: Type.Optional(text("Why, for the audit log.", "TEXT")),
  },
  scope: "people",
  async change({ accounts }, { account: { id }, actor, input: { tokens, reference } }) {
    await accounts.checkNotErased(id);
    // The console's references count per account: another account must not use them up.
    const once = reference ?? crypto.randomUUID();
    const place = actor.kind === "operator" ? `grant:${id}` : reference === undefined ? "purchase" : "credit";
    const { credited } = await accounts.credit(id, tokens, `${place}:${once}`);
    const owner =
      credited || reference === undefined || place !== "credit" ? null : await accounts.creditedTo(reference);
    if (owner !== null && owner.id !== id) {
      throw new CommandError(`nothing was added: the reference ${reference} was credited to ${owner.email}`);
    }
    return { ...(await accounts.show(id)), credited };
  },
  audit: {
    action: "account.credit",
    detail({ input: { tokens, reason, reference } }, { credited }) {
      if (!credited) return null;
      const why = reason ?? (reference === undefined ? null : `reference ${reference}`);
      return `${tokens} balance tokens${why === null ? "" : `: ${why}`}`;
    },
  },
  print: ({ credited, ...account }) =>
    `${credited ? "" : "This reference was credited before; nothing was added.\n"}${accountInWords(account)}`,
});

export const changePassword = accountVerb({
  name: "accounts password",
  summary: "Set a new password and sign out all browsers",
  details:
    "Without --password it is read from standard input, or typed without echo. If it is empty, one is generated.",
  fields: { password: password("The new password.") },
  scope: "people",
  audit: { action: "account.password" },
  async prepare({ passwords }, { account: { id, email }, actor, input }) {
    const passwordHash = await passwords.hashNew(input.password);
    return async ({ accounts, sessions }) => {
      await accounts.setPassword(id, passwordHash);
      await sessions.endAll(id, "session" in actor && actor.account.id === id ? actor.session.id : null);
      return { id, email };
    };
  },
  print: ({ email }) => `The password of ${email} is set; all browsers are signed out.`,
});

export const passwordLink = accountVerb({
  name: "accounts password-link",
  summary: "Create a link that sets the password of an account once",
  details: `Nothing changes until it is opened. ${whenInWords()}`,
  fields: { expires: Type.Optional(when("When the link expires; within a day unless you say otherwise.")) },
  scope: "people",
  problem: expiryProblem,
  async change({ accounts, links, now }, { account: { id, email }, input: { expires } }, work) {
    const made = await links.make(await accounts.passwordLink(id, expiryOf(expires, now, passwordLinkMs)));
    return { id, email, ...shownLink(work, made), link_id: made.link.id };
  },
  audit: { action: "account.password_link", detail: (_, { link_id }) => `link ${link_id}` },
  print: ({ email, link, expires_at }) =>
    `${link}\nIt sets the password of ${email} once, until ${expires_at}, and is shown this once.`,
});

export const disable = accountVerb({
  name: "accounts disable",
  summary: "Refuse the keys of an account and sign out its browsers",
  details: "Running requests may finish. The balance stays.",
  scope: "people",
  audit: { action: "account.disable" },
  change: (unit, { account: { id } }) => switched(unit, id, true),
  print: accountInWords,
});

export const enable = accountVerb({
  name: "accounts enable",
  summary: "Enable a disabled account again, with the same keys and password",
  scope: "people",
  audit: { action: "account.enable" },
  change: (unit, { account: { id } }) => switched(unit, id, false),
  print: accountInWords,
});

async function switched({ accounts, sessions }: Unit, id: AccountId, disabled: boolean): Promise<AccountView> {
  if (disabled) await accounts.checkNotLastOperator(id);
  await accounts.setDisabled(id, disabled);
  if (disabled) await sessions.endAll(id, null);
  return accounts.show(id);
}

export const sessionView = ({ id, createdAt, usedAt, address, browser }: SessionRecord) => ({
  id,
  created_at: timeOf(createdAt),
  last_used_at: timeOf(usedAt),
  address,
  browser,
});

export const sessions = accountVerb({
  name: "sessions list",
  summary: "List the browsers that are signed in to an account",
  details: "Machines that signed in are among the keys.",
  scope: "read",
  read: async ({ sessions }, { account: { id } }) => (await sessions.list(id)).map(sessionView),
  print: (open) =>
    formatTable(
      ["id", "signed in", "last used", "address", "browser"],
      open.map(({ id, created_at, last_used_at, address, browser }) => [
        id,
        created_at,
        last_used_at,
        address,
        browser,
      ]),
    ),
});

export const signOut = accountVerb({
  name: "sessions end",
  summary: "Sign out one browser of an account, or all browsers and machines",
  fields: { id: Type.Optional(wholeNumber(1, "Only this browser: its number in the list.", "ID")) },
  scope: "people",
  audit: { action: "account.sign_out", detail: ({ input: { id } }) => (id === undefined ? "all" : `session ${id}`) },
  async change({ sessions, accountKeys }, { account, actor, input: { id } }) {
    if (id !== undefined) {
      if (!(await sessions.end(account.id, id))) throw new CommandError(`${account.email} has no session ${id}`);
    } else {
      // The browser that asks stays signed in.
      await sessions.endAll(
        account.id,
        "session" in actor && actor.account.id === account.id ? actor.session.id : null,
      );
      const machines = (await accountKeys.list(account.id)).filter(({ machine }) => machine);
      for (const key of machines) await accountKeys.revoke(account.id, key.id);
    }
    return { id: account.id, email: account.email };
  },
  print: ({ email }, { id }) => (id === undefined ? `${email} is signed out everywhere.` : `Session ${id} is ended.`),
});

/** Records the export, which the door itself makes. */
export const exportAccount = accountVerb({
  name: "accounts export",
  summary: "Print everything stored about an account, as JSON",
  details: "Usage, payments, sessions, stored responses and operators' actions.",
  scope: "people",
  audit: { action: "account.export" },
  change: (_, { account: { id } }) => Promise.resolve({ id }),
  print: ({ id }) => `account ${id}`,
});

/** The e-mail must be forgotten, so the audit line must not contain it. */
const erasedDetail = (_: unknown, __: unknown, { erasedInWords }: Work): string =>
  `its ${erasedInWords} and stored responses were erased`;

async function checkErasable({ accounts, sessions }: Unit, id: AccountId, actor: Actor): Promise<void> {
  if (actor.kind === "shell") return; // it may delete the last operator, and can make another one
  await accounts.checkNotLastOperator(id);
  if (actor.kind !== "account") return;
  // Hashing the owner's password took time: check again.
  const isStill = (await accounts.isAsItWas(actor.account)) && (await sessions.isOpen(actor.session));
  if (!isStill) throw new CommandError("sign in again first");
}

/** What erases an account, of whichever name. */
export const erase = accountVerb({
  name: "accounts delete",
  summary: "Erase the identity, keys, sessions and stored responses of an account",
  details: "Its usage and payments stay in the books, without a name.",
  scope: "people",
  owner: true,
  warning: ({ email }) =>
    `this erases ${email}, its key, sessions and stored responses for good, and keeps its books without a name`,
  audit: { action: "account.delete", detail: erasedDetail, ofOwners: true },
  /** Erases other stores while the e-mail still names the account, so that a failed erasure can be repeated. */
  async prepare({ office, eraseResponses }, { account: { id }, actor }) {
    await office.change(async (unit) => {
      await checkErasable(unit, id, actor);
      await unit.accounts.setDisabled(id, true);
      await unit.sessions.endAll(id, null);
    });
    await office.read(({ accounts }) => accounts.checkNothingOpen(id));
    await eraseResponses(id, false); // the account may still fail to be erased
    return ({ accounts }) => accounts.erase(id);
  },
  /** A request that ended during the first pass may have stored its response afterwards. */
  async finish({ eraseResponses, requestLog }, { account: { email } }, { id, name }) {
    await eraseResponses(id, true).catch(({ message }: Error) => {
      throw new CommandError(`${email} is ${name} now, but may have stored responses; delete ${name}: ${message}`);
    });
    await requestLog.erase(id);
  },
  print: ({ id, name }) => `deleted; the books of account ${id} stay, under the name ${name}`,
});

function whenInWords(): string {
  return "WHEN is a time such as 2026-12-31T12:00:00Z, or hours or days from now: 48h, 7d.";
}

const timeOf = (at: Ms): string => new Date(at).toISOString();

const shownLink = ({ consoleUrl }: Pick<Work, "consoleUrl">, made: MadeLink) => ({
  link: consoleUrl + pathOf(made),
  expires_at: timeOf(made.link.expiresAt),
});

export function accountInWords(account: AccountView): string {
  const { allowance, coder_calls, searches } = account;
  const isLimited = account.spendable !== null;
  return formatPairs([
    ["id", String(account.id)],
    ["e-mail", account.email],
    ["plan", account.plan],
    ["disabled", account.disabled],
    ...(account.cost_center === null ? [] : [["cost center", account.cost_center] as const]),
    ["spendable now", isLimited ? account.spendable : "unlimited"],
    ...(isLimited
      ? [[`allowance of ${allowance.day}`, `${whole(allowance.left)} of ${whole(allowance.granted)} left`] as const]
      : []),
    ["credit", account.credit],
    ["reserved by open requests", account.reserved],
    ...used(`coder calls since ${coder_calls.window}`, coder_calls),
    ...used(`searches of ${searches.day}`, searches),
  ]);
}

/** Omits what the plan does not have. */
const used = (what: string, { used, limit }: Readonly<{ used: number; limit: number | null }>) =>
  limit === 0 && used === 0 ? [] : [[what, `${whole(used)} of ${whole(limit)} used`] as const];

const whole = (value: number | null): string => (value === null ? "any number" : value.toLocaleString("en-US"));

export const invitations = verb({
  name: "invitations list",
  summary: "List the open invitations",
  scope: "read",
  async read({ links }) {
    const open = await links.invitations(invitationsShownMax);
    return open.map(({ id, email, plan, credit, createdAt, expiresAt }) => ({
      id,
      email,
      plan,
      credit,
      created_at: timeOf(createdAt),
      expires_at: timeOf(expiresAt),
    }));
  },
  print: (open) =>
    formatTable(
      ["id", "for", "plan", "credit", "created", "expires"],
      open.map(({ id, email, plan, credit, created_at, expires_at }) => [
        String(id),
        email ?? "anyone",
        plan,
        credit,
        created_at,
        expires_at,
      ]),
    ),
});

const invitationsShownMax = 200;

export const withdrawInvitation = verb({
  name: "invitations withdraw",
  summary: "Revoke the link of an invitation",
  words: ["id"],
  fields: { id: wholeNumber(1, "Its number in the list.", "ID") },
  scope: "people",
  audit: { action: "invitation.withdraw", detail: ({ input }) => `invitation ${input.id}` },
  async change({ links }, { input: { id } }) {
    await withdrawn(links, id);
    return { id };
  },
  print: ({ id }) => `Invitation ${id} is void.`,
});

export const invitationLink = verb({
  name: "invitations link",
  summary: "Print a new link for an open invitation, in place of the one before",
  words: ["id"],
  fields: { id: wholeNumber(1, "Its number in the list.", "ID") },
  scope: "people",
  async change({ links }, { input }, work) {
    const { id: _, tokenHash: __, createdAt: ___, usedAt: ____, ...link } = await withdrawn(links, input.id);
    return shownInvitation(work, await links.make(link));
  },
  audit: {
    action: "invitation.create",
    detail: ({ input }, made) => `${invitationInWords(made)}, in place of ${input.id}`,
  },
  print: invitationPrinted,
});

/** The invitation, which was open. */
async function withdrawn(links: Unit["links"], id: number): Promise<AccessLink> {
  const link = await links.findById(id);
  if (link.kind !== "invitation") throw new CommandError(`there is no invitation ${id}`);
  await links.withdraw(id);
  return link;
}

function shownInvitation(work: Work, made: MadeLink & Readonly<{ mailed?: boolean }>) {
  const { id, email, plan, credit } = made.link;
  return { id, email, plan, credit, ...shownLink(work, made), mailed: made.mailed ?? false };
}

/** By e-mail, too, where it is for one address and mail is sent. */
export async function invited({ links, mails }: Unit, work: Work, actor: Actor, link: NewAccessLink) {
  const { email, team } = link;
  if (work.mail === null || email === null) return shownInvitation(work, await links.make(link));
  const account = "account" in actor ? actor.account : null;
  const by = account?.email ?? ("name" in actor ? actor.name : "user" in actor ? actor.user : "");
  const into = team === null ? null : ((await mails.accounts.record(team))?.email ?? null);
  const details = { by, language: account?.language ?? null, team: into };
  const invitation = { ...link, email };
  const made = new Mails(mails).invite(links, invitation, details, work.mail.secret, actor.kind !== "account");
  return shownInvitation(work, await made);
}

export function mailedInWords({ email, mailed }: Readonly<{ email: string | null; mailed: boolean }>): string {
  if (email === null) return "";
  return mailed ? ` The server mails it to ${email}.` : ` It is not mailed to ${email}.`;
}

function invitationPrinted({ link, expires_at, ...made }: ReturnType<typeof shownInvitation>): string {
  return `${link}\nIt makes one account, until ${expires_at}, and is shown this once.${mailedInWords(made)}`;
}

export default [
  create,
  invite,
  list,
  show,
  plan,
  costCenter,
  address,
  credit,
  changePassword,
  passwordLink,
  disable,
  enable,
  sessions,
  signOut,
  exportAccount,
  erase,
  invitations,
  withdrawInvitation,
  invitationLink,
];
