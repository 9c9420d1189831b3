// The one table of the console in a real browser: sorted and paged by its headings and buttons, back and forward, by links that
// say nonsense, with columns that stay after a reload, by keyboard, on a phone and on paper.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(120_000);

const operator = "head@example.com";
const password = "correct horse battery";
const models = 120;

describe.skipIf(withoutBrowser)("tables", () => {
  let gateway: GatewayProcess;
  let browser: Browser;
  beforeAll(async () => {
    const model = (_: unknown, at: number): string =>
      `[[models]]\nid = "model-${at}"\ncontext = ${8192 * (1 + at)}\nprice = { input = 1, output = 2 }\n`;
    const config = Array.from({ length: models }, model).join("");
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config }), launch()]);
    await gateway.cli("accounts", "create", operator, "--password", password, "--operator");
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  });

  test("headings sort, pages turn, and back, forward and a reload show the same again", async () => {
    await using visit = await Visit.open(browser, gateway.url);
    const { page } = visit;
    await visit.signIn(operator, password);
    await visit.goTo("/operator/models?sort=model", "Models");
    await shows(page, "model-0", `1–50 of ${models}`);

    const heading = page.getByRole("button", { name: "Model", exact: true });
    await heading.press("Enter");
    await shows(page, "model-119", `1–50 of ${models}`);
    expect(await page.getByRole("columnheader", { name: "Model" }).getAttribute("aria-sort")).toBe("descending");
    expect(await page.evaluate("document.activeElement.textContent")).toContain("Model"); // the focus stays
    await page.getByRole("button", { name: "Next" }).click();
    await shows(page, "model-69", `51–100 of ${models}`);
    await page.getByRole("button", { name: "Last" }).click();
    await shows(page, "model-19", `101–120 of ${models}`);
    expect(new URL(page.url()).search).toBe("?sort=-model&page=3");

    await page.goBack();
    await shows(page, "model-69", `51–100 of ${models}`);
    await page.goBack();
    await page.goBack();
    await shows(page, "model-0", `1–50 of ${models}`);
    await page.goForward();
    await page.goForward();
    await page.reload();
    await shows(page, "model-69", `51–100 of ${models}`);
    expect(visit.problems).toEqual([]);
  });

  test("columns are chosen, and remembered by this browser", async () => {
    await using visit = await Visit.open(browser, gateway.url);
    const { page } = visit;
    await visit.signIn(operator, password);
    await visit.goTo("/operator/models?sort=model", "Models");
    const names = () => page.locator("thead th").evaluateAll((all) => all.map((head) => head.innerText.trim()).join());
    await shows(page, "model-0", `1–50 of ${models}`);
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("checkbox", { name: "Nodes" }).uncheck();
    await page.getByRole("checkbox", { name: "Requests" }).uncheck();
    await page.keyboard.press("Escape");
    const without = await names();
    expect(without).not.toMatch(/Nodes|Requests/);
    await page.reload();
    await shows(page, "model-0", `1–50 of ${models}`);
    expect(await names()).toBe(without);
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("button", { name: "Reset" }).click();
    expect(await names()).toMatch(/Nodes.*Requests/);
    expect(visit.problems).toEqual([]);
  });

  test("accounts are found by the server, changed together, and each change is in the audit log", async () => {
    await using visit = await Visit.open(browser, gateway.url);
    const { page } = visit;
    await visit.signIn(operator, password);
    for (let at = 0; at < 60; at += 1)
      await visit.post("/operator/accounts", {
        email: `p${at}@x`,
        plan: at % 2 === 0 ? "free" : "pro",
        credit: 1_000 * at,
      });
    await visit.goTo("/operator/accounts?sort=-credit", "Accounts");
    await shows(page, "p59@x", "1–50 of 62");
    await page.getByRole("button", { name: "Next" }).click();
    await shows(page, "p9@x", "51–62 of 62");
    await page.getByRole("combobox", { name: "All plans" }).selectOption("pro");
    await expectEventually(() => firstRow(page), "p59@x");
    await page.getByRole("searchbox").fill("P1");
    await shows(page, "p19@x", "1–6 of 6");
    expect(new URL(page.url()).search).toBe("?sort=-credit&plan=pro&search=P1");
    const csv = await visit.context.request.get((await page.getByRole("link", { name: "CSV" }).getAttribute("href"))!);
    expect((await csv.text()).split("\r\n").map((line) => line.split(",")[1])).toEqual([
      "email",
      "p19@x",
      "p17@x",
      "p15@x",
      "p13@x",
      "p11@x",
      "p1@x",
      undefined,
    ]);

    await page.getByRole("checkbox", { name: "Select p19@x" }).check();
    await page.getByRole("checkbox", { name: "Select p1@x" }).check();
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByRole("dialog").getByText("2 accounts are refused").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("combobox", { name: "All states" }).selectOption("disabled");
    await shows(page, "p19@x", "1–2 of 2");
    await page.getByRole("checkbox", { name: "Select all rows of this page" }).check();
    await page.getByRole("button", { name: "Add credit" }).click();
    await page.getByLabel("Balance tokens for each").fill("500000");
    await page.getByLabel("Reason").fill("sorry");
    await page.getByRole("dialog").getByRole("button", { name: "Add credit" }).click();
    await page.getByText("519,000").waitFor();

    await visit.goTo("/operator/audit?action=account.disable", "Audit log");
    await expectEventually(() => page.locator("tbody tr").count(), 2);
    await page.goto("/operator/audit?action=account.credit&account=p1@x&sort=time");
    await page.getByText("500000 balance tokens: sorry").waitFor();
    expect(await page.locator("tbody tr").count()).toBe(1);
    for (const query of ["page=-1&sort=detail&action=' OR 1=1 --&from=yesterday", "page=99999999&to=9999-99-99"]) {
      await page.goto(`/operator/audit?${query}`);
      await page.locator("tbody tr").first().waitFor();
    }
    for (const query of ["page=-1&sort=password_hash&state=gone&used=all", "page=99999999&sort=-month&used=0"]) {
      await page.goto(`/operator/accounts?${query}`);
      await page.locator("tbody tr").first().waitFor();
    }
    expect(visit.problems).toEqual([]);
  });

  test("addresses that say nonsense show the first page, or the last", async () => {
    await using visit = await Visit.open(browser, gateway.url);
    const { page } = visit;
    await visit.signIn(operator, password);
    for (const [query, first] of [
      ["page=-3", "model-0"],
      ["page=1e9", "model-0"],
      ["page=0x10&sort=", "model-0"],
      ["page=99999999999999999999", "model-0"],
      ["page=99999999", "model-100"],
      ["sort=__proto__", "model-0"],
      ["sort=--model", "model-0"],
      ["sort=<img src=x onerror=alert(1)>&page=' OR 1=1 --", "model-0"],
    ]) {
      await page.goto(`/operator/models?${query}`);
      await expectEventually(() => firstRow(page), first!);
    }
    await page.evaluate("localStorage.setItem('tollgate-columns models', '[{\"model\": 3}]')");
    await page.reload();
    await expectEventually(() => firstRow(page), "model-0");
    expect(visit.problems).toEqual([]);
  });

  test("on a phone rows are cards with a list to sort by, and paper shows rows without buttons", async () => {
    await using visit = await Visit.open(browser, gateway.url, { viewport: { width: 390, height: 844 } });
    const { page } = visit;
    await visit.signIn(operator, password);
    await visit.goTo("/operator/models?sort=model", "Models");
    await page.getByRole("combobox", { name: "Sort by" }).selectOption("-model");
    await shows(page, "model-119", `1–50 of ${models}`);
    expect(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBe(0);
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
      "axe.run('main')",
    );
    expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
    await page.emulateMedia({ media: "print" });
    const display = "getComputedStyle(document.querySelector('tbody tr')).display";
    await expectEventually(() => page.evaluate<string>(display), "table-row");
    expect(await page.getByRole("button", { name: "Columns" }).isVisible()).toBe(false);
    expect(visit.problems).toEqual([]);
  });
});

const firstRow = (page: Page): Promise<string> => page.locator("tbody tr td:not(.mark-cell)").first().innerText();

async function shows(page: Page, first: string, range: string): Promise<void> {
  await expectEventually(() => firstRow(page), first);
  await expectEventually(() => page.locator(".table-tools [role=status]").innerText(), range);
}
