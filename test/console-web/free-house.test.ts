// A house whose models are all free: nothing is for sale there, and charts show what was used. And what its operator sees of a
// node that serves none of its models.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { recordedNode } from "../fixtures/recorded-node.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const email = "ada@example.com";
const password = "correct horse battery";

describe.skipIf(withoutBrowser)("a house that sells nothing", () => {
  let browser: Browser;
  let node: ScriptedNode;
  let gateway: GatewayProcess;
  const idle = recordedNode("vllm");

  beforeAll(async () => {
    [browser, node] = await Promise.all([launch(), ScriptedNode.start()]);
    const tables = [
      '[[plans]]\nid = "pro"\n[[plans]]\nid = "night"\nweight = 3\npriority = "bulk"\npriority_max = "standard"',
      `[[nodes]]\nname = "gpu-1"\nurl = "${node.url}"\n[nodes.models]\n"house" = "core-3"`,
      `[[nodes]]\nname = "gpu-2"\nurl = "${idle.url}"`,
      '[[models]]\nid = "house"\n',
    ];
    gateway = await GatewayProcess.start({ config: tables.join("\n") });
    await gateway.cli("accounts", "create", email, "--operator", "--password", password);
    const { api_key } = await gateway.makeKey(email, { name: "bot" });
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${api_key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "house", messages: [{ role: "user", content: "[[text#1]]" }] }),
    });
    expect(reply.status, await reply.text()).toBe(200);
  }, timeLimit);
  afterAll(async () => {
    idle.stop();
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
    await node?.[Symbol.asyncDispose]();
  }, timeLimit);

  test(
    "offers no credit, charts tokens, and says which node serves nothing",
    async () => {
      await using visit = await Visit.open(browser, gateway.url);
      const { page } = visit;
      await visit.goTo("/sign-in", "Sign in to Tollgate");
      await page.getByText("Forgot password?").click();
      await page.getByText("Ask the operator of this server for a link").waitFor();
      await visit.signIn(email, password);
      await page.getByText("All usage").waitFor();
      expect(await page.getByText(/credit|No balance|to spend/i).count()).toBe(0);

      await visit.goTo("/plan", "Plan");
      await page.getByText("The models here are free").waitFor();
      await page.getByRole("heading", { name: "Pro" }).waitFor();
      // Plans that differ by nothing else can be told apart.
      const night = page.locator("article", { hasText: "Night" }).getByRole("listitem");
      expect((await night.allTextContents()).map((fact) => fact.trim())).toEqual([
        "120 requests a minute",
        "3 times the share when accounts compete for nodes",
        "Requests give way to others",
        "x-priority up to standard",
      ]);
      expect(
        await page
          .locator("main")
          .getByText(/buy credit|No balance|balance tokens|\$/i)
          .count(),
      ).toBe(0);

      await visit.goTo("/usage", "Usage");
      await page.getByRole("heading", { name: "Tokens, by model" }).waitFor();
      await page.locator("svg rect.series-1").waitFor(); // drawn when its width is known
      await page.locator(".row-button").waitFor();
      expect(
        await page
          .locator("main")
          .getByText(/balance tokens|to spend|\$/i)
          .count(),
      ).toBe(0);

      const money = /balance|credit|billed|worth|cost(?! center)|price|to spend|\$\d/i;
      const others = [
        ["/key", "API key"],
        ["/account", "Account"],
        ["/operator?range=1h", "Activity"],
        ["/operator/accounts", "Accounts"],
        ["/operator/requests", "Requests"],
        ["/operator/models", "Models"],
        ["/operator/log", "Request log"],
      ] as const;
      for (const [path, heading] of others) {
        await visit.goTo(path, heading);
        await page.locator(".loading").first().waitFor({ state: "detached" });
        expect(await page.locator("main").getByText(money).allTextContents(), path).toEqual([]);
      }
      await page.locator(".row-button").first().click();
      await page.getByRole("dialog").getByText("Output").waitFor();
      expect(await page.getByRole("dialog").getByText(money).allTextContents()).toEqual([]);
      await visit.goTo("/operator/accounts", "Accounts");
      await page.getByRole("button", { name: "Invite" }).click();
      await page.getByLabel("Days until it expires").waitFor();
      expect(await page.getByLabel(/credit/i).count()).toBe(0);
      await page.keyboard.press("Escape");
      await page.getByRole("main").getByRole("link", { name: email }).click();
      await page.getByRole("region", { name: "Use by model" }).waitFor();
      expect(await page.locator("main").getByText(money).allTextContents()).toEqual([]);

      await visit.goTo("/operator/nodes", "Nodes");
      const card = page.getByRole("row", { name: "gpu-2" });
      await card.getByText("Lists tiny-chat, none of yours.").waitFor();
      expect(await card.locator(".badge.warn").textContent()).toBe("Unclear");

      // One clock in a row and in the dialog that it opens.
      await visit.goTo("/operator/log", "Request log");
      const row = page.locator(".row-button").first();
      const [time = ""] = /\d\d:\d\d:\d\d/.exec((await row.textContent()) ?? "") ?? [];
      expect(await page.locator(".clip-cell .clipped").first().textContent()).toBe("bot");
      await row.click();
      await page.getByRole("dialog").getByText(time).waitFor();
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "samples name the key that was just made, and a phone has a heading on the playground, too",
    async () => {
      await using visit = await Visit.open(browser, gateway.url, { viewport: { width: 390, height: 844 } });
      const { page } = visit;
      await visit.signIn(email, password);
      await visit.goTo("/key", "API key");
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill("nightly");
      expect(
        await page
          .getByRole("dialog")
          .getByText(/tokens a (day|month)/i)
          .count(),
      ).toBe(0); // nothing costs any
      await page.getByRole("dialog").locator("button[type=submit]").click();
      const key = (await page.locator(".fresh-key code").textContent()) ?? "";
      expect(key).toStartWith("sk-tg-");
      await eventually("the sample has it", async () => {
        return (await page.locator("pre").first().textContent())?.includes(`TOLLGATE_KEY=${key}`) === true;
      });
      // What was shown once is known by its end from then on.
      await page.reload();
      await page.getByRole("cell", { name: `nightly …${key.slice(-4)}` }).waitFor();
      const card = page.getByRole("region", { name: "Key", exact: true });
      const [, ending = ""] = /sk-tg-…([0-9A-Za-z]{4})\b/.exec((await card.textContent()) ?? "") ?? [];
      expect(await page.locator("pre").first().textContent()).toContain(`TOLLGATE_KEY=sk-tg-...${ending}`);
      await page.goto("/playground");
      await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor({ state: "attached" });
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );
});
