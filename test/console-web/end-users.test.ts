// A key for a program that serves people, made in the console, and whom its requests were for on the usage page: in a real
// browser, against the real server.
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
      await using visit = await Visit.open(browser, gateway.url);
      const { page } = visit;
      await visit.goTo("/key", "Sign in to Tollgate");
      await page.getByLabel("E-mail").fill(email);
      await page.getByLabel("Password").fill(password);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill("open-webui");
      expect(await page.getByLabel("Tokens a day for each of them").count()).toBe(0);
      await page.getByLabel("It belongs to a program that serves people").check();
      await page.getByLabel("Tokens a day for each of them").fill("50000");
      await expectAccessible(page);
      await shot(page, "dialog");
      await page.getByRole("button", { name: "Make key" }).click();
      const key = (await page.locator(".fresh-key code").textContent())!;
      await page.getByText("names its end users; 50,000 a day for each").waitFor();

      for (const user of names) expect((await ask(key, user)).status).toBe(200);
      expect((await ask(key)).status).toBe(200);
      await visit.goTo("/usage", "Usage");
      const who = page.getByRole("region", { name: "Who asked", exact: true });
      await who.getByText(names[2]!).waitFor();
      await who.getByText("nobody named").waitFor();
      await expectAccessible(page);
      await shot(page, "usage");
      await who.getByRole("link", { name: "grace@example.org" }).click();
      const requests = page.getByRole("region", { name: "Requests" });
      await expectEventually(() => requests.locator("tbody tr").count(), 2);
      await page.getByLabel("End user", { exact: true }).selectOption(names[1]!);
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
