// The operator's pages and the plan page: what one asks for, the other approves, in two real browsers.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const customer = "grace@example.com";
const operator = "head@example.com";
const password = "correct horse battery";

describe.skipIf(withoutBrowser)("plan requests and the operator's pages", () => {
  let gateway: GatewayProcess;
  let browser: Browser;
  let owner: Visit;
  let head: Visit;

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "" }), launch()]);
    await gateway.cli("accounts", "create", customer, "--password", password);
    await gateway.cli("accounts", "create", operator, "--password", password, "--operator");
    [owner, head] = await Promise.all([Visit.open(browser, gateway.url), Visit.open(browser, gateway.url)]);
    await owner.signIn(customer, password);
    await head.signIn(operator, password);
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  }, timeLimit);

  test(
    "a plan change is requested, approved by the operator and in force",
    async () => {
      const { page } = owner;
      await owner.goTo("/plan", "Plan and credit");
      await page.locator(".plan.current").getByText("Free", { exact: true }).waitFor();
      expect(await page.locator(".plan h2").allTextContents()).toEqual(["Free", "Plus", "Standard", "Pro"]);
      await page.getByRole("button", { name: "Change to Pro" }).click();
      await page.getByLabel("Note to the operator (optional)").fill("For the demo on Friday");
      await page.getByRole("button", { name: "Send request" }).click();
      await page.locator(".item-list").getByText("pending").waitFor();

      await head.goTo("/operator/requests", "Requests");
      await head.page.getByText("For the demo on Friday").waitFor();
      await head.page.getByRole("button", { name: `Approve ${customer}` }).click();
      await head.page.getByLabel("Note to the account (optional)").fill("Welcome");
      await head.page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
      await head.page.getByText("No requests to decide").waitFor();
      expect((await gateway.show(customer)).plan).toBe("pro");

      await page.reload();
      await page.locator(".plan.current").getByText("Pro", { exact: true }).waitFor();
      await page.getByText("“Welcome”").waitFor();
    },
    timeLimit,
  );

  test(
    "credit of a custom amount is requested and declined; another request is withdrawn",
    async () => {
      const { page } = owner;
      await owner.goTo("/plan", "Plan and credit");
      await page.getByRole("button", { name: "Custom amount" }).click();
      await page.getByRole("spinbutton", { name: "Tokens" }).fill("999999");
      await page.getByText("A whole number from 1,000,000 to 100,000,000").waitFor();
      expect(await page.getByRole("button", { name: "Request credit" }).isDisabled()).toBe(true);
      for (const tokens of ["1500000", "2500000"]) {
        await page.getByRole("spinbutton", { name: "Tokens" }).fill(tokens);
        await page.getByRole("button", { name: "Request credit" }).click();
        await page.getByRole("button", { name: "Send request" }).click();
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
      await page.getByRole("button", { name: "Withdraw: 2,500,000 balance tokens of credit, $12.50" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Withdraw" }).click();
      await page.locator(".item-list").getByText("withdrawn").waitFor();

      await head.goTo("/operator/requests", "Requests");
      await head.page.getByRole("button", { name: `Decline ${customer}` }).click();
      await head.page.getByRole("dialog").getByRole("button", { name: "Decline" }).click();
      await head.page.getByText("No requests to decide").waitFor();
      expect((await gateway.show(customer)).credit).toBe(0);
      await head.page.getByRole("button", { name: "declined" }).click();
      await head.page.getByText("1,500,000 balance tokens of credit").waitFor();
    },
    timeLimit,
  );

  test(
    "an operator finds an account, grants credit once, changes its plan, password and state",
    async () => {
      const { page } = head;
      await head.goTo("/operator/accounts", "Accounts");
      await page.getByLabel("Part of an e-mail address").fill("GRACE");
      await expectEventually(() => page.locator("tbody tr").count(), 1);
      await page.getByRole("link", { name: customer }).click();
      const sheet = page.locator("main");
      const box = page.locator("dialog.box");
      await sheet.getByLabel("Tokens").fill("3000000");
      await sheet.getByLabel("Reason").fill("Invoice 44");
      await sheet.getByRole("button", { name: "Grant credit" }).click();
      await box.getByRole("button", { name: "Grant credit" }).click();
      await page.getByText(`3,000,000 balance tokens were credited to ${customer}.`).waitFor();
      expect((await gateway.show(customer)).credit).toBe(3_000_000);

      await sheet.getByLabel("Plan", { exact: true }).getByRole("combobox").selectOption("plus");
      await sheet.getByRole("button", { name: "Save: Plan" }).click();
      await page.getByText(`${customer} is now on the plan plus.`).waitFor();
      expect((await gateway.show(customer)).plan).toBe("plus");

      await sheet.getByLabel("New password").fill("given by the operator");
      await sheet.getByRole("button", { name: "Set password" }).click();
      await owner.page.getByRole("heading", { name: "Sign in to Tollgate" }).waitFor();
      await owner.signIn(customer, "given by the operator");

      await sheet.getByRole("button", { name: "Disable account" }).click();
      await sheet.getByText("Disabled").waitFor();
      await owner.page.getByRole("heading", { name: "Sign in to Tollgate" }).waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await sheet.getByText("Active").waitFor();
      await owner.page.reload();
      await owner.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      await sheet.getByRole("button", { name: "Disable account" }).click();
      await sheet.getByText("Disabled").waitFor();
      await sheet.getByRole("button", { name: "Enable account" }).click();
      await sheet.getByText("Active").waitFor();
      expect(head.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "an operator makes an account, whose key is shown once and works",
    async () => {
      const { page } = head;
      await head.goTo("/operator/accounts", "Accounts");
      await page.getByRole("button", { name: "New account" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("E-mail").fill("linus@example.com");
      await dialog.getByLabel("Plan").selectOption("standard");
      await dialog.getByRole("button", { name: "Create account" }).click();
      const key = (await dialog.locator(".secret code").textContent()) ?? "";
      const reply = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      expect(reply.status).toBe(200);
      await dialog.getByRole("button", { name: "Done" }).click();
      expect((await gateway.show("linus@example.com")).plan).toBe("standard");
    },
    timeLimit,
  );

  test(
    "activity, nodes, models and the audit log show what is there",
    async () => {
      const { page } = head;
      const { id } = await gateway.account();
      await head.post(`/operator/accounts/${id}/credit`, { tokens: 5, reason: "Invoice 45" });
      await head.post(`/operator/accounts/${id}/plan`, { plan: "pro" });
      await page.getByRole("link", { name: "Activity" }).click();
      await page.getByText("Requests to decide").waitFor();
      await page.getByRole("link", { name: "Nodes" }).click();
      await page.getByRole("row", { name: "demo" }).waitFor();
      await page.getByRole("link", { name: "Models" }).click();
      await expectEventually(() => page.locator("tbody tr").count(), 21);
      await page.getByText("More", { exact: true }).first().click();
      await page.getByRole("link", { name: "Audit log" }).click();
      await page.getByText("Invoice 45").waitFor();
      // Made by a command.
      await page.locator("tbody tr", { hasText: "account.create" }).first().getByText("command line (").waitFor();
      await page.locator("tbody tr", { hasText: "account.plan" }).first().getByText("from free to pro").waitFor();
      expect(head.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "an account that is no operator sees none of these pages",
    async () => {
      await gateway.cli("accounts", "create", "eve@example.com", "--password", password);
      await using owner = await Visit.open(browser, gateway.url);
      await owner.signIn("eve@example.com", password);
      await owner.page.locator(".side .navigation").waitFor();
      expect(await owner.page.getByText("Operator", { exact: true }).count()).toBe(0);
      await owner.page.goto("/operator/accounts");
      await owner.page.getByText("This page is for operators.").waitFor();
      expect(await owner.page.getByText(operator).count()).toBe(0);
    },
    timeLimit,
  );
});
