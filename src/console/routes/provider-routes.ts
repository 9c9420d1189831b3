// Sign-in with an identity provider: to it and back, into the person's account, which the first sign-in creates.
import { busyRetrySeconds } from "../../core/limits.ts";
import { AnswerRefused, ProviderAway, ProviderBusy } from "../oidc/identity-provider.ts";
import { claimsWanted, type Person, personOf, type TurnedAway } from "../oidc/person.ts";
import type { ConsoleParts, ProviderParts } from "../parts.ts";
import { begunCookie, begunText } from "../signed-in.ts";
import { AddressTries, enteredReply } from "./entering.ts";
import { comeIn } from "./provider-person.ts";
import { fail, type Failure, isFailure, type Route, route, WithCookies } from "./route.ts";

export function providerRoutes(parts: ConsoleParts): Route[] {
  const { office, clock, baseUrl, oidc } = parts;
  const tries = new AddressTries();

  return [
    route("POST /provider/start", async (call) => {
      if (oidc === null) return noProvider;
      const { next = "/", token, connect = false, again = false } = call.body;
      // Only a token can be guessed.
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
        return failureOf(parts, oidc, thrown);
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
      let person: Person | TurnedAway;
      try {
        const claims = await oidc.provider.finish(query, begun.checks, claimsWanted(oidc.rules));
        person = personOf(claims, oidc.rules, oidc.name);
      } catch (thrown) {
        return failureOf(parts, oidc, thrown);
      }
      if ("turnedAway" in person) return fail("forbidden", person.turnedAway);
      tries.succeeded(call);
      const known = person;
      const come = await office.change((unit) => comeIn({ unit, parts, oidc, call, begun, person: known }));
      if (isFailure(come)) return come;
      const { reply, cookies } = await enteredReply(parts, come, begun.next);
      return new WithCookies(reply, ...cookies, begunCookie(null, baseUrl));
    }),
  ];
}

function failureOf({ log }: ConsoleParts, { name }: ProviderParts, thrown: unknown): Failure {
  if (thrown instanceof ProviderBusy) {
    return fail("busy", "Too many people are signing in. Start again.", busyRetrySeconds);
  }
  if (thrown instanceof ProviderAway) {
    log("warn", "the identity provider cannot be used", { provider: name, reason: thrown.message });
    return fail(
      "unavailable",
      `${name} cannot be used right now. Try again in a moment, or tell an operator of this server.`,
    );
  }
  if (thrown instanceof AnswerRefused) {
    log("warn", "a sign-in with the identity provider was refused", { provider: name, reason: thrown.message });
    return fail("wrong_credentials", `The answer of ${name} does not match this sign-in. Start again.`);
  }
  throw thrown;
}

/** A path of the console, or `/` for any other address. Browsers read `\\` as `/`, and skip tabs. */
function ownPage(next: string, baseUrl: string): string {
  const { origin } = new URL(baseUrl);
  if (!/^\/[^\\\p{Cc}]*$/u.test(next) || !URL.canParse(next, origin)) return "/";
  const { origin: of, pathname, search, hash } = new URL(next, origin);
  return of === origin && !pathname.startsWith("//") ? pathname + search + hash : "/";
}

const noProvider = fail("not_found", "This server has no identity provider.");
