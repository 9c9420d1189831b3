// Stopping an answer: the node stops with it, what has arrived stays and is billed, and the next one works.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { eventually } from "../fixtures/eventually.ts";
import { useStack } from "../fixtures/stack.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const email = "ada@example.com";
const password = "correct horse battery";

describe.skipIf(withoutBrowser)("an answer that is stopped", () => {
  const stack = useStack();
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
    await stack.gateway.cli("accounts", "create", email, "--password", password);
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
  }, timeLimit);

  test(
    "the stop button ends it at the node too, and it is billed as far as it came",
    async () => {
      await using visit = await Visit.open(browser, stack.gateway.url);
      const { page } = visit;
      await visit.signIn(email, password);
      expect(await page.getByText("Demo node:").count()).toBe(0);
      await page.goto("/playground");
      await page.getByRole("textbox", { name: "Message" }).fill(`[[${stack.node.marker("endless")}]]`);
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByText("tick tick tick").waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText("Stopped", { exact: true }).waitFor();
      await eventually("the charge is in the journal", async () => (await stack.gateway.usage(email)).length === 1);
      const [row] = await stack.gateway.usage(email);
      expect(row?.output).toBeGreaterThan(2);
      expect((await stack.gateway.show(email)).reserved).toBe(0);

      await page.getByRole("textbox", { name: "Message" }).fill(`[[${stack.node.marker("text")}]]`);
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await eventually("both are billed", async () => (await stack.gateway.usage(email)).length === 2);
      expect(await page.locator(".turn.answer .form-error").count()).toBe(0);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a server that cannot be reached is told in words, not in the browser's",
    async () => {
      await using visit = await Visit.open(browser, stack.gateway.url);
      const { page } = visit;
      await visit.signIn(email, password);
      await page.goto("/playground");
      await page.route("**/v1/chat/completions", (route) => route.abort());
      await page.getByRole("textbox", { name: "Message" }).fill("Is anybody there?");
      await page.getByRole("button", { name: "Send", exact: true }).click();
      expect(await page.locator(".turn.answer [role=alert]").innerText()).toBe(
        "The server cannot be reached. Please retry.",
      );
      expect(visit.problemsBut(/ERR_FAILED/)).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a stream that breaks off is told, not shown as complete",
    async () => {
      await using visit = await Visit.open(browser, stack.gateway.url);
      const { page } = visit;
      await visit.signIn(email, password);
      await page.setViewportSize({ width: 1480, height: 860 }); // the settings stand beside it
      await page.goto("/playground");
      for (const dialect of ["chat-completions", "messages", "responses"]) {
        await page.getByLabel("Dialect").selectOption(dialect);
        await page.getByRole("textbox", { name: "Message" }).fill(`[[${stack.node.marker("error-in-stream")}]]`);
        await page.getByRole("button", { name: "Send", exact: true }).click();
        await page.locator(".turn.answer").last().getByRole("alert").waitFor();
        await page.getByRole("button", { name: "New conversation" }).click();
      }
    },
    timeLimit,
  );
});
