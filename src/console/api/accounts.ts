// Accounts and invitations as operators see and change them.
import { type Static, Type } from "@sinclair/typebox";
import { creditGrantMaxTokens, emailMaxLength, linkMaxMs } from "../../core/limits.ts";
import { hourMs } from "../../core/units.ts";
import { AccountNumbers } from "./live.ts";
import { closed, count, email, newPassword, nullable, planId, time, tokens, wholeText } from "./shapes.ts";

export const AccountsQuery = Type.Object(
  {
    /** Part of the e-mail address, case-insensitive; no wildcards. */
    search: Type.Optional(Type.String({ maxLength: emailMaxLength })),
    /** `next` of the previous page. */
    after: Type.Optional(wholeText()),
    /** At most 100; 50 if absent. */
    limit: Type.Optional(wholeText()),
  },
  closed,
);

export const AccountRow = Type.Object({
  id: count(),
  email: Type.String(),
  plan: planId(),
  credit: tokens(),
  operator: Type.Boolean(),
  team: Type.Boolean(),
  disabled: Type.Boolean(),
  created_at: time(),
});
export type AccountRow = Static<typeof AccountRow>;

/** Oldest first. `next` is null on the last page. */
export const AccountsPage = Type.Object({ accounts: Type.Array(AccountRow), next: nullable(Type.String()) });
export type AccountsPage = Static<typeof AccountsPage>;

export const OperatorAccount = Type.Object({
  ...AccountRow.properties,
  key_created_at: time(),
  has_password: Type.Boolean(),
  /** Where its mail goes; null: nowhere. */
  mail_address: nullable(Type.String()),
  /** Issuers of the identity providers that the account is connected with. */
  providers: Type.Array(Type.String()),
  numbers: AccountNumbers,
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
