// The palette, by keyboard alone in a real browser: what it finds and leads to, and what readers of screens are told.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { fit } from "../../src/console/web/palette/fuzzy.ts";
import { chapters as copied } from "../../src/console/web/palette/chapters.ts";
import { chapters, titleOf } from "../../src/docs/guide.ts";
import { Stack } from "../fixtures/stack.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(120_000);

const email = "head@example.com";
const password = "correct horse battery";

test("the palette's copy of the guide's chapters is true", () => {
  expect(copied.map((chapter) => [...chapter])).toEqual(chapters.map((chapter) => [chapter.id, titleOf(chapter)]));
});

describe("letters of a name in their order find it", () => {
  const best = (query: string, names: readonly string[]): string | undefined =>
    names
      .flatMap((name) => {
        const found = fit(query, name);
        return found === null ? [] : [{ name, score: found.score }];
      })
      .sort((a, b) => b.score - a.score)[0]?.name;

  test.each([
    ["plg", ["Plan", "Playground", "API key"], "Playground"],
    ["nk", ["Invite somebody", "New API key", "Dark theme"], "New API key"],
    ["KEY", ["Monkey", "API key"], "API key"],
    ["qw 8", ["qwen3:4b", "qwen3:8b"], "qwen3:8b"],
    ["co", ["core-3", "New conversation"], "core-3"],
  ])("%s", (query, names, wanted) => expect(best(query, names)).toBe(wanted));

  test("others in any order do not, and a megabyte is looked through at once", () => {
    expect(fit("gpl", "Playground")).toBeNull();
    expect(fit("ab", `${"a".repeat(1_000_000)}`)).toBeNull();
    expect(fit("", "anything")?.at).toEqual([]);
  });
});

describe.skipIf(withoutBrowser)("Ctrl-K", () => {
  let stack: Stack;
  let browser: Browser;
  let visit: Visit;
  let page: Page;
  beforeAll(async () => {
    [stack, browser] = await Promise.all([Stack.start(), launch()]);
    await stack.gateway.cli("accounts", "create", email, "--password", password, "--plan", "pro", "--operator");
    await stack.gateway.cli("accounts", "create", "grace@example.com", "--password", password);
    visit = await Visit.open(browser, stack.gateway.url, { reducedMotion: "reduce" });
    page = visit.page;
    await visit.signIn(email, password);
  });
  afterAll(async () => {
    await visit?.[Symbol.asyncDispose]();
    await browser?.close();
    await stack?.[Symbol.asyncDispose]();
  });

  const field = () => page.getByRole("combobox", { name: "Go to a page" });
  /** The option that Enter would run, as readers of screens know it. */
  const active = (): Promise<string> =>
    page.evaluate<string>(`(() => {
      const option = document.getElementById(document.activeElement.getAttribute("aria-activedescendant"));
      return option?.getAttribute("aria-selected") === "true" ? option.querySelector(".palette-name").textContent : "";
    })()`);
  async function go(words: string, wanted: string): Promise<void> {
    await page.keyboard.press("Control+k");
    await field().waitFor();
    await page.keyboard.type(words);
    await expectEventually(active, wanted);
    await page.keyboard.press("Enter");
    await field().waitFor({ state: "detached" });
  }
  const focusedTag = () => page.evaluate<string>("document.activeElement.tagName");

  test("is loaded when it is first opened, has the focus, and gives it back", async () => {
    const loaded = () =>
      page.evaluate<number>("performance.getEntriesByType('resource').filter((r) => /palette/.test(r.name)).length");
    expect(await loaded()).toBe(0);
    await page.getByRole("link", { name: "API key" }).first().focus();
    await page.keyboard.press("Control+k");
    await field().waitFor();
    expect(await loaded()).toBe(1);
    expect(await field().getAttribute("aria-expanded")).toBe("true");
    await page.keyboard.type("no such thing at all");
    await expectEventually(() => field().getAttribute("aria-expanded"), "false");
    await page.getByRole("status").getByText("No matches").waitFor();
    await page.keyboard.press("Escape");
    await field().waitFor({ state: "detached" });
    await expectEventually(() => page.evaluate<string>("document.activeElement.textContent.trim()"), "API key");
  });

  test("goes to pages, whose heading gets the focus, by arrows too; what was chosen last comes first", async () => {
    await go("audit", "Audit log");
    await page.getByRole("heading", { level: 1, name: "Audit log" }).waitFor();
    await expectEventually(focusedTag, "H1");
    await page.keyboard.press("Control+k");
    await field().waitFor();
    await expectEventually(active, "Audit log");
    await page.keyboard.press("ArrowDown");
    await expectEventually(active, "New conversation");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp"); // from the first to the last
    await expectEventually(active, "API reference");
    await page.keyboard.press("Escape");
    await field().waitFor({ state: "detached" });
  });

  test("asks the server for accounts once for what was typed, and opens them", async () => {
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/operator/accounts?")) asked.push(new URL(request.url()).search);
    });
    await page.keyboard.press("Control+k");
    await field().waitFor();
    await page.keyboard.type("grace@", { delay: 20 });
    await expectEventually(active, "grace@example.com");
    expect(asked.length).toBeLessThan(4); // six keys
    expect(asked.at(-1)).toContain("search=grace%40");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "grace@example.com" }).waitFor();
    await page.waitForURL(/\/operator\/accounts\/grace%40example.com$/);
  });

  test("begins what its commands say", async () => {
    await go("new key", "New API key");
    await page.getByRole("dialog", { name: "New key" }).waitFor();
    await page.keyboard.press("Escape");
    await go("invite", "Invite somebody");
    await page.getByRole("dialog", { name: "Invite somebody" }).waitFor();
    await page.keyboard.press("Escape");
    await go("dark", "Dark theme");
    await expectEventually(() => page.evaluate<string>("document.documentElement.dataset.theme"), "dark");
    await go("light", "Light theme");
    await go("core-3", "core-3");
    await page.waitForURL(/\/playground$/);
    await expectEventually(() => page.getByLabel("Model", { exact: true }).inputValue(), "core-3");
  });

  test("drains a node at once, takes that back by a message, and resumes it", async () => {
    await go("drain scripted", "Drain scripted");
    await page.getByText(/^Drained since/).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText(/^Drained since/).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Drain" }).click();
    await page.getByText(/^Drained since/).waitFor();
    await page.waitForURL(/\/operator\/nodes$/);
    await go("overview", "Overview");
    await go("resume", "Resume scripted");
    await page.getByText(/^Drained since/).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Drain" }).waitFor();
    await visit.goTo("/playground", "Playground");
  });

  test("finds conversations, shows their titles as text, and only to their account", async () => {
    const hostile = "<img src=x onerror=alert(1)> zebra [[text]]";
    await page.getByRole("textbox", { name: "Message" }).fill(hostile);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.locator(".turn-foot").waitFor();
    await page.waitForURL(/\?c=/);
    await go("overview", "Overview");
    await go("zebra", hostile);
    await page.locator(".turn").getByText(hostile).waitFor();
    await go("sign out", "Sign out");
    await page.getByRole("heading", { level: 1, name: "Sign in to Tollgate" }).waitFor();
    await visit.signIn("grace@example.com", password);
    await page.keyboard.press("Control+k");
    await field().waitFor();
    expect(await page.getByRole("option", { name: "New account" }).count()).toBe(0);
    expect(await page.getByText("Recent").count()).toBe(0);
    await page.keyboard.type("zebra");
    await page.getByRole("status").getByText("No matches").waitFor();
    await page.keyboard.press("Escape");
    expect(visit.problems).toEqual([]);
  });
});
