// The official JavaScript packages in a page of another site, in a real browser: nothing works until the operator names
// the page's origin, and everything does as soon as the running server knows it, with one thread and with several.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { floodRequestsMax } from "../../src/core/limits.ts";
import { launch, withoutBrowser } from "../console-web/browser.ts";
import { bodyOf } from "../fixtures/client-view.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { missing } from "../fixtures/optional.ts";
import { useStack } from "../fixtures/stack.ts";

const pathOf = (name: string): string | null => {
  try {
    return Bun.resolveSync(name, import.meta.dir);
  } catch {
    return null; // not installed
  }
};
const packages = { OpenAI: pathOf("openai"), Anthropic: pathOf("@anthropic-ai/sdk") };
const absent = missing("@anthropic-ai/sdk", packages.Anthropic !== null, "run npm ci in test/clients");

/** What a call in the page came to. */
type Outcome = Readonly<{
  text?: string;
  status?: number | null;
  retryAfter?: string | null;
  requestId?: string | null;
  message?: string;
}>;
type Call = "chat" | "chat, streamed" | "messages" | "messages, streamed" | "models";

/** In the page: one call of an official client. */
const program = (openAI: string, anthropic: string): string => `
  import OpenAI from ${JSON.stringify(openAI)};
  import Anthropic from ${JSON.stringify(anthropic)};
  window.ask = async ({ url, key, call, prompt }) => {
    const options = { apiKey: key, dangerouslyAllowBrowser: true, maxRetries: 0 };
    const openai = new OpenAI({ ...options, baseURL: url + "/v1" });
    const anthropic = new Anthropic({ ...options, baseURL: url });
    const messages = [{ role: "user", content: prompt }];
    const asked = { model: "core-3", max_tokens: 100, messages };
    try {
      let text = "";
      if (call === "chat") text = (await openai.chat.completions.create(asked)).choices[0].message.content;
      if (call === "chat, streamed") {
        const stream = await openai.chat.completions.create({ ...asked, stream: true });
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
      }
      if (call === "messages") text = (await anthropic.messages.create(asked)).content[0].text;
      if (call === "messages, streamed") text = await anthropic.messages.stream(asked).finalText();
      if (call === "models") for await (const { id } of await openai.models.list()) text += id + " ";
      return { text };
    } catch (error) {
      const { status = null, message, requestID: requestId } = error;
      return { status, message, requestId, retryAfter: error.headers?.get("retry-after") ?? null };
    }
  };
  document.title = "ready";`;

describe.skipIf(withoutBrowser || absent).each([1, 2])("a page of another site, threads: %p", (threads) => {
  const stack = useStack({ threads });
  let browser: Browser;
  let page: Page;
  let site: Bun.Server<undefined>;

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-page-"));
    writeFileSync(join(folder, "page.js"), program(packages.OpenAI!, packages.Anthropic!));
    const built = await Bun.build({ entrypoints: [join(folder, "page.js")], target: "browser" });
    const script = await built.outputs[0]!.text();
    rmSync(folder, { recursive: true });
    site = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      routes: {
        "/page.js": () => new Response(script, { headers: { "content-type": "text/javascript" } }),
        "/*": () =>
          new Response('<!doctype html><meta charset="utf-8"><script type="module" src="/page.js"></script>', {
            headers: { "content-type": "text/html" },
          }),
      },
    });
    browser = await launch();
    page = await browser.newPage();
    await page.goto(site.url.href);
    await page.waitForFunction('document.title === "ready"');
  });
  afterAll(async () => {
    await browser?.close();
    await site?.stop(true);
  });

  const ask = (account: Account, call: Call, script = "text"): Promise<Outcome> =>
    page.evaluate((asked) => (globalThis as unknown as { ask(asked: object): Promise<Outcome> }).ask(asked), {
      url: stack.gateway.url,
      key: account.api_key,
      call,
      prompt: `[[${stack.node.marker(script)}]]`,
    });

  test("may not ask anything, until its origin is named and the server reloads", async () => {
    const account = await stack.gateway.account();
    const refused = await ask(account, "chat");
    expect(refused).toMatchObject({ status: null, message: "Connection error." });
    await stack.configure('[server]\ncors_origins = ["https://other.example"]');
    expect(await stack.gateway.reload()).toEqual({ applied: ["server.cors_origins"], needsRestart: [] });
    expect(await ask(account, "chat")).toMatchObject({ status: null });
    expect(await stack.gateway.usage(account.email)).toEqual([]); // its preflights were refused
    for (const origins of [[site.url.origin], ["*"]]) {
      await stack.configure(`[server]\ncors_origins = ${JSON.stringify(origins)}`);
      await stack.gateway.reload();
      for (const call of ["chat", "chat, streamed", "messages", "messages, streamed"] as const) {
        expect([call, await ask(account, call)]).toEqual([call, { text: "Hi there!" }]);
      }
      expect((await ask(account, "models")).text).toContain("core-3 ");
    }
  });

  test("reads errors with their ids, and when to come back", async () => {
    const wrong = { ...(await stack.gateway.account()), api_key: "sk-tg-wrong" };
    for (const call of ["chat", "chat, streamed", "messages", "messages, streamed", "models"] as const) {
      const refused = await ask(wrong, call);
      expect([call, refused]).toMatchObject([call, { status: 401, requestId: expect.stringMatching(/^req_/) }]);
    }
    const account = await stack.gateway.account();
    expect(await ask(account, "chat", "status-500")).toMatchObject({ status: 500 });
    for (let asked = 0; asked < floodRequestsMax; asked += 1) {
      const reply = await fetch(`${stack.gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": account.api_key },
        body: JSON.stringify(bodyOf("/v1/chat/completions", "core-3", "x", { n: 3 })),
      });
      await reply.text();
    }
    for (const call of ["chat", "chat, streamed", "messages", "messages, streamed"] as const) {
      const refused = await ask(account, call);
      expect([call, refused.status, Number(refused.retryAfter) > 0]).toEqual([call, 429, true]);
    }
  });
});
