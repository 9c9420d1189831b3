// The account's API keys.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { eachCount } from "../../core/count-limits.ts";
import { keyListMax, keyNameMaxLength } from "../../core/limits.ts";
import { priorities } from "../../core/priority.ts";
import { closed, count, keyEnding, nullable, time, tokens } from "./shapes.ts";

/** Only a hash of the key is kept, so it cannot be shown again. */
export const KeyState = Type.Object({ prefix: Type.String(), ending: keyEnding(), created_at: time() });
export type KeyState = Static<typeof KeyState>;

/** The old key is void at once, so the page asks first and sends the confirmation. */
export const KeyRegeneration = Type.Object({ confirm: Type.Literal(true, { description: "true" }) }, closed);

export const NewKey = Type.Object({ api_key: Type.String(), created_at: time() });
export type NewKey = Static<typeof NewKey>;

export const keyName = () =>
  Type.String({
    minLength: 1,
    maxLength: keyNameMaxLength,
    description: `a name of 1 to ${keyNameMaxLength} characters`,
  });
export const someTokens = () => Type.Integer({ minimum: 1, description: "a whole number of tokens from 1 on" });
const someOf = (maximum: number) =>
  Type.Integer({ minimum: 1, maximum, description: `a whole number from 1 to ${maximum}` });
const priority = () =>
  Type.Union(
    priorities.map((priority) => Type.Literal(priority)),
    { description: `one of ${priorities.join(", ")}` },
  );

const someTexts = (what: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: keyListMax, description: `a list of ${what}` });

export const AccountKey = Type.Object({
  /** Number 1 is the key "default" that every account has: it is regenerated, never revoked. */
  id: count(),
  name: Type.String(),
  ending: keyEnding(),
  created_at: time(),
  /** Accurate to a few seconds; null: never. */
  last_used_at: nullable(time()),
  /** From where, as far as the request log keeps it; only in lists. */
  last_address: Type.Optional(nullable(Type.String())),
  expires_at: nullable(time()),
  expired: Type.Boolean(),
  limit_day: nullable(tokens()),
  limit_month: nullable(tokens()),
  /** Balance tokens charged today and this month (UTC); null for the first key. */
  used_day: nullable(tokens()),
  used_month: nullable(tokens()),
  /** Null: all. */
  models: nullable(Type.Array(Type.String())),
  addresses: nullable(Type.Array(Type.String())),
  /** Its program may name the end user of each request; the limit is for each end user. */
  forwards_users: Type.Boolean(),
  limit_end_user_day: nullable(tokens()),
  priority: nullable(priority()),
  priority_max: nullable(priority()),
  /** The token of a machine that signed in. */
  machine: Type.Boolean(),
  /** Of a team's key: whose it is; null: nobody's. */
  member: nullable(Type.String()),
  /** In place of the account's. */
  cost_center: nullable(Type.String()),
  ...eachCount(() => nullable(count())),
});
export type AccountKey = Static<typeof AccountKey>;

export const AccountKeys = Type.Object({ keys: Type.Array(AccountKey), prefix: Type.String() });
export type AccountKeys = Static<typeof AccountKeys>;

const limits = {
  expires_at: time(),
  limit_day: someTokens(),
  limit_month: someTokens(),
  models: someTexts("models"),
  /** CIDR ranges. */
  addresses: someTexts("addresses"),
  limit_end_user_day: someTokens(),
  priority: priority(),
  priority_max: priority(),
  ...eachCount(({ most }) => someOf(most)),
};
const forwards_users = Type.Optional(Type.Boolean({ description: "true or false" }));

/** An absent limit does not apply. */
export const NewAccountKey = Type.Object(
  { name: keyName(), ...Type.Partial(Type.Object(limits)).properties, forwards_users },
  closed,
);

const lifted = Object.fromEntries(
  Object.entries(limits).map(([name, limit]) => [name, nullable(limit as TSchema)]),
) as {
  [Name in keyof typeof limits]: ReturnType<typeof nullable<(typeof limits)[Name]>>;
};

/** An absent limit stays as it is; null lifts it. */
export const KeyLimits = Type.Object({ ...Type.Partial(Type.Object(lifted)).properties, forwards_users }, closed);
export type KeyLimits = Static<typeof KeyLimits>;

/** `api_key` is shown only once. */
export const CreatedAccountKey = Type.Intersect([AccountKey, Type.Object({ api_key: Type.String() })]);
export type CreatedAccountKey = Static<typeof CreatedAccountKey>;

export const KeyName = Type.Object({ name: keyName() }, closed);
