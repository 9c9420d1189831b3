// A key for a program that serves people, made in the console, whom its requests were for on the usage page, and a key that
// gets other limits: in a real browser, against the real server.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const email = "ada@example.com";
const password = "correct horse battery";
const names = ["grace@example.org", '=HYPERLINK("http://x")', "<img src=x onerror=alert(1)>", "grace@example.org"];

describe.skipIf(withoutBrowser)("end users in the console", () => {
  let gateway: GatewayProcess;
  let browser: Browser;

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "" }), launch()]);
    await gateway.cli("accounts", "create", email, "--password", password, "--credit", "1000000");
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  }, timeLimit);

  test(
    "a key is made that may name them, with a limit for each; the usage page shows, filters and exports them",
    async () => {
      await using visit = await signedIn();
      const { page } = visit;
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill("open-webui");
      expect(await page.getByLabel("Tokens a day for each person").count()).toBe(0);
      await page.getByLabel("It belongs to a program that serves people").check();
      await page.getByLabel("Tokens a day for each person").fill("50000");
      await expectAccessible(page);
      await shot(page, "dialog");
      await page.getByRole("button", { name: "Make key" }).click();
      const key = (await page.locator(".fresh-key code").textContent())!;
      await page.getByText("names its end users; 50,000 a day for each").waitFor();

      for (const user of names) expect((await ask(key, user)).status).toBe(200);
      expect((await ask(key)).status).toBe(200);
      await visit.goTo("/usage", "Usage");
      await page.getByRole("button", { name: "End user", exact: true }).click();
      const who = page.getByRole("region", { name: "What was used", exact: true });
      await who.getByText(names[2]!).waitFor();
      await who.getByText("not named").waitFor();
      await expectAccessible(page);
      await shot(page, "usage");
      await who.getByRole("link", { name: "grace@example.org" }).click();
      const requests = page.getByRole("region", { name: "Requests" });
      await expectEventually(() => requests.locator("tbody tr").count(), 2);
      await page.getByRole("combobox", { name: "End user", exact: true }).selectOption(names[1]!);
      await expectEventually(() => requests.locator("tbody tr").count(), 1);
      await requests.locator("tbody button").first().click();
      await page.getByRole("dialog").getByText(names[1]!).waitFor();
      await page.keyboard.press("Escape");
      const download = page.waitForEvent("download");
      await page.getByRole("link", { name: "Download CSV" }).click();
      const csv = await Bun.file((await (await download).path())!).text();
      expect(csv.split("\r\n")[1]).toEndWith(`"'=HYPERLINK(""http://x"")"`);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a key gets other limits in its dialog, what nobody touched stays, and the next request is held to them",
    async () => {
      const expires = ["--expires", "2030-01-31T18:00:00Z"];
      const made = [
        "keys",
        "create",
        email,
        "--name",
        "cron",
        "--limit-day",
        "90000",
        "--models",
        "core-3",
        ...expires,
      ];
      const { id, api_key: key } = await gateway.cli<{ id: number; api_key: string }>(...made);
      const limits = async () =>
        (await gateway.cli<{ id: number }[]>("keys", "list", email)).find((key) => key.id === id);
      await using visit = await signedIn();
      const { page } = visit;
      const row = page.getByRole("region", { name: "Named keys" }).getByRole("row").filter({ hasText: "cron" });
      const open = () => row.getByRole("button", { name: "Limits" }).click();
      const dialog = page.getByRole("dialog");
      const save = async () => {
        await dialog.getByRole("button", { name: "Save limits" }).click();
        await dialog.waitFor({ state: "detached" });
      };
      await open();
      expect(await dialog.getByLabel("Tokens a day", { exact: true }).inputValue()).toBe("90000");
      expect(await dialog.getByLabel("Last day").inputValue()).toBe("2030-01-31");
      expect(await dialog.getByLabel("Models").inputValue()).toBe("core-3");
      await dialog.getByLabel("Tokens a day", { exact: true }).fill("");
      await dialog.getByLabel("Tokens a month").fill("400000");
      await dialog.getByLabel("It belongs to a program that serves people").check();
      await dialog.getByLabel("Tokens a day for each person").fill("30");
      await dialog.getByLabel("Requests at once per person").fill("2");
      await dialog.getByText("Requests, and their place in line").click();
      await dialog.getByLabel("Requests a minute", { exact: true }).fill("60");
      await dialog.getByLabel("Priority", { exact: true }).selectOption("bulk");
      await expectAccessible(page);
      await shot(page, "limits");
      await save();
      await row.getByText("names its end users; 30 a day for each").waitFor();
      expect(await limits()).toMatchObject({
        limit_day: null,
        limit_month: 400_000,
        expires_at: "2030-01-31T18:00:00.000Z",
        models: ["core-3"],
        forwards_users: true,
        limit_end_user_day: 30,
        end_user_parallel: 2,
        requests_per_minute: 60,
        priority: "bulk",
        weight: null,
      });
      await row.getByText("60 requests a minute").waitFor();
      expect((await ask(key, "grace@example.org")).status).toBe(429);

      await open();
      await dialog.getByLabel("Models").fill("core-33");
      await dialog.getByRole("button", { name: "Save limits" }).click();
      await dialog.getByText('no model is called "core-33"').waitFor();
      await dialog.getByLabel("Models").fill("");
      expect(await dialog.getByLabel("Requests a minute", { exact: true }).inputValue()).toBe("60");
      await dialog.getByLabel("Priority", { exact: true }).selectOption("As the plan says");
      expect(await dialog.getByLabel("Tokens a day for each person").inputValue()).toBe("30");
      await dialog.getByLabel("It belongs to a program that serves people").uncheck();
      await save();
      await expectEventually(() => row.getByText("names its end users").count(), 0);
      const expected = { limit_month: 400_000, models: null, forwards_users: false, limit_end_user_day: null };
      Object.assign(expected, { end_user_parallel: null, requests_per_minute: 60, priority: null });
      expect(await limits()).toMatchObject(expected);
      expect((await ask(key, "grace@example.org")).status).toBe(200);
      expect(visit.problemsBut(/status of 409/)).toEqual([]);
    },
    timeLimit,
  );

  async function signedIn(): Promise<Visit> {
    const visit = await Visit.open(browser, gateway.url);
    await visit.goTo("/key", "Sign in to Tollgate");
    await visit.page.getByLabel("E-mail").fill(email);
    await visit.page.getByLabel("Password").fill(password);
    await visit.page.getByRole("button", { name: "Sign in" }).click();
    return visit;
  }

  const ask = (key: string, user?: string): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "core-3", max_tokens: 50, messages: [{ role: "user", content: "Hello" }], user }),
    });
});

async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<axe.AxeResults>("axe.run()");
  expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
}

async function shot(page: any, name: string): Promise<void> {
  const folder = process.env["PEOPLE_SHOTS"];
  if (folder === undefined) return;
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.screenshot({ path: `${folder}/${name}-${scheme}.png`, fullPage: true });
  }
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.screenshot({ path: `${folder}/${name}-phone.png`, fullPage: true });
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: "light" });
}
