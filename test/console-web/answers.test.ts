// A model's answers in the playground: formulas, wide tables, right-to-left text; and what people see, and screen
// readers say, when an answer was stopped, failed or could not begin.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import type { ConsoleModels } from "../../src/console/api/overview.ts";
import { finish, role, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(120_000);

const email = "ada@example.com";
const password = "correct horse battery";

describe.skipIf(withoutBrowser)("the playground", () => {
  const stack = useStack();
  let browser: Browser;
  let visit: Visit;
  let page: Page;

  beforeAll(async () => {
    browser = await launch();
    await stack.gateway.cli("accounts", "create", email, "--password", password);
    visit = await Visit.open(browser, stack.gateway.url);
    page = visit.page;
    await visit.signIn(email, password);
    await visit.goTo("/playground", "Playground");
  });
  afterAll(async () => {
    await visit?.[Symbol.asyncDispose]();
    await browser?.close();
  });

  const send = async (words: string): Promise<void> => {
    await page.getByRole("textbox", { name: "Message" }).fill(words);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };
  const status = (): Promise<string> => page.locator(".turns > [role=status]").innerText();

  /** Asks for an answer of these fragments in a conversation of its own, and gives it when it is complete. */
  async function answerOf(name: string, ...fragments: string[]) {
    await stack.node.define(name, {
      advance: "attempts",
      replies: [{ steps: [role, ...text(...fragments), ...finish("stop")] }],
    });
    await page.getByRole("button", { name: "New conversation" }).click({ force: true });
    await expectEventually(() => page.locator(".turn").count(), 0);
    await send(`[[${name}]]`);
    const answer = page.locator(".turn.answer").last();
    await answer.locator(".turn-foot").waitFor();
    return answer;
  }

  test("draws formulas as MathML, and leaves prices and what is no TeX as they were written", async () => {
    const answer = await answerOf(
      "formulas",
      "Energy is \\(E=m",
      "c^2\\), a sum is $\\sum_{i=1}^n i$; it costs $5 and $10.\n\n",
      "\\[\n\\frac{a}{b}\n= x^2\n\\]\n\nThen\n$$\\int_0^1 x\\,dx$$\n\nWrong: \\(\\nosuchcommand{\\) and \\(unfinished",
    );
    await answer.locator("math").nth(3).waitFor();
    expect(await answer.locator("math").count()).toBe(4);
    expect(await answer.locator("math mfrac").count()).toBe(1);
    const written = await answer.innerText();
    expect(written).toContain("it costs $5 and $10.");
    expect(written).toContain("\\(\\nosuchcommand{\\)");
    expect(await answer.locator(".formula.display").count()).toBe(2);
    expect(visit.problems).toEqual([]);
  });

  test("a long answer scrolls in its own part: the page stays as high as the window", async () => {
    await answerOf("long", ...Array.from({ length: 80 }, (_, index) => `Paragraph ${index}.\n\n`));
    expect(await page.evaluate<number>("document.documentElement.scrollHeight - innerHeight")).toBe(0);
    expect(await page.locator(".turns").evaluate((turns) => turns.scrollHeight > 2 * turns.clientHeight)).toBe(true);
  });

  test("begins with what it is for, where a small window cannot show all of it", async () => {
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.setViewportSize({ width: 320, height: 500 });
    await page.reload();
    await page.getByText("Write a haiku").waitFor();
    expect(
      await page.locator(".turns").evaluate((turns) => [turns.scrollTop, turns.scrollHeight > turns.clientHeight]),
    ).toEqual([0, true]);
    await page.setViewportSize({ width: 1280, height: 860 });
  });

  test("runs nothing and links nowhere from a formula", async () => {
    const evil = ["\\href{javascript:alert(1)}{x}", "\\includegraphics{https://evil.example/a.png}", "\\class{x}{y}"];
    const loop = "\\def\\a{\\a\\a}\\a";
    const answer = await answerOf("evil", ...[...evil, loop].map((tex) => `\\(${tex}\\)\n\n`));
    await answer.locator(".formula").nth(3).waitFor();
    expect(await answer.locator(".markdown").locator("a[href], img, [class=x]").count()).toBe(0);
    expect(visit.problems).toEqual([]);
  });

  test("keeps a number in a table's cell whole, and lets the table scroll", async () => {
    const head = `| Model | ${Array.from({ length: 12 }, (_, index) => `Column ${index}`).join(" | ")} |`;
    const row = `| core-3 | ${Array.from({ length: 12 }, () => "196,608").join(" | ")} |`;
    const answer = await answerOf("table", `${head}\n|${" --- |".repeat(13)}\n${row}\n`);
    const numbers = answer.locator("td", { hasText: "196,608" });
    expect(await numbers.count()).toBe(12);
    // A text that is broken stands in more than one rectangle.
    const rectangles = await numbers.evaluateAll((cells) =>
      cells.map((cell) => {
        const range = cell.ownerDocument.createRange();
        range.selectNodeContents(cell);
        return range.getClientRects().length;
      }),
    );
    expect(rectangles).toEqual(Array.from({ length: 12 }, () => 1));
  });

  test.each([
    ["dashes", "- ", 4_000],
    ["angles", "> ", 2_000],
    ["angles-close", ">", 5_000],
    ["stars", "*", 3_000],
  ])("shows a text nested thousands deep as it was written: %s", async (name, mark, times) => {
    const answer = await answerOf(name, `${mark.repeat(times)}deep${mark === "*" ? mark.repeat(times) : ""}`);
    await answer.locator(".markdown", { hasText: "deep" }).waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("lets each paragraph run in its own direction", async () => {
    const answer = await answerOf("directions", "Hello there\n\n", "مرحبا بالعالم\n\n- שלום\n");
    const directions = await answer
      .locator("p, li")
      .evaluateAll((elements) => elements.map((each) => getComputedStyle(each).direction));
    expect(directions.slice(0, 3)).toEqual(["ltr", "rtl", "rtl"]);
  });

  test("is shown in samples that name the address which the browser used, and a model that a node serves", async () => {
    const address = stack.gateway.url.replace("127.0.0.1", "localhost");
    await using other = await Visit.open(browser, address);
    await other.signIn(email, password);
    await other.goTo("/key", "API key");
    await other.page.getByText(`${address}/v1/chat/completions`).waitFor();
    const served = (await (await other.context.request.get("/console/api/models")).json()) as ConsoleModels;
    const code = await other.page.locator(".code pre, pre").first().innerText();
    expect(served.models.filter(({ served }) => served).map(({ id }) => id)).toContain(
      /"model":"([^"]+)"/.exec(code)![1]!,
    );
  });

  test("says that an answer was stopped, not that it is complete", async () => {
    await send(`[[${stack.node.marker("endless")}]]`);
    await page.getByText("tick tick").first().waitFor();
    expect(await status()).toBe("The model is answering");
    await page.getByRole("button", { name: "Stop" }).click();
    await expectEventually(status, "The answer was stopped");
  });

  test("says only why an answer failed, with an id instead of a link to usage that it has none of", async () => {
    for (const script of ["error-in-stream", "status-500"]) {
      await page.getByRole("button", { name: "New conversation" }).click();
      await send(`[[${stack.node.marker(script)}]]`);
      const answer = page.locator(".turn.answer").last();
      await answer.getByRole("alert").waitFor();
      expect(await status()).toBe("");
      expect(await answer.getByRole("link", { name: "Usage" }).count()).toBe(0);
      await answer.getByRole("button", { name: /Copy the request id req_/ }).waitFor();
    }
  });
});

declare function getComputedStyle(element: unknown): Readonly<{ direction: string }>;
