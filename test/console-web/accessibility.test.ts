// Every page in both themes and on a phone: axe finds nothing, nothing sticks out at the side, and the whole
// console can be used by keyboard.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import axe from "axe-core";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 180_000;
const email = "head@example.com";
const password = "correct horse battery";

const pages: readonly (readonly [path: string, heading: string])[] = [
  ["/", "Overview"],
  ["/playground", "Playground"],
  ["/key", "API key"],
  ["/usage", "Usage"],
  ["/reports", "Reports"],
  ["/batch", "Batches"],
  ["/plan", "Plan and credit"],
  ["/team", "research"],
  ["/account", "Account"],
  ["/device?user_code=BBBB-CCCC", "Sign in a program"],
  ["/operator?range=1h", "Activity"],
  ["/operator/accounts", "Accounts"],
  ["/operator/requests", "Requests"],
  ["/operator/line", "Line"],
  ["/operator/batches", "All batches"],
  ["/operator/nodes", "Nodes"],
  ["/operator/nodes/demo", "demo"],
  ["/operator/models", "Models"],
  ["/operator/models/core-3", "core-3"],
  ["/operator/config", "Configuration"],
  ["/operator/config?table=nodes&row=", "Configuration"],
  ["/operator/server", "Server"],
  ["/operator/log", "Request log"],
  ["/operator/audit", "Audit log"],
  ["/nothing", "Nothing here"],
];

const looks: readonly (readonly [name: string, options: BrowserContextOptions])[] = [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["the narrowest phone", { viewport: { width: 320, height: 640 }, isMobile: true, hasTouch: true }],
  ["phone, dark", { colorScheme: "dark", viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }],
];

/** Nobody asks it before somebody signs in. */
const oidc = '[oidc]\nissuer = "http://127.0.0.1:9"\nclient_id = "tollgate"\nname = "Acme"\n';

describe.skipIf(withoutBrowser)("accessibility", () => {
  let gateway: GatewayProcess;
  let browser: Browser;
  /** Pages that strangers are led to, and their headings. */
  let links: readonly (readonly [path: string, heading: string])[];

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: oidc }), launch()]);
    await gateway.cli("accounts", "create", email, "--password", password, "--operator");
    await gateway.cli("teams", "create", "research", "--plan", "pro", "--credit", "5000000");
    await gateway.cli("teams", "members", "add", "research", email, "--role", "admin", "--limit-day", "200000");
    await gateway.cli("keys", "create", email, "--name", "laptop", "--team", "research");
    await gateway.cli("keys", "create", "research", "--name", "nightly");
    await fillWithRecords(gateway);
    const invited = await gateway.cli<{ link: string }>("accounts", "invite", "--plan", "pro", "--credit", "5000000");
    const reset = await gateway.cli<{ link: string }>("accounts", "password", email, "--link");
    const pathOf = ({ link }: { link: string }) => link.slice(new URL(link).origin.length);
    links = [
      [pathOf(invited), "Join Tollgate"],
      [pathOf(reset), "Set a password"],
      ["/join?#nothing", "This link does not work"],
      ["/sign-in/callback?code=a&state=b", "You are not signed in"],
    ];
    await using visit = await Visit.open(browser, gateway.url);
    await visit.signIn(email, password);
    const reason = "The invoice of March, which was paid by bank transfer on the 28th, with thanks";
    await visit.post("/operator/accounts/2/credit", { tokens: 5, reason });
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  }, timeLimit);

  test.each(looks)(
    "%s: axe finds nothing on any page, and nothing sticks out",
    async (_, options) => {
      await using visit = await Visit.open(browser, gateway.url, { ...options, reducedMotion: "reduce" });
      const found = [];
      await visit.goTo("/sign-in", "Sign in to Tollgate");
      found.push(...(await violations(visit, "/sign-in")));
      for (const [link, heading] of links) {
        await visit.page.goto(link);
        await visit.page.getByRole("heading", { level: 1, name: heading }).waitFor();
        found.push(...(await violations(visit, heading)));
        const past = await visit.page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
        if (past > 0) found.push(`${heading}: ${past} pixels stick out`);
      }
      await visit.signIn(email, password);
      for (const [path, heading] of pages) {
        if (path === "/playground") {
          await visit.page.goto(path); // its heading is left out on a phone
          await visit.page.getByRole("textbox", { name: "Message" }).waitFor();
        } else await visit.page.goto(path === "/nothing" ? "/operator/nothing" : path);
        if (path !== "/playground") await visit.page.getByRole("heading", { level: 1, name: heading }).waitFor();
        await visit.page.locator(".loading").first().waitFor({ state: "detached" });
        found.push(...(await violations(visit, path)));
        const past = await visit.page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
        if (past > 0) found.push(`${path}: ${past} pixels stick out`);
        const wide = await visit.page.evaluate<string[]>(wideParts);
        found.push(...wide.map((part) => `${path}: ${part} is wider than the page`));
        const covered = await visit.page.evaluate<string[]>(coveredLabels);
        found.push(...covered.map((words) => `${path}: "${words}" covers the label beside it`));
        if (options.viewport?.width === 320) continue; // there, a long word has to be broken
        const squeezed = await visit.page.evaluate<string[]>(squeezedBadges);
        found.push(...squeezed.map((words) => `${path}: "${words}" is broken into lines`));
      }
      expect(found).toEqual([]);
      expect(visit.problemsBut(/status of 40[01]/)).toEqual([]); // the links that do not work
    },
    timeLimit,
  );

  test(
    "dialogs and an answer have nothing either",
    async () => {
      for (const colorScheme of ["light", "dark"] as const) {
        await using visit = await Visit.open(browser, gateway.url, { colorScheme, reducedMotion: "reduce" });
        const { page } = visit;
        await visit.signIn(email, password);
        const found = [];
        await visit.goTo("/operator/accounts", "Accounts");
        await page.getByRole("main").getByRole("link", { name: email }).click();
        await page.getByRole("button", { name: "Set password" }).waitFor();
        await page.getByRole("button", { name: "Make a link" }).click();
        await page.getByRole("button", { name: "Copy the link" }).waitFor();
        found.push(...(await violations(visit, "account sheet")));
        await visit.goTo("/operator/accounts", "Accounts");
        await page.getByRole("button", { name: "Invite" }).click();
        found.push(...(await violations(visit, "invitation")));
        await page.getByRole("button", { name: "Make the link" }).click();
        await page.getByRole("button", { name: "Copy the link" }).waitFor();
        found.push(...(await violations(visit, "invitation's link")));
        await visit.post("/operator/server/reload", {});
        await visit.post("/operator/server/backup", {});
        await visit.goTo("/operator/server", "Server");
        await page.getByText("Done, and every page checked").waitFor();
        found.push(...(await violations(visit, "server")));
        await visit.goTo("/key", "API key");
        await page.getByRole("button", { name: "Regenerate key" }).click();
        found.push(...(await violations(visit, "confirmation")));
        await page.setViewportSize({ width: 1480, height: 860 }); // the settings stand beside it
        await page.goto("/playground");
        await page.getByRole("button", { name: "Insert an example" }).first().click();
        await page.getByRole("textbox", { name: "Message" }).fill("How is the weather in Paris?");
        await page.getByRole("button", { name: "Send", exact: true }).click();
        await page.getByRole("button", { name: "Send result" }).waitFor();
        found.push(...(await violations(visit, "answer with a call")));
        await page.getByRole("button", { name: "Show the request as code" }).click();
        await page.locator(".tok-string").first().waitFor();
        found.push(...(await violations(visit, "code")));
        await page.keyboard.press("Escape");
        await page.getByRole("textbox", { name: "Result of get_weather" }).fill("sunny");
        await page.getByRole("button", { name: "Send result" }).click();
        await page.getByRole("button", { name: "Ask again" }).nth(1).click();
        await page.getByText("2 / 2").waitFor();
        await page.getByRole("button", { name: "Edit the question" }).click();
        found.push(...(await violations(visit, "versions and an edited question")));
        await page.keyboard.press("Escape");
        await page.getByRole("button", { name: "More for How is" }).click();
        await page.getByRole("menuitem", { name: "Rename" }).waitFor();
        found.push(...(await violations(visit, "a conversation's menu")));
        await page.keyboard.press("Escape");
        await page.getByRole("button", { name: "Change…" }).click();
        found.push(...(await violations(visit, "where conversations are kept")));
        await page.keyboard.press("Escape");
        await page.getByRole("button", { name: "Compare with another model" }).click();
        await page.getByRole("textbox", { name: "Message" }).fill("And in Rome?");
        await page.getByRole("button", { name: "Send", exact: true }).click();
        await page.getByRole("button", { name: "Continue with this" }).nth(1).waitFor();
        found.push(...(await violations(visit, "two models")));
        await page.keyboard.press("Control+k");
        await page.getByRole("combobox", { name: "Go to a page" }).fill("o");
        found.push(...(await violations(visit, "palette")));
        expect(found).toEqual([]);
      }
    },
    timeLimit,
  );

  test(
    "by keyboard alone: to another page, whose heading gets the focus, through a dialog and back to its button",
    async () => {
      await using visit = await Visit.open(browser, gateway.url);
      const { page } = visit;
      await visit.signIn(email, password);
      await page.reload();
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      await page.keyboard.press("Tab");
      expect(await focused(visit)).toBe("Skip to the content");
      while ((await focused(visit)) !== "API key") await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Regenerate key" }).waitFor();
      await expectEventually(() => focused(visit), "API key");
      await expectEventually(() => page.title(), "API key · Tollgate");
      await expectEventually(() => page.evaluate<string>("document.activeElement.tagName"), "H1");
      while ((await focused(visit)) !== "Regenerate key") await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor();
      await expectEventually(() => focused(visit), "Cancel");
      for (const key of ["Escape", "Enter"]) {
        await page.keyboard.press(key);
        // The browser closes it a moment before the page hears of that.
        await expectEventually(() => page.locator("dialog").count(), 0);
        await expectEventually(() => focused(visit), "Regenerate key");
        await page.keyboard.press("Enter");
        await expectEventually(() => focused(visit), "Cancel");
      }
    },
    timeLimit,
  );

  test(
    "the focus stays on the page when what had it is gone: a row that is deleted, a busy button, a question that is asked",
    async () => {
      await using visit = await Visit.open(browser, gateway.url);
      const { page } = visit;
      await visit.signIn(email, password);
      await visit.post("/keys", { name: "bot" });
      await visit.goTo("/key", "API key");
      await page.getByRole("button", { name: "Revoke" }).press("Enter");
      await page.getByRole("button", { name: "Revoke key" }).press("Enter");
      await expectEventually(() => page.evaluate<string>("document.activeElement.tagName"), "H1");

      await visit.goTo("/operator/nodes", "Nodes");
      await page.getByRole("button", { name: "Test" }).press("Enter");
      await page
        .getByText(/first token|answered/i)
        .first()
        .waitFor();
      await expectEventually(() => focused(visit), "Test");

      await visit.goTo("/playground", "Playground");
      const field = () => page.evaluate<string>("document.activeElement.getAttribute('aria-label')");
      await page.getByLabel("Message", { exact: true }).fill("Say hello");
      await page.getByRole("button", { name: "Send" }).press("Enter");
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
      await expectEventually(field, "Message");
      await page.getByRole("button", { name: "Edit the question" }).press("Enter");
      await expectEventually(field, "The question");
      await page.keyboard.press("Escape");
      await expectEventually(field, "Message");
      await page.getByRole("button", { name: "New conversation" }).press("Enter");
      await expectEventually(field, "Message");
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "the focus is not taken back to what somebody left without a click, as with Tab behind the last field of a page",
    async () => {
      await using visit = await Visit.open(browser, gateway.url);
      const { page } = visit;
      await visit.signIn(email, password);
      await visit.goTo("/playground", "Playground");
      await page.getByLabel("Message", { exact: true }).focus();
      await page.evaluate("document.activeElement.blur()"); // as the browser does then
      await page.evaluate("document.querySelector('main').append(document.createElement('div'))"); // an answer goes on
      await page.evaluate("new Promise((done) => requestAnimationFrame(done))");
      expect(await page.evaluate<string>("document.activeElement.tagName")).toBe("BODY");
    },
    timeLimit,
  );
});

/** Runs in the page: what is drawn beyond the page's margin, though the browser has nothing to scroll there. */
const wideParts = `[...document.querySelectorAll(".page")].flatMap((page) => {
  const end = page.getBoundingClientRect().right - parseFloat(getComputedStyle(page).paddingRight) + 1;
  const sticksOut = (part) => part.getBoundingClientRect().right > end && part.closest(".table-scroll, svg, [role=tablist], pre") === null;
  return [...page.querySelectorAll("*")].filter(sticksOut).map(({ localName, className }) => localName + "." + className);
})`;

/** Runs in the page: labels of charts that have no room of their own. */
const coveredLabels = `[...document.querySelectorAll("svg")].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll("text.axis")].map((label) => [label.textContent, label.getBoundingClientRect()]);
  const covers = ([, a], [, b]) => a !== b && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.filter((one) => boxes.some((other) => covers(one, other))).map(([words]) => words);
})`;

/** Runs in the page: words of badges that had no room on one line. */
const squeezedBadges = `[...document.querySelectorAll("main .badge")]
  .filter(({ offsetHeight }) => offsetHeight > 30)
  .map(({ textContent }) => textContent)`;

const focused = (visit: Visit): Promise<string> =>
  visit.page.evaluate<string>("document.activeElement.textContent.trim()");

type Found = Readonly<{ id: string; impact: string | null; nodes: readonly Readonly<{ html: string }>[] }>;

/** The findings of axe on the page as it stands. */
async function violations(visit: Visit, path: string): Promise<string[]> {
  if (!(await visit.page.evaluate<boolean>("'axe' in globalThis"))) await visit.page.evaluate(axe.source);
  const found = await visit.page.evaluate<readonly Found[]>("axe.run().then(({ violations }) => violations)");
  return found.map(({ id, nodes }) => `${path}: ${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}

/** A few requests and changes, so that tables, charts and lists are not empty. */
async function fillWithRecords(gateway: GatewayProcess): Promise<void> {
  const account = await gateway.cli<{ api_key: string }>("keys", "rotate", email);
  await gateway.cli("accounts", "credit", email, "5000000");
  for (const model of ["core-3", "open-05-3BIT-REAP", "core-2-pro"]) {
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${account.api_key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, max_tokens: 20, messages: [{ role: "user", content: "Hello" }] }),
    });
    expect(reply.status).toBe(200);
  }
}
