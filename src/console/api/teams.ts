// Teams, as their members, their admins and operators see them.
import { type Static, Type } from "@sinclair/typebox";
import { emailMaxLength } from "../../core/limits.ts";
import { AccountKey, keyName, someTokens } from "./keys.ts";
import { closed, count, nullable, oneOf, planId, time, tokens } from "./shapes.ts";

const role = () => oneOf(["admin", "member"]);

/** Those of the account; of an operator all. `role` null: none. */
export const Teams = Type.Object({
  teams: Type.Array(
    Type.Object({ id: count(), name: Type.String(), role: nullable(role()), plan: planId(), disabled: Type.Boolean() }),
  ),
});

export const Member = Type.Object({
  id: count(),
  email: Type.String(),
  role: role(),
  limit_day: nullable(tokens()),
  limit_month: nullable(tokens()),
  /** Balance tokens of today and this month (UTC), of all keys in the team. */
  used_day: tokens(),
  used_month: tokens(),
  joined_at: time(),
});
export type Member = Static<typeof Member>;

/** An open one; `email` null: whoever has the link. */
const Invitation = Type.Object({
  id: count(),
  email: nullable(Type.String()),
  limit_day: nullable(tokens()),
  limit_month: nullable(tokens()),
  expires_at: time(),
});
export type Invitation = Static<typeof Invitation>;
export const NamedInvitation = Type.Object({ invitation: count() }, closed);

export const Team = Type.Object({
  id: count(),
  name: Type.String(),
  plan: planId(),
  disabled: Type.Boolean(),
  /** Null: without a limit. */
  allowance: Type.Object({ granted: nullable(tokens()), left: nullable(tokens()) }),
  credit: tokens(),
  spendable: nullable(tokens()),
  /** Of the account itself. */
  own: nullable(Type.Object({ member: Member, keys: Type.Array(AccountKey) })),
  /** For admins and operators. */
  managed: nullable(
    Type.Object({ members: Type.Array(Member), keys: Type.Array(AccountKey), invitations: Type.Array(Invitation) }),
  ),
});
export type Team = Static<typeof Team>;

const limits = { limit_day: Type.Optional(someTokens()), limit_month: Type.Optional(someTokens()) };

/** `email`: who alone may use the link. */
export const NewMember = Type.Object(
  {
    email: Type.Optional(Type.String({ maxLength: emailMaxLength, description: "an e-mail address" })),
    ...limits,
  },
  closed,
);
export const MemberLink = Type.Object({ path: Type.String(), expires_at: time(), mailed: Type.Boolean() });

/** An absent term stays as it is; null lifts a limit. */
export const MemberChange = Type.Object(
  {
    account: count(),
    role: Type.Optional(role()),
    limit_day: Type.Optional(nullable(someTokens())),
    limit_month: Type.Optional(nullable(someTokens())),
  },
  closed,
);
export const NamedMember = Type.Object({ account: count() }, closed);

/** `service`: the team's own, which only admins make. */
export const NewTeamKey = Type.Object(
  { name: keyName(), service: Type.Boolean({ description: "true or false" }), ...limits },
  closed,
);
export const NamedTeamKey = Type.Object(
  { key: count(), service: Type.Boolean({ description: "true or false" }) },
  closed,
);
