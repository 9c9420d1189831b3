// What was used over time, in a real browser over a year of lines in the journal: its sums are those of the lines, whatever time,
// split and filter one asks for, by mouse, finger and keyboard; an empty house, and one that began today.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import type { OverTime } from "../../src/console/api/over-time.ts";
import { dayMs, hourMs } from "../../src/core/units.ts";
import { GatewayProcess, onPostgres } from "../fixtures/gateway-process.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(120_000);

const [ada, newcomer, operator] = ["ada@example.com", "new@example.com", "operator@localhost"];
const password = "correct horse battery";
const shots = process.env["TOLLGATE_SHOTS"] ?? null;
const models = ["core-3", "core-3-pro", "open-01"];
const now = Date.now();
const today = Math.floor(now / dayMs) * dayMs;

type Line = Readonly<{
  at: number;
  account: number;
  model: string;
  key: number;
  input: number;
  cached: number;
  output: number;
  billed: number;
}>;

/** A year of some accounts: most on weekdays, more with each month. */
function linesOf(accounts: readonly number[]): Line[] {
  const lines: Line[] = [];
  for (let back = 363; back >= 0; back -= 1) {
    const day = today - back * dayMs;
    const many = new Date(day).getUTCDay() % 6 === 0 ? 1 : 4 + Math.floor((364 - back) / 60);
    for (let at = 0; at < many; at += 1) {
      const moment = Math.min(now - 1_000, day + Math.floor(((at * 7 + back) % 24) * hourMs + at * 61_000));
      for (const account of accounts) {
        const size = 200 + ((back * 37 + at * 101 + account) % 900);
        lines.push({
          at: moment,
          account,
          model: models[(back + at * at) % 3]!,
          key: 1,
          input: size * 5,
          cached: size,
          output: size,
          billed: size * 20,
        });
      }
    }
  }
  return lines.sort((one, other) => one.at - other.at);
}

describe.skipIf(withoutBrowser || onPostgres)("usage over time", () => {
  let gateway: GatewayProcess;
  let browser: Browser;
  let lines: Line[];

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "" }), launch()]);
    const made = await gateway.cli<{ id: number }>(
      "accounts",
      "create",
      ada,
      "--password",
      password,
      "--credit",
      "5000000",
    );
    await gateway.cli("accounts", "create", newcomer, "--password", password);
    await gateway.cli("accounts", "password", operator, "--password", password);
    const { id } = await gateway.cli<{ id: number }>("accounts", "show", operator);
    await gateway.kill("SIGTERM");
    lines = linesOf([made.id, id]);
    const database = new Database(join(gateway.dataFolder, "tollgate.db"));
    const insert = database.prepare(`
      INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model, input_fresh, input_cached,
        output, reasoning, input_cents, cached_input_cents, output_cents, billed_tokens, estimated, key_id, node)
      VALUES (?, 'charge', ?, ?, ?, 0, 0, '/v1/messages', ?, ?, ?, ?, 0, 390, 390, 390, ?, 0, 1, 'gpu')`);
    database.transaction(() => {
      for (const [index, line] of lines.entries()) {
        const { at, account, model, input, cached, output, billed } = line;
        insert.run(
          `req_${String(index).padStart(21, "0")}`,
          account,
          at,
          Math.floor(at / dayMs),
          model,
          input - cached,
          cached,
          output,
          billed,
        );
      }
    })();
    database.close();
    await gateway.restart();
    if (shots !== null) mkdirSync(shots, { recursive: true });
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  });

  const shot = async (page: Page, name: string): Promise<void> => {
    if (shots !== null) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
  };
  const expectAccessible = async (page: Page): Promise<void> => {
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<axe.AxeResults>("axe.run()");
    expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
  };
  const visit = async (email: string, path: string, heading: string, options = {}): Promise<Visit> => {
    const visit = await Visit.open(browser, gateway.url, options);
    await visit.signIn(email, password);
    await visit.goTo(path, heading);
    await visit.page.locator(".measures").waitFor();
    return visit;
  };
  const tile = (page: Page, name: string) => page.locator(".measures button", { hasText: name });
  const requestsOf = (from: number, until: number, account: number | null = lines[0]!.account, model?: string) =>
    lines.filter(
      (line) =>
        line.at >= from &&
        line.at < until &&
        (account === null || line.account === account) &&
        (model === undefined || line.model === model),
    );
  const shows = (page: Page, requests: number) =>
    expectEventually(
      () =>
        tile(page, "Requests")
          .locator(".figure")
          .evaluate((figure) => figure.firstChild!.textContent),
      requests.toLocaleString("en-US"),
    );

  test("ranges, splits and filters have the sums of the journal, and the address keeps them", async () => {
    await using person = await visit(ada, "/usage", "Usage");
    const { page } = person;
    const end = today + dayMs;
    await shows(page, requestsOf(end - 30 * dayMs, end).length);
    await expectAccessible(page);
    await shot(page, "usage");
    for (const [name, days] of [
      ["7 days", 7],
      ["90 days", 90],
      ["Year", 364],
    ] as const) {
      await page.getByRole("button", { name, exact: true }).click();
      await shows(page, requestsOf(end - days * dayMs, end).length);
    }
    await shot(page, "usage-year");
    await tile(page, "Cost").click();
    await page.getByRole("button", { name: "Key", exact: true }).click();
    await page.getByRole("combobox", { name: "Model" }).selectOption("core-3");
    const year = requestsOf(end - 364 * dayMs, end, undefined, "core-3");
    await shows(page, year.length);
    const cost = year.reduce((sum, { billed }) => sum + billed, 0) * 5e-6;
    await expectEventually(
      async () => (await tile(page, "Cost").locator(".figure").textContent())!.includes(`$${cost.toFixed(2)}`),
      true,
    );
    expect(new URL(page.url()).search).toBe("?range=1y&show=cost&by=key&model=core-3");
    const answer = (await (
      await page.request.get(`/console/api/over-time?range=1y&model=core-3&by=key`)
    ).json()) as OverTime;
    const sum = (of: (line: Line) => number) => year.reduce((total, line) => total + of(line), 0);
    expect(answer.total).toMatchObject({
      requests: year.length,
      input: sum(({ input }) => input),
      cached_input: sum(({ cached }) => cached),
      output: sum(({ output }) => output),
      billed_tokens: sum(({ billed }) => billed),
    });
    await page.goBack();
    await shows(page, requestsOf(end - 364 * dayMs, end).length);
    await page.goForward();
    await page.reload();
    await shows(page, year.length);
    expect(await tile(page, "Cost").getAttribute("aria-pressed")).toBe("true");
    // The requests below are of the same time and model.
    await page.getByRole("textbox", { name: "From" }).fill(new Date(today - 2 * dayMs).toISOString().slice(0, 10));
    await page
      .getByRole("textbox", { name: "To", exact: true })
      .fill(new Date(today - dayMs).toISOString().slice(0, 10));
    const few = requestsOf(today - 2 * dayMs, today, undefined, "core-3").length;
    await shows(page, few);
    await expectEventually(() => page.getByRole("region", { name: "Requests" }).locator("tbody tr").count(), few);
    // Each page of them has an address, and other filters begin with the first.
    await page.goto("/usage?range=1y");
    const row = page.getByRole("region", { name: "Requests" }).locator("tbody tr").first();
    const textOf = () => row.innerText();
    const older = page.getByRole("navigation", { name: "Pages: Requests" }).getByRole("button", { name: "Older" });
    await older.click();
    await page.waitForURL(/after=/);
    const second = page.url();
    await older.click();
    await page.waitForURL((url) => /after=/.test(url.search) && url.href !== second);
    await page.getByRole("button", { name: "Newer" }).click();
    expect(page.url()).toBe(second);
    await expectEventually(() => page.locator("[aria-busy=true]").count(), 0);
    const text = await textOf();
    await page.reload();
    await expectEventually(textOf, text);
    await page.getByRole("button", { name: "Newer" }).click();
    await page.waitForURL(/usage\?range=1y$/);
    await older.click();
    await page.getByRole("combobox", { name: "Model" }).selectOption("core-3");
    await page.waitForURL(/usage\?range=1y&model=core-3$/);
    for (const wrong of ["from=x", "from=2026-02-02&to=2026-02-01", "range=2y", "by=salary", "key=x"]) {
      expect([wrong, (await page.request.get(`/console/api/over-time?${wrong}`)).status()]).toEqual([wrong, 400]);
    }
    // Nobody else's, whatever one asks for.
    const own = await (await page.request.get("/console/api/over-time?range=1y")).json();
    expect(await (await page.request.get("/console/api/over-time?range=1y&account=*")).status()).toBe(400);
    expect((await page.request.get(`/console/api/over-time?account=${operator}`)).status()).toBe(400);
    expect((await page.request.get("/console/api/over-time?account=nobody@x")).status()).toBe(400);
    expect(own.total.requests).toBe(requestsOf(end - 364 * dayMs, end).length);
    expect(person.problems).toEqual([]);
  });

  test("a drag, a finger and the keyboard show a time closer, and a click or the browser's button goes back", async () => {
    await using person = await visit(ada, "/usage", "Usage", { hasTouch: true });
    const { page } = person;
    const end = today + dayMs;
    const chart = page.locator(".chart").first();
    await chart.scrollIntoViewIfNeeded();
    await shows(page, requestsOf(end - 30 * dayMs, end).length);
    const { x, y, width } = (await chart.boundingBox())!;
    const at = (step: number): number => x + 52 + ((width - 52) / 30) * (step + 0.5);
    await page.mouse.move(at(10), y + 80);
    await page.locator(".chart-tip").waitFor();
    await page.mouse.down();
    await page.mouse.move(at(19), y + 90, { steps: 4 });
    await shot(page, "drag");
    await page.mouse.up();
    await shows(page, requestsOf(end - 20 * dayMs, end - 10 * dayMs).length);
    await page.getByRole("button", { name: "Zoom out" }).click();
    await shows(page, requestsOf(end - 30 * dayMs, end).length);

    // By keyboard: from the last day two more back, and then one of them by the hour.
    await chart.focus();
    for (const key of ["End", "Shift+ArrowLeft", "Shift+ArrowLeft", "Enter"]) await page.keyboard.press(key);
    const days = [today - 2 * dayMs, end] as const;
    await shows(page, requestsOf(...days).length);
    await page.getByText("Times in").first().waitFor();
    await page.goBack();
    await shows(page, requestsOf(end - 30 * dayMs, end).length);
    expect(await chart.getAttribute("aria-label")).toContain("Arrow keys");
    await chart.focus();
    await page.keyboard.press("Home");
    await expectEventually(async () => /requests|core-3/.test((await chart.getByRole("status").textContent())!), true);

    // A finger: a tap shows figures that stay, and a move sideways selects.
    const touch = await person.context.newCDPSession(page);
    const finger = (type: "touchStart" | "touchMove" | "touchEnd", step?: number) =>
      touch.send("Input.dispatchTouchEvent", {
        type,
        touchPoints: step === undefined ? [] : [{ x: at(step), y: y + 80 }],
      });
    await page.touchscreen.tap(at(5), y + 80);
    await page.locator(".chart-tip").waitFor();
    await finger("touchStart", 3);
    for (const step of [4, 5, 6, 8]) await finger("touchMove", step);
    await finger("touchEnd");
    await shows(page, requestsOf(end - 27 * dayMs, end - 21 * dayMs).length);

    // In words: a table with the same figures.
    await page.getByText("Figures as a table").first().click();
    await expectEventually(() => page.locator(".chart-table tbody tr").count(), 6);
    expect(person.problems).toEqual([]);
  });

  test("on a phone, in the dark, on paper and in other languages it is the same", async () => {
    for (const [name, options] of [
      ["phone", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
      ["dark", { colorScheme: "dark" as const }],
      ["german", { locale: "de-DE" }],
      ["chinese", { locale: "zh-CN", viewport: { width: 390, height: 844 } }],
    ] as const) {
      await using person = await Visit.open(browser, gateway.url, options);
      const { page } = person;
      await page.request.post(`${gateway.url}/console/api/sign-in`, {
        data: { email: ada, password },
        headers: { origin: gateway.url },
      });
      for (const path of ["/usage", "/"]) {
        await page.goto(`${path}`);
        await page.locator(".chart rect").first().waitFor();
        const tooWide = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
        expect([name, path, tooWide]).toEqual([name, path, false]);
        await expectAccessible(page);
        await shot(page, `${name}${path === "/" ? "-overview" : "-usage"}`);
      }
      expect(person.problems).toEqual([]);
    }
    await using person = await visit(ada, "/usage?range=90d", "Usage");
    const { page } = person;
    await page.locator(".chart rect").first().waitFor();
    await page.emulateMedia({ media: "print" });
    await page.setViewportSize({ width: 720, height: 1000 });
    const pdf = await page.pdf({ format: "A4" });
    expect(pdf.length).toBeGreaterThan(10_000);
    await shot(page, "print");
  });

  test("a house without a request says what will stand there, and one that began today sees its hours", async () => {
    await using person = await visit(newcomer, "/usage", "Usage");
    const { page } = person;
    await page.getByText("Nothing was used yet").waitFor();
    await page.getByRole("link", { name: "Send a first request" }).waitFor();
    await expectAccessible(page);
    await shot(page, "empty");
    const key = await gateway.rotate(newcomer);
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "core-3", max_tokens: 20, messages: [{ role: "user", content: "Hello" }] }),
    });
    expect([reply.status, (await reply.text()).length > 0]).toEqual([200, true]);
    await visitAgain(page);
    await shows(page, 1);
    expect(await page.getByRole("button", { name: "Day", exact: true }).getAttribute("aria-pressed")).toBe("true");
    await tile(page, "First token").click();
    await expectEventually(() => page.locator(".chart path.line").count(), 2);
    await shot(page, "first-day");
  });

  test("operators see all accounts, or one, and what failed", async () => {
    await using person = await visit(operator, "/operator", "Activity");
    const { page } = person;
    const end = today + dayMs;
    await page.getByRole("button", { name: "30 days" }).click();
    await page.getByRole("button", { name: "Account", exact: true }).click();
    const own = requestsOf(end - 30 * dayMs, end).length;
    await expectEventually(
      async () => (await page.getByRole("region", { name: "What was used" }).locator("tbody tr").count()) >= 2,
      true,
    );
    await shot(page, "activity");
    await expectAccessible(page);
    await page.getByRole("link", { name: ada }).click();
    await shows(page, own);
    await page.getByRole("button", { name: /ada@example.com/ }).click();
    await expectEventually(async () => (await page.url()).includes("account="), false);
    await page.getByRole("button", { name: "Node", exact: true }).click();
    await tile(page, "Refused or failed").click();
    await shot(page, "activity-failed");

    // A model's page and a node's have their own.
    const api = async (query: string) => {
      const reply = await page.request.get(`/console/api/over-time?range=24h&${query}`);
      return reply.ok() ? ((await reply.json()) as OverTime) : reply.status();
    };
    const [each, one] = [await api("account=*&by=node"), await api("account=*&by=node&node=demo")] as [
      OverTime,
      OverTime,
    ];
    expect(one.parts).toEqual(each.parts.filter(({ name }) => name === "demo"));
    expect(one.total).toMatchObject({ requests: one.parts[0]!.requests, input: one.parts[0]!.input });
    expect(one.total.requests).toBeGreaterThan(0);
    expect(one.course!.steps).toEqual(each.course!.series.find(({ label }) => label === "demo")!.steps);
    for (const wrong of ["account=*&by=model", "account=*&by=node&model=core-3", `account=${ada}&by=node`, "by=node"])
      expect([wrong, await api(`${wrong}&node=demo`)]).toEqual([wrong, 400]);
    await person.goTo("/operator/nodes/demo?range=24h&show=requests", "demo");
    await shows(page, one.total.requests);
    await person.goTo("/operator/models/core-3?range=24h", "core-3");
    await shows(page, requestsOf(Date.parse(each.from), Infinity, null, "core-3").length + 1); // and the newcomer's
    await expectAccessible(page);
    expect(person.problems).toEqual([]);
  });

  async function visitAgain(page: Page): Promise<void> {
    await page.reload();
    await page.locator(".measures").waitFor();
  }
});
