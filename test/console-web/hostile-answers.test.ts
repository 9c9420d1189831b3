// Answers that were written to stop the page: whatever a model sends, what is read and drawn in one turn stays small.
// Counted is what is added to the page at once, since times on a busy machine say little.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { markdownPieces, pieceMaxLength, textPieces } from "../../src/console/web/parts/pieces.ts";
import { isModest } from "../../src/console/web/parts/formula-markdown.ts";
import { longForm } from "../fixtures/optional.ts";
import { callArguments, callStart, finish, reasoning, role, type Step, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

setDefaultTimeout(120_000);

const email = "ada@example.com";
const password = "correct horse battery";
const megabyte = 1_000_000;

const of = (unit: string, length: number): string => unit.repeat(Math.ceil(length / unit.length)).slice(0, length);
const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join("\n");

/** Each is longer than what of an answer is shown at first. */
const hostile: Readonly<Record<string, string>> = {
  "braces in a formula": of(`$${"{".repeat(1_900)}x${"}".repeat(1_900)}$ `, 60_000),
  "braces without an end": `\\(${"{".repeat(5_000)}x${"}".repeat(5_000)}\\)`,
  "short formulas": of("$a_1$ ", 60_000),
  "macros that repeat themselves": of(`\\(\\def\\a{${"x".repeat(900)}}${"\\a".repeat(400)}\\) `, 60_000),
  "a matrix of many columns": of(`$$\\begin{matrix}${"&".repeat(1_900)}\\end{matrix}$$\n\n`, 60_000),
  links: of("[a](http://b.example) ", 60_000),
  emphasis: of("_a_", 60_000),
  quotations: `${">".repeat(3_000)}a\n`.repeat(20),
  "a table of 10,000 cells": `${of("|a", 20)}|\n${of("|-", 20)}|\n${lines(1_000, () => `${of("|1", 20)}|`)}`,
  "a short table of many cells": `${of("|a", 2_000)}|\n${of("|-", 2_000)}|\n${lines(1_500, () => "|")}`,
  "one line": of("word ", 60_000),
  "one word": of("x", 60_000),
  "right to left and joiners": of("\u202eمرحبا\u2066\u200d\u0301", 60_000),
  "colors of a terminal": of("\u001b[31mred\u001b[0m\u0007 ", 60_000),
  code: `\`\`\`js\n${of("const a = (b) => `${c}`; // why\n", 60_000)}\n\`\`\``,
  "code without spaces": `\`\`\`ini\n${of("1e", 60_000)}\n\`\`\``,
  "code without lines": `\`\`\`js\n${of("(a ", 60_000)}\n\`\`\``,
  "code that does not end": of("```js\na\n~~~\n", 60_000),
  definitions: `${lines(3_000, (index) => `[a${index}]: http://b.example`)}\n\n${of("[a1] ", 30_000)}`,
};

describe("what is cut into pieces", () => {
  test.each(Object.entries(hostile))("is bounded, and the same whole text: %s", (_, words) => {
    expect(textPieces(words).join("")).toBe(words);
    for (const piece of textPieces(words)) expect(piece.length).toBeLessThanOrEqual(pieceMaxLength);
    for (const piece of markdownPieces(words)) {
      // Definitions of links and the head of a table may stand before it.
      if (typeof piece === "string") expect(piece.length).toBeLessThanOrEqual(pieceMaxLength + 4_000);
    }
  });

  test("ends where Markdown begins anew", () => {
    const paragraph = `${of("word ", 700)}\n\n`;
    const list = `- one\n\n- two\n\n  more\n\n`;
    expect(markdownPieces(paragraph + paragraph + list + paragraph)).toEqual([paragraph + paragraph + list, paragraph]);
  });

  test("keeps code whole, without its indentation where it stood in a list", () => {
    const code = of("let x = 1;\n", 11_000).trim();
    expect(markdownPieces(`a\n\`\`\`js title\n${code}\n\`\`\`\nb`)).toEqual(["a\n", { code, language: "js" }, "b"]);
    const inList = code.replaceAll(/^/gm, "   ");
    expect(markdownPieces(`1. a\n   ~~~\n${inList}\n   ~~~\n2. b`)).toEqual(["1. a\n", { code, language: "" }, "2. b"]);
    expect(markdownPieces("1. a\n   ```\n   x\n   ```\n2. b")).toEqual(["1. a\n   ```\n   x\n   ```\n2. b"]);
    expect(markdownPieces("```\nstill coming")).toEqual([{ code: "still coming", language: "" }]);
  });

  test("goes on with a table under its head, and knows addresses that are told elsewhere", () => {
    const table = `|a|b|\n|-|-|\n${of("|1|2|\n", 9_000)}`;
    const pieces = markdownPieces(table);
    expect(pieces.length).toBe(4);
    for (const piece of pieces) expect(piece).toStartWith("|a|b|\n|-|-|\n|1|2|");
    const apart = markdownPieces(`See [docs].\n\n${of("word ", 5_000)}\n\n[docs]: https://a.example/\n`);
    expect(apart[0]).toStartWith("[docs]: https://a.example/\n\nSee [docs].");
  });

  test("is cut at the same places while it grows", () => {
    for (const words of Object.values(hostile)) {
      const whole = markdownPieces(words.slice(0, 20_000).replaceAll(/^\[.*$/gm, ""));
      const before = markdownPieces(words.slice(0, 12_000).replaceAll(/^\[.*$/gm, ""));
      expect(whole.slice(0, Math.max(0, before.length - 2))).toEqual(before.slice(0, Math.max(0, before.length - 2)));
    }
  });

  test.each([
    ["\\frac{a}{b} = \\left( x^{2^{n}} \\right)", true],
    ["\\{".repeat(100), true],
    [`${"{".repeat(41)}x${"}".repeat(41)}`, false],
    ["\\left(".repeat(41), false],
    ["\\begin{matrix}".repeat(41), false],
    ["&".repeat(601), false],
    ["\\\\".repeat(601), false],
    [`\\newcommand{\\R}{\\mathbb{R}} x \\in \\R`, true],
    [`\\def\\a{${"x".repeat(300)}}\\a`, false],
  ])("a formula is drawn or left as it is: %p", (tex, drawn) => expect(isModest(tex)).toBe(drawn));
});

describe.skipIf(withoutBrowser)("a hostile answer in the playground", () => {
  const stack = useStack();
  let browser: Browser;
  let visit: Visit;
  let page: Page;

  beforeAll(async () => {
    browser = await launch();
    await stack.gateway.cli("accounts", "create", email, "--password", password, "--plan", "pro");
    visit = await Visit.open(browser, stack.gateway.url);
    page = visit.page;
    await page.addInitScript({ content: countAdded });
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

  async function answerOf(name: string, ...steps: Step[]) {
    await stack.node.define(name, { advance: "attempts", replies: [{ steps: [role, ...steps, ...finish("stop")] }] });
    await page.getByRole("button", { name: "New conversation" }).click({ force: true });
    await page.evaluate("most = { nodes: 0, letters: 0, blockedMs: 0 }");
    await send(`[[${name}]]`);
    const answer = page.locator(".turn.answer").last();
    await answer.locator(".turn-foot").waitFor();
    return answer;
  }
  /** Until nothing was drawn for two frames. */
  const settled = (): Promise<void> => page.evaluate(untilSettled);
  const most = (): Promise<Most> => page.evaluate("most");
  async function expectSmallSteps(name: string): Promise<void> {
    await settled();
    const { nodes, letters, blockedMs } = await most();
    console.log(`${name}: at most ${nodes} nodes, ${letters} letters in one turn; longest task ${blockedMs} ms`);
    expect(nodes).toBeLessThan(25_000);
    expect(letters).toBeLessThan(50_000);
    expect(visit.problems).toEqual([]);
  }

  test.each(Object.entries(hostile))(
    "is drawn in small steps, and all of it when asked for: %s",
    async (name, words) => {
      const fragments = words.match(/[^]{1,3000}/gu) ?? [];
      const answer = await answerOf(name.replaceAll(/\W/g, "-"), ...text(...fragments));
      await expectSmallSteps(name);
      const all = answer.getByRole("button", { name: /^Show all/ });
      if ((await all.count()) > 0) await all.click();
      await expectSmallSteps(`${name}, all of it`);
    },
  );

  test.each(longForm ? ["one line", "code", "links"] : ["one line"])(
    "of a megabyte is drawn in small steps: %s",
    async (name) => {
      const words = of(hostile[name] ?? "", megabyte);
      const events = (words.match(/[^]{1,30000}/gu) ?? []).map((content) => ({
        choices: [{ index: 0, delta: { content } }],
      }));
      const body = [...events.map((event) => JSON.stringify(event)), "[DONE]"]
        .map((data) => `data: ${data}\n\n`)
        .join("");
      await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream", body }));
      const answer = await answerOf(`mega-${name.replaceAll(" ", "-")}`);
      await page.unroute("**/v1/chat/completions");
      await answer.getByRole("button", { name: "Show all 1,000,000 characters" }).click();
      await expectSmallSteps(`a megabyte of ${name}`);
    },
  );

  test("reasoning and arguments of calls are drawn in small steps", async () => {
    const deep = "[".repeat(4_000) + "]".repeat(4_000);
    const answer = await answerOf(
      "calls",
      ...reasoning(...(of("thinking ", 30_000).match(/[^]{1,30000}/gu) ?? [])),
      callStart(0, "call_1", "deep"),
      ...callArguments(0, deep),
      callStart(1, "call_2", "long"),
      ...callArguments(1, JSON.stringify(of("a b", 30_000))),
    );
    await answer.locator(".reasoning summary").click();
    await expectSmallSteps("calls");
    expect(await answer.locator(".call pre").first().textContent()).toBe(deep);
  });

  test("a text of a megabyte is sent whole, kept, and there after a reload", async () => {
    await page.getByRole("button", { name: "New conversation" }).click({ force: true });
    const words = `[[text]] ${of("long words ", megabyte)}`;
    await page.evaluate(`(${paste})(${JSON.stringify(words)})`);
    await page.getByText("Pasted text, 1,000,009 characters").waitFor();
    const sent = page.waitForRequest("**/v1/chat/completions");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const { messages } = (await sent).postDataJSON() as { messages: { content: string }[] };
    expect(messages[0]!.content === words).toBe(true);
    const answer = page.locator(".turn.answer").last();
    await answer.locator(".turn-foot").waitFor();
    expect(await answer.getByRole("alert").count()).toBe(0);
    expect(JSON.stringify((await stack.node.requests("text")).at(-1)).includes(words)).toBe(true);
    await page.waitForURL(/\?c=\w+$/);
    await page.reload();
    await page.getByRole("button", { name: "Show all 1,000,009 characters" }).click();
    await expectSmallSteps("a question of a megabyte");
    const length = async () => (await page.locator(".turn.user .bubble").textContent())?.length ?? 0;
    await expectEventually(length, 1_000_009);
  });
});

type Most = Readonly<{ nodes: number; letters: number; blockedMs: number }>;

/** Runs in the page: notes the most that was added to it in one turn. */
const countAdded = `
  globalThis.most = { nodes: 0, letters: 0, blockedMs: 0 };
  new MutationObserver((records) => {
    let nodes = 0;
    let letters = 0;
    for (const { addedNodes } of records) {
      for (const added of addedNodes) {
        nodes += 1 + (added instanceof Element ? added.querySelectorAll("*").length : 0);
        letters += added.textContent?.length ?? 0;
      }
    }
    most.nodes = Math.max(most.nodes, nodes);
    most.letters = Math.max(most.letters, letters);
  }).observe(document, { childList: true, subtree: true });
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) most.blockedMs = Math.max(most.blockedMs, Math.round(duration));
  }).observe({ type: "longtask" });
`;

const untilSettled = `(async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  for (let count = -1; count !== document.querySelectorAll("*").length;) {
    count = document.querySelectorAll("*").length;
    for (let frames = 0; frames < 4; frames++) await frame();
  }
})()`;

const paste = `(words) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", words);
  const field = document.querySelector("textarea[aria-label=Message]");
  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}`;
