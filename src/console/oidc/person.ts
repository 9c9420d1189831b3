// Decides who a person is by the claims of an identity provider, whether the person may sign in, and as what.
import { emailMaxLength } from "../../core/limits.ts";
import type { Claims } from "./identity-provider.ts";

/** An empty list allows everybody. */
export type EntryRules = Readonly<{
  allowedDomains: readonly string[];
  allowedGroups: readonly string[];
  groupsClaim: string;
  /** The plan of new accounts; null: the usual one. */
  plan: string | null;
  planClaim: string | null;
  operatorGroups: readonly string[];
  operatorClaim: string | null;
  /** Teams by groups. */
  teamGroups: Readonly<Record<string, string>>;
}>;

export type Person = Readonly<{
  issuer: string;
  /** The person's id at the issuer. */
  subject: string;
  email: string;
  /** Null: the provider names none. */
  plan: string | null;
  /** Null: the provider does not decide it. */
  operator: boolean | null;
  /** Whether the person is in it, of each team whose members the provider decides. */
  teams: ReadonlyMap<string, boolean>;
}>;

/** Why the person may not sign in, as a sentence for the person. */
export type TurnedAway = Readonly<{ turnedAway: string }>;

const subjectMaxLength = 255; // of OpenID Connect

export function personOf(claims: Claims, rules: EntryRules, provider: string): Person | TurnedAway {
  const { iss, sub, email, email_verified } = claims;
  if (typeof iss !== "string" || typeof sub !== "string" || sub === "" || sub.length > subjectMaxLength) {
    return { turnedAway: `${provider} does not say who you are.` };
  }
  if (typeof email !== "string" || email === "" || email.length > emailMaxLength || !email.includes("@")) {
    return { turnedAway: `${provider} does not say your e-mail address.` };
  }
  if (email_verified !== true) {
    return { turnedAway: `${provider} does not say that your e-mail address is verified.` };
  }
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  if (rules.allowedDomains.length > 0 && !rules.allowedDomains.includes(domain)) {
    return { turnedAway: `Addresses of ${domain} may not sign in here.` };
  }
  const groups = textsOf(claimOf(claims, rules.groupsClaim));
  if (rules.allowedGroups.length > 0 && !groups.some((group) => rules.allowedGroups.includes(group))) {
    return { turnedAway: "You are in none of the groups that may sign in here." };
  }
  const plan = rules.planClaim === null ? null : claimOf(claims, rules.planClaim);
  const decidesOperators = rules.operatorClaim !== null || rules.operatorGroups.length > 0;
  const isOperator =
    (rules.operatorClaim !== null && claimOf(claims, rules.operatorClaim) === true) ||
    groups.some((group) => rules.operatorGroups.includes(group));
  const teams = new Map(Object.values(rules.teamGroups).map((team) => [team, false]));
  for (const [group, team] of Object.entries(rules.teamGroups)) if (groups.includes(group)) teams.set(team, true);
  return {
    issuer: iss,
    subject: sub,
    email,
    plan: typeof plan === "string" ? plan : null,
    operator: decidesOperators ? isOperator : null,
    teams,
  };
}

/** The claims that the rules need; those that the ID token lacks are fetched from the provider. */
export const claimsWanted = (rules: EntryRules): string[] => {
  const { groupsClaim, allowedGroups, operatorGroups, teamGroups, planClaim, operatorClaim } = rules;
  const needsGroups = allowedGroups.length + operatorGroups.length + Object.keys(teamGroups).length > 0;
  const named = [needsGroups ? groupsClaim : null, planClaim, operatorClaim].filter((name) => name !== null);
  return ["email", "email_verified", ...named.map((name) => name.split(".")[0]!)];
};

/** By its full name, which may contain dots, or else as a path. */
function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const step of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

function textsOf(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
