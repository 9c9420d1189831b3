// The page of reports and the statements, in a real browser against the real server: what a person and an operator see, sort,
// filter, download and print.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import type { Row } from "../../src/office/verbs/report.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const password = "correct horse battery";
const [ada, operator] = ["ada@example.com", "operator@localhost"];
const evil = '<img src=x onerror="alert(1)">';
const shots = process.env["TOLLGATE_SHOTS"] ?? null;
const month = new Date().toISOString().slice(0, 7);

describe.skipIf(withoutBrowser)("reports in the console", () => {
  let gateway: GatewayProcess;
  let browser: Browser;
  let key: string;

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "" }), launch()]);
    const made = ["accounts", "create", ada, "--password", password, "--credit", "1000000"];
    key = (await gateway.cli<{ api_key: string }>(...made)).api_key;
    await gateway.cli("accounts", "password", operator, "--password", password);
    if (shots !== null) mkdirSync(shots, { recursive: true });
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  }, timeLimit);

  const shot = async (page: Page, name: string): Promise<void> => {
    if (shots !== null) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
  };
  const expectAccessible = async (page: Page): Promise<void> => {
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<axe.AxeResults>("axe.run()");
    expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
  };
  const ask = async (apiKey: string, model: string, tags: string): Promise<void> => {
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "x-tags": tags },
      body: JSON.stringify({ model, max_tokens: 20, messages: [{ role: "user", content: "Hello there" }] }),
    });
    expect([reply.status, await reply.text()].slice(0, 1)).toEqual([200]);
  };
  const table = (page: Page) => page.getByRole("region", { name: "Report" }).locator("tbody tr:not(.total)");

  test(
    "a person sees the own use, sums it up, sorts it, takes it along and prints a statement",
    async () => {
      await using visit = await Visit.open(browser, gateway.url);
      const { page } = visit;
      await visit.signIn(ada, password);
      await visit.goTo("/reports", "Reports");
      await page.getByText("Nothing was served").waitFor();
      await page.getByRole("link", { name: "send a first request" }).waitFor();
      await expectAccessible(page);
      await shot(page, "empty");

      await gateway.cli("accounts", "update", ada, "--cost-center", evil);
      await ask(key, "core-3", `b,a,${evil}`);
      await ask(key, "core-3", "b");
      await ask(key, "core-3-pro", "b");
      await ask(gateway.operatorKey, "core-3", "of others");
      await visit.goTo("/reports", "Reports");
      await expectEventually(() => table(page).count(), 2);
      await page.getByRole("button", { name: "Tags", exact: true }).click();
      await page.getByRole("button", { name: "Cost center", exact: true }).click();
      await expectEventually(() => table(page).count(), 3);
      const heading = (name: string) => page.getByRole("columnheader").getByRole("button", { name, exact: true });
      await heading("Requests").click();
      await heading("Model").click();
      await expectEventually(async () => await table(page).first().locator("td").first().textContent(), "core-3");
      await heading("Model").click();
      await expectEventually(async () => await table(page).first().locator("td").first().textContent(), "core-3-pro");
      await page.getByRole("row", { name: "Total" }).getByText("3", { exact: true }).waitFor();
      await page.getByRole("searchbox", { name: "Tag", exact: true }).fill("a");
      await page.keyboard.press("Enter");
      await expectEventually(() => table(page).count(), 1);
      await page.getByText(evil).first().waitFor();
      await expectAccessible(page);
      await shot(page, "own");

      // The address has all of it, whoever opens it.
      const { href } = new URL(page.url());
      expect(href).toContain("tag=a");
      await page.goto(href);
      await expectEventually(() => table(page).count(), 1);
      await page.getByRole("searchbox", { name: "Tag", exact: true }).fill("nobody's");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Clear filters" }).click();
      await expectEventually(() => table(page).count(), 3);

      const [csv] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name: "CSV" }).first().click(),
      ]);
      const lines = (await Bun.file((await csv.path())!).text()).trimEnd().split("\r\n");
      expect(lines[0]).toBe("model,tag,cost_center,requests,input,cached,output,billed,cost_usd");
      expect(lines).toHaveLength(4);
      const [json] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name: "JSON" }).click(),
      ]);
      const rows = (await Bun.file((await json.path())!).json()) as Row[];
      expect(rows).toEqual(
        await gateway.cli<Row[]>("report", "--month", month, "--by", "model,tag,cost-center", "--account", ada),
      );

      const [popup] = await Promise.all([
        page.waitForEvent("popup"),
        page.getByRole("link", { name: "Page to print" }).click(),
      ]);
      await popup.getByRole("heading", { name: "Statement for" }).waitFor();
      await popup.getByText(evil).first().waitFor();
      expect(await popup.locator("img").count()).toBe(0);
      await expectPrints(popup, "statement");
      await page.getByRole("button", { name: "Day", exact: true }).click();
      await page.getByRole("combobox", { name: "Time zone" }).selectOption("Pacific/Auckland");
      await expectEventually(() => table(page).count(), 3);
      // What no control asks for is refused in words.
      await visit.goTo("/reports?month=foo&sort=-x", "Reports");
      await page.getByText("Month must be a month").waitFor();
      expect(visit.problemsBut(/status of 400/)).toEqual([]);
    },
    timeLimit,
  );

  test("nobody gets what is another's, whatever the address says", async () => {
    await using visit = await Visit.open(browser, gateway.url);
    await visit.signIn(ada, password);
    const { request } = visit.context;
    const of = async (path: string) => await (await request.get(`${gateway.url}/console/api${path}`)).text();
    const own = await of("/reports?by=account,model");
    expect(own).toContain(ada);
    expect(own).not.toContain(operator);
    const refused = await request.get(`${gateway.url}/console/api/reports?by=account,model&account=${operator}`);
    expect([refused.status(), await refused.text()]).toEqual([400, expect.stringContaining("neither your account")]);
    expect(await of(`/reports?by=account,model&account=${ada}`)).toBe(own);
    expect(await of(`/reports.csv?by=account&account=${operator}`)).not.toContain(operator);
    expect(await of(`/statement?month=${month}&form=csv&account=${operator}`)).not.toContain(operator);
    for (const wrong of ["month=2026-13", "by=secret", "time_zone=Mars", "from=2026-01-02&to=2026-01-01", "more=1"]) {
      const reply = await request.get(`${gateway.url}/console/api/reports?${wrong}`);
      expect([wrong, reply.status()]).toEqual([wrong, 400]);
    }
    const nobody = await fetch(`${gateway.url}/console/api/reports`);
    expect(nobody.status).toBe(401);
  });

  test(
    "an operator sees all accounts, and each one's statement",
    async () => {
      await using visit = await Visit.open(browser, gateway.url);
      const { page } = visit;
      await visit.signIn(operator, password);
      await visit.goTo("/reports", "Reports");
      await expectEventually(() => table(page).count(), 2);
      await expectAccessible(page);
      await shot(page, "operator");
      await page.emulateMedia({ colorScheme: "dark" });
      await shot(page, "operator-dark");
      await page.setViewportSize({ width: 390, height: 800 });
      await shot(page, "operator-phone");
      await page.setViewportSize({ width: 1280, height: 860 });
      await page.getByRole("link", { name: ada }).click();
      await page.getByText(`Statement of ${ada}`).waitFor();
      await expectEventually(() => table(page).count(), 2);
      const href = await page.getByRole("link", { name: "Page to print" }).getAttribute("href");
      const statement = await (await visit.context.request.get(`${gateway.url}${href}`)).text();
      expect(statement).toContain(ada);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test("a long statement prints on many pages of A4 and letter, with its heads on each", async () => {
    const { statementHtml } = await import("../../src/office/verbs/statement.ts");
    const sums = { requests: 1_234_567, input: 123_456_789_012, cached: 98_765_432_109, output: 9_876_543_210 };
    const line = { ...sums, billed: 12_345_678_901, cost_usd: 61_728.394505 };
    const lines = Array.from({ length: 90 }, (_, at) => ({
      cost_center: at % 2 === 0 ? "Research & Development 4711" : null,
      model: at === 7 ? `a-${"very-".repeat(30)}long-model` : `model-${at}`,
      ...line,
    }));
    const html = statementHtml({
      account: "ada.lovelace@research.example.org",
      account_id: 1,
      cost_centers: ["Research & Development 4711"],
      month: "2026-10",
      from: "2026-09-30T22:00:00.000Z",
      until: "2026-10-31T23:00:00.000Z",
      time_zone: "Europe/Berlin",
      closed: true,
      lines,
      total: line,
      credits: [{ time: "2026-10-05T10:00:00.000Z", tokens: 1_000_000, usd: 5 }],
      credit_total: { tokens: 1_000_000, usd: 5 },
    });
    await using visit = await Visit.open(browser, gateway.url);
    await visit.page.setContent(html);
    await visit.page.getByText("October 1, 2026 to October 31, 2026 (Europe/Berlin)").waitFor();
    await expectPrints(visit.page, "long", 3);
  });

  async function expectPrints(page: Page, name: string, leastPages = 1): Promise<void> {
    for (const format of ["A4", "Letter"] as const) {
      const pdf = await page.pdf({ format, ...(shots === null ? {} : { path: join(shots, `${name}-${format}.pdf`) }) });
      const text = pdf.toString("latin1");
      const pages = text.match(/\/Type ?\/Page\b/g)?.length ?? 0;
      expect(pages).toBeGreaterThanOrEqual(leastPages);
      const [, width] = /\/MediaBox ?\[0 0 ([\d.]+)/.exec(text)!;
      expect(Math.abs(Number(width) - (format === "A4" ? 595 : 612))).toBeLessThan(2);
      // What is wider than the paper would be cut or shrunk.
      await page.emulateMedia({ media: "print" });
      await page.setViewportSize({ width: format === "A4" ? 687 : 710, height: 900 });
      expect(
        await page.evaluate(() => {
          const { scrollWidth, clientWidth } = (globalThis as any).document.documentElement;
          return scrollWidth - clientWidth;
        }),
      ).toBe(0);
      await page.emulateMedia({ media: null });
    }
  }
});
