// Sign-in, sign-up and sign-out.
import { SignInTries } from "../account/sign-in-tries.ts";
import { type CreatedAccount, type Session, SignIn, SignUp } from "./api.ts";
import type { ConsoleParts } from "./parts.ts";
import { jsonReply } from "./reply.ts";
import { fail, type Route, route, routeWithBody, type Visitor } from "./route.ts";
import { signInCookie, signOutCookie } from "./signed-in.ts";

export function sessionRoutes(parts: ConsoleParts): Route[] {
  const { accounts, sessions, clock, baseUrl } = parts;
  const tries = new SignInTries();

  return [
    route("GET", "/session", "public", ({ visitor }) => sessionOf(parts, visitor?.account ?? null)),

    // Unknown names, wrong passwords, accounts without a password and disabled ones are answered alike, after the same
    // work; a try is counted before any of it.
    routeWithBody("/sign-in", "public", SignIn, async ({ body, visitor, address, browser }) => {
      const seconds = tries.count(body.email, address, clock.monotonic());
      if (seconds > 0) return tooManyTries(seconds);
      const account = await accounts.signIn(body.email, body.password);
      if (account === null) return fail("wrong_credentials", "The e-mail address or the password is wrong.");
      tries.succeeded(body.email);
      const { token } = await sessions.open(account.id, { address, browser }, clock.wall());
      // What the browser had before is replaced, never carried on with.
      if (visitor !== null) await sessions.end(visitor.account.id, visitor.session.id);
      return jsonReply(sessionOf(parts, account), 200, { "set-cookie": signInCookie(token, baseUrl) });
    }),

    routeWithBody("/sign-up", "public", SignUp, async ({ body, visitor, address, browser }) => {
      if (!parts.signUp) return fail("forbidden", "Only the operator of this server makes accounts.");
      // An e-mail that is taken costs its hash as well, and counts: names are not to be tried out here.
      const seconds = tries.count(body.email, address, clock.monotonic());
      if (seconds > 0) return tooManyTries(seconds);
      const created = await accounts.create({ email: body.email, password: body.password });
      const { token } = await sessions.open(created.id, { address, browser }, clock.wall());
      if (visitor !== null) await sessions.end(visitor.account.id, visitor.session.id);
      return jsonReply(created satisfies CreatedAccount, 200, { "set-cookie": signInCookie(token, baseUrl) });
    }),

    route("POST", "/sign-out", "public", async ({ visitor }) => {
      if (visitor !== null) await sessions.end(visitor.account.id, visitor.session.id);
      return jsonReply(sessionOf(parts, null), 200, { "set-cookie": signOutCookie(baseUrl) });
    }),
  ];
}

const tooManyTries = (seconds: number) =>
  fail("too_many_attempts", `Too many tries. Try again in ${Math.ceil(seconds / 60)} min.`, seconds);

function sessionOf(
  { signUp, version, samplesUrl, demo }: ConsoleParts,
  account: Pick<Visitor["account"], "id" | "email" | "plan" | "operator"> | null,
): Session {
  return {
    account:
      account === null
        ? null
        : { id: account.id, email: account.email, plan: account.plan, operator: account.operator },
    sign_up: signUp,
    version,
    base_url: samplesUrl,
    demo,
  };
}
