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
    await visit.goTo("/operator/models", "Models");
    await shows(page, "model-0", `1–50 of ${models}`);

    const heading = page.getByRole("button", { name: "Model", exact: true });
    await heading.focus();
    await page.keyboard.press("Enter");
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
    await visit.goTo("/operator/models", "Models");
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
    await page.getByRole("button", { name: "As at first" }).click();
    expect(await names()).toMatch(/Nodes.*Requests/);
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
    await visit.goTo("/operator/models", "Models");
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

const firstRow = (page: Page): Promise<string> => page.locator("tbody tr td").first().innerText();

async function shows(page: Page, first: string, range: string): Promise<void> {
  await expectEventually(() => firstRow(page), first);
  expect(await page.locator(".table-tools [role=status]").innerText()).toBe(range);
}
