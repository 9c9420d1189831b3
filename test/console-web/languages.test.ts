// The console in other languages: with every text accented and 40 % longer, no sentence of the code is left and nothing
// sticks out, from left to right and from right to left; German and Chinese write numbers and dates their own way.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 180_000;
const email = "head@example.com";
const password = "correct horse battery";

const paths = [
  ...["/", "/playground", "/key", "/usage", "/reports", "/batch", "/plan", "/team", "/account"],
  "/device?user_code=BBBB-CCCC",
  ...["", "/accounts", `/accounts/${email}`, "/requests", "/line", "/batches", "/nodes", "/nodes/demo", "/models"].map(
    (path) => `/operator${path}`,
  ),
  ...["/models/core-3", "/config", "/server", "/log", "/audit"].map((path) => `/operator${path}`),
];

const accents: Readonly<Record<string, string>> = { a: "á", e: "é", i: "í", o: "ó", u: "ú", A: "Á", E: "É", O: "Ó" };

const accented = (text: string): string =>
  /\p{L}/u.test(text)
    ? `⟦${text.replace(/[aeiouAEO]/g, (letter) => accents[letter]!)}${" ~~~~".repeat(Math.ceil(text.length / 12))}⟧`
    : text;

/** A catalog as the server sends it: texts, or messages taken apart, whose plain pieces are of type 0. */
function pseudo(part: unknown): unknown {
  if (typeof part === "string") return accented(part);
  if (Array.isArray(part)) return part.map((each) => (typeof each === "object" ? pseudo(each) : each));
  if (part === null || typeof part !== "object") return part;
  const { type, value } = part as { type?: number; value?: unknown };
  if (type === 0 && typeof value === "string") return { type, value: accented(value) };
  return Object.fromEntries(
    Object.entries(part).map(([name, each]) => [name, typeof each === "object" ? pseudo(each) : each]),
  );
}

/** Sentences that no catalog gave. What operators and programs named, and the server's own words, are marked or code. */
const sentences = `(() => {
  const found = [];
  const isData = (element) => element.closest("noscript, code, pre, .code, .message, textarea, kbd, option, [data-words]") !== null;
  const look = (text) => /^\\s*[A-Z][a-z]+,? [a-z]{2,}/.test(text) && found.push(text.trim());
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (!isData(walker.currentNode.parentElement)) look(walker.currentNode.data);
  for (const element of document.querySelectorAll("[aria-label], [placeholder], [title]"))
    if (!isData(element)) for (const name of ["aria-label", "placeholder", "title"]) look(element.getAttribute(name) ?? "");
  return [...new Set(found)];
})()`;

/** The configuration's page shows the reference, and the audit log what was done: both are English. */
const english = ["/operator/config", "/operator/audit"];

describe.skipIf(withoutBrowser)("languages", () => {
  let gateway: GatewayProcess;
  let browser: Browser;

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "" }), launch()]);
    await gateway.cli("accounts", "create", email, "--password", password, "--operator");
    await gateway.cli("teams", "create", "research", "--plan", "pro", "--credit", "5000000");
    await gateway.cli("teams", "members", "add", "research", email, "--role", "admin", "--limit-day", "200000");
    await gateway.cli("keys", "create", email, "--name", "laptop");
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  }, timeLimit);

  async function signedIn(options: BrowserContextOptions, as = email): Promise<Visit> {
    const visit = await Visit.open(browser, gateway.url, { ...options, reducedMotion: "reduce" });
    await visit.page.goto("/sign-in");
    await visit.post("/sign-in", { email: as, password });
    return visit;
  }

  async function shown(visit: Visit, path: string): Promise<void> {
    await visit.page.goto(path);
    await visit.page.locator("h1, .composer").first().waitFor({ state: "attached" });
    await visit.page.locator(".loading").first().waitFor({ state: "detached" });
  }

  test.each([
    ["1280 px", { viewport: { width: 1280, height: 860 } }, "ltr"],
    ["320 px", { viewport: { width: 320, height: 640 }, isMobile: true, hasTouch: true }, "ltr"],
    ["390 px, from right to left", { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }, "rtl"],
  ] as const)(
    "%s: longer texts stay inside, and none stands in the code",
    async (_, options, direction) => {
      await using visit = await signedIn({ ...options, locale: "en-US" });
      await visit.context.route("**/assets/texts-en-*.json", async (route) => {
        const reply = await route.fetch();
        const texts = Object.entries((await reply.json()) as object).map(([key, text]) => [key, pseudo(text)]);
        await route.fulfill({ response: reply, json: Object.fromEntries(texts) });
      });
      const found: string[] = [];
      for (const path of paths) {
        await shown(visit, path);
        await visit.page.evaluate(`document.documentElement.dir = "${direction}"`);
        const past = await visit.page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
        if (past > 0) found.push(`${path}: ${past} pixels stick out`);
        if (!(await visit.page.locator("main").innerText()).includes("⟦"))
          found.push(`${path}: no text of the catalog`);
        if (english.includes(path)) continue;
        found.push(...(await visit.page.evaluate<string[]>(sentences)).map((text) => `${path}: ${text}`));
      }
      expect(found).toEqual([]);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test.each([
    ["de-DE", "de", "Guthaben", /\d\.\d{3}/],
    ["zh-CN", "zh", "余额", /\d,\d{3}/],
  ] as const)(
    "%s is spoken where the browser asks for it",
    async (locale, lang, word, number) => {
      await gateway.cli("accounts", "create", `${lang}@example.com`, "--password", password, "--plan", "pro");
      await using visit = await signedIn({ locale }, `${lang}@example.com`);
      await shown(visit, "/plan");
      expect(await visit.page.evaluate<string>("document.documentElement.lang")).toBe(lang);
      const text = await visit.page.locator("main").innerText();
      expect(text).toContain(word);
      expect(text).toMatch(number);
      await visit.page.goto("/account");
      await visit.page.getByRole("combobox").first().selectOption("en");
      await visit.page.getByRole("heading", { level: 1, name: "Account" }).waitFor();
    },
    timeLimit,
  );

  test(
    "a choice is the account's: it holds in a second browser and in mails, and one made at the door is kept; refusals and the audit log follow",
    async () => {
      const ada = "ada@example.com";
      await gateway.cli("accounts", "create", ada, "--password", password, "--operator");
      await using first = await Visit.open(browser, gateway.url, { locale: "en-US" });
      await first.page.goto("/sign-in");
      await first.page.getByRole("combobox").selectOption("de");
      await first.page.getByLabel("E-Mail").fill(ada);
      await first.page.getByLabel("Passwort").fill("wrong");
      await first.page.getByRole("button", { name: "Anmelden" }).click();
      await first.page.getByText("Die E-Mail-Adresse oder das Passwort ist falsch.").waitFor();
      await first.page.getByLabel("Passwort").fill(password);
      const told = first.page.waitForResponse("**/console/api/language");
      await first.page.getByRole("button", { name: "Anmelden" }).click();
      expect((await told).ok()).toBe(true);
      await first.page.goto("/operator/audit");
      await first.page.getByText("Tarif free, Guthaben 0, Betreiber").first().waitFor();

      await using second = await Visit.open(browser, gateway.url, { locale: "en-US" });
      await second.page.goto("/sign-in");
      await second.post("/sign-in", { email: ada, password });
      await second.page.goto("/account");
      await second.page.getByRole("heading", { level: 1, name: "Konto" }).waitFor();
      await second.page.keyboard.press("Control+k");
      await second.page.keyboard.type("Sprache: 简");
      await second.page.getByRole("option", { name: "Sprache: 简体中文" }).click();
      await second.page.getByRole("heading", { level: 1, name: "账户" }).waitFor();

      await first.page.goto("/account");
      await first.page.getByRole("heading", { level: 1, name: "账户" }).waitFor();
      expect([...first.problems, ...second.problems].filter((each) => !each.includes("401"))).toEqual([]);
    },
    timeLimit,
  );
});
