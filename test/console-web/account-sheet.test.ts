// An account's page and the log that its numbers lead to, in a real browser over two threads: its keys, where they were used
// from, use, failures, sessions and end users; what operators change there; and an account that another operator deletes meanwhile.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import axe from "axe-core";
import type { Browser, Locator, Page } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(120_000);

const operator = "head@example.com";
const customer = "grace+lab/1@example.com";
const password = "correct horse battery";
const shots = process.env["TOLLGATE_SHOTS"];

describe.skipIf(withoutBrowser)("an account's page", () => {
  let gateway: GatewayProcess;
  let browser: Browser;
  let customerKey = "";

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "", threads: 2 }), launch()]);
    await gateway.cli("accounts", "create", operator, "--password", password, "--operator");
    const made = (await gateway.cli("accounts", "create", customer, "--password", password, "--credit", "1000000")) as {
      api_key: string;
    };
    customerKey = made.api_key;
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  });

  const ask = (key: string, model: string, user?: string): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model,
        messages: [{ role: "user", content: "Hello" }],
        max_tokens: 8,
        ...(user && { user }),
      }),
    });
  const asked = async (...args: Parameters<typeof ask>): Promise<number> => {
    const reply = await ask(...args);
    await reply.text();
    return reply.status;
  };
  const headed = async (options = {}): Promise<Visit> => {
    const visit = await Visit.open(browser, gateway.url, options);
    await visit.signIn(operator, password);
    return visit;
  };
  const sheetOf = (name: string): string => `/operator/accounts/${encodeURIComponent(name)}`;

  test("shows its keys with their addresses, makes, books, rotates and revokes them", async () => {
    const { api_key: program } = (await gateway.cli(
      "keys",
      "create",
      customer,
      "--name",
      "webui",
      "--forwards-users",
      "--limit-end-user-day",
      "70000",
    )) as { api_key: string };
    for (const user of ["ann", "ann", "ben"]) expect(await asked(program, "core-3", user)).toBe(200);
    expect(await asked(customerKey, "core-3")).toBe(200);
    expect(await asked(customerKey, "no-such-model")).toBe(400);

    await using visit = await headed();
    const { page } = visit;
    await visit.goTo("/operator/accounts", "Accounts");
    await page.getByLabel("Part of an e-mail address").fill("GRACE");
    await page.getByRole("link", { name: customer }).click();
    await page.getByRole("heading", { level: 1, name: customer }).waitFor();
    expect(new URL(page.url()).pathname).toBe(sheetOf(customer));
    expect(await page.locator(".side nav [aria-current]").textContent()).toBe("Accounts");

    const keys = page.getByRole("region", { name: "Keys", exact: true });
    await keys
      .getByRole("row", { name: /webui/ })
      .getByText(/^(?:::ffff:)?127\.0\.0\.1$|^::1$/)
      .waitFor();
    await keys.getByRole("button", { name: "New key" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("nightly");
    await page.getByRole("button", { name: "Make key" }).click();
    const nightly = (await keys.locator(".fresh-key code").textContent())!;
    expect(await asked(nightly, "core-3")).toBe(200);
    await keys.getByRole("button", { name: "Cost center of nightly" }).click();
    await page.getByRole("dialog").getByLabel("Cost center").fill("batch-7");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await keys
      .getByRole("row", { name: /nightly/ })
      .getByText("batch-7")
      .waitFor();
    await keys.getByRole("button", { name: "Revoke nightly" }).click();
    await page.getByRole("button", { name: "Revoke key" }).click();
    await keys.getByRole("row", { name: /nightly/ }).waitFor({ state: "detached" });
    expect(await asked(nightly, "core-3")).toBe(401);

    await keys.getByRole("button", { name: "Rotate" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    await expectEventually(async () => (await keys.locator(".fresh-key code").textContent()) !== nightly, true);
    const rotated = (await keys.locator(".fresh-key code").textContent())!;
    expect(await asked(customerKey, "core-3")).toBe(401);
    customerKey = rotated;
    expect(await asked(customerKey, "core-3")).toBe(200);

    const box = page.getByRole("region", { name: "Cost center" });
    await box.getByRole("textbox").fill("physics");
    await box.getByRole("button", { name: "Save: Cost center" }).click();
    await page.locator(".page-head").getByText("physics").waitFor();
    expect((await gateway.show(customer)) as object).toMatchObject({ cost_center: "physics" });
    const people = page.getByRole("region", { name: "End users, 30 days" });
    await people.getByRole("row", { name: /^ann webui 2 \S+ 70,000/ }).waitFor();
    const failures = page.getByRole("region", { name: "Last failures" });
    await failures.getByText("400").first().waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("each number leads to the requests that it counts; a click on a cell filters, and what is filtered is exported", async () => {
    await using visit = await headed();
    const { page } = visit;
    await visit.goTo(sheetOf(customer), customer);
    const use = page.getByRole("region", { name: "Use by model" });
    const cell = use
      .getByRole("row", { name: /core-3/ })
      .getByRole("link")
      .first();
    const today = Number(await cell.textContent());
    expect(today).toBeGreaterThanOrEqual(6);
    await cell.click();
    await page.getByRole("heading", { level: 1, name: "Request log" }).waitFor();
    await expectEventually(() => page.locator("tbody tr").count(), today);

    await page.goto("/operator/log");
    await page.getByRole("button", { name: "Pause" }).click();
    const all = page.locator("tbody tr");
    await all.first().waitFor();
    await page.getByRole("link", { name: /400/ }).first().click();
    expect(new URL(page.url()).search).toStartWith("?reason=");
    await expectEventually(
      async () => (await all.count()) >= 1 && (await page.locator("tbody").getByText("200").count()) === 0,
      true,
    );
    await page.getByRole("button", { name: "Columns" }).click();
    for (const name of ["Class", "Cause", "Endpoint", "Address"]) await page.getByRole("checkbox", { name }).check();
    await page.keyboard.press("Escape");
    await page.getByRole("columnheader", { name: "Class" }).waitFor();
    await page.reload();
    await page.getByRole("columnheader", { name: "Cause" }).waitFor();

    await page.goto(`/operator/log?account=${encodeURIComponent(customer)}&reason=served`);
    await all.first().waitFor();
    const shown = await all.count();
    const exported = async (name: RegExp): Promise<string> => {
      const download = page.waitForEvent("download");
      await page.getByRole("link", { name }).click();
      return Bun.file((await (await download).path())!).text();
    };
    const json = JSON.parse(await exported(/JSON/)) as { account: string; address: string; priority: string }[];
    expect(json.length).toBe(shown);
    expect(json.every((row) => row.account === customer && row.address !== null && row.priority === "standard")).toBe(
      true,
    );
    const csv = (await exported(/CSV/)).trimEnd().split("\r\n");
    expect(csv.length).toBe(shown + 1);
    expect(csv[0]).toContain("account,key,address,endpoint,model");

    const { address } = json[0]!;
    await page.getByRole("link", { name: address, exact: true }).first().click();
    await expectEventually(() => page.locator("details.log-more[open]").count(), 1);
    expect(new URL(page.url()).searchParams.get("address")).toBe(address);
    await expectEventually(() => all.count(), shown);
    await page
      .getByRole("link", { name: `Page of ${customer}` })
      .first()
      .click();
    await page.getByRole("heading", { level: 1, name: customer }).waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("its browsers and machines are signed out, one or all", async () => {
    await using owner = await Visit.open(browser, gateway.url);
    await owner.signIn(customer, password);
    await using visit = await headed();
    const { page } = visit;
    await visit.goTo(sheetOf(customer), customer);
    const sessions = page.getByRole("region", { name: "Signed-in browsers" });
    await sessions.getByRole("button", { name: /^Sign out Chrome/ }).click();
    await sessions.getByText("No browser is signed in").waitFor();
    await owner.page.getByRole("heading", { name: "Sign in to Tollgate" }).waitFor();
    await owner.signIn(customer, password);
    await visit.goTo(sheetOf(operator), operator);
    await sessions.getByRole("button", { name: "Sign out everywhere" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
    await page.getByText(`${operator} is signed out everywhere.`).waitFor();
    await sessions.getByText("This browser").waitFor(); // who asks stays
    expect(visit.problems).toEqual([]);
  });

  test("a token that reads sees sessions and addresses, and ends nothing", async () => {
    const { token } = (await gateway.cli("tokens", "create", "--name", "dashboards", "--scope", "read")) as {
      token: string;
    };
    const api = async (path: string, body?: object): Promise<Response> =>
      fetch(`${gateway.url}/api/v1/${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${token}` },
        body: body === undefined ? null : JSON.stringify(body),
      });
    const email = encodeURIComponent(customer);
    const sessions = (await (await api(`sessions/list?email=${email}`)).json()) as object[];
    expect(sessions.length).toBe(1);
    const [row] = (await (await api(`requests?account=${email}&reason=served&limit=1`)).json()) as {
      address: string;
    }[];
    expect(row!.address).toMatch(/127\.0\.0\.1|::1/);
    for (const [path, body] of [
      ["sessions/end", { email: customer }],
      ["keys/revoke", { email: customer, id: 2 }],
      ["keys/rotate", { email: customer }],
      ["accounts/update", { email: customer, cost_center: "mine" }],
    ] as const) {
      expect([path, (await api(path, body)).status]).toEqual([path, 403]);
    }
    expect(((await (await api(`sessions/list?email=${email}`)).json()) as object[]).length).toBe(1);
  });

  test.each([
    ["light", 1280],
    ["dark", 1280],
    ["light", 390],
  ] as const)(
    "in %s at %d px nothing is wider than the window, and no rule of access is broken",
    async (scheme, width) => {
      await using visit = await headed({ colorScheme: scheme, viewport: { width, height: 900 } });
      const { page } = visit;
      for (const [path, heading] of [
        [sheetOf(customer), customer],
        [`/operator/log?account=${encodeURIComponent(customer)}`, "Request log"],
      ] as const) {
        await visit.goTo(path, heading);
        await page.locator("tbody tr").first().waitFor();
        await expectEventually(() => page.locator(".shimmer").count(), 0);
        expect(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
          "axe.run()",
        );
        expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
        if (shots !== undefined)
          await page.screenshot({
            path: `${shots}/${heading === customer ? "sheet" : "log"}-${scheme}-${width}.png`,
            fullPage: true,
          });
      }
      expect(visit.problems).toEqual([]);
    },
  );

  test("an account that another operator deletes meanwhile changes no more, and its page says so", async () => {
    await using visit = await headed();
    const { page } = visit;
    await visit.goTo(sheetOf(customer), customer);
    const plan = page.getByRole("region", { name: "Plan", exact: true });
    await plan.getByRole("combobox").selectOption("pro");
    await gateway.cli("accounts", "delete", customer, "--yes");
    await plan.getByRole("button").click();
    await expectEventually(async () => (await alerts(page).count()) > 0, true);
    await page.reload();
    await page.getByText("There is no such account.").waitFor();
    const name = JSON.stringify(await gateway.cli("accounts", "list")).match(/deleted-[^"]+/)![0];
    await visit.goTo(sheetOf(name), name);
    await page.getByText("Disabled").first().waitFor();
    await page.goto("/operator/log");
    await page.getByRole("heading", { level: 1, name: "Request log" }).waitFor();
    await page.locator("tbody tr").first().waitFor();
    expect(await page.getByRole("cell", { name: /127\.0\.0\.1/ }).count()).toBe(0); // erased with it
    expect(visit.problemsBut(/404|400|409/)).toEqual([]);
  });

  const alerts = (page: Page): Locator => page.locator("main [role=alert]");
});
