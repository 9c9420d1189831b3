// Accounts: made, invited, shown, changed and deleted.
import { Type } from "@sinclair/typebox";
import { type AccessLink, invitationInWords, type MadeLink, pathOf } from "../../account/access-links.ts";
import type { AccountView } from "../../account/accounts.ts";
import { CommandError } from "../../core/expected-error.ts";
import { invitationMs, passwordLinkMs } from "../../core/limits.ts";
import type { AccountId } from "../../core/types.ts";
import { eraseAccount, erasedDetail } from "../erase-account.ts";
import { password, planId, tokens, when } from "../fields.ts";
import { expiryOf, expiryProblem } from "../link-expiry.ts";
import { formatPairs, formatTable } from "../table.ts";
import { accountVerb, verb } from "../verb.ts";
import type { Work } from "../work.ts";

export const create = verb(
  {
    email: Type.String({ description: "The e-mail address of the new account.", placeholder: "EMAIL" }),
    plan: Type.Optional(planId("Its plan; without it the first one.")),
    credit: Type.Optional(tokens(0, "Balance tokens to start with.")),
    password: Type.Optional(password("Lets its owner sign in to the console.")),
    operator: Type.Optional(Type.Boolean({ description: "Let it see and change all accounts in the console." })),
  },
  {
    name: "accounts create",
    summary: "Create an account and show its API key once",
    details: "The plans are free, plus, standard and pro, or those of [[plans]] in the configuration.",
    words: ["email"],
    scope: "people",
    makesFolder: true,
    audit: {
      action: "account.create",
      subject: ({ id }) => id,
      detail: ({ input: { credit = 0, operator = false } }, { plan }: { id: AccountId; plan: string }) =>
        `plan ${plan}, credit ${credit}${operator ? ", an operator" : ""}`,
    },
    run: ({ accounts }, { input, noted }) => {
      const { plan = accounts.planOfNew } = input;
      return accounts.create(input, (id) => noted({ id, plan }));
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
  },
);

export const invite = verb(
  {
    email: Type.Optional(
      Type.String({ description: "The one address that may use it; without it any may.", placeholder: "EMAIL" }),
    ),
    plan: Type.Optional(planId("The plan of the new account; without it the first one.")),
    credit: Type.Optional(tokens(0, "Balance tokens to start with.")),
    expires: Type.Optional(when("When the link expires; 7d unless you say otherwise.")),
  },
  {
    name: "accounts invite",
    summary: "Create a link that makes one account",
    details: `Whoever opens it chooses an address and a password, or signs in with the identity provider. ${whenInWords()}`,
    scope: "people",
    problem: expiryProblem,
    audit: {
      action: "invitation.create",
      detail: (_, made: Pick<AccessLink, "id" | "email" | "plan" | "credit">) => invitationInWords(made),
    },
    async run(work, { input: { email = null, plan, credit = 0, expires }, noted }) {
      const now = work.clock.wall();
      const expiresAt = expiryOf(expires, now, invitationMs);
      const wanted = await work.accounts.invitation({ email, plan, credit, expiresAt }, now);
      const made = await work.links.make(wanted, (id) => noted({ ...wanted, id }));
      return { id: made.link.id, email, plan: wanted.plan, credit, ...shownLink(work, made) };
    },
    print: ({ link, expires_at }) => `${link}\nIt makes one account, until ${expires_at}, and is shown this once.`,
  },
);

export const list = verb(
  {
    after: Type.Optional(
      Type.Integer({ minimum: 0, description: "Only accounts with larger ids.", placeholder: "ID" }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, description: "How many at most.", placeholder: "N" })),
  },
  {
    name: "accounts list",
    summary: "List all accounts",
    scope: "read",
    run: ({ accounts }, { input }) => accounts.list(input),
    print: (accounts) =>
      formatTable(
        ["id", "e-mail", "plan", "credit", "operator", "disabled", "created"],
        accounts.map(({ id, email, plan, credit, operator, disabled, created_at }) => [
          ...[String(id), email, plan, credit, operator, disabled, created_at],
        ]),
      ),
  },
);

export const show = accountVerb(
  {},
  {
    name: "accounts show",
    summary: "Show the plan, balance and use of an account",
    scope: "read",
    run: ({ accounts }, { account }) => accounts.showById(account.id),
    print: accountInWords,
  },
);

export const plan = accountVerb(
  { plan: planId("The plan that it gets.") },
  {
    name: "accounts plan",
    summary: "Change the plan of an account",
    words: ["plan"],
    scope: "people",
    audit: { action: "account.plan", detail: ({ account, input }) => `from ${account.plan} to ${input.plan}` },
    async run({ accounts }, { account, input, noted }) {
      await accounts.changePlanById(account.id, input.plan, () => noted({}));
      return accounts.showById(account.id);
    },
    print: accountInWords,
  },
);

export const credit = accountVerb(
  {
    tokens: tokens(1, "Balance tokens to add."),
    reference: Type.Optional(
      Type.String({ description: "Names the payment: the same one is credited once.", placeholder: "R" }),
    ),
    reason: Type.Optional(Type.String({ description: "Why, for the audit log.", placeholder: "TEXT" })),
  },
  {
    name: "accounts credit",
    summary: "Add purchased credit to an account",
    words: ["tokens"],
    scope: "people",
    audit: {
      action: "account.credit",
      detail({ input: { tokens, reason, reference } }, { credited }: { credited: boolean }) {
        if (!credited) return null;
        const why = reason ?? (reference === undefined ? null : `reference ${reference}`);
        return `${tokens} balance tokens${why === null ? "" : `: ${why}`}`;
      },
    },
    async run({ accounts }, { account: { id }, actor, input: { tokens, reference }, noted }) {
      await accounts.checkNotErased(id);
      // Of the console's grants each counts for its account alone: nobody else's may use it up.
      const once = reference ?? crypto.randomUUID();
      const place = actor.kind === "operator" ? `grant:${id}` : reference === undefined ? "purchase" : "credit";
      const { credited } = await accounts.addCreditById(id, tokens, `${place}:${once}`, () =>
        noted({ credited: true }),
      );
      const owner = credited || reference === undefined ? null : await accounts.creditedTo(reference);
      if (owner !== null && owner.id !== id) {
        throw new CommandError(`nothing was added: the reference ${reference} was credited to ${owner.email}`);
      }
      return { ...(await accounts.showById(id)), credited };
    },
    print: ({ credited, ...account }) =>
      `${credited ? "" : "This reference was credited before; nothing was added.\n"}${accountInWords(account)}`,
  },
);

export const changePassword = accountVerb(
  { password: password("The new password.") },
  {
    name: "accounts password",
    summary: "Set another password and sign all browsers out",
    details: "Without --password it is the first line of standard input, or typed unseen; an empty one is generated.",
    scope: "people",
    audit: { action: "account.password" },
    async run({ accounts, sessions }, { account: { id, email }, actor, input, noted }) {
      const except = actor.kind !== "shell" && actor.account.id === id ? actor.session : null;
      await sessions.endAllWith(id, except, (endSessions) =>
        accounts.changePasswordById(id, input.password, () => {
          noted({});
          endSessions();
        }),
      );
      return { id, email };
    },
    print: ({ email }) => `The password of ${email} is set; all browsers were signed out.`,
  },
);

export const passwordLink = accountVerb(
  { expires: Type.Optional(when("When the link expires; within a day unless you say otherwise.")) },
  {
    name: "accounts password-link",
    summary: "Create a link that sets the password of an account once",
    details: `Nothing changes until it is opened. ${whenInWords()}`,
    scope: "people",
    problem: expiryProblem,
    audit: { action: "account.password_link", detail: (_, found: { link_id: number }) => `link ${found.link_id}` },
    async run(work, { account: { id, email }, input: { expires }, noted }) {
      const now = work.clock.wall();
      const wanted = await work.accounts.passwordLink(id, expiryOf(expires, now, passwordLinkMs), now);
      const made = await work.links.make(wanted, (link_id) => noted({ link_id }));
      return { id, email, ...shownLink(work, made), link_id: made.link.id };
    },
    print: ({ email, link, expires_at }) =>
      `${link}\nIt sets the password of ${email} once, until ${expires_at}, and is shown this once.`,
  },
);

export const disable = accountVerb(
  {},
  {
    name: "accounts disable",
    summary: "Refuse the keys of an account and sign its browsers out",
    details: "Requests that run may end, and the balance stays.",
    scope: "people",
    audit: { action: "account.disable" },
    async run({ accounts, sessions }, { account: { id }, noted }) {
      const isAnother = accounts.checkNotLastOperator(id);
      if (isAnother instanceof Promise) await isAnother;
      await sessions.endAllWith(id, null, (endSessions) =>
        accounts.setDisabled(id, true, () => {
          noted({});
          endSessions();
        }),
      );
      return accounts.showById(id);
    },
    print: accountInWords,
  },
);

export const enable = accountVerb(
  {},
  {
    name: "accounts enable",
    summary: "Let a disabled account be used again, with the same keys and password",
    scope: "people",
    audit: { action: "account.enable" },
    async run({ accounts }, { account: { id }, noted }) {
      await accounts.setDisabled(id, false, () => noted({}));
      return accounts.showById(id);
    },
    print: accountInWords,
  },
);

/** Writes down that its data is given out, which the door itself does. */
export const exportAccount = accountVerb(
  {},
  {
    name: "accounts export",
    summary: "Print everything that is kept of an account, as JSON",
    details: "Usage, payments, sessions, stored responses, and what operators did.",
    scope: "people",
    audit: { action: "account.export" },
    run: (_, { account: { id } }) => Promise.resolve({ id }),
    print: ({ id }) => `account ${id}`,
  },
);

export const erase = accountVerb(
  {},
  {
    name: "accounts delete",
    summary: "Erase who an account was, its keys, sessions and stored responses",
    details: "What it used and paid stays in the books, without a name.",
    scope: "people",
    owner: true,
    warning: ({ email }) =>
      `this erases ${email}, its key, sessions and stored responses for good, and keeps its books without a name`,
    audit: { action: "account.delete", detail: (_, __, work) => erasedDetail(work), ofOwners: true },
    run: (work, { account, noted }) => eraseAccount(work, account.email, () => noted({})),
    print: ({ id, name }) => `deleted; the books of account ${id} stay, under the name ${name}`,
  },
);

function whenInWords(): string {
  return "WHEN is a time such as 2026-12-31T12:00:00Z, or hours or days from now: 48h, 7d.";
}

/** `link` is shown this once. */
const shownLink = ({ consoleUrl }: Pick<Work, "consoleUrl">, made: MadeLink) => ({
  link: consoleUrl + pathOf(made),
  expires_at: new Date(made.link.expiresAt).toISOString(),
});

function accountInWords(account: AccountView): string {
  const { allowance, coder_calls, searches } = account;
  const isLimited = account.spendable !== null;
  return formatPairs([
    ["id", String(account.id)],
    ["e-mail", account.email],
    ["plan", account.plan],
    ["disabled", account.disabled],
    ["spendable now", isLimited ? account.spendable : "anything: the plan is not limited"],
    ...(isLimited
      ? [[`allowance of ${allowance.day}`, `${whole(allowance.left)} of ${whole(allowance.granted)} left`] as const]
      : []),
    ["purchased credit", account.credit],
    ["reserved by open requests", account.reserved],
    ...used(`coder calls since ${coder_calls.window}`, coder_calls),
    ...used(`searches of ${searches.day}`, searches),
  ]);
}

/** What a plan does not have is not shown. */
const used = (what: string, { used, limit }: Readonly<{ used: number; limit: number | null }>) =>
  limit === 0 && used === 0 ? [] : [[what, `${whole(used)} of ${whole(limit)} used`] as const];

const whole = (value: number | null): string => (value === null ? "any number" : value.toLocaleString("en-US"));

export default [
  ...[create, invite, list, show, plan, credit, changePassword, passwordLink, disable, enable, exportAccount, erase],
];
