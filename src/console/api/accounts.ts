// Accounts and invitations as operators see and change them.
import { type Static, Type } from "@sinclair/typebox";
import { accountSorts, accountStates } from "../../core/account-columns.ts";
import { creditGrantMaxTokens, emailMaxLength, linkMaxMs } from "../../core/limits.ts";
import { hourMs } from "../../core/units.ts";
import { KeyLimits, KeyName } from "./keys.ts";
import { AccountNumbers } from "./live.ts";
import { closed, count, email, newPassword, nullable, oneOf, planId, time, tokens, wholeText } from "./shapes.ts";
import { UsageSum, UsageSummary } from "./usage.ts";

export const AccountsFilter = Type.Object(
  {
    /** Part of the e-mail address, case-insensitive; no wildcards. */
    search: Type.Optional(Type.String({ maxLength: emailMaxLength })),
    plan: Type.Optional(planId()),
    state: Type.Optional(oneOf(accountStates)),
    /** The name of a team: its members. */
    team: Type.Optional(Type.String({ maxLength: emailMaxLength })),
    /** At least this many percent of the day's allowance are used. */
    used: Type.Optional(wholeText()),
    /** A column; behind a "-" if the largest come first. "-month" if absent. */
    sort: Type.Optional(oneOf([...accountSorts, ...accountSorts.map((sort) => `-${sort}` as const)])),
  },
  closed,
);
export type AccountsFilter = Static<typeof AccountsFilter>;

export const AccountsQuery = Type.Object(
  {
    ...AccountsFilter.properties,
    /** From 1 on. One behind the last shows the last. */
    page: Type.Optional(wholeText()),
    /** At most 100; 50 if absent. */
    limit: Type.Optional(wholeText()),
  },
  closed,
);

const accountFields = {
  id: count(),
  email: Type.String(),
  plan: planId(),
  credit: tokens(),
  operator: Type.Boolean(),
  team: Type.Boolean(),
  disabled: Type.Boolean(),
  created_at: time(),
};

export const AccountRow = Type.Object({
  ...accountFields,
  cost_center: nullable(Type.String()),
  /** Of which it is a member, with commas between them. */
  teams: nullable(Type.String()),
  /** When a key or a browser of it was last used. */
  active_at: nullable(time()),
  /** Balance tokens of the UTC day and month, and tokens of models. */
  today: count(),
  month: count(),
  today_tokens: count(),
  month_tokens: count(),
  /** Thousandths of the day's allowance that are used; null: the plan has none. */
  limit: nullable(count()),
});
export type AccountRow = Static<typeof AccountRow>;

/** `page` is the one shown, and `total` how many accounts fit. */
export const AccountsPage = Type.Object({ accounts: Type.Array(AccountRow), total: count(), page: count() });
export type AccountsPage = Static<typeof AccountsPage>;

export const OperatorAccount = Type.Object({
  ...accountFields,
  key_created_at: time(),
  has_password: Type.Boolean(),
  /** Where its mail goes; null: nowhere. */
  mail_address: nullable(Type.String()),
  /** Issuers of the identity providers that the account is connected with. */
  providers: Type.Array(Type.String()),
  numbers: AccountNumbers,
  cost_center: nullable(Type.String()),
  /** Whose member it is. */
  teams: Type.Array(Type.Object({ id: count(), name: Type.String(), role: Type.String() })),
});
export type OperatorAccount = Static<typeof OperatorAccount>;

export const NewConsoleAccount = Type.Object(
  {
    email: email(),
    plan: Type.Optional(planId()),
    password: Type.Optional(newPassword()),
    credit: Type.Optional(
      Type.Integer({ minimum: 0, maximum: creditGrantMaxTokens, description: "a whole number of tokens" }),
    ),
    operator: Type.Optional(Type.Boolean({ description: "true or false" })),
  },
  closed,
);

/** An e-mail address, or the name of a team. */
export const NamedAccount = Type.Object({ name: Type.String({ maxLength: emailMaxLength }) }, closed);

/** Its use of today, the month and 30 days (UTC), by model; and its end users of those days, as on the usage page. */
export const AccountUse = Type.Object({
  today: UsageSum,
  month: UsageSum,
  models: Type.Array(Type.Object({ model: Type.String(), today: UsageSum, days30: UsageSum })),
  end_users: Type.Array(
    Type.Intersect([
      UsageSummary.properties.end_users.items,
      /** What its key gives each of them a day. */
      Type.Object({ limit_day: nullable(tokens()) }),
    ]),
  ),
});
export type AccountUse = Static<typeof AccountUse>;

const key = Type.Integer({ minimum: 1, description: "the number of a key" });
export const NamedKey = Type.Object({ key }, closed);
export const RenamedKey = Type.Object({ key, ...KeyName.properties }, closed);
export const LimitedKey = Type.Object({ key, ...KeyLimits.properties }, closed);

/** Null: none, or for a key that of the account. */
export const CostCenter = Type.Object(
  {
    cost_center: nullable(Type.String({ maxLength: 100, description: "a text of at most 100 characters" })),
    key: Type.Optional(key),
  },
  closed,
);

/** Absent: all browsers, and machines. */
export const SignedOut = Type.Object(
  { session: Type.Optional(Type.Integer({ minimum: 1, description: "the number of a session" })) },
  closed,
);

export const PlanChange = Type.Object({ plan: planId() }, closed);

/** A grant with the same `reference` counts once, so that a form may be sent twice. */
export const CreditGrant = Type.Object(
  {
    tokens: Type.Integer({
      minimum: 1,
      maximum: creditGrantMaxTokens,
      description: `a whole number of tokens from 1 to ${creditGrantMaxTokens}`,
    }),
    reason: Type.String({ minLength: 1, maxLength: 500, description: "a text of 1 to 500 characters" }),
    reference: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: "a text of 1 to 100 characters" }),
    ),
  },
  closed,
);

/** Without an address, the person who opens the link chooses one. The link expires after seven days by default. */
export const NewInvitation = Type.Object(
  {
    email: Type.Optional(email()),
    plan: Type.Optional(planId()),
    credit: Type.Optional(
      Type.Integer({ minimum: 0, maximum: creditGrantMaxTokens, description: "a whole number of tokens" }),
    ),
    expires_in_hours: Type.Optional(
      Type.Integer({ minimum: 1, maximum: linkMaxMs / hourMs, description: "a whole number of hours, up to 90 days" }),
    ),
  },
  closed,
);

/** `path` is below the console's address; it is shown only once. */
export const NewLink = Type.Object({
  id: count(),
  path: Type.String(),
  expires_at: time(),
  /** It is on its way by e-mail, too. */
  mailed: Type.Boolean(),
});
export type NewLink = Static<typeof NewLink>;

/** The unused ones, newest first, at most 200. */
export const Invitations = Type.Object({
  invitations: Type.Array(
    Type.Object({
      id: count(),
      email: nullable(Type.String()),
      plan: planId(),
      credit: tokens(),
      created_at: time(),
      expires_at: time(),
    }),
  ),
});
export type Invitations = Static<typeof Invitations>;

/** A disabled account's key and sessions are refused. Operators cannot disable their own account. */
export const StateChange = Type.Object({ disabled: Type.Boolean({ description: "true or false" }) }, closed);

/** Ends the account's sessions. */
export const PasswordReset = Type.Object({ password: newPassword() }, closed);

/** Erases all personal data of the account; `confirm` is its e-mail address, as the operator typed it. */
export const AccountDeletion = Type.Object(
  { confirm: Type.String({ maxLength: emailMaxLength, description: "the account's e-mail address" }) },
  closed,
);
