// Numbers that count requests or failures lead to the log of just those: in a real browser each is clicked, and what the log has is
// counted. Requests are served, refused, failed, broken off in the middle and left by their clients, over two threads.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(180_000);

const [operator, customer, password] = ["head@example.com", "grace@example.com", "correct horse battery"];
const [well, failing, breaking, slow] = ["core-3", "core-3.1", "core-2-pro", "core-3-pro"];

/** Fails, breaks off, or waits for its client to leave, by model. */
function engine(): Bun.Server<undefined> {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/v1/models")
        return Response.json({
          object: "list",
          data: [well, failing, breaking, slow].map((id) => ({ id, object: "model" })),
        });
      if (pathname !== "/v1/chat/completions") return new Response(null, { status: 404 });
      const { model } = (await request.json()) as { model: string };
      if (model === failing) return Response.json({ error: { message: "CUDA out of memory" } }, { status: 500 });
      const event = (choice: object, more: object = {}): string =>
        `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model, choices: [{ index: 0, ...choice }], ...more })}\n\n`;
      const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
      const end = event({ delta: {}, finish_reason: "stop" }, { usage });
      const body = new ReadableStream({
        start(controller) {
          if (model === slow) return;
          // Without its end an answer was broken off.
          controller.enqueue(event({ delta: { content: "Hi." } }) + (model === well ? `${end}data: [DONE]\n\n` : ""));
          controller.close();
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
}

describe.skipIf(withoutBrowser)("numbers that count requests", () => {
  const node = engine();
  let gateway: GatewayProcess;
  let browser: Browser;
  let visit: Visit;

  beforeAll(async () => {
    // A node each, so that one that fails keeps no other waiting.
    const config = [well, failing, breaking, slow]
      .map((id) => `[[nodes]]\nname = "of-${id}"\nurl = "${String(node.url)}v1"\nmodels = { "${id}" = "${id}" }\n`)
      .join("\n");
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config, threads: 2 }), launch()]);
    await gateway.cli("accounts", "create", operator, "--password", password, "--operator");
    const { api_key: first } = await gateway.cli<{ api_key: string }>(
      "accounts",
      "create",
      customer,
      "--password",
      password,
      "--credit",
      "9000000",
    );
    const { api_key: bot } = await gateway.cli<{ api_key: string }>(
      "keys",
      "create",
      customer,
      "--name",
      "bot",
      "--forwards-users",
    );
    const ask = async (
      key: string,
      model: string,
      more: object = {},
      signal = AbortSignal.timeout(15_000),
    ): Promise<void> => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 8, ...more });
      const reply = fetch(`${gateway.url}/v1/chat/completions`, { method: "POST", headers, body, signal });
      await reply.then((reply) => reply.text()).catch(() => "");
    };
    for (let at = 0; at < 3; at++) await ask(first, well);
    for (const user of ["ann", "ann", "bob"]) await ask(bot, well, { user });
    for (let at = 0; at < 2; at++) await ask(bot, breaking, { stream: true, user: "ann" });
    for (let at = 0; at < 2; at++) await ask(first, failing);
    // Many alike have one row together.
    await Promise.all(Array.from({ length: 12 }, () => ask(first, well, { temperature: 99 })));
    for (let at = 0; at < 2; at++) await ask("sk-unknown", well);
    await ask(first, "no-such-model");
    await ask(first, slow, { stream: true }, AbortSignal.timeout(1_500));
    await eventually("nothing is open", async () => {
      const rows = await gateway.cli<readonly { reason: string | null }[]>("requests", "--reason", "left");
      return rows.length > 0;
    });
    visit = await Visit.open(browser, gateway.url);
    await visit.signIn(operator, password);
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
    await node.stop(true);
  });

  type Link = Readonly<{ href: string; number: number }>;

  /** Those of the page that stand for a number, or below one. */
  const linksIn = (page: Page): Promise<Link[]> =>
    page.evaluate<Link[]>(`[...document.querySelectorAll("main a[href^='/operator/log?']")].flatMap((link) => {
      const [, own] = /^([\\d,]+)(?: (?:charged|refused|failed|with|request).*)?$/.exec(link.textContent.trim()) ?? [];
      const number = own ?? link.closest(".card")?.querySelector(":scope > .figure-name + .figure")?.textContent;
      if (number !== undefined) link.classList.add("counted");
      return number === undefined ? [] : [{ href: link.getAttribute("href"), number: Number(number.replaceAll(",", "")) }];
    })`);

  /** As the page's own export gives them; others like a row count, too. */
  async function countedIn(page: Page): Promise<number> {
    await page.getByRole("heading", { level: 1, name: "Request log" }).waitFor();
    const file = page.locator("a[download][href*='log.json']");
    await file
      .or(page.getByText("No request matches", { exact: false }))
      .first()
      .waitFor();
    if ((await file.count()) === 0) return 0;
    const reply = await page.context().request.get((await file.getAttribute("href"))!);
    const rows = (await reply.json()) as readonly { more: number }[];
    return rows.reduce((sum, { more }) => sum + 1 + more, 0);
  }

  const account = encodeURIComponent(customer);
  test.each([
    ...["", "?by=account", "?by=node", "?by=key", `?account=${account}&by=key`, `?model=${breaking}`].map(
      (query) => [`/operator${query}`, "Activity"] as const,
    ),
    ["/operator/models", "Models"],
    ...[well, breaking].map((model) => [`/operator/models/${model}`, model] as const),
    [`/operator/nodes/of-${breaking}`, `of-${breaking}`],
    [`/operator/accounts/${account}`, customer],
  ] as const)("%s", async (path, heading) => {
    const { page } = visit;
    const open = async (): Promise<void> => {
      await visit.goTo(path, heading);
      await page.waitForLoadState("networkidle");
    };
    await open();
    await eventually("the page has its numbers", async () => (await linksIn(page)).some(({ number }) => number > 0));
    const links = await linksIn(page);
    const found: Link[] = [];
    for (const [at, { href }] of links.entries()) {
      await open();
      await eventually("the same numbers are there", async () => (await linksIn(page)).length === links.length);
      await page.locator(".counted").nth(at).click();
      found.push({ href, number: await countedIn(page) });
    }
    expect(found).toEqual(links);
  });
});
