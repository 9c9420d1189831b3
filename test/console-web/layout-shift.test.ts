// On a phone, nothing that was drawn moves while a page loads: the browser's own measure (Cumulative Layout Shift)
// stays in the range that it calls good.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { EntryType } from "node:perf_hooks";
import type { Browser } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(120_000);

const email = "head@example.com";
const password = "correct horse battery";
/** https://web.dev/articles/cls: up to 0.1 is good; nobody sees this. */
const shiftMax = 0.02;

type Shift = PerformanceEntry &
  Readonly<{ value: number; hadRecentInput: boolean; sources: readonly { node: { nodeName: string } | null }[] }>;

describe.skipIf(withoutBrowser)("at 390 pixels", () => {
  let gateway: GatewayProcess;
  let browser: Browser;
  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "" }), launch()]);
    await gateway.cli("accounts", "create", email, "--password", password, "--operator");
  });
  afterAll(async () => {
    await browser?.close();
    await gateway[Symbol.asyncDispose]();
  });

  test.each([
    ["/docs", "Tollgate API"],
    ["/", "Overview"],
    ["/plan", "Plan and credit"],
    ["/usage", "Usage"],
    ["/reports", "Reports"],
    ["/key", "API key"],
    ["/playground", "Playground"],
    ["/operator", "Activity"],
    ["/operator/line", "Line"],
    ["/operator/nodes", "Nodes"],
    ["/operator/accounts", "Accounts"],
  ])("%s does not move while it loads", async (path, heading) => {
    await using visit = await Visit.open(browser, gateway.url, { viewport: { width: 390, height: 844 } });
    const { page } = visit;
    if (path !== "/docs") await visit.signIn(email, password);
    // A slow network: what comes later than the first drawing is what moves it.
    await page.route(/\/(?:console\/api|assets)\//, async (route) => {
      await Bun.sleep(150);
      await route.continue();
    });
    await page.goto(path);
    await page.getByRole("heading", { level: 1, name: heading }).waitFor({ state: "attached" });
    await page.locator(".loading").first().waitFor({ state: "detached" });
    const shifts = await page.evaluate(async () => {
      const seen: { value: number; nodes: string[] }[] = [];
      const note = (list: PerformanceObserverEntryList): void => {
        for (const { value, hadRecentInput, sources } of list.getEntries() as Shift[]) {
          const nodes = sources.map(
            ({ node }) => `${node?.nodeName}.${(node as { className?: string } | null)?.className}`,
          );
          if (!hadRecentInput) seen.push({ value, nodes });
        }
      };
      new PerformanceObserver(note).observe({ type: "layout-shift" as EntryType, buffered: true });
      await new Promise((done) => setTimeout(done, 300));
      return seen;
    });
    const sum = shifts.reduce((total, { value }) => total + value, 0);
    expect([sum < shiftMax, sum < shiftMax ? [] : shifts]).toEqual([true, []]);
  });
});
