// Sign-in with a password, sign-up and sign-out.
import { PasswordsBusy } from "../../account/sign-in/passwords.ts";
import { RecentTries } from "../../account/sign-in/recent-tries.ts";
import { networkOf, SignInTries } from "../../account/sign-in/sign-in-tries.ts";
import { signInWindowMs } from "../../core/limits.ts";
import type { ConsoleParts } from "../parts.ts";
import { enter, leave, sessionOf, tooManyTries, withoutPasswords } from "./entering.ts";
import { addressed } from "./link-routes.ts";
import { fail, type Route, route, WithCookies } from "./route.ts";
import { knownBrowserCookie, knownBrowserText, signOutCookie } from "../signed-in.ts";

/** Accounts that an address may create within `signInWindowMs`. */
export const signUpAddressTriesMax = 100;

export function sessionRoutes(parts: ConsoleParts): Route[] {
  const { office, passwords, browsers, clock, baseUrl, everywhere = null, log } = parts;
  const tries = new SignInTries();
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
      const named = await office.read(({ accounts }) => accounts.recordOf(body.email));
      const knownBrowser = browsers.recognize(knownBrowserText(request.headers, baseUrl), named);
      if (everywhere !== null) await learnElsewhere();
      const attempt = tries.begin(body.email, { address, isShared, knownBrowser }, clock.monotonic());
      if (typeof attempt === "number") return tooManyTries(attempt);
      const checking = passwords.owner(office, body.email, body.password, attempt.turn);
      const account = await checking.catch((thrown: unknown) => {
        if (thrown instanceof PasswordsBusy) attempt.unchecked();
        throw thrown;
      });
      if (account === null) return wrongCredentials;
      attempt.succeeded();
      const cookie = await office.change(async (unit) =>
        (await unit.accounts.isAsItWas(account)) ? enter(unit, parts, call, account.id) : null,
      );
      if (cookie === null) return wrongCredentials;
      return signedIn(await sessionOf(parts, account), cookie, browsers.introduce(account, knownBrowser));
    }),

    route("POST /sign-up", async (call) => {
      if (!parts.passwordSignIn) return withoutPasswords;
      if (!parts.signUp) return fail("forbidden", "Only operators of this server can create accounts.");
      // A taken e-mail address costs a hash and counts, too, which makes probing for addresses slow.
      const [place, now] = [networkOf(call.address), clock.monotonic()];
      const waitMs = signUps.waitMs(place, now);
      if (waitMs > 0) return tooManyTries(Math.ceil(waitMs / 1000));
      const turn = { name: null, rank: signUps.count(place, now), delayMs: 0 };
      signUps.add(place, now);
      const passwordHash = await passwords.hashNew(call.body.password, turn);
      const [created, account, cookie] = await office.change(async (unit) => {
        const made = await unit.accounts.create({ email: call.body.email, passwordHash });
        await addressed(unit, parts, made.id, made.email, null);
        return [made, (await unit.accounts.record(made.id))!, await enter(unit, parts, call, made.id)] as const;
      });
      return signedIn(created, cookie, browsers.introduce(account, null));
    }),

    route("POST /sign-out", async ({ visitor }) => {
      if (visitor !== null) await office.change((unit) => leave(unit, visitor));
      return new WithCookies(await sessionOf(parts, null), signOutCookie(baseUrl));
    }),
  ];

  function signedIn<Reply>(reply: Reply, cookie: string, introduced: string): WithCookies<Reply> {
    return new WithCookies(reply, cookie, knownBrowserCookie(introduced, baseUrl));
  }
}

const wrongCredentials = fail("wrong_credentials", "The e-mail address or the password is wrong.");
