// Finds or creates the account of a person who comes from the identity provider. An e-mail address alone never takes over
// an account with a password or with another person at the provider: the address may have changed hands.
import type { AuditAction } from "../../core/audit-actions.ts";
import { Mails } from "../../account/people/mails.ts";
import { AccountError, isEmail } from "../../account/people/accounts.ts";
import { Teams } from "../../account/people/teams.ts";
import type { Unit } from "../../account/office.ts";
import { isPlan } from "../../core/plans.ts";
import type { AccountId, PlanId } from "../../core/types.ts";
import type { BegunSignIn } from "../oidc/begun-sign-ins.ts";
import type { Person } from "../oidc/person.ts";
import type { ConsoleParts, ProviderParts } from "../parts.ts";
import { admitted, type Entering, isDisabled, noteOwn, type PublicCall } from "./entering.ts";
import { fail, type Failure, isFailure } from "./route.ts";

type Arrival = Readonly<{
  unit: Unit;
  parts: ConsoleParts;
  oidc: ProviderParts;
  call: PublicCall;
  begun: BegunSignIn;
  person: Person;
}>;

/** `apiKey` belongs to an account that was just created. */
type Found = Readonly<{ account: AccountId; apiKey: string | null }>;

/** Runs in one unit, so that two tabs of a new person create one account. A failure adds nothing to the unit. */
export async function comeIn(arrival: Arrival): Promise<Entering | Failure> {
  const { unit, parts, call, begun, person } = arrival;
  const found = await foundFor(arrival);
  if (isFailure(found)) return found;
  const { account: id, apiKey } = found;
  if ((await unit.accounts.record(id))!.disabledAt !== null) return isDisabled;
  await follow(unit, parts, call, id, person);
  if (begun.account === null) return admitted(unit, parts, call, id, apiKey);
  return { account: (await unit.accounts.record(id))!, apiKey: null, cookie: null };
}

async function foundFor(arrival: Arrival): Promise<Found | Failure> {
  const { unit, oidc, call, begun, person } = arrival;
  const known = await unit.identities.accountOf(person.issuer, person.subject);
  if (begun.account !== null) {
    if (call.visitor?.account.id !== begun.account) return fail("not_signed_in", "Sign in first.");
    if (known === null) return connect(arrival, begun.account);
    return known === begun.account ? { account: known, apiKey: null } : otherAccount(oidc);
  }
  if (begun.link !== null) return byLink(arrival, begun.link, known);
  return known === null ? byAddress(arrival) : { account: known, apiKey: null };
}

async function byLink(arrival: Arrival, id: number, known: AccountId | null): Promise<Found | Failure> {
  const { unit, oidc, person } = arrival;
  const link = await unit.links.findById(id);
  if (link.kind === "password" && link.account !== null) {
    if (known === null) return takeOver(arrival, link.account, link.id);
    return known === link.account ? { account: known, apiKey: null } : otherAccount(oidc);
  }
  const teams = new Teams(unit.teams);
  if (known !== null && link.team === null) {
    return fail("conflict", "You already have an account here. Sign in without the invitation.");
  }
  if (link.email !== null && link.email.toLowerCase() !== person.email.toLowerCase()) {
    return fail("forbidden", `This invitation is for another address, not ${person.email}.`);
  }
  const how = `invitation ${link.id}, ${oidc.name}`;
  const found =
    known === null
      ? await create(arrival, unit.accounts.planStill(link.plan), link.credit, how)
      : { account: known, apiKey: null };
  await unit.links.use(link.id, found.account);
  await teams.join(link, found.account);
  return found;
}

async function byAddress(arrival: Arrival): Promise<Found | Failure> {
  const { unit, parts, oidc, person } = arrival;
  const namesake = await unit.accounts.recordOf(person.email);
  if (namesake === null) {
    return create(arrival, planOf(parts, person) ?? unit.accounts.planStill(oidc.rules.plan), 0, oidc.name);
  }
  if (namesake.disabledAt !== null) return isDisabled;
  const isTaken = namesake.passwordHash !== null || (await unit.identities.of(namesake.id)).length > 0;
  return isTaken ? fail("conflict", addressTaken(person.email, oidc.name)) : connect(arrival, namesake.id);
}

async function connect({ unit, oidc, call, person }: Arrival, id: AccountId): Promise<Found | Failure> {
  if ((await unit.accounts.checkNotErased(id)).disabledAt !== null) return isDisabled;
  unit.identities.connect(person.issuer, person.subject, id);
  noteOwn(unit, call, "account.connect", id, `with ${oidc.name}`);
  return { account: id, apiKey: null };
}

/** Voids the old password: by the link, an operator gave the account to the person. */
async function takeOver({ unit, oidc, call, person }: Arrival, id: AccountId, link: number): Promise<Found | Failure> {
  const { accounts, identities, links, sessions } = unit;
  if ((await accounts.record(id))!.disabledAt !== null) return isDisabled;
  await links.use(link, id);
  await accounts.setPassword(id, null);
  identities.connect(person.issuer, person.subject, id);
  noteOwn(unit, call, "account.connect", id, `with ${oidc.name}, by a link; its password is void`);
  await sessions.endAll(id, null);
  return { account: id, apiKey: null };
}

async function create({ unit, call, person }: Arrival, plan: string, credit: number, how: string): Promise<Found> {
  const { id, api_key } = await unit.accounts.create({ email: person.email, plan, credit });
  unit.identities.connect(person.issuer, person.subject, id);
  noteOwn(unit, call, "account.create", id, `by ${how}: plan ${plan}, credit ${credit}`);
  return { account: id, apiKey: api_key };
}

/** Applies what the provider decides at each sign-in. */
async function follow(unit: Unit, parts: ConsoleParts, call: PublicCall, id: AccountId, person: Person): Promise<void> {
  const { operator, plan, mailAddress } = (await unit.accounts.record(id))!;
  if (mailAddress === null && isEmail(person.email)) new Mails(unit.mails).setAddress(id, person.email);
  const note = (action: AuditAction, detail: string) => noteOwn(unit, call, action, id, detail);
  if (person.operator !== null && person.operator !== operator) {
    try {
      await unit.accounts.setOperator(id, person.operator);
      note("account.operator", person.operator ? "an operator now" : "no more");
    } catch (thrown) {
      if (!(thrown instanceof AccountError)) throw thrown;
      parts.log("warn", "the identity provider does not count the only operator as one", { account: id });
    }
  }
  const next = planOf(parts, person);
  if (next !== null && next !== plan) {
    await unit.accounts.changePlan(id, next);
    note("account.plan", `from ${plan} to ${next}`);
  }
  for (const [name, isIn] of person.teams) {
    const team = await unit.accounts.recordOf(name);
    if (team?.team !== true) {
      parts.log("warn", "team_groups of the configuration names a team that does not exist", { team: name });
      continue;
    }
    if (((await unit.accounts.member(team.id, id)) !== null) === isIn) continue;
    const teams = new Teams(unit.teams);
    await (isIn ? teams.add(team.id, id, {}) : teams.remove(team.id, id));
    note(isIn ? "team.member" : "team.leave", `of account ${team.id}, by groups`);
  }
}

/** The plan that the provider names; null: it names none, or there is no such plan. */
function planOf({ catalog, log }: ConsoleParts, { plan }: Person): PlanId | null {
  if (plan === null) return null;
  if (isPlan(catalog.plans, plan)) return plan;
  log("warn", "the identity provider names a plan that does not exist", { plan: plan.slice(0, 100) });
  return null;
}

const otherAccount = ({ name }: ProviderParts): Failure =>
  fail("conflict", `Your account at ${name} is already connected with another account of this server.`);

const addressTaken = (email: string, provider: string): string =>
  `There is already an account with the address ${email}. Sign in to it and connect it with ${provider} on its account ` +
  "page, or ask an operator of this server for a link.";
