// The line for the nodes as operators see it, and a place in it as somebody who waits does.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import axe from "axe-core";
import type { Browser } from "playwright-core";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(120_000);

const head = "head@example.com";
const password = "correct horse battery";

const event = (json: object): string => `data: ${JSON.stringify(json)}\n\n`;
const delta = (content: string): string => event({ choices: [{ index: 0, delta: { content } }] });

/** Ends what is to be "quick" at once; of the rest it writes a token, or reads for ever where that is asked. */
function slowNode() {
  let open = 0;
  const ends: (() => void)[] = [];
  const server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (new URL(request.url).pathname !== "/v1/chat/completions")
        return Response.json({ object: "list", data: [{ id: "teller", object: "model", owned_by: "vllm" }] });
      const body = await request.text();
      const usage = { prompt_tokens: 9_000, completion_tokens: 200, prompt_tokens_details: { cached_tokens: 6_000 } };
      const end = `${event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}${event({ choices: [], usage })}data: [DONE]\n\n`;
      const headers = { "content-type": "text/event-stream" };
      if (body.includes("quick")) return new Response(delta("Hello") + end, { headers });
      open++;
      const stream = new ReadableStream({
        start(controller) {
          controller.enqueue(body.includes("reads") ? ": reading\n\n" : delta("Hello"));
          ends.push(() => {
            controller.enqueue(delta("Hello") + end);
            controller.close();
          });
        },
      });
      return new Response(stream, { headers });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    get open() {
      return open;
    },
    endAll: () => ends.splice(0).forEach((end) => end()),
    [Symbol.dispose]: () => void server.stop(true),
  };
}

describe.skipIf(withoutBrowser)("the line", () => {
  const [large, small] = [slowNode(), slowNode()];
  const gone = new AbortController();
  let gateway: GatewayProcess;
  let browser: Browser;
  let visit: Visit;
  const accounts: Account[] = [];

  beforeAll(async () => {
    const node = (name: string, { url }: { url: string }, slots: number) =>
      `[[nodes]]\nname = "${name}"\nurl = "${url}"\nslots = ${slots}\nmodels = { teller = "teller" }\n`;
    const plan = (id: string, weight: number) =>
      `[[plans]]\nid = "${id}"\nname = "${id}"\ntokens_per_day = 1_000_000\nweight = ${weight}\npriority_max = "interactive"\n`;
    const model = `[[models]]\nid = "teller"\nprice = { input = 0, output = 0 }\n`;
    [gateway, browser] = await Promise.all([
      GatewayProcess.start({
        config: plan("free", 1) + plan("pro", 3) + model + node("gpu-large", large, 6) + node("gpu-small", small, 2),
      }),
      launch(),
    ]);
    await gateway.cli("accounts", "create", head, "--password", password, "--operator");
    for (const [name, plan] of [
      ["ada", "pro"],
      ["grace", "free"],
      ["linus", "free"],
    ] as const)
      accounts.push(await gateway.cli<Account>("accounts", "create", `${name}@example.com`, "--plan", plan));
    visit = await Visit.open(browser, gateway.url);
    await visit.signIn(head, password);
  });
  afterAll(async () => {
    gone.abort();
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
    for (const node of [large, small]) node[Symbol.dispose]();
  });

  const ask = (account: number, content: string, priority = "standard"): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${accounts[account]!.api_key}`, "x-priority": priority },
      body: JSON.stringify({ model: "teller", stream: true, messages: [{ role: "user", content }] }),
      signal: gone.signal,
    });
  /** Kept: a response that is collected is cancelled. */
  const held: Promise<Response | null>[] = [];
  const hold = (...asked: Parameters<typeof ask>) => void held.push(ask(...asked).catch(() => null));
  const askQuick = async (account: number, priority?: string) => (await ask(account, "quick", priority)).text();
  /** Takes every slot; two requests of bulk and one interactive wait. */
  async function fill(): Promise<void> {
    for (let at = 0; at < 8; at++) {
      hold(at % 3, at < 6 ? "writes" : "reads", at === 0 ? "interactive" : "standard");
      await eventually("it runs", async () => large.open + small.open > at);
    }
    for (const priority of ["bulk", "bulk", "interactive"]) hold(1, "writes", priority);
  }

  test("shows who waits and who runs, live, and how the last hour was shared", async () => {
    const { page } = visit;
    await visit.goTo("/operator/line", "Line");
    await page.getByText("Nothing ended in the last hour").waitFor();
    await askQuick(0, "interactive");
    await askQuick(0);
    await askQuick(1, "bulk");
    const shares = page.locator(".share-list").first();
    await shares.getByText("ada@example.com").waitFor();
    await shares.getByText("fair 75%, weight 3").waitFor();
    await page.getByRole("button", { name: "By class" }).click();
    await expectEventually(() => shares.locator("li").count(), 3);
    await fill();
    await page.getByText("3 requests wait, 8 run").waitFor();
    await page.getByText("1 interactive, 2 bulk").waitFor();
    const inLine = page.getByRole("region", { name: "In line" }).locator("tbody tr");
    await expectEventually(() => inLine.count(), 2);
    expect(await inLine.first().innerText()).toContain("interactive");
    await expectEventually(() => page.locator(".slot.free").count(), 0);
    await expectEventually(() => page.locator(".lane-list .slot.reading").count(), 2);
    expect(visit.problems).toEqual([]);
  });

  test.each([
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["phone", { viewport: { width: 390, height: 844 }, isMobile: true }],
  ] as const)("%s: axe finds nothing serious, and nothing sticks out", async (look, options) => {
    await using other = await Visit.open(browser, gateway.url, { ...options, reducedMotion: "reduce" });
    await other.signIn(head, password);
    await other.goTo("/operator/line", "Line");
    await other.page.getByText("3 requests wait, 8 run").waitFor();
    const folder = process.env["LINE_SHOTS"];
    if (folder !== undefined) await other.page.screenshot({ path: `${folder}/${look}.png`, fullPage: true });
    await other.page.evaluate(axe.source);
    const found = await other.page.evaluate<string[]>(
      "axe.run().then(({ violations }) => violations.filter(({ impact }) => /serious|critical/.test(impact)).map(({ id }) => id))",
    );
    expect(found).toEqual([]);
    expect(await other.page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBe(0);
  });

  test("says in the playground where a request waits, until it does not", async () => {
    await using other = await Visit.open(browser, gateway.url);
    const { page } = other;
    await other.signIn(head, password);
    await page.goto("/playground");
    await page.getByRole("textbox", { name: "Message" }).fill("It writes");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const place = page.getByText(/^Number \d in line, first token in about \d+ s$/);
    await place.waitFor();
    const folder = process.env["LINE_SHOTS"];
    if (folder !== undefined) await page.screenshot({ path: `${folder}/playground.png` });
    for (const node of [large, small]) node.endAll();
    await page.getByText("Hello").first().waitFor();
    expect(await place.count()).toBe(0);
    expect(other.problems).toEqual([]);
  });
});
