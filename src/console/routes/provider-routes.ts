// Sign-in with an identity provider: the browser is sent there, comes back, and is signed in to the account of the person,
// which the first sign-in makes. An account that has a password, or is known to the provider under another number, is
// never taken over by its address alone: whoever made it may not be who has the address now.
import type { AuditAction } from "../../account/records.ts";
import { AccountError } from "../../account/accounts.ts";
import type { Unit } from "../../account/office.ts";
import { busyRetrySeconds } from "../../core/limits.ts";
import { isPlan } from "../../core/plans.ts";
import type { AccountId, PlanId } from "../../core/types.ts";
import type { BegunSignIn } from "../oidc/begun-sign-ins.ts";
import { AnswerRefused, ProviderAway, ProviderBusy } from "../oidc/identity-provider.ts";
import { claimsWanted, type Person, personOf } from "../oidc/person.ts";
import type { ConsoleParts, ProviderParts } from "../parts.ts";
import { begunCookie, begunText } from "../signed-in.ts";
import {
  AddressTries,
  admitted,
  enteredReply,
  type Entering,
  isDisabled,
  noteOwn,
  type PublicCall,
} from "./entering.ts";
import { fail, type Failure, isFailure, type Route, route, WithCookies } from "./route.ts";

/** Whose account it is; `apiKey` of one that was made just now. */
type Found = Readonly<{ account: AccountId; apiKey: string | null }>;

export function providerRoutes(parts: ConsoleParts): Route[] {
  const { office, clock, baseUrl, oidc } = parts;
  const tries = new AddressTries();

  return [
    route("POST /provider/start", async (call) => {
      if (oidc === null) return noProvider;
      const { next = "/", token, connect = false, again = false } = call.body;
      // Without a token nothing is tried yet.
      const refused = token === undefined ? null : tries.begin(call, clock.monotonic());
      if (refused !== null) return refused;
      if (connect && call.visitor === null) return fail("not_signed_in", "Sign in first.");
      const link = token === undefined ? null : await office.read(({ links }) => links.find(token));
      try {
        const { url, checks } = await oidc.provider.begin(again);
        const account = connect ? call.visitor!.account.id : null;
        const begun = oidc.begun.seal(
          { checks, next: ownPage(next, baseUrl), link: link?.id ?? null, account },
          clock.wall(),
        );
        return new WithCookies({ url }, begunCookie(begun, baseUrl));
      } catch (thrown) {
        return failureOf(oidc, thrown);
      }
    }),

    route("POST /provider/finish", async (call) => {
      if (oidc === null) return noProvider;
      const refused = tries.begin(call, clock.monotonic());
      if (refused !== null) return refused;
      const { query } = call.body;
      const state = new URLSearchParams(query).get("state") ?? "";
      const begun = oidc.begun.take(begunText(call.request.headers, baseUrl), state, clock.wall());
      if (begun === null) {
        return fail(
          "wrong_credentials",
          "This sign-in was used already, took too long, or began in another browser. Start again.",
        );
      }
      let person;
      try {
        person = personOf(
          await oidc.provider.finish(query, begun.checks, claimsWanted(oidc.rules)),
          oidc.rules,
          oidc.name,
        );
      } catch (thrown) {
        return failureOf(oidc, thrown);
      }
      if ("turnedAway" in person) return fail("forbidden", person.turnedAway);
      tries.succeeded(call);
      const known = person;
      const come = await office.change((unit) => comeIn(unit, oidc, call, begun, known));
      if (isFailure(come)) return come;
      const { reply, cookies } = await enteredReply(parts, come, begun.next);
      return new WithCookies(reply, ...cookies, begunCookie(null, baseUrl));
    }),
  ];

  /** In one unit, so that two tabs of a person who is new make one account. */
  async function comeIn(
    unit: Unit,
    oidc: ProviderParts,
    call: PublicCall,
    begun: BegunSignIn,
    person: Person,
  ): Promise<Entering | Failure> {
    const found = await admit(unit, oidc, call, begun, person);
    if (isFailure(found)) return found;
    const { account: id, apiKey } = found;
    if ((await unit.accounts.record(id))!.disabledAt !== null) return isDisabled;
    await follow(unit, call, id, person);
    if (begun.account === null) return admitted(unit, parts, call, id, apiKey);
    return { account: (await unit.accounts.record(id))!, apiKey: null, cookie: null };
  }

  /** The account of a person: known, that a link leads to, with the address, or new. A failure added nothing to the unit. */
  async function admit(
    unit: Unit,
    oidc: ProviderParts,
    call: PublicCall,
    begun: BegunSignIn,
    person: Person,
  ): Promise<Found | Failure> {
    const { accounts, identities, links, sessions } = unit;
    const { issuer, subject, email } = person;
    const found = await identities.accountOf(issuer, subject);
    const known: Found | null = found === null ? null : { account: found, apiKey: null };
    const connect = async (id: AccountId): Promise<Found | Failure> => {
      if ((await accounts.checkNotErased(id)).disabledAt !== null) return isDisabled;
      identities.connect(issuer, subject, id);
      noteOwn(unit, call, "account.connect", id, `with ${oidc.name}`);
      return { account: id, apiKey: null };
    };
    /** Whoever knew the password before is out: an operator gave the account to who has the link. */
    const takeOver = async (id: AccountId, link: number): Promise<Found | Failure> => {
      if ((await accounts.record(id))!.disabledAt !== null) return isDisabled;
      await links.use(link, id);
      await accounts.setPassword(id, null);
      identities.connect(issuer, subject, id);
      noteOwn(unit, call, "account.connect", id, `with ${oidc.name}, by a link; its password is void`);
      await sessions.endAll(id, null);
      return { account: id, apiKey: null };
    };
    const make = async (plan: string, credit: number, how: string): Promise<Found> => {
      const { id, api_key } = await accounts.create({ email, plan, credit });
      identities.connect(issuer, subject, id);
      noteOwn(unit, call, "account.create", id, `by ${how}: plan ${plan}, credit ${credit}`);
      return { account: id, apiKey: api_key };
    };

    if (begun.account !== null) {
      if (call.visitor?.account.id !== begun.account) return fail("not_signed_in", "Sign in first.");
      if (known === null) return connect(begun.account);
      return found === begun.account ? known : otherAccount(oidc);
    }
    if (begun.link !== null) {
      const link = await links.findById(begun.link);
      if (link.kind === "password" && link.account !== null) {
        if (found !== null && found !== link.account) return otherAccount(oidc);
        return known ?? takeOver(link.account, link.id);
      }
      if (found !== null) return fail("conflict", "You have an account here already: sign in without the invitation.");
      if (link.email !== null && link.email.toLowerCase() !== email.toLowerCase()) {
        return fail("forbidden", `This invitation is for another address than ${email}.`);
      }
      const how = `invitation ${link.id}, ${oidc.name}`;
      const made = await make(accounts.planStill(link.plan), link.credit, how);
      await links.use(link.id, made.account);
      return made;
    }
    if (known !== null) return known;
    const namesake = await accounts.recordOf(email);
    if (namesake === null) return make(planOf(person) ?? accounts.planStill(oidc.rules.plan), 0, oidc.name);
    if (namesake.disabledAt !== null) return isDisabled;
    const isSomebodys = namesake.passwordHash !== null || (await identities.of(namesake.id)).length > 0;
    return isSomebodys ? fail("conflict", addressTaken(email, oidc.name)) : connect(namesake.id);
  }

  /** What the provider decides at each sign-in. */
  async function follow(unit: Unit, call: PublicCall, id: AccountId, person: Person): Promise<void> {
    const { accounts } = unit;
    const { operator, plan } = (await accounts.record(id))!;
    const note = (action: AuditAction, detail: string) => noteOwn(unit, call, action, id, detail);
    if (person.operator !== null && person.operator !== operator) {
      const { operator: next } = person;
      try {
        await accounts.setOperator(id, next);
        note("account.operator", next ? "an operator now" : "no more");
      } catch (thrown) {
        if (!(thrown instanceof AccountError)) throw thrown;
        parts.log("warn", "the identity provider does not count the only operator as one", { account: id });
      }
    }
    const next = planOf(person);
    if (next !== null && next !== plan) {
      await accounts.changePlan(id, next);
      note("account.plan", `from ${plan} to ${next}`);
    }
  }

  /** The plan that the provider names, where there is such a plan. */
  function planOf({ plan }: Person): PlanId | null {
    if (plan === null) return null;
    if (isPlan(parts.catalog.plans, plan)) return plan;
    parts.log("warn", "the identity provider names a plan that does not exist", { plan: plan.slice(0, 100) });
    return null;
  }

  function failureOf({ name }: ProviderParts, thrown: unknown): Failure {
    if (thrown instanceof ProviderBusy) return fail("busy", "Too many people sign in. Start again.", busyRetrySeconds);
    if (thrown instanceof ProviderAway) {
      parts.log("warn", "the identity provider cannot be used", { provider: name, reason: thrown.message });
      return fail(
        "unavailable",
        `${name} cannot be used right now. Try again in a moment, or tell whoever runs this server.`,
      );
    }
    if (thrown instanceof AnswerRefused) {
      parts.log("warn", "a sign-in with the identity provider was refused", { provider: name, reason: thrown.message });
      return fail("wrong_credentials", `The answer of ${name} does not fit this sign-in. Start again.`);
    }
    throw thrown;
  }
}

/** An address of the console, without its origin; the first page for any other. Browsers read `\\` as `/`, and skip tabs. */
function ownPage(next: string, baseUrl: string): string {
  const { origin } = new URL(baseUrl);
  if (!/^\/[^\\\p{Cc}]*$/u.test(next) || !URL.canParse(next, origin)) return "/";
  const { origin: of, pathname, search, hash } = new URL(next, origin);
  return of === origin && !pathname.startsWith("//") ? pathname + search + hash : "/";
}

const noProvider = fail("not_found", "Nobody signs in with a provider here.");

const otherAccount = ({ name }: ProviderParts): Failure =>
  fail("conflict", `You are known by ${name} to another account of this server.`);

const addressTaken = (email: string, provider: string): string =>
  `There is an account with the address ${email} already. Sign in to it and connect it with ${provider} on its account ` +
  "page, or ask whoever runs this server for a link.";
