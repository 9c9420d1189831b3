// Keys of accounts.
import { Type } from "@sinclair/typebox";
import { type KeyView, limitsDetail } from "../../account/people/account-keys.ts";
import { countsInWords, eachCount } from "../../core/count-limits.ts";
import { keyNameMaxLength } from "../../core/limits.ts";
import { priorities } from "../../core/priority.ts";
import { list as listOf, oneOf, orNull, text, tokens, wholeNumber } from "../fields.ts";
import { formatTable } from "../table.ts";
import { AccountError } from "../../account/people/accounts.ts";
import type { Unit } from "../../account/office.ts";
import type { AccountRecord } from "../../account/records.ts";
import type { AccountId } from "../../core/types.ts";
import { accountVerb } from "../verb.ts";

const id = wholeNumber(1, "The key's number in the list.", "ID");
const name = text("The name of the key, which usage shows.", "NAME");
const team = Type.Optional(text("The team whose balance it spends, as a key of this member.", "TEAM"));

/** Whose key it is, and of a team's, whose in it. */
async function holderOf(
  { accounts }: Unit,
  { id, email }: AccountRecord,
  team: string | undefined,
): Promise<readonly [account: AccountId, member: AccountId | null]> {
  if (team === undefined) return [id, null];
  const record = await accounts.recordOf(team);
  const isIn = record?.team === true && (await accounts.member(record.id, id)) !== null;
  if (!isIn) throw new AccountError(`${email} is in no team ${team}`);
  return [record.id, id];
}

const priority = (description: string) => oneOf(priorities, description, "PRIORITY");
const limits = {
  limit_day: tokens(1, "The most balance tokens of a day (UTC)."),
  limit_month: tokens(1, "The most balance tokens of a month (UTC)."),
  expires_at: text("When it expires, such as 2030-01-31T00:00:00Z.", "TIME", { flag: "expires" }),
  models: listOf("a,b", "The only models that it may ask for."),
  addresses: listOf("CIDR,CIDR", "The only addresses that it may be used from."),
  forwards_users: Type.Boolean({
    description: "For a program that serves people: it is believed who asks, and usage knows them.",
  }),
  limit_end_user_day: tokens(1, "The most balance tokens of a day for each person it asks for."),
  priority: priority("What its requests get that ask for none."),
  priority_max: priority("The most urgent that its requests get, within that of the plan."),
  ...eachCount(({ most, about }) => wholeNumber(1, about, "N", most)),
};
const newLimits = Type.Partial(Type.Object(limits)).properties;
const lifted = Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, orNull(limit)])) as {
  [Name in keyof typeof limits]: ReturnType<typeof orNull<(typeof limits)[Name]>>;
};
export const otherLimits = Type.Partial(
  Type.Object({ ...lifted, forwards_users: Type.Boolean({ ...limits.forwards_users, negatable: true }) }),
).properties;

export const create = accountVerb({
  name: "keys create",
  summary: "Create another key of an account and show it once",
  details: "It spends the balance of its account, within limits of its own.",
  fields: { name, team, ...newLimits },
  scope: "people",
  owner: true,
  audit: {
    action: "key.create",
    detail: ({ input }) => JSON.stringify(input.name.slice(0, keyNameMaxLength)) + inTeam(input),
  },
  async change(unit, { account, input: { email: _, team, ...key } }) {
    const [holder, member] = await holderOf(unit, account, team);
    return unit.accountKeys.create(holder, key, member);
  },
  print: (key) => `${key.api_key}\nKey ${key.id}, "${key.name}". It is shown this once.`,
});

export const list = accountVerb({
  name: "keys list",
  summary: "List the keys of an account, with their limits and use",
  fields: { team },
  scope: "read",
  owner: true,
  read: async (unit, { account, input }) => unit.accountKeys.list(...(await holderOf(unit, account, input.team))),
  print: (keys) =>
    formatTable(
      ["id", "name", "of", "ends in", "made", "last used", "used today", "this month", "limits"],
      keys.map((key) => [
        ...[key.id, key.name, key.member ?? "", key.ending ?? "", key.created_at, key.last_used_at ?? "never"],
        ...[key.used_day ?? "", key.used_month ?? "", limitsInWords(key)],
      ]),
    ),
});

export const rename = accountVerb({
  name: "keys rename",
  summary: "Give a key another name",
  words: ["id", "name"],
  fields: { id, name: text("Its new name.", "NAME"), team },
  scope: "people",
  owner: true,
  audit: {
    action: "key.rename",
    detail: ({ input }) => `key ${input.id} to ${JSON.stringify(input.name)}${inTeam(input)}`,
  },
  async change(unit, { account, input }) {
    const [holder, member] = await holderOf(unit, account, input.team);
    return unit.accountKeys.rename(holder, input.id, input.name, member);
  },
  print: (key) => `Key ${key.id} is called "${key.name}".`,
});

export const limit = accountVerb({
  name: "keys limits",
  summary: "Change the limits of a key",
  details: "Limits that are not named stay as they are. The word none lifts one: --limit-day none.",
  words: ["id"],
  fields: { id, team, ...otherLimits },
  scope: "people",
  owner: true,
  problem: ({ email: _, id: __, team: ___, ...wanted }) =>
    Object.values(wanted).some((value) => value !== undefined)
      ? null
      : { path: [], problem: "name one or more limits; none lifts one" },
  audit: {
    action: "key.limits",
    detail: ({ input: { email: _, id: key, team, ...wanted } }) => limitsDetail(key, wanted) + inTeam({ team }),
  },
  async change(unit, { account, input: { email: _, id: key, team, ...wanted } }) {
    const [holder, member] = await holderOf(unit, account, team);
    return unit.accountKeys.limit(holder, key, wanted, member);
  },
  print: (key) => `Key ${key.id}, "${key.name}": ${limitsInWords(key) || "no limits"}.`,
});

export const revoke = accountVerb({
  name: "keys revoke",
  summary: "Make a key void at once",
  details: "Requests that run may end.",
  words: ["id"],
  fields: { id, team },
  scope: "people",
  owner: true,
  audit: { action: "key.revoke", detail: ({ input }) => `key ${input.id}${inTeam(input)}` },
  async change(unit, { account, input }) {
    const [holder, member] = await holderOf(unit, account, input.team);
    return unit.accountKeys.revoke(holder, input.id, member);
  },
  print: (key) => `Key ${key.id}, "${key.name}", is void.`,
});

export const rotate = accountVerb({
  name: "keys rotate",
  summary: "Replace the first key of an account and show the new one once",
  details: "The old one is void at once.",
  scope: "people",
  owner: true,
  audit: { action: "key.rotate" },
  change: async ({ accounts }, { account }) => ({ email: account.email, ...(await accounts.rotateKey(account.id)) }),
  print: ({ api_key }) => `${api_key}\nThe key is shown this once. The one before is void.`,
});

export default [create, list, rename, limit, revoke, rotate];

const inTeam = ({ team }: Readonly<{ team?: string | undefined }>): string => (team === undefined ? "" : ` in ${team}`);

function limitsInWords(key: KeyView): string {
  const { limit_day, limit_month, expires_at, expired, models, addresses, forwards_users, limit_end_user_day } = key;
  return [
    ...(limit_day === null ? [] : [`${limit_day} balance tokens a day`]),
    ...(limit_month === null ? [] : [`${limit_month} balance tokens a month`]),
    ...(expires_at === null ? [] : [`${expired ? "expired" : "expires"} ${expires_at}`]),
    ...(models === null ? [] : [`models ${models.join(", ")}`]),
    ...(addresses === null ? [] : [`from ${addresses.join(", ")}`]),
    ...(forwards_users ? ["names its end users"] : []),
    ...(limit_end_user_day === null ? [] : [`${limit_end_user_day} balance tokens a day for each`]),
    ...(key.priority === null ? [] : [`priority ${key.priority}`]),
    ...(key.priority_max === null ? [] : [`priority up to ${key.priority_max}`]),
    ...countsInWords(key),
    ...(key.cost_center === null ? [] : [`booked to ${key.cost_center}`]),
  ].join("; ");
}
