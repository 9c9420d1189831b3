// A team in a real browser: an admin invites by a link, a colleague who has an account joins by it and makes a key, and the
// admin sees what was used, limits the colleague and takes them out.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const password = "correct horse battery";
/** For people who look at them. */
const shots = process.env["TEAM_SHOTS"];

describe.skipIf(withoutBrowser)("a team in a browser", () => {
  let gateway: GatewayProcess;
  let browser: Browser;
  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "" }), launch()]);
    for (const name of ["ada", "bob"]) {
      await gateway.cli("accounts", "create", `${name}@example.org`, "--password", password);
    }
    await gateway.cli("teams", "create", "research", "--plan", "pro", "--credit", "5000000");
    await gateway.cli("teams", "members", "add", "research", "ada@example.org", "--role", "admin");
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  }, timeLimit);

  const statusOf = async (key: string): Promise<number> =>
    (await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;

  test(
    "is joined, used and left",
    async () => {
      await using admin = await Visit.open(browser, gateway.url);
      await using colleague = await Visit.open(browser, gateway.url);
      await admin.signIn("ada@example.org", password);
      await admin.goTo("/team", "research");
      await admin.page.getByRole("button", { name: "Invite" }).click();
      await admin.page.getByLabel("Limit per day").fill("200000");
      await admin.page.getByRole("button", { name: "Make the link" }).click();
      const link = (await admin.page.locator(".secret code").textContent())!;
      await admin.page.getByRole("button", { name: "Done" }).click();

      await colleague.signIn("bob@example.org", password);
      expect(await colleague.page.getByRole("link", { name: "Team" }).count()).toBe(0);
      await colleague.page.goto(link.slice(new URL(link).origin.length));
      await colleague.page.getByRole("button", { name: "Join the team" }).click();
      await colleague.page.getByRole("heading", { level: 1, name: "research" }).waitFor();
      await colleague.page.getByText("of 200,000").waitFor();
      await colleague.page.getByRole("button", { name: "New key" }).click();
      await colleague.page.getByLabel("Name").fill("laptop");
      await colleague.page.getByRole("button", { name: "Make key" }).click();
      const key = (await colleague.page.locator(".fresh-key code").textContent())!;
      expect(await statusOf(key)).toBe(200);
      expect(await colleague.page.getByRole("heading", { name: "Members" }).count()).toBe(0);

      await admin.page.reload();
      await admin.page.getByRole("button", { name: "Change bob@example.org" }).click();
      await admin.page.getByLabel("Limit per day").fill("300000");
      await admin.page.getByRole("button", { name: "Save" }).click();
      await admin.page.getByText("of 300,000").waitFor();
      await admin.page.getByRole("button", { name: "New service key" }).click();
      await admin.page.getByLabel("Name").fill("nightly");
      await admin.page.getByRole("button", { name: "Make key" }).click();
      await admin.page.getByRole("button", { name: "Revoke nightly" }).waitFor();
      if (shots !== undefined) await photograph(admin);
      await admin.page.getByRole("button", { name: "Remove bob@example.org" }).click();
      await admin.page.getByRole("button", { name: "Remove bob@example.org" }).waitFor({ state: "detached" });
      expect(await statusOf(key)).toBe(401);
      await admin.page.getByRole("button", { name: "Undo" }).click();
      await admin.page.getByText("of 300,000").waitFor();
      expect(await statusOf(key)).toBe(200);
      await admin.page.getByRole("button", { name: "Remove bob@example.org" }).click();
      await admin.page.getByRole("button", { name: "Remove bob@example.org" }).waitFor({ state: "detached" });
      await colleague.page.reload();
      await colleague.page.getByText("You are in no team").waitFor();
      expect(admin.problems).toEqual([]);
      expect(colleague.problems).toEqual([]);
    },
    timeLimit,
  );

  async function photograph({ page }: Visit): Promise<void> {
    for (const [name, width, scheme] of [
      ["light", 1280, "light"],
      ["dark", 1280, "dark"],
      ["390", 390, "light"],
      ["320", 320, "dark"],
    ] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      await page.screenshot({ path: join(shots!, `team-${name}.png`), fullPage: true });
    }
  }
});
