// Teams: made, shown, changed and deleted, and who is in them.
import { Type } from "@sinclair/typebox";
import { type MemberView, Teams } from "../../account/people/teams.ts";
import type { Unit } from "../../account/office.ts";
import type { AccountId } from "../../core/types.ts";
import { CommandError } from "../../core/expected-error.ts";
import { orNull, oneOf, planId, text, tokens, when, wholeNumber } from "../fields.ts";
import { expiryOf, expiryProblem } from "../link-expiry.ts";
import { formatTable } from "../table.ts";
import { teamVerb, verb } from "../verb.ts";
import { accountInWords, erase, invitationMs, invited, mailedInWords } from "./accounts.ts";

const email = text("The e-mail address of the member.", "EMAIL");
const day = tokens(1, "The most balance tokens of a day (UTC).");
const month = tokens(1, "The most balance tokens of a month (UTC).");
const caps = { limit_day: Type.Optional(day), limit_month: Type.Optional(month) };
const role = oneOf(["member", "admin"], "What they are; admins invite, limit and remove others.", "member|admin");
/** Of members that are there already. */
export const memberTerms = { role, limit_day: orNull(day), limit_month: orNull(month) };

/** Without names, which must be forgotten with whose they are. */
const detailOf = (terms: object, ...first: readonly string[]): string =>
  [
    ...first,
    ...Object.entries(terms).flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value ?? "none"}`])),
  ].join(", ");

export const create = verb({
  name: "teams create",
  summary: "Create a team, whose members spend one balance",
  details:
    "Its plan says how much it has a day; `accounts credit TEAM` adds credit. `keys create TEAM` makes a service key.",
  words: ["name"],
  fields: {
    name: text("What it is called.", "NAME"),
    plan: Type.Optional(planId("Its plan; without it the first one.")),
    credit: Type.Optional(tokens(0, "Balance tokens to start with.")),
  },
  scope: "people",
  makesFolder: true,
  async change({ accounts }, { input: { name, ...given } }) {
    const { id, plan } = await accounts.create({ email: name, ...given, team: true });
    return { id, name, plan };
  },
  audit: {
    action: "team.create",
    subject: ({ id }) => id,
    detail: ({ input: { credit = 0 } }, { plan }) => `plan ${plan}, credit ${credit}`,
  },
  print: ({ id, name, plan }) => `The team ${name} is account ${id}, on the plan ${plan}.`,
});

export const list = verb({
  name: "teams list",
  summary: "List all teams",
  scope: "read",
  read: async (unit) => {
    const teams = await new Teams(unit.teams).all();
    const members = await Promise.all(teams.map(({ id }) => unit.accounts.members(id)));
    return teams.map(({ id, email: name, plan, credit, disabledAt }, at) => {
      return { id, name, plan, credit, members: members[at]!.length, disabled: disabledAt !== null };
    });
  },
  print: (teams) =>
    formatTable(
      ["id", "name", "plan", "credit", "members", "disabled"],
      teams.map(({ id, name, plan, credit, members, disabled }) => [String(id), name, plan, credit, members, disabled]),
    ),
});

export const show = teamVerb({
  name: "teams show",
  summary: "Show the plan, balance and members of a team",
  scope: "read",
  owner: true,
  read: (unit, { team }) => new Teams(unit.teams).show(team),
  print: ({ name, members, ...account }) =>
    `${accountInWords({ ...account, email: name })}\n\n${membersInWords(members)}`,
});

export const update = teamVerb({
  name: "teams update",
  summary: "Give a team another name or plan, or disable it",
  fields: {
    name: Type.Optional(text("Its new name.", "NAME")),
    plan: Type.Optional(planId("Its new plan.")),
    disabled: Type.Optional(Type.Boolean({ description: "Whether its keys are refused.", negatable: true })),
  },
  scope: "people",
  problem: ({ team: _, ...wanted }) =>
    Object.keys(wanted).length > 0
      ? null
      : { path: [], problem: "say what becomes of the team: --name, --plan, --disabled" },
  audit: {
    action: "team.update",
    detail: ({ input: { team: _, name, ...wanted } }) =>
      detailOf(wanted, ...(name === undefined ? [] : ["another name"])),
  },
  async change(unit, { team, input: { name, plan, disabled } }) {
    const { accounts } = unit;
    if (name !== undefined) await accounts.renameTeam(team.id, name);
    if (plan !== undefined) await accounts.changePlan(team.id, plan);
    if (disabled !== undefined) await accounts.setDisabled(team.id, disabled);
    return { id: team.id, name: name ?? team.email };
  },
  print: ({ name }) => `The team ${name} is as you said.`,
});

const remove = teamVerb({
  name: "teams delete",
  summary: "Delete a team with its keys, and let its members go",
  details: "Its usage and payments stay in the books, without a name.",
  scope: "people",
  warning: ({ team }) => `this deletes the team ${team} and its keys for good, with what is left of its credit`,
  run: (work, { team, actor, progress }) => erase.run(work, { actor, progress, input: { email: team.email } }),
  print: ({ id, name }) => `deleted; the books of account ${id} stay, under the name ${name}`,
});

export const invite = teamVerb({
  name: "teams invite",
  summary: "Create a link by which one person joins a team",
  details:
    "Who has an account joins with it; who has none makes one. WHEN is a time, or hours or days such as 48h or 7d.",
  fields: {
    email: Type.Optional(text("The only address that may use it; without it any address may.", "EMAIL")),
    ...caps,
    expires: Type.Optional(when("When the link expires; 7d unless you say otherwise.")),
  },
  scope: "people",
  owner: true,
  problem: expiryProblem,
  async change(unit, { team, actor, input: { email = null, expires, limit_day, limit_month } }, work) {
    const { accounts } = unit;
    await accounts.checkNotErased(team.id);
    const into = { team: team.id, tokensPerDay: limit_day ?? null, tokensPerMonth: limit_month ?? null };
    const expiresAt = expiryOf(expires, unit.now, invitationMs);
    return invited(unit, work, actor, await accounts.invitation({ email, credit: 0, expiresAt, ...into }));
  },
  audit: {
    action: "invitation.create",
    detail: ({ input: { limit_day, limit_month } }, { id }) =>
      detailOf({ limit_day, limit_month }, `invitation ${id} into the team`),
    ofOwners: true,
  },
  print: ({ link, expires_at, ...made }) =>
    `${link}\nOne person joins by it, until ${expires_at}. It is shown this once.${mailedInWords(made)}`,
});

export const withdraw = teamVerb({
  name: "teams withdraw",
  summary: "Revoke the link of an invitation into a team",
  words: ["id"],
  fields: { id: wholeNumber(1, "Its number in invitations list.", "ID") },
  scope: "people",
  owner: true,
  audit: { action: "invitation.withdraw", detail: ({ input: { id } }) => `invitation ${id}`, ofOwners: true },
  async change({ links }, { team, input: { id } }) {
    if ((await links.findById(id)).team !== team.id) throw new CommandError(`the team has no invitation ${id}`);
    await links.withdraw(id);
    return { id };
  },
  print: ({ id }) => `Invitation ${id} is void.`,
});

export const membersAdd = teamVerb({
  name: "teams members add",
  summary: "Put a person who has an account into a team",
  words: ["email"],
  fields: { email, role: Type.Optional(role), ...caps },
  scope: "people",
  audit: {
    action: "team.member",
    detail: ({ input: { team: _, email: __, ...terms } }, { id }) => detailOf(terms, `account ${id} was added`),
  },
  change: (unit, { team, input: { email, team: _, ...terms } }) =>
    onMember(unit, email, (teams, account) => teams.add(team.id, account, terms)),
  print: ({ email }) => `${email} is in the team.`,
});

export const membersUpdate = teamVerb({
  name: "teams members update",
  summary: "Change what a member of a team may do and use",
  details: "Limits that are not named stay as they are. The word none lifts one: --limit-day none.",
  words: ["email"],
  fields: { email, ...Type.Partial(Type.Object(memberTerms)).properties },
  scope: "people",
  owner: true,
  audit: {
    action: "team.member",
    detail: ({ input: { team: _, email: __, ...terms } }, { id }) => detailOf(terms, `account ${id}`),
    ofOwners: true,
  },
  change: (unit, { team, input: { email, team: _, ...terms } }) =>
    onMember(unit, email, (teams, account) => teams.update(team.id, account, terms)),
  print: ({ email }) => `${email} is as you said.`,
});

export const membersRemove = teamVerb({
  name: "teams members remove",
  summary: "Take a person out of a team, whose keys there are void at once",
  details: "Requests that run may end.",
  words: ["email"],
  fields: { email },
  scope: "people",
  owner: true,
  ofSelf: ({ email }, account) => email.toLowerCase() === account.email.toLowerCase(),
  audit: { action: "team.leave", detail: (_, { id }) => `account ${id}`, ofOwners: true },
  change: (unit, { team, input: { email } }) =>
    onMember(unit, email, (teams, account) => teams.remove(team.id, account)),
  print: ({ email }) => `${email} is not in the team anymore.`,
});

export const membersList = teamVerb({
  name: "teams members list",
  summary: "List the members of a team, with what they may use and used",
  scope: "read",
  owner: true,
  read: (unit, { team }) => new Teams(unit.teams).members(team.id),
  print: membersInWords,
});

export default [
  create,
  list,
  show,
  update,
  remove,
  invite,
  withdraw,
  membersAdd,
  membersUpdate,
  membersRemove,
  membersList,
];

async function onMember(
  { accounts, teams }: Unit,
  email: string,
  change: (teams: Teams, account: AccountId) => Promise<void>,
): Promise<Readonly<{ id: AccountId; email: string }>> {
  const { id, email: known } = await accounts.ofEmail(email);
  await change(new Teams(teams), id);
  return { id, email: known };
}

function membersInWords(members: readonly MemberView[]): string {
  return formatTable(
    ["e-mail", "role", "used today", "of", "this month", "of", "joined"],
    members.map(({ email, role, used_day, limit_day, used_month, limit_month, joined_at }) => [
      ...[email, role, used_day, limit_day ?? "", used_month, limit_month ?? "", joined_at],
    ]),
  );
}
