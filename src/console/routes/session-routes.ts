// Sign-in with a password, sign-up and sign-out.
import { PasswordsBusy } from "../../account/passwords.ts";
import { RecentTries } from "../../account/recent-tries.ts";
import { networkOf, SignInTries } from "../../account/sign-in-tries.ts";
import { signInWindowMs } from "../../core/limits.ts";
import type { ConsoleParts } from "../parts.ts";
import { enter, sessionOf, tooManyTries, withoutPasswords } from "./entering.ts";
import { fail, type Route, route, WithCookies } from "./route.ts";
import { knownBrowserCookie, knownBrowserText, signOutCookie } from "../signed-in.ts";

/** Accounts that an address may create within `signInWindowMs`. */
export const signUpAddressTriesMax = 100;

export function sessionRoutes(parts: ConsoleParts): Route[] {
  const { accounts, sessions, browsers, clock, baseUrl } = parts;
  const tries = new SignInTries();
  const { everywhere = null, log } = parts;
  const unshared = (error: unknown): void =>
    log("warn", "sign-in attempts are not shared among gateways", { error: String(error) });
  if (everywhere !== null) tries.onEvent = (event) => void everywhere.tellTry(event).catch(unshared);
  /** A failure does not matter: without the database, all sign-ins fail. */
  const learnElsewhere = async (): Promise<void> => {
    const learned = await everywhere?.triesElsewhere().catch(unshared);
    const now = clock.monotonic();
    for (const { event, agoMs } of learned ?? []) tries.learn(event, now - agoMs);
  };
  // Counted separately, so that new accounts do not keep others from signing in.
  const signUps = new RecentTries(signUpAddressTriesMax, signInWindowMs);

  return [
    route("GET /session", ({ visitor }) => sessionOf(parts, visitor?.account ?? null)),

    // Unknown names, wrong passwords, accounts without a password and disabled ones get the same answer after the same work.
    // The attempt is counted first.
    route("POST /sign-in", async (call) => {
      const { body, address, isShared, request } = call;
      if (!parts.passwordSignIn) return withoutPasswords;
      const kept = knownBrowserText(request.headers, baseUrl);
      const knownBrowser = browsers.recognize(kept, await accounts.recordOf(body.email));
      if (everywhere !== null) await learnElsewhere();
      const attempt = tries.begin(body.email, { address, isShared, knownBrowser }, clock.monotonic());
      if (typeof attempt === "number") return tooManyTries(attempt);
      const account = await accounts.signIn(body.email, body.password, attempt.turn).catch((thrown: unknown) => {
        if (thrown instanceof PasswordsBusy) attempt.unchecked();
        throw thrown;
      });
      if (account === null) return fail("wrong_credentials", "The e-mail address or the password is wrong.");
      attempt.succeeded();
      const introduced = browsers.introduce(account, knownBrowser);
      const cookie = await enter(parts, call, account.id);
      return signedIn(await sessionOf(parts, account), cookie, introduced);
    }),

    route("POST /sign-up", async (call) => {
      const { body, address } = call;
      if (!parts.passwordSignIn) return withoutPasswords;
      if (!parts.signUp) return fail("forbidden", "Only operators of this server can create accounts.");
      // An e-mail that is taken costs its hash as well, and counts: names are not to be tried out here.
      const [place, now] = [networkOf(address), clock.monotonic()];
      const waitMs = signUps.waitMs(place, now);
      if (waitMs > 0) return tooManyTries(Math.ceil(waitMs / 1000));
      const turn = { name: null, rank: signUps.count(place, now), delayMs: 0 };
      signUps.add(place, now);
      const created = await accounts.create({ email: body.email, password: body.password }, undefined, turn);
      const owner = (await accounts.record(created.id))!;
      const cookie = await enter(parts, call, created.id);
      return signedIn(created, cookie, browsers.introduce(owner, null));
    }),

    route("POST /sign-out", async ({ visitor }) => {
      if (visitor !== null) await sessions.end(visitor.account.id, visitor.session.id);
      return new WithCookies(await sessionOf(parts, null), signOutCookie(baseUrl));
    }),
  ];

  function signedIn<Reply>(reply: Reply, cookie: string, introduced: string): WithCookies<Reply> {
    return new WithCookies(reply, cookie, knownBrowserCookie(introduced, baseUrl));
  }
}
