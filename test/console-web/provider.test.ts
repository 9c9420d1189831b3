// Sign-in with a real identity provider, invitations and password links, in a real browser: what a person sees and types,
// and what becomes of an answer that was tampered with on its way.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import axe from "axe-core";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { linesOf } from "../fixtures/lines.ts";
import { beginAt, pollAt } from "../fixtures/machine.ts";
import { installed, longForm, missing } from "../fixtures/optional.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 180_000;
const clients = join(import.meta.dir, "../clients");
const withoutProvider = missing(
  "oidc-provider",
  (await installed("oidc-provider/package.json", clients)) !== null,
  "npm ci in test/clients",
);
/** Wrong answers are part of these tests; another site is where people sign in, whose page asks for fonts in vain. */
const expected = /^request: |status of (?:400|401|403|404|409|503)|ERR_NAME_NOT_RESOLVED/;
/** Who signs in to what is tried without a browser in every run (test/console/provider.test.ts). */
const isShort = missing("the long form", longForm, "TOLLGATE_TESTS=all runs it (a minute)", false);

describe.skipIf(withoutBrowser || withoutProvider || isShort)("people", () => {
  let provider: Bun.Subprocess<"ignore", "pipe", "ignore">;
  let issuer: string;
  let gateway: GatewayProcess;
  let browser: Browser;

  const toml = (more: string): string =>
    `[oidc]\nissuer = "${issuer}"\nclient_id = "tollgate"\nclient_secret_env = "OIDC_SECRET"\nname = "Acme"\n` +
    `scopes = ["openid", "email", "groups"]\nallowed_domains = ["example.com"]\n${more}`;

  beforeAll(async () => {
    const port = freePort();
    issuer = `http://127.0.0.1:${port}`;
    browser = await launch();
    gateway = await GatewayProcess.start({
      config: toml('operator_groups = ["staff"]\n'),
      env: { OIDC_SECRET: "a secret of thirty-two characters" },
    });
    const program = [process.execPath, join(clients, "identity-provider.ts"), String(port)];
    provider = Bun.spawn(program, { stdout: "pipe", stderr: "ignore" });
    for await (const line of linesOf(provider.stdout)) if (line === "listening") break;
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
    provider?.kill();
    await provider?.exited;
  }, timeLimit);

  const visitOf = () => Visit.open(browser, gateway.url, { reducedMotion: "reduce" });
  const away = (path: string) => fetch(`${issuer}/control?away=${encodeURIComponent(path)}`);

  /** Types an address at the provider, and says yes to what this server wants to know. */
  async function beAt(page: Page, login: string): Promise<void> {
    await page.locator("input[name=login]").fill(login);
    await page.locator("input[name=password]").fill("any");
    await page.getByRole("button", { name: "Sign-in" }).click();
    await page.getByRole("button", { name: "Continue" }).click();
  }
  async function leave(visit: Visit): Promise<void> {
    await visit.goTo("/sign-in", "Sign in to Tollgate");
    await visit.page.getByRole("button", { name: "Continue with Acme" }).click();
  }
  const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name }).waitFor();
  const refusal = async ({ page }: Visit): Promise<string> => {
    await heading(page, "You are not signed in");
    return (await page.getByRole("alert").textContent()) ?? "";
  };
  async function clean({ page }: Visit): Promise<void> {
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<axe.AxeResults>("axe.run()");
    expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
  }

  test(
    "a first sign-in shows the key once, and the next goes straight to the page that was asked for",
    async () => {
      await using visit = await visitOf();
      await leave(visit);
      await beAt(visit.page, "ada@example.com");
      await heading(visit.page, "Welcome to Tollgate");
      expect(new URL(visit.page.url()).search).toBe(""); // the code is not in the history
      expect(await visit.page.locator(".secret code").textContent()).toStartWith("sk-tg-");
      await clean(visit);
      await visit.page.getByRole("link", { name: "I saved it, continue" }).click();
      await heading(visit.page, "Overview");
      await visit.page.context().clearCookies({ name: "tollgate_session" });
      await visit.page.goto("/usage");
      await visit.page.goto("/sign-in?next=/usage");
      await visit.page.getByRole("button", { name: "Continue with Acme" }).click();
      await heading(visit.page, "Usage");
      expect(visit.problemsBut(expected)).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a program's address leads through the sign-in to its code, and nothing is approved before the person says so",
    async () => {
      await using visit = await visitOf();
      const codes = await beginAt(gateway.url, { client_name: "<b>a program</b>", machine: "box" });
      await visit.page.goto(`/device?user_code=${codes.user_code}`);
      await visit.page.getByRole("button", { name: "Continue with Acme" }).click();
      await beAt(visit.page, "ada@example.com");
      await heading(visit.page, "Sign in a program");
      expect((await pollAt(gateway.url, codes)).body).toEqual({ error: "authorization_pending" });
      await clean(visit);
      await visit.page.getByRole("button", { name: "Continue" }).click();
      await visit.page.getByText("<b>a program</b>").waitFor();
      await clean(visit);
      expect((await pollAt(gateway.url, codes)).body).toEqual({ error: "authorization_pending" });
      await visit.page.getByLabel("Name").fill("my box");
      await visit.page.getByRole("button", { name: "Approve" }).click();
      await visit.page.getByText("Signed in as “my box”").waitFor();
      expect((await pollAt(gateway.url, codes)).status).toBe(200);
      await visit.goTo("/key", "API key");
      await visit.page.getByRole("cell", { name: /machine$/ }).waitFor();
      await visit.page.getByRole("button", { name: "Revoke my box" }).click();
      await visit.page.getByRole("button", { name: "Revoke key" }).click();
      await visit.page.getByRole("cell", { name: /machine$/ }).waitFor({ state: "detached" });
      // Another code, which is denied; and one that is none.
      const denied = await beginAt(gateway.url);
      await visit.goTo("/device", "Sign in a program");
      await visit.page.getByLabel("Code").fill(denied.user_code.toLowerCase());
      await visit.page.getByRole("button", { name: "Continue" }).click();
      await visit.page.getByRole("button", { name: "Deny" }).click();
      await visit.page.getByText("Denied.").waitFor();
      expect((await pollAt(gateway.url, denied)).body).toEqual({ error: "access_denied" });
      await visit.goTo("/device?user_code=BBBB-CCCC", "Sign in a program");
      await visit.page.getByRole("button", { name: "Continue" }).click();
      await visit.page.getByRole("alert").getByText("No machine waits with this code").waitFor();
      expect(visit.problemsBut(expected)).toEqual([]);
    },
    timeLimit,
  );

  test(
    "who is in the group of operators is one",
    async () => {
      await using visit = await visitOf();
      await leave(visit);
      await beAt(visit.page, "staff@example.com");
      await visit.page.getByRole("link", { name: "I saved it, continue" }).click();
      await visit.goTo("/operator/accounts", "Accounts");
      await visit.page.getByText("ada@example.com").waitFor();
    },
    timeLimit,
  );

  test.each([
    ["of another domain", "eve@elsewhere.org", "Addresses of elsewhere.org may not sign in here."],
    [
      "whose address is not verified",
      "unverified@example.com",
      "Acme does not say that your e-mail address is verified.",
    ],
    ["whose address is not told", "nobody@example.com", "Acme does not say your e-mail address."],
  ])(
    "somebody %s is turned away in words",
    async (_, login, words) => {
      await using visit = await visitOf();
      await leave(visit);
      await beAt(visit.page, login);
      expect(await refusal(visit)).toBe(words);
      await clean(visit);
      await visit.page.getByRole("link", { name: "Back to sign-in" }).click();
      await heading(visit.page, "Sign in to Tollgate");
    },
    timeLimit,
  );

  test.each([["nonce"], ["code_challenge"], ["state"]])(
    "a sign-in whose %s was changed on its way to the provider is refused",
    async (parameter) => {
      await using visit = await visitOf();
      await visit.page.route(
        `${issuer}/auth?*`,
        async (route) => {
          const url = new URL(route.request().url());
          url.searchParams.set(parameter, "A".repeat(43));
          await route.continue({ url: url.href });
        },
        { times: 1 },
      );
      await leave(visit);
      await beAt(visit.page, "mallory@example.com");
      expect(await refusal(visit)).toMatch(/does not match this sign-in|in another browser/);
    },
    timeLimit,
  );

  test(
    "an answer works once, also for who kept all of it",
    async () => {
      await using visit = await visitOf();
      let answer = "";
      visit.page.on("request", (request) => {
        if (request.url().includes("/sign-in/callback?")) answer = request.url();
      });
      await leave(visit);
      const kept = await visit.context.cookies();
      await beAt(visit.page, "twice@example.com");
      await heading(visit.page, "Welcome to Tollgate");
      await visit.context.addCookies(kept.filter(({ name }) => name === "tollgate_provider"));
      await visit.page.goto(answer);
      await visit.page.getByText("This sign-in was already used").waitFor();
      await using stranger = await visitOf();
      await stranger.page.goto(answer);
      expect(await refusal(stranger)).toContain("began in another browser");
    },
    timeLimit,
  );

  test(
    "a provider that is away is told on the page, also in the middle of it, and passwords go on working",
    async () => {
      const email = "with-password@example.com";
      await gateway.cli("accounts", "create", email, "--password", "correct horse battery");
      await using visit = await visitOf();
      await leave(visit);
      await visit.page.locator("input[name=login]").waitFor();
      await away("/token");
      await beAt(visit.page, "late@example.com");
      expect(await refusal(visit)).toStartWith("Acme cannot be used right now.");
      await away("");
      await leave(visit); // who it is, the provider still knows
      await heading(visit.page, "Welcome to Tollgate");
      await using other = await visitOf();
      await other.signIn(email, "correct horse battery");
    },
    timeLimit,
  );

  test(
    "an account with a password is connected by its owner, and taken over by nobody",
    async () => {
      const email = "owner@example.com";
      await gateway.cli("accounts", "create", email, "--password", "correct horse battery");
      await using visit = await visitOf();
      await leave(visit);
      await beAt(visit.page, email);
      expect(await refusal(visit)).toContain("There is already an account with the address owner@example.com.");
      await visit.signIn(email, "correct horse battery");
      await visit.goTo("/account", "Account");
      await visit.page.getByRole("button", { name: "Connect with Acme" }).click();
      await heading(visit.page, "Account");
      await visit.page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
      await leave(visit);
      await heading(visit.page, "Overview");
    },
    timeLimit,
  );

  test(
    "a disabled account is told so",
    async () => {
      await using visit = await visitOf();
      await leave(visit);
      await beAt(visit.page, "gone@example.com");
      await heading(visit.page, "Welcome to Tollgate");
      await gateway.cli("accounts", "disable", "gone@example.com");
      await leave(visit);
      expect(await refusal(visit)).toContain("This account is disabled.");
    },
    timeLimit,
  );

  test(
    "an invitation that the console makes lets one person in, with a password or the provider",
    async () => {
      const head = "head@example.com";
      await gateway.cli("accounts", "create", head, "--password", "correct horse battery", "--operator");
      await using operator = await visitOf();
      await operator.signIn(head, "correct horse battery");
      await operator.goTo("/operator/accounts", "Accounts");
      const invite = async (): Promise<string> => {
        await operator.page.getByRole("button", { name: "Invite" }).click();
        const dialog = operator.page.getByRole("dialog");
        await dialog.getByLabel("Plan").selectOption("plus");
        await dialog.getByLabel("Credit in balance tokens").fill("5000");
        await dialog.getByRole("button", { name: "Make the link" }).click();
        const link = await dialog.locator(".secret code").textContent();
        await dialog.getByRole("button", { name: "Done" }).click();
        return link!;
      };
      const [one, other] = [await invite(), await invite()];
      await operator.page.getByText("Invitation 2: plan plus, 5,000 balance tokens").waitFor();
      await clean(operator);

      await using guest = await visitOf();
      await guest.page.goto(one);
      await heading(guest.page, "Join Tollgate");
      await clean(guest);
      await guest.page.getByLabel("E-mail").fill("guest@example.net");
      await guest.page.getByLabel("Password").fill("correct horse battery");
      await guest.page.getByRole("button", { name: "Create account" }).click();
      await heading(guest.page, "Welcome to Tollgate");
      const state = await gateway.show("guest@example.net");
      expect([state.plan, state.credit]).toEqual(["plus", 5_000]);

      await using late = await visitOf();
      await late.page.goto(one);
      await heading(late.page, "This link does not work");
      await late.page.goto("about:blank");
      await late.page.goto(other);
      await late.page.getByRole("button", { name: "Continue with Acme" }).click();
      await beAt(late.page, "invited@example.com");
      await heading(late.page, "Welcome to Tollgate");
      expect((await gateway.show("invited@example.com")).plan).toBe("plus");
    },
    timeLimit,
  );

  test(
    "a link of the command line sets a password once",
    async () => {
      const email = "forgetful@example.com";
      await gateway.cli("accounts", "create", email);
      const { link } = await gateway.cli<{ link: string }>("accounts", "password", email, "--link");
      await using visit = await visitOf();
      await visit.page.goto(link);
      await heading(visit.page, "Set a password");
      await clean(visit);
      await visit.page.getByLabel("New password").fill("correct horse battery");
      await visit.page.getByRole("button", { name: "Set password" }).click();
      await heading(visit.page, "Overview");
      await using again = await visitOf();
      await again.page.goto(link);
      await heading(again.page, "This link does not work");
      await again.signIn(email, "correct horse battery");
    },
    timeLimit,
  );

  test(
    "instead of passwords the page has the provider's button alone, and nothing but sign-in waits for a provider",
    async () => {
      await gateway.kill("SIGTERM");
      await gateway.configure(toml("[console]\npasswords = false\n"));
      await gateway.restart();
      await using visit = await visitOf();
      await visit.goTo("/sign-in", "Sign in to Tollgate");
      expect(await visit.page.locator("input").count()).toBe(0);
      await clean(visit);
      await away("/.well-known");
      await visit.page.getByRole("button", { name: "Continue with Acme" }).click();
      await visit.page.getByText("Acme cannot be used right now.").waitFor();
      expect((await fetch(`${gateway.url}/readyz`)).status).toBeLessThan(500);
      await away("");
      await visit.page.getByRole("button", { name: "Continue with Acme" }).click();
      await beAt(visit.page, "ada@example.com");
      await heading(visit.page, "Overview");
      await visit.goTo("/account", "Account");
      expect(await visit.page.getByLabel("Current password").count()).toBe(0);
      expect(visit.problemsBut(expected)).toEqual([]);
    },
    timeLimit,
  );
});

function freePort(): number {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const port = server.port!;
  void server.stop(true);
  return port;
}
