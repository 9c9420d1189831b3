// Sign-in with an identity provider: the browser is sent there, comes back, and is signed in to the account of the person,
// which the first sign-in makes. An account that has a password, or is known to the provider under another number, is
// never taken over by its address alone: whoever made it may not be who has the address now.
import { AccountError } from "../../account/accounts.ts";
import type { AuditAction } from "../../account/audit.ts";
import type { AccountRecord } from "../../account/records.ts";
import { busyRetrySeconds } from "../../core/limits.ts";
import { isPlan } from "../../core/plans.ts";
import type { AccountId, PlanId } from "../../core/types.ts";
import type { Entered } from "../api/sign-in.ts";
import type { BegunSignIn } from "../oidc/begun-sign-ins.ts";
import { AnswerRefused, ProviderAway, ProviderBusy } from "../oidc/identity-provider.ts";
import { claimsWanted, type Person, personOf } from "../oidc/person.ts";
import type { ConsoleParts, ProviderParts } from "../parts.ts";
import { begunCookie, begunText } from "../signed-in.ts";
import { AddressTries, enteredReply, isDisabled, noteOwn, type PublicCall, sessionOf } from "./entering.ts";
import { fail, type Failure, isFailure, type Route, route, WithCookies } from "./route.ts";

/** Who is let in; `apiKey` of an account that was made just now. */
type Admitted = Readonly<{ account: AccountId; apiKey: string | null }>;

export function providerRoutes(parts: ConsoleParts): Route[] {
  const { accounts, links, clock, baseUrl, oidc } = parts;
  const tries = new AddressTries();

  return [
    route("POST /provider/start", async (call) => {
      if (oidc === null) return noProvider;
      const { next = "/", token, connect = false, again = false } = call.body;
      // Only a token can be guessed.
      const refused = token === undefined ? null : tries.begin(call, clock.monotonic());
      if (refused !== null) return refused;
      if (connect && call.visitor === null) return fail("not_signed_in", "Sign in first.");
      const link = token === undefined ? null : await links.find(token);
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
          "This sign-in was already used, took too long, or began in another browser. Start again.",
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
      return parts.identities.inTurn(() => come(oidc, call, begun, known));
    }),
  ];

  async function come(
    oidc: ProviderParts,
    call: PublicCall,
    begun: BegunSignIn,
    person: Person,
  ): Promise<WithCookies<Entered> | Failure> {
    const admitted = await admit(oidc, call, begun, person);
    if (isFailure(admitted)) return admitted;
    if ((await accounts.record(admitted.account))!.disabledAt !== null) return isDisabled;
    await follow(call, admitted.account, person);
    const account = (await accounts.record(admitted.account))!;
    const gone = begunCookie(null, baseUrl);
    if (begun.account === null) {
      const { reply, cookies } = await enteredReply(parts, call, account, { ...admitted, next: begun.next });
      return new WithCookies(reply, ...cookies, gone);
    }
    return new WithCookies({ session: await sessionOf(parts, account), api_key: null, next: begun.next }, gone);
  }

  /** The account of a person: one that is known, that a link leads to, that has the address, or a new one. */
  async function admit(
    oidc: ProviderParts,
    call: PublicCall,
    begun: BegunSignIn,
    person: Person,
  ): Promise<Admitted | Failure> {
    const { issuer, subject, email } = person;
    const found = await parts.identities.accountOf(issuer, subject);
    const connect = async (account: AccountRecord): Promise<Admitted | Failure> => {
      if (account.disabledAt !== null) return isDisabled;
      await accounts.checkNotErased(account.id);
      await parts.identities.connect({ issuer, subject, account: account.id, connectedAt: clock.wall() }, () => {
        noteOwn(parts, call, "account.connect", account.id, `with ${oidc.name}`);
      });
      return { account: account.id, apiKey: null };
    };
    /** Whoever knew the password before is out: an operator gave the account to who has the link. */
    const takeOver = async (id: AccountId, use: (id: AccountId) => void): Promise<Admitted | Failure> => {
      if ((await accounts.record(id))!.disabledAt !== null) return isDisabled;
      await parts.sessions.endAllWith(id, null, (endSessions) =>
        accounts.forgetPassword(id, () => {
          parts.identities.append({ issuer, subject, account: id, connectedAt: clock.wall() });
          noteOwn(parts, call, "account.connect", id, `with ${oidc.name}, by a link; its password is void`);
          use(id);
          endSessions();
        }),
      );
      return { account: id, apiKey: null };
    };
    const make = async (plan: string, credit: number, how: string, use?: (id: AccountId) => void) => {
      const created = await accounts.create({ email, plan, credit }, (id) => {
        parts.identities.append({ issuer, subject, account: id, connectedAt: clock.wall() });
        noteOwn(parts, call, "account.create", id, `by ${how}: plan ${plan}, credit ${credit}`);
        use?.(id);
      });
      return { account: created.id, apiKey: created.api_key };
    };

    if (begun.account !== null) {
      if (call.visitor?.account.id !== begun.account) return fail("not_signed_in", "Sign in first.");
      if (found === null) return connect(call.visitor.account);
      return found === begun.account ? { account: found, apiKey: null } : otherAccount(oidc);
    }
    if (begun.link !== null) {
      const link = await links.findById(begun.link);
      if (link.kind === "password" && link.account !== null) {
        if (found !== null && found !== link.account) return otherAccount(oidc);
        if (found !== null) return { account: found, apiKey: null };
        return links.use(link, (use) => takeOver(link.account!, use));
      }
      if (found !== null) return fail("conflict", "You already have an account here. Sign in without the invitation.");
      if (link.email !== null && link.email.toLowerCase() !== email.toLowerCase()) {
        return fail("forbidden", `This invitation is for another address, not ${email}.`);
      }
      return links.use(link, (use) =>
        make(accounts.planStill(link.plan), link.credit, `invitation ${link.id}, ${oidc.name}`, use),
      );
    }
    if (found !== null) return { account: found, apiKey: null };
    const namesake = await accounts.recordOf(email);
    if (namesake === null) return make(planOf(person) ?? accounts.planStill(oidc.rules.plan), 0, oidc.name);
    if (namesake.disabledAt !== null) return isDisabled;
    const isSomebodys = namesake.passwordHash !== null || (await parts.identities.of(namesake.id)).length > 0;
    return isSomebodys ? fail("conflict", addressTaken(email, oidc.name)) : connect(namesake);
  }

  /** What the provider decides at each sign-in. */
  async function follow(call: PublicCall, id: AccountId, person: Person): Promise<void> {
    const { operator, plan } = (await accounts.record(id))!;
    const note = (action: AuditAction, detail: string) => noteOwn(parts, call, action, id, detail);
    if (person.operator !== null && person.operator !== operator) {
      const { operator: next } = person;
      try {
        await accounts.setOperator(id, next, () => note("account.operator", next ? "an operator now" : "no more"));
      } catch (thrown) {
        if (!(thrown instanceof AccountError)) throw thrown;
        parts.log("warn", "the identity provider does not count the only operator as one", { account: id });
      }
    }
    const next = planOf(person);
    if (next !== null && next !== plan) {
      await accounts.changePlanById(id, next, () => note("account.plan", `from ${plan} to ${next}`));
    }
  }

  /** The plan that the provider names; null: it names none, or there is no such plan. */
  function planOf({ plan }: Person): PlanId | null {
    if (plan === null) return null;
    if (isPlan(parts.catalog.plans, plan)) return plan;
    parts.log("warn", "the identity provider names a plan that does not exist", { plan: plan.slice(0, 100) });
    return null;
  }

  function failureOf({ name }: ProviderParts, thrown: unknown): Failure {
    if (thrown instanceof ProviderBusy)
      return fail("busy", "Too many people are signing in. Start again.", busyRetrySeconds);
    if (thrown instanceof ProviderAway) {
      parts.log("warn", "the identity provider cannot be used", { provider: name, reason: thrown.message });
      return fail(
        "unavailable",
        `${name} cannot be used right now. Try again in a moment, or tell an operator of this server.`,
      );
    }
    if (thrown instanceof AnswerRefused) {
      parts.log("warn", "a sign-in with the identity provider was refused", { provider: name, reason: thrown.message });
      return fail("wrong_credentials", `The answer of ${name} does not match this sign-in. Start again.`);
    }
    throw thrown;
  }
}

/** A path of the console, or `/` for any other address. Browsers read `\\` as `/`, and skip tabs. */
function ownPage(next: string, baseUrl: string): string {
  const { origin } = new URL(baseUrl);
  if (!/^\/[^\\\p{Cc}]*$/u.test(next) || !URL.canParse(next, origin)) return "/";
  const { origin: of, pathname, search, hash } = new URL(next, origin);
  return of === origin && !pathname.startsWith("//") ? pathname + search + hash : "/";
}

const noProvider = fail("not_found", "This server has no identity provider.");

const otherAccount = ({ name }: ProviderParts): Failure =>
  fail("conflict", `Your account at ${name} is already connected with another account of this server.`);

const addressTaken = (email: string, provider: string): string =>
  `There is already an account with the address ${email}. Sign in to it and connect it with ${provider} on its account ` +
  "page, or ask an operator of this server for a link.";
