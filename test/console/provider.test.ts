// Sign-in with an identity provider, as a browser meets it: what comes back is believed only where it fits what was asked,
// and an account is given to nobody by its address alone.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type OidcOptions, openProvider } from "../../src/console/oidc/open-provider.ts";
import { signInAddressTriesMax } from "../../src/core/limits.ts";
import { providerReplyMs } from "../../src/console/oidc/identity-provider.ts";
import { providerSignInMs } from "../../src/console/oidc/begun-sign-ins.ts";
import { ScriptedProvider } from "../fixtures/scripted-provider.ts";
import { baseUrl, type ConsoleBrowser, ConsoleSite, type Options } from "./console-site.ts";

let provider: ScriptedProvider;
beforeAll(async () => {
  provider = await ScriptedProvider.start();
});
afterAll(() => provider[Symbol.asyncDispose]());

const ada = { sub: "ada-1", email: "ada@example.com", email_verified: true };

beforeEach(() => {
  Object.assign(provider.said, {
    claims: ada,
    issuer: undefined,
    audience: undefined,
    nonce: undefined,
    issuedSecondsAgo: 0,
    lastsSeconds: 600,
    forged: false,
  });
  provider.userinfo = null;
  provider.discovery = {};
  provider.away.clear();
  provider.asked.clear();
});

const everybody: Omit<OidcOptions, "issuer"> = {
  name: "Acme",
  clientId: "tollgate",
  clientSecret: "s3cret: of +tests/",
  scopes: ["openid", "email"],
  allowedDomains: [],
  allowedGroups: [],
  groupsClaim: "groups",
  plan: "free",
  planClaim: null,
  operatorGroups: [],
  operatorClaim: null,
  teamGroups: {},
};

/** A console where people sign in with the provider. */
function siteWith(rules: Partial<OidcOptions> = {}, more: Options = {}): ConsoleSite {
  const clock = { wall: () => Date.now(), monotonic: () => 0 };
  const options = { ...everybody, issuer: provider.issuer, ...rules };
  return new ConsoleSite({ oidc: openProvider(options, baseUrl, new Uint8Array(32), clock), ...more });
}

const begin = async (browser: ConsoleBrowser, body: object = {}): Promise<string> => {
  const reply = await browser.post("/provider/start", body);
  if (reply.status !== 200) throw new Error(JSON.stringify(reply.body));
  return reply.body.url;
};
const signIn = async (browser: ConsoleBrowser, body: object = {}) =>
  browser.post("/provider/finish", { query: provider.signIn(await begin(browser, body)) });
const told = ({ status, body }: Awaited<ReturnType<ConsoleBrowser["get"]>>) => [status, body.error?.code];

describe("a first sign-in", () => {
  test("makes the account, whose key is shown once, and the next ones find it by the person's number", async () => {
    const site = siteWith();
    const browser = site.browser();
    const { status, body } = await signIn(browser, { next: "/usage" });
    expect([status, body.session.account.email, body.next]).toEqual([200, "ada@example.com", "/usage"]);
    // The account page offers neither what is done nor a form for a password that never was.
    expect(body.session.account).toMatchObject({ password: false, connected: true });
    expect((await browser.get("/session")).body.account).toMatchObject({ password: false, connected: true });
    expect(body.api_key).toStartWith("sk-tg-");
    expect((await browser.get("/overview")).body.plan.id).toBe("free");
    provider.said.claims = { ...ada, email: "ada.lovelace@example.com" };
    const again = await signIn(site.browser());
    expect([again.body.session.account.email, again.body.api_key]).toEqual(["ada@example.com", null]);
    expect((await site.office.auditLog.list(10)).map(({ action, operator }) => [action, operator])).toEqual([
      ["account.create", 1],
    ]);
  });

  test("asks for code, PKCE, state and nonce, which no second one has", async () => {
    const site = siteWith();
    const [one, other] = [new URL(await begin(site.browser())), new URL(await begin(site.browser()))];
    expect(Object.fromEntries(one.searchParams)).toEqual({
      client_id: "tollgate",
      redirect_uri: `${baseUrl}/sign-in/callback`,
      response_type: "code",
      scope: "openid email",
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
    });
    for (const name of ["state", "nonce", "code_challenge"]) {
      expect(one.searchParams.get(name)).not.toBe(other.searchParams.get(name));
    }
  });

  test.each([
    ["/usage?days=7#chart", "/usage?days=7#chart"],
    ["/../keys/./1", "/keys/1"],
    ...[
      "//evil.example",
      "/\\evil.example",
      "\\\\evil.example",
      "/\t/evil.example",
      "/.//evil.example",
      "https://evil.example/",
      "javascript:alert(1)",
      "evil",
      "",
    ].map((other) => [other, "/"]),
    ["/device?user_code=BBBB-CCCC", "/device?user_code=BBBB-CCCC"],
  ])("goes on with a page of ours: %j", async (next, page) => {
    expect((await signIn(siteWith().browser(), { next })).body.next).toBe(page);
  });

  test("in two tabs at once makes one account", async () => {
    const site = siteWith();
    const replies = await Promise.all([signIn(site.browser()), signIn(site.browser())]);
    expect(replies.map(({ status }) => status)).toEqual([200, 200]);
    expect(replies.map(({ body }) => body.session.account.id)).toEqual([1, 1]);
    expect(replies.filter(({ body }) => body.api_key !== null)).toHaveLength(1);
  });

  test("survives a restart, with the session", async () => {
    const site = siteWith();
    await signIn(site.browser());
    const next = site.office.restart();
    expect(await next.identities.accountOf(provider.issuer, "ada-1")).toBe(1);
  });
});

test("groups of the provider decide who is in a team, at each sign-in", async () => {
  const site = siteWith({ teamGroups: { people: "lab", "lab-staff": "lab", ops: "nowhere" } });
  const team = await site.office.units.change(({ accounts }) => accounts.create({ email: "lab", team: true }));
  const members = () => site.office.units.read(({ accounts }) => accounts.members(team.id));
  const browser = site.browser();
  const come = async (...groups: string[]) => {
    provider.said.claims = { ...ada, groups };
    const { status, body } = await signIn(browser);
    return [status, body.session.account.team];
  };
  expect(await come("lab-staff", "ops")).toEqual([200, true]);
  expect(site.logged).toContainEqual(expect.stringContaining('{"team":"nowhere"}'));
  expect((await members()).map(({ role }) => role)).toEqual(["member"]);
  const made = await browser.post(`/teams/${team.id}/keys`, { name: "laptop", service: false });
  const { api_key } = made.body;
  expect(site.office.keys.principal(api_key)).toMatchObject({ account: team.id });
  expect(await come("people")).toEqual([200, true]); // another group of the same team: the key stays
  expect(site.office.keys.principal(api_key)).not.toBeNull();
  expect(await come("others")).toEqual([200, false]);
  expect(site.office.keys.principal(api_key)).toBeNull();
  expect(await members()).toEqual([]);
  expect((await browser.get(`/teams/${team.id}`)).status).toBe(404);
});

describe("what comes back is refused", () => {
  const refused = async (change: () => void): Promise<unknown> => {
    const site = siteWith();
    change();
    const reply = await signIn(site.browser());
    expect(await site.office.accounts.count()).toBe(0);
    expect(reply.response.headers.getSetCookie().join()).not.toContain("tollgate_session");
    return told(reply);
  };
  const said = (other: object) => () => void Object.assign(provider.said, other);

  test.each([
    ["with another nonce", { nonce: "another" }],
    ["of another issuer", { issuer: "https://evil.example" }],
    ["for another audience", { audience: "somebody-else" }],
    ["after it expired", { issuedSecondsAgo: 900 }],
    ["of a time to come", { issuedSecondsAgo: -3_600 }],
    ["signed by a key that is not the provider's", { forged: true }],
    ["without a subject", { claims: { email: "a@example.com", email_verified: true } }],
  ])("%s", async (_, other) => {
    expect(await refused(said(other))).toEqual([401, "wrong_credentials"]);
  });

  test("a clock that differs by a minute is no fault", async () => {
    for (const issuedSecondsAgo of [-50, 650]) {
      Object.assign(provider.said, { issuedSecondsAgo });
      expect((await signIn(siteWith().browser())).status).toBe(200);
    }
    Object.assign(provider.said, { issuedSecondsAgo: 670 });
    expect((await signIn(siteWith().browser())).status).toBe(401);
  });

  test("with another state, or none, and then the browser must start again", async () => {
    const browser = siteWith().browser();
    const query = new URLSearchParams(provider.signIn(await begin(browser)));
    for (const state of ["another", ""]) {
      query.set("state", state);
      expect(told(await browser.post("/provider/finish", { query: `?${query}` }))).toEqual([401, "wrong_credentials"]);
    }
    expect(provider.asked.get("token")).toBeUndefined();
  });

  test("in another browser than the one that began", async () => {
    const site = siteWith();
    const query = provider.signIn(await begin(site.browser()));
    expect(told(await site.browser().post("/provider/finish", { query }))).toEqual([401, "wrong_credentials"]);
    const other = site.browser();
    await begin(other);
    expect(told(await other.post("/provider/finish", { query }))).toEqual([401, "wrong_credentials"]);
  });

  test("a second time, without asking the provider", async () => {
    const browser = siteWith().browser();
    const query = provider.signIn(await begin(browser));
    const { begun } = browser;
    expect((await browser.post("/provider/finish", { query })).status).toBe(200);
    expect(browser.begun).toBe("tollgate_provider=");
    browser.begun = begun;
    expect(told(await browser.post("/provider/finish", { query }))).toEqual([401, "wrong_credentials"]);
    expect(provider.asked.get("token")).toBe(1);
  });

  test("after ten minutes, and with a cookie that somebody changed", async () => {
    const site = siteWith();
    const browser = site.browser();
    const query = provider.signIn(await begin(browser));
    site.office.now += providerSignInMs;
    expect(told(await browser.post("/provider/finish", { query }))).toEqual([401, "wrong_credentials"]);
    site.office.now -= providerSignInMs;
    const { begun } = browser;
    for (const changed of [begun.replace("=e", "=f"), `${begun}a`, "tollgate_provider=.", "tollgate_provider=e30.x"]) {
      browser.begun = changed;
      expect(told(await browser.post("/provider/finish", { query }))).toEqual([401, "wrong_credentials"]);
    }
    browser.begun = begun;
    expect((await browser.post("/provider/finish", { query })).status).toBe(200);
  });

  test("with a verifier that does not fit the challenge", async () => {
    const browser = siteWith().browser();
    const url = new URL(await begin(browser));
    url.searchParams.set("code_challenge", "A".repeat(43));
    const reply = await browser.post("/provider/finish", { query: provider.signIn(url.href) });
    expect(told(reply)).toEqual([401, "wrong_credentials"]);
  });

  test("where the person said no", async () => {
    const browser = siteWith().browser();
    const state = new URL(await begin(browser)).searchParams.get("state")!;
    const query = `?${new URLSearchParams({ error: "access_denied", state })}`;
    expect(told(await browser.post("/provider/finish", { query }))).toEqual([401, "wrong_credentials"]);
  });

  test("from a page of another site", async () => {
    const site = siteWith();
    for (const path of ["/console/api/provider/start", "/console/api/provider/finish"]) {
      const { status } = await site.send(path, { method: "POST", headers: { origin: "https://evil.example" } });
      expect(status).toBe(403);
    }
  });

  test("more than a hundred times from one address in a quarter of an hour", async () => {
    const site = siteWith();
    for (let time = 0; time < 3; time++) expect((await signIn(site.browser())).status).toBe(200); // these do not count
    for (let time = 0; time < signInAddressTriesMax; time++)
      await site.browser().post("/provider/finish", { query: "?" });
    expect(told(await site.browser().post("/provider/finish", { query: "?" }))).toEqual([429, "too_many_attempts"]);
    expect((await signIn(site.browser("198.51.100.1"))).status).toBe(200);
  });
});

describe("a provider that is away", () => {
  test.each([["discovery"], ["token"], ["jwks"]] as const)("at its %s is told, and works again", async (address) => {
    const site = siteWith();
    provider.away.set(address, 503);
    const browser = site.browser();
    const first =
      address === "discovery"
        ? await browser.post("/provider/start", {})
        : await browser.post("/provider/finish", { query: provider.signIn(await begin(browser)) });
    expect(told(first)).toEqual([503, "unavailable"]);
    expect(first.body.error.message).toStartWith("Acme cannot be used right now.");
    expect(site.logged.join()).toContain("answers with status 503");
    provider.away.clear();
    expect((await signIn(site.browser())).status).toBe(200);
  });

  test("is given up after some seconds, which nothing else waits for", async () => {
    const site = siteWith();
    await site.office.accounts.create({ email: "b@x", password: "correct horse" });
    provider.away.set("discovery", "hangs");
    const began = performance.now();
    const hanging = Promise.all([
      site.browser().post("/provider/start", {}),
      site.browser().post("/provider/start", {}),
    ]);
    expect((await site.browser().post("/sign-in", { email: "b@x", password: "correct horse" })).status).toBe(200);
    expect(performance.now() - began).toBeLessThan(providerReplyMs / 2);
    expect((await hanging).map(told)).toEqual([
      [503, "unavailable"],
      [503, "unavailable"],
    ]);
    expect(provider.asked.get("discovery")).toBe(1);
  }, 30_000);

  test("that says it is another, or nothing of use, is told too", async () => {
    for (const discovery of [{ issuer: "https://evil.example" }, { pad: "x".repeat(600_000) }, { token_endpoint: 5 }]) {
      provider.discovery = discovery;
      expect((await siteWith().browser().post("/provider/finish", { query: "?" })).status).toBe(401);
      const browser = siteWith().browser();
      const start = await browser.post("/provider/start", {});
      const failed =
        start.status === 200
          ? await browser.post("/provider/finish", { query: provider.signIn(start.body.url) })
          : start;
      expect(told(failed)).toEqual([503, "unavailable"]);
    }
  });

  test("whose registration of this server is another", async () => {
    const site = siteWith({ clientSecret: "wrong" });
    expect(told(await signIn(site.browser()))).toEqual([503, "unavailable"]);
    expect(site.logged.join()).toContain("client_id and client_secret: invalid_client");
  });
});

describe("who may come in", () => {
  const turnedAway = async (claims: object, rules: Partial<OidcOptions> = {}): Promise<string> => {
    provider.said.claims = { ...ada, ...claims };
    const site = siteWith(rules);
    const { status, body } = await signIn(site.browser());
    expect([status, await site.office.accounts.count()]).toEqual([403, 0]);
    return body.error.message;
  };

  test("nobody without a verified address", async () => {
    for (const email_verified of [undefined, false, "true", 1]) {
      expect(await turnedAway({ email_verified })).toContain("is verified");
    }
    for (const email of [undefined, "", 5, { toString: () => "a@x" }, `${"a".repeat(300)}@x`]) {
      expect(await turnedAway({ email })).toContain("e-mail address");
    }
  });

  test("addresses of the domains that are named, and of no others that look like them", async () => {
    const rules = { allowedDomains: ["example.com"] };
    for (const email of ["a@example.org", "a@sub.example.com", "a@example.com@evil.org", "a@notexample.com"]) {
      expect(await turnedAway({ email }, rules)).toContain("may not sign in here");
    }
    provider.said.claims = { ...ada, email: "Ada@EXAMPLE.com" };
    expect((await signIn(siteWith(rules).browser())).status).toBe(200);
  });

  test("people of a group that is named, wherever the provider says it", async () => {
    const rules = { allowedGroups: ["staff", "guests"] };
    for (const groups of [undefined, [], ["staffx"], [["staff"]], { staff: true }]) {
      expect(await turnedAway({ groups }, rules)).toContain("none of the groups");
    }
    const nested = { ...rules, groupsClaim: "realm_access.roles" };
    for (const [claims, more] of [
      [{ groups: ["x", "guests"] }, rules],
      [{ groups: "staff" }, rules],
      [{ realm_access: { roles: ["staff"] } }, nested],
      [{ "https://a.example/groups": ["staff"] }, { ...rules, groupsClaim: "https://a.example/groups" }],
    ] as const) {
      provider.said.claims = { ...ada, ...claims };
      expect((await signIn(siteWith(more).browser())).status).toBe(200);
    }
  });

  test("what the ID token does not say is asked for", async () => {
    provider.said.claims = { sub: "ada-1" };
    provider.userinfo = { ...ada, groups: ["staff"] };
    expect((await signIn(siteWith({ allowedGroups: ["staff"] }).browser())).status).toBe(200);
    provider.userinfo = { ...ada, sub: "somebody-else" };
    expect(told(await signIn(siteWith().browser()))).toEqual([401, "wrong_credentials"]);
    provider.said.claims = { ...ada, email: "boss@example.com", email_verified: undefined };
    provider.userinfo = ada; // verified is another address
    expect((await signIn(siteWith().browser())).body.session.account.email).toBe("ada@example.com");
  });

  test("nobody whose account an operator disabled", async () => {
    const site = siteWith();
    await signIn(site.browser());
    await site.office.accounts.setDisabled(1, true);
    const { status, body } = await signIn(site.browser());
    expect([status, body.error.message]).toEqual([403, expect.stringContaining("disabled")]);
  });

  test("a group that was left turns away at the next sign-in", async () => {
    const site = siteWith({ allowedGroups: ["staff"] });
    provider.said.claims = { ...ada, groups: ["staff"] };
    expect((await signIn(site.browser())).status).toBe(200);
    provider.said.claims = ada;
    expect((await signIn(site.browser())).status).toBe(403);
  });
});

describe("plan and operator", () => {
  test("follow what the provider says at each sign-in", async () => {
    const site = siteWith({ plan: "plus", planClaim: "tier", operatorGroups: ["admins"], operatorClaim: "admin" });
    await site.office.accounts.create({ email: "other@x", operator: true });
    const state = async (claims: object) => {
      provider.said.claims = { ...ada, ...claims };
      const { plan, operator } = (await signIn(site.browser())).body.session.account;
      return [plan, operator];
    };
    expect(await state({})).toEqual(["plus", false]);
    expect(await state({ tier: "pro", admin: true })).toEqual(["pro", true]);
    expect(await state({ tier: "nonsense", admin: "true" })).toEqual(["pro", false]);
    expect(await state({ tier: 5, groups: ["admins"] })).toEqual(["pro", true]);
  });

  test("are an operator's where the provider says nothing of them, and the last operator stays", async () => {
    const site = siteWith();
    await signIn(site.browser());
    await site.office.accounts.setOperator(1, true);
    expect((await signIn(site.browser())).body.session.account.operator).toBe(true);
    const strict = siteWith({ operatorGroups: ["admins"] });
    provider.said.claims = { ...ada, groups: ["admins"] };
    await signIn(strict.browser());
    provider.said.claims = ada;
    expect((await signIn(strict.browser())).body.session.account.operator).toBe(true);
    expect(strict.logged.join()).toContain("only operator");
  });
});

describe("an account that has the address already", () => {
  test("with a password is not taken over, and can be connected by who is signed in to it", async () => {
    const site = siteWith();
    const owner = await site.signedIn("ada@example.com");
    expect(told(await signIn(site.browser()))).toEqual([409, "conflict"]);
    expect((await signIn(owner, { connect: true })).status).toBe(200);
    expect((await owner.get("/overview")).status).toBe(200);
    expect((await signIn(site.browser())).body.session.account.id).toBe(1);
    expect(told(await site.browser().post("/provider/start", { connect: true }))).toEqual([401, "not_signed_in"]);
  });

  test("is connected only for who began it", async () => {
    const site = siteWith();
    const owner = await site.signedIn("ada@example.com");
    const query = provider.signIn(await begin(owner, { connect: true }));
    const other = await site.signedIn("other@example.com");
    other.begun = owner.begun;
    expect(told(await other.post("/provider/finish", { query }))).toEqual([401, "not_signed_in"]);
    expect(await site.office.identities.of(1)).toEqual([]);
  });

  test("without a password is connected, since only an operator can have made it", async () => {
    const site = siteWith();
    await site.office.accounts.create({ email: "Ada@example.com", plan: "pro" });
    const { body } = await signIn(site.browser());
    expect([body.session.account.id, body.session.account.plan, body.api_key]).toEqual([1, "pro", null]);
  });

  test("is not given to another person who has the address now", async () => {
    const site = siteWith();
    await signIn(site.browser());
    provider.said.claims = { ...ada, sub: "ada-2" };
    expect(told(await signIn(site.browser()))).toEqual([409, "conflict"]);
  });

  test("is not made anew for a person who has another account", async () => {
    const site = siteWith();
    await signIn(site.browser());
    const other = await site.signedIn("other@example.com");
    expect(told(await signIn(other, { connect: true }))).toEqual([409, "conflict"]);
  });
});

describe("instead of passwords", () => {
  test("every route of passwords refuses, and the page is told", async () => {
    const site = siteWith({ operatorGroups: ["admins"] }, { passwordSignIn: false, signUp: true });
    await site.office.accounts.create({ email: "b@x", password: "correct horse" });
    const stranger = site.browser();
    const { body } = await stranger.get("/session");
    expect([body.passwords, body.provider, body.sign_up]).toEqual([false, "Acme", false]);
    const named = { email: "b@x", password: "correct horse" };
    expect(told(await stranger.post("/sign-in", named))).toEqual([403, "forbidden"]);
    expect(told(await stranger.post("/sign-up", { ...named, email: "c@x" }))).toEqual([403, "forbidden"]);
    provider.said.claims = { ...ada, groups: ["admins"] };
    const operator = site.browser();
    await signIn(operator);
    const change = { old_password: "correct horse", new_password: "correct horse 2" };
    expect(told(await operator.post("/password", change))).toEqual([403, "forbidden"]);
    expect(told(await operator.post("/operator/accounts/1/password", { password: "correct horse" }))).toEqual([
      403,
      "forbidden",
    ]);
    const made = await operator.post("/operator/invitations", {});
    const token = made.body.path.split("#")[1];
    expect(told(await stranger.post("/link/use", { token, ...named, email: "c@x" }))).toEqual([403, "forbidden"]);
  });

  test("where there is no provider its routes are not there", async () => {
    const browser = new ConsoleSite().browser();
    expect(told(await browser.post("/provider/start", {}))).toEqual([404, "not_found"]);
    expect(told(await browser.post("/provider/finish", { query: "?" }))).toEqual([404, "not_found"]);
  });
});

describe("with a link", () => {
  const linkFrom = async (site: ConsoleSite, path: string, body?: object): Promise<string> => {
    const operator = await site.signedIn("head@x", { operator: true });
    return (await operator.post(path, body)).body.path.split("#")[1];
  };

  test("an invitation makes the account, with its plan and credit, once", async () => {
    const site = siteWith();
    const token = await linkFrom(site, "/operator/invitations", { plan: "plus", credit: 500 });
    const { body } = await signIn(site.browser(), { token });
    expect([body.session.account.email, body.session.account.plan]).toEqual(["ada@example.com", "plus"]);
    expect((await site.office.accounts.record(body.session.account.id))!.credit).toBe(500);
    expect((await site.browser().post("/provider/start", { token })).status).toBe(400);
  });

  test("an invitation for one address is for no other, and stays", async () => {
    const site = siteWith();
    const token = await linkFrom(site, "/operator/invitations", { email: "bob@example.com" });
    expect(told(await signIn(site.browser(), { token }))).toEqual([403, "forbidden"]);
    provider.said.claims = { ...ada, sub: "bob-1", email: "Bob@example.com" };
    expect((await signIn(site.browser(), { token })).status).toBe(200);
  });

  test("a password link connects the account, whatever its address; the password before is void", async () => {
    const site = siteWith();
    const owner = await site.signedIn("someone@elsewhere.com");
    const operator = await site.signedIn("head@x", { operator: true });
    const { body: made } = await operator.post("/operator/accounts/1/password-link");
    const { body } = await signIn(site.browser(), { token: made.path.split("#")[1] });
    expect(body.session.account.id).toBe(1);
    expect((await owner.get("/overview")).status).toBe(401);
    const known = { email: "someone@elsewhere.com", password: "correct horse" };
    expect((await site.browser().post("/sign-in", known)).status).toBe(401);
    expect((await signIn(site.browser())).body.session.account.id).toBe(1);
    const shown = await operator.get("/operator/accounts/1");
    expect([shown.body.has_password, shown.body.providers]).toEqual([false, [provider.issuer]]);
  });
});

test("who is to sign in again is asked by the provider, also where somebody is signed in there", async () => {
  const browser = siteWith().browser();
  const promptOf = async (body: object) => new URL(await begin(browser, body)).searchParams.get("prompt");
  expect([await promptOf({}), await promptOf({ again: true })]).toEqual([null, "login"]);
});
