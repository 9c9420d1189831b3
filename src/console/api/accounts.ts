// Accounts and invitations as operators see and change them.
import { type Static, Type } from "@sinclair/typebox";
import { creditGrantMaxTokens, emailMaxLength, linkMaxMs } from "../../core/limits.ts";
import { hourMs } from "../../core/units.ts";
import { AccountNumbers } from "./live.ts";
import { closed, count, email, newPassword, nullable, planId, time, tokens, wholeText } from "./shapes.ts";

export const AccountsQuery = Type.Object(
  {
    /** A part of the e-mail, in any case; every character stands for itself. */
    search: Type.Optional(Type.String({ maxLength: emailMaxLength })),
    /** `next` of the page before. */
    after: Type.Optional(wholeText()),
    /** At most 100; 50 where it is absent. */
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
  disabled: Type.Boolean(),
  created_at: time(),
});
export type AccountRow = Static<typeof AccountRow>;

/** In the order in which they were made. `next` is null on the last page. */
export const AccountsPage = Type.Object({ accounts: Type.Array(AccountRow), next: nullable(Type.String()) });
export type AccountsPage = Static<typeof AccountsPage>;

export const OperatorAccount = Type.Object({
  ...AccountRow.properties,
  key_created_at: time(),
  has_password: Type.Boolean(),
  /** Issuers of identity providers that the account is known to. */
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

/** `reference` makes a repeated grant count once; a page that may be sent twice mints one. */
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

/** Without an address, whoever opens it chooses one. It expires after seven days unless another time is given. */
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

/** `path` is below the console's address; it is shown this once. */
export const NewLink = Type.Object({ id: count(), path: Type.String(), expires_at: time() });
export type NewLink = Static<typeof NewLink>;

/** Those that may be used, the newest first; of more than 200 those. */
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

/** Erases who the account was; `confirm` is its e-mail, as the operator typed it. */
export const AccountDeletion = Type.Object(
  { confirm: Type.String({ maxLength: emailMaxLength, description: "the account's e-mail address" }) },
  closed,
);
