// An account that goes by its owner's wish, in a real browser: at once, or when an operator grants it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const password = "correct horse battery";
const operator = "head@example.com";
const owner = "ada@example.com";

describe.skipIf(withoutBrowser)("an owner", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  }, timeLimit);
  afterAll(() => browser?.close());

  async function start(way: string): Promise<GatewayProcess> {
    const gateway = await GatewayProcess.start({
      config: way === "" ? "" : `[console]\naccount_deletion = "${way}"\n`,
    });
    await gateway.cli("accounts", "create", operator, "--password", password, "--operator");
    await gateway.cli("accounts", "create", owner, "--password", password);
    return gateway;
  }

  /** Says who it is in the dialog, and goes through with it. */
  async function confirm(page: Page, button: string): Promise<void> {
    const dialog = page.getByRole("dialog");
    const submit = dialog.getByRole("button", { name: button });
    await dialog.getByLabel("Password").fill(password);
    expect(await submit.isDisabled()).toBe(true);
    await dialog.getByLabel(`Type ${owner} to confirm`).fill(owner);
    await submit.click();
    await dialog.waitFor({ state: "detached" });
  }

  test(
    "downloads the data, says password and address, and is gone; the only operator stays",
    async () => {
      await using gateway = await start("self");
      await using visit = await Visit.open(browser, gateway.url);
      const { page } = visit;
      await visit.signIn(owner, password);
      await visit.goTo("/account", "Account");
      await page.getByRole("button", { name: "Delete account" }).click();
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("dialog").getByRole("button", { name: "Export your data" }).click(),
      ]);
      expect(JSON.parse(await readFile(await file.path(), "utf8"))).toMatchObject({ account: { email: owner } });
      await confirm(page, "Delete account");
      await page.getByRole("heading", { level: 1, name: "Sign in to Tollgate" }).waitFor();
      await page.getByText("Your account was deleted.").waitFor();
      expect(JSON.stringify(await gateway.cli("accounts", "list"))).toMatch(/deleted-\d+@invalid/);

      await gateway.cli("accounts", "disable", "operator@localhost"); // of the first start
      await visit.signIn(operator, password);
      await visit.goTo("/account", "Account");
      await page.getByRole("button", { name: "Delete account" }).click();
      await page.getByRole("dialog").getByLabel("Password").fill(password);
      await page.getByRole("dialog").getByLabel(`Type ${operator} to confirm`).fill(operator);
      await page.getByRole("dialog").getByRole("button", { name: "Delete account" }).click();
      await page.getByText("is the only operator; make another one first").waitFor();
      // What a page asks as its account goes is answered with 401.
      expect(visit.problemsBut(/status of 40[01]/)).toEqual([]);
    },
    timeLimit,
  );

  test(
    "asks, is told why not, asks again, and an operator deletes the account",
    async () => {
      await using gateway = await start("request");
      await using own = await Visit.open(browser, gateway.url);
      await using head = await Visit.open(browser, gateway.url);
      await own.signIn(owner, password);
      await head.signIn(operator, password);
      const section = own.page.getByRole("region", { name: "Delete the account" });
      const asked = head.page.getByRole("region", { name: "Requested deletions" });
      const ask = async (): Promise<void> => {
        await own.goTo("/account", "Account");
        await section.getByRole("button", { name: "Request deletion" }).click();
        await confirm(own.page, "Send request");
        await section.getByText("Requested").waitFor();
        await head.goTo("/operator/accounts", "Accounts");
      };
      await ask();
      await asked.getByRole("button", { name: `Dismiss ${owner}` }).click();
      await head.page.getByRole("dialog").getByLabel("Note to the account").fill("your invoice is open");
      await head.page.getByRole("dialog").getByRole("button", { name: "Decline" }).click();
      await asked.waitFor({ state: "detached" });
      await own.goTo("/account", "Account");
      await section.getByText("your invoice is open").waitFor();

      await ask();
      await asked.getByRole("button", { name: `Delete ${owner}` }).click();
      await head.page.getByRole("dialog").getByLabel("Type its e-mail").fill(owner);
      await head.page.getByRole("dialog").getByRole("button", { name: "Delete account" }).click();
      await asked.waitFor({ state: "detached" });
      await head.page.getByRole("link", { name: /^deleted-\d+@invalid$/ }).waitFor();
      expect([...own.problemsBut(/status of 401/), ...head.problems]).toEqual([]);
    },
    timeLimit,
  );

  test(
    "is asked to sign in again where the page was open for longer than a sign-in is fresh",
    async () => {
      await using gateway = await start("self");
      await using visit = await Visit.open(browser, gateway.url);
      await visit.signIn(owner, password);
      let looks = 0;
      await visit.page.route("**/console/api/deletion", (route) => {
        const json = { way: "self", proof: "sign_in", is_fresh: looks === 0, request: null };
        looks += 1;
        return route.fulfill({ json });
      });
      await visit.goTo("/account", "Account");
      await visit.page.getByRole("button", { name: "Delete account" }).click();
      await visit.page.getByText("You signed in a while ago.").waitFor();
      expect(looks).toBe(2);
    },
    timeLimit,
  );

  test(
    "sees no such button where nothing is configured",
    async () => {
      await using gateway = await start("");
      await using visit = await Visit.open(browser, gateway.url);
      await visit.signIn(owner, password);
      await Promise.all([visit.page.waitForResponse(/\/console\/api\/deletion$/), visit.goTo("/account", "Account")]);
      await visit.page.getByRole("button", { name: "Export your data" }).waitFor();
      expect(await visit.page.getByText(/delete/i).count()).toBe(0);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );
});
