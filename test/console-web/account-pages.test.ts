// The pages of an account, driven as its owner would: in a real browser, against the real server.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const email = "ada@example.com";
const password = "correct horse battery";

describe.skipIf(withoutBrowser)("the pages of an account", () => {
  let gateway: GatewayProcess;
  let browser: Browser;
  let visit: Visit;

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "[console]\nsign_up = true\n" }), launch()]);
    visit = await Visit.open(browser, gateway.url, { viewport: { width: 1480, height: 860 } });
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  }, timeLimit);

  test(
    "sign-up shows the key once and leads to the overview; the key works",
    async () => {
      const { page } = visit;
      await visit.goTo("/", "Sign in to Tollgate");
      await page.getByRole("link", { name: "Create an account" }).click();
      await page.getByLabel("E-mail").fill(email);
      await page.getByLabel("Password").fill(password);
      await page.getByRole("button", { name: "Create account" }).click();
      await page.getByRole("heading", { name: "Welcome to Tollgate" }).waitFor();
      const key = (await page.locator(".secret code").textContent()) ?? "";
      expect(key).toMatch(/^sk-tg-[A-Za-z0-9]{43}$/);
      expect((await models(gateway, key)).status).toBe(200);

      await page.getByRole("link", { name: "I saved it, continue" }).click();
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      expect(await page.locator(".hero .big").textContent()).toBe("30,000");
      await page.getByText("Demo node:").waitFor();
      await page.getByText("No requests yet").waitFor();
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a wrong password is told, the right one leads to the page that was asked for",
    async () => {
      await using other = await Visit.open(browser, gateway.url);
      const { page } = other;
      await other.goTo("/usage", "Sign in to Tollgate");
      await page.getByLabel("E-mail").fill(email);
      await page.getByLabel("Password").fill("not the password");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").waitFor();
      await page.getByLabel("Password").fill(password);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
      expect(other.problemsBut(/status of 401/)).toEqual([]);
    },
    timeLimit,
  );

  test(
    "the playground streams an answer to its end in each dialect, and each is a row of the usage page",
    async () => {
      const { page } = visit;
      await page.getByRole("link", { name: "Playground" }).first().click();
      await page.getByRole("button", { name: "New conversation" }).waitFor();
      for (const [index, dialect] of ["chat-completions", "messages", "responses"].entries()) {
        await page.getByLabel("Dialect").selectOption(dialect);
        await page.getByLabel("Reasoning effort").selectOption("medium");
        await page.getByLabel("Message", { exact: true }).fill(`Say hello in ${dialect}`);
        await page.getByRole("button", { name: "Send", exact: true }).click();
        const answer = page.locator(".turn.answer").nth(index);
        await answer.getByText("This is a synthetic answer").waitFor();
        await answer.locator(".turn-foot").waitFor();
        expect(await answer.locator(".turn-foot").textContent()).toMatch(/\d+ in · \d+ out/);
        expect(await answer.locator(".reasoning > div").textContent()).toContain("Say hello in");
        expect(await answer.locator(".form-error").count()).toBe(0);
      }
      await page.getByRole("link", { name: "Usage" }).first().click();
      await page.getByRole("heading", { name: "Requests" }).waitFor();
      const rows = page.getByRole("region", { name: "Requests" }).locator("tbody tr");
      await rows.nth(2).waitFor();
      const shown = await Promise.all(
        (await rows.all()).map(async (row) => (await row.locator("td").allTextContents()).map((cell) => cell.trim())),
      );
      const ledger = await gateway.usage(email);
      expect(
        shown.map(([model, , endpoint, input, cached, output, billed, cost]) => ({
          model,
          endpoint: `/v1${endpoint}`,
          numbers: [input, cached, output, billed].map((cell) => Number(cell?.replaceAll(/[^\d]/g, ""))),
          cost: Number(cost?.replace("$", "")),
        })),
      ).toEqual(
        ledger.map((row) => ({
          model: row.model,
          endpoint: row.endpoint,
          numbers: [row.input, row.cached_input, row.output, row.billed_tokens],
          cost: Number(row.cost_usd),
        })),
      );
      expect(ledger).toHaveLength(3);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "the usage page filters, shows a request in full and downloads every row",
    async () => {
      const { page } = visit;
      await page.getByRole("combobox", { name: "Endpoint" }).selectOption("/v1/messages");
      await page.getByText("Clear filters").waitFor();
      const requests = page.getByRole("region", { name: "Requests" });
      await expectEventually(() => requests.locator("tbody tr").count(), 1);
      expect(page.url()).toContain("endpoint=%2Fv1%2Fmessages");
      await requests.locator("tbody tr button").first().click();
      const row = (await gateway.usage(email)).find(({ endpoint }) => endpoint === "/v1/messages");
      await page
        .getByRole("dialog")
        .getByText(row?.request_id ?? "?")
        .waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Clear filters" }).click();
      await expectEventually(() => requests.locator("tbody tr").count(), 3);

      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name: "Download CSV" }).click(),
      ]);
      const lines = (await Bun.file(await download.path()).text()).trim().split("\n");
      expect(lines).toHaveLength(4);

      await page.locator(".chart").focus();
      await page.keyboard.press("ArrowLeft");
      await page.keyboard.press("ArrowRight");
      await page.locator(".chart-tip").waitFor();
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "the overview follows requests while it is open",
    async () => {
      const { page } = visit;
      await page.getByRole("link", { name: "Overview", exact: true }).click();
      const before = (await gateway.show(email)).spendable;
      await expectEventually(() => page.locator(".hero .big").textContent(), before.toLocaleString("en-US"));
      const rows = (await gateway.usage(email)).length;
      await expectEventually(() => page.locator("table.data tbody tr").count(), rows);
      await using other = await visitOfSameBrowser(visit);
      await other.goto("/playground");
      await other.getByLabel("Message", { exact: true }).fill("One more");
      await other.getByRole("button", { name: "Send", exact: true }).click();
      await other.locator(".turn-foot").waitFor();
      const after = (await gateway.show(email)).spendable;
      expect(after).toBeLessThan(before);
      await expectEventually(() => page.locator(".hero .big").textContent(), after.toLocaleString("en-US"));
      await expectEventually(() => page.locator("tbody tr").count(), rows + 1);
    },
    timeLimit,
  );

  test(
    "live numbers come back after a proxy refused the stream; where the session is over, the sign-in is shown",
    async () => {
      await using other = await Visit.open(browser, gateway.url);
      const { page } = other;
      let refused = 0;
      await page.route("**/console/api/events", (route) =>
        refused++ === 0 ? route.fulfill({ status: 502, body: "Bad gateway" }) : route.fallback(),
      );
      await other.signIn(email, password);
      await page.getByText("Live numbers are interrupted").waitFor();
      await page.getByText("Live numbers are interrupted").waitFor({ state: "detached" });
      expect(refused).toBe(2);

      await page.route("**/console/api/events", (route) => route.fulfill({ status: 401, body: "" }));
      await page.reload();
      await page.getByText("Live numbers are interrupted").waitFor();
      await other.context.clearCookies();
      await page.getByRole("heading", { name: "Sign in to Tollgate" }).waitFor();
      expect(other.problemsBut(/status of (?:502|401)/)).toEqual([]);
    },
    timeLimit,
  );

  test(
    "tools are called, their results are given by hand, and the answer goes on",
    async () => {
      const { page } = visit;
      await page.getByRole("link", { name: "Playground" }).first().click();
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.getByRole("button", { name: "Insert an example" }).first().click();
      // The call and, after its results, the answer: two turns for each dialect.
      for (const [index, dialect] of ["chat-completions", "messages", "responses"].entries()) {
        await page.getByLabel("Dialect").selectOption(dialect);
        await page.getByLabel("Message", { exact: true }).fill("How is the weather in Paris and Rome?");
        await page.getByRole("button", { name: "Send", exact: true }).click();
        await page.getByRole("textbox", { name: "Result of get_weather" }).nth(1).waitFor();
        for (const result of ["sunny", "rainy"]) {
          await page.getByRole("textbox", { name: "Result of get_weather" }).first().fill(result);
          await page.getByRole("button", { name: "Send result" }).first().click();
        }
        const answer = page.locator(".turn.answer").nth(2 * index + 1);
        await answer.getByText(/gave .*sunny.*rainy/).waitFor();
        await answer.locator(".turn-foot").waitFor();
      }
      await page.getByLabel("Tools", { exact: true }).fill("[{");
      await page.getByText("Not JSON").waitFor();
      await page.getByLabel("Tools", { exact: true }).fill("");
      await page.getByRole("button", { name: "New conversation" }).click();
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "images are dropped in, sent and shown; a schema makes the answer JSON",
    async () => {
      const { page } = visit;
      await page.getByLabel("Dialect").selectOption("chat-completions");
      await page
        .locator('.composer input[type="file"]')
        .setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: dot });
      await page.getByRole("img", { name: "dot.png" }).waitFor();
      await page.getByLabel("Message", { exact: true }).fill("What is this?");
      await page.keyboard.press("Enter");
      await page.locator(".turn.answer").first().getByText("1 image").waitFor();
      await page.locator(".turn.answer").first().locator(".turn-foot").waitFor();
      await page.getByRole("button", { name: "Insert an example" }).nth(1).click();
      await page.getByLabel("Message", { exact: true }).fill("Answer in JSON");
      await page.keyboard.press("Enter");
      const answer = page.locator(".turn.answer").nth(1);
      await answer.locator(".turn-foot").waitFor();
      expect(Object.keys(JSON.parse((await answer.locator(".markdown").textContent()) ?? "") as object)).toEqual([
        "answer",
        "confidence",
      ]);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "the request is shown as code for curl and for the official packages of each dialect",
    async () => {
      const { page } = visit;
      for (const [dialect, names] of [
        ["chat-completions", ["curl", "OpenAI JS", "OpenAI Python"]],
        ["messages", ["curl", "Anthropic JS", "Anthropic Python"]],
        ["responses", ["curl", "OpenAI JS", "OpenAI Python"]],
      ] as const) {
        await page.getByLabel("Dialect").selectOption(dialect);
        await page.getByRole("button", { name: "Show the request as code" }).click();
        const dialog = page.getByRole("dialog");
        await dialog.getByRole("tab").last().waitFor();
        expect(await dialog.getByRole("tab").allTextContents()).toEqual([...names]);
        await dialog.getByRole("tabpanel").getByText("Answer in JSON").waitFor();
        await dialog.getByRole("tab").first().focus();
        await page.keyboard.press("ArrowRight");
        await expectEventually(() => dialog.getByRole("tab", { selected: true }).textContent(), names[1]);
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
      }
    },
    timeLimit,
  );

  test(
    "regenerating the key asks first, shows the new one once and voids the old one",
    async () => {
      const { page } = visit;
      const old = await gateway.cli<{ api_key: string }>("keys", "rotate", email);
      await page.getByRole("link", { name: "API key" }).click();
      await page.getByRole("button", { name: "Regenerate key" }).click();
      await page.getByRole("button", { name: "Cancel" }).click();
      expect((await models(gateway, old.api_key)).status).toBe(200);
      await page.getByRole("button", { name: "Regenerate key" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Regenerate key" }).click();
      await page.getByText("Your new key.").waitFor();
      const fresh = (await page.locator(".fresh-key code").textContent()) ?? "";
      expect((await models(gateway, fresh)).status).toBe(200);
      expect((await models(gateway, old.api_key)).status).toBe(401);
      await page.getByRole("tabpanel").getByText(fresh).waitFor();
      await page.getByRole("link", { name: "Overview", exact: true }).click();
      await page.getByRole("link", { name: "API key" }).click();
      await page.getByRole("button", { name: "Regenerate key" }).waitFor();
      expect(await page.content()).not.toContain(fresh);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "another browser is listed, signed out by this one, and finds itself at the sign-in",
    async () => {
      await using other = await Visit.open(browser, gateway.url);
      await other.signIn(email, password);
      const { page } = visit;
      await page.getByRole("link", { name: "Account", exact: true }).click();
      await page.getByRole("button", { name: "Sign out all others" }).click();
      await page.getByText("All other browsers were signed out.").waitFor();
      await expectEventually(() => page.locator("tbody tr").count(), 1);
      await other.page.getByRole("heading", { name: "Sign in to Tollgate" }).waitFor();

      await other.signIn(email, password);
      await page.reload();
      await page.getByRole("button", { name: /^Sign out Chrome on .* at / }).click();
      await page.getByRole("button", { name: "Undo" }).click();
      await expectEventually(() => page.locator("tbody tr").count(), 2);
      await other.page.goto("/");
      await other.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      await page.getByRole("button", { name: /^Sign out Chrome on .* at / }).click();
      await expectEventually(() => page.locator("tbody tr").count(), 1);
      await other.page.getByRole("heading", { name: "Sign in to Tollgate" }).waitFor();
    },
    timeLimit,
  );

  test(
    "the password is changed, and the chosen theme is kept",
    async () => {
      const { page } = visit;
      await page.getByLabel("Current password").fill(password);
      await page.getByLabel("New password").fill("another fine password");
      await page.getByRole("button", { name: "Change password" }).click();
      await page.getByText("The password was changed").waitFor();
      await page.getByRole("main").getByRole("button", { name: "Dark" }).click();
      await page.reload();
      await page.getByRole("heading", { level: 1, name: "Account" }).waitFor();
      expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
      expect(await page.evaluate("getComputedStyle(document.body).backgroundColor")).toBe("rgb(11, 12, 15)");
      await page.getByRole("main").getByRole("button", { name: "Sign out" }).first().click();
      await page.getByRole("heading", { name: "Sign in to Tollgate" }).waitFor();
      await visit.signIn(email, "another fine password");
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );
});

/** A red PNG of one pixel. */
const dot = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
  "base64",
);

const models = (gateway: GatewayProcess, key: string): Promise<Response> =>
  fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });

async function visitOfSameBrowser(visit: Visit) {
  const page = await visit.context.newPage();
  return Object.assign(page, { [Symbol.asyncDispose]: () => page.close() });
}
