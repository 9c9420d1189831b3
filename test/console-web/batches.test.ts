// The page of batches in a real browser: a file is chosen, its progress is shown, its answers are downloaded, another is cancelled.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser } from "playwright-core";
import { type CountingNode, startCountingNode } from "../batches/counting-node.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(120_000);

describe.skipIf(withoutBrowser)("the page of batches", () => {
  let node: CountingNode;
  let gateway: GatewayProcess;
  let account: Account;
  let browser: Browser;
  beforeAll(async () => {
    node = startCountingNode({ model: "m", delayMs: 200 });
    gateway = await GatewayProcess.start({
      config: `
[[models]]
id = "m"
price = { input = 100, output = 200 }
[[nodes]]
name = "n"
url = "${node.url}"
slots = 16
`,
    });
    account = await gateway.account();
    await gateway.cli("accounts", "password", account.email, "--password", "long enough 1");
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
    node?.[Symbol.dispose]();
  });

  const linesOf = (count: number, model = "m"): string =>
    Array.from({ length: count }, (_, at) =>
      JSON.stringify({
        custom_id: `line-${at}`,
        method: "POST",
        url: "/v1/chat/completions",
        body: { model, max_tokens: 20, messages: [{ role: "user", content: `line ${at}` }] },
      }),
    ).join("\n");

  test("uploads, shows, downloads and cancels", async () => {
    await using visit = await Visit.open(browser, gateway.url, { viewport: { width: 390, height: 844 } });
    const { page } = visit;
    await visit.signIn(account.email, "long enough 1");
    await visit.goTo("/batch", "Batches");
    const give = (text: string): Promise<void> =>
      page
        .getByLabel("A file of requests")
        .setInputFiles({ name: "in.jsonl", mimeType: "application/jsonl", buffer: Buffer.from(text) });
    await give("hello");
    await page.getByText("This is no JSONL file").waitFor();
    await give(linesOf(2, "nope"));
    await page.getByText("Line 1: The model `nope` does not exist").waitFor();
    await give(linesOf(30));
    await page.getByText("completed").waitFor();
    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: /^Download the answers/ }).click();
    const answers = (await Bun.file(await (await downloading).path()).text()).trimEnd().split("\n");
    expect(answers).toHaveLength(30);
    await give(linesOf(3_000));
    await page.getByText(/left$/).waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    await page.getByRole("button", { name: /^Cancel batch_/ }).click();
    await page.getByRole("button", { name: "Cancel batch", exact: true }).click();
    await page.getByText("cancelled").waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("operators see every account's, with its progress, and cancel one", async () => {
    await gateway.cli("accounts", "create", "ops@example.com", "--operator", "--password", "long enough 1");
    const headers = { "x-api-key": account.api_key };
    const params = { model: "m", max_tokens: 20, messages: [{ role: "user", content: "hi" }] };
    const requests = Array.from({ length: 3_000 }, (_, at) => ({ custom_id: `line-${at}`, params }));
    const body = JSON.stringify({ requests });
    await fetch(`${gateway.url}/v1/messages/batches`, { method: "POST", headers, body });
    await using visit = await Visit.open(browser, gateway.url, { viewport: { width: 390, height: 844 } });
    const { page } = visit;
    await visit.signIn("ops@example.com", "long enough 1");
    await visit.goTo("/operator/batches", "All batches");
    await page.getByText(account.email).first().waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    await page.getByRole("button", { name: /^Cancel msgbatch_/ }).click();
    await page.getByRole("button", { name: "Cancel batch", exact: true }).click();
    await page.getByText("msgbatch_").waitFor();
    await page.getByRole("button", { name: /^Cancel msgbatch_/ }).waitFor({ state: "detached" });
    expect((await gateway.cli<{ state: string }[]>("batches", "list"))[0]!.state).toBe("cancelled");
    expect(visit.problems).toEqual([]);
  });
});
