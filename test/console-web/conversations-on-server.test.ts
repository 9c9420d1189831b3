// Conversations of the playground on the server, in real browsers: two at once, a reload in the middle of an answer, away and back,
// full, back to the browser, an account that is erased, and 500 of them; then files of conversations, costs and four models.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { eventually } from "../fixtures/eventually.ts";
import { pixel } from "../fixtures/pictures.ts";
import { finish, role, text } from "../fixtures/scripts.ts";
import { Stack } from "../fixtures/stack.ts";
import { expectEventually, launch, type Visit, withoutBrowser } from "./browser.ts";
import { ask, list, openPlayground, password, titles, wide, write } from "./playground.ts";

setDefaultTimeout(120_000);

describe.skipIf(withoutBrowser)("conversations on the server", () => {
  let stack: Stack;
  let browser: Browser;
  let people = 0;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([Stack.start({ config: "[files]\naccount_max_mib = 6" }), launch()]);
    await stack.node.define("slow", {
      advance: "attempts",
      replies: [{ steps: [role, ...text("What came"), { waitMs: 60_000 }] }],
    });
    const rich = "See:\n\n```ts\nconst x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n$$x^2$$";
    await stack.node.define("rich", {
      advance: "rounds",
      replies: [{ steps: [role, ...text(rich), ...finish("stop")] }],
    });
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.[Symbol.asyncDispose]();
  });

  const newPerson = async (): Promise<string> => {
    const email = `person${++people}@example.com`;
    await stack.gateway.cli("accounts", "create", email, "--password", password, "--plan", "pro");
    return email;
  };

  const open = (email: string, options: BrowserContextOptions = wide): Promise<Visit> =>
    openPlayground(browser, stack.gateway.url, email, options);

  async function keepOnServer(page: Page): Promise<void> {
    await page.getByRole("button", { name: "Change…" }).click();
    await page.getByRole("button", { name: "Keep on the server" }).click();
    await page.getByText("Kept on the server").waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }

  const look = (page: Page) => page.evaluate("dispatchEvent(new Event('focus'))");
  const heads = async (visit: Visit): Promise<{ state: string; heads: { content: string }[] }> =>
    (await visit.context.request.get("/console/api/conversations")).json();

  test("what is in the browser moves there with its files; two browsers that write at once lose nothing", async () => {
    const email = await newPerson();
    await using first = await open(email);
    const { page } = first;
    const files = page.locator(".composer input[type=file]");
    await files.setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: pixel });
    await ask(page, "Shared [[text]]");
    await page.waitForURL(/\?c=/);
    expect(await heads(first)).toMatchObject({ state: "off", heads: [] }); // nothing goes there unasked
    await keepOnServer(page);

    await using second = await open(email);
    const read = Promise.withResolvers<void>();
    await second.page.route("**/conversations/records?**", async (route) => {
      await read.promise;
      await route.continue();
    });
    await second.page.goto(page.url());
    await second.page.getByRole("textbox", { name: "Message" }).fill("Too early");
    await second.page.getByText("Loading the conversation…").waitFor(); // else it would go into another one
    expect(await second.page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true);
    read.resolve();
    await second.page.locator(".turn.user canvas[aria-label='dot.png']").waitFor();
    const bothSent = Promise.withResolvers<void>();
    for (const each of [page, second.page]) {
      await each.route("**/v1/chat/completions", async (route) => {
        await bothSent.promise;
        await route.continue();
      });
    }
    await Promise.all([write(page, "From the first [[text]]"), write(second.page, "From the second [[text]]")]);
    bothSent.resolve();
    for (const each of [page, second.page]) {
      await expectEventually(() => each.locator(".turn.answer .turn-foot").count(), 2);
    }
    for (const each of [page, second.page]) {
      await eventually("it knows of the other", async () => {
        await look(each);
        return (await each.getByText("/ 2").count()) === 1;
      });
    }

    // Names are of the conversation, wherever it goes on meanwhile; who deletes it can have it back.
    await list(page).getByRole("link", { name: "Shared" }).press("F2");
    await page.keyboard.type("Named");
    await page.keyboard.press("Enter");
    await expectEventually(() => titles(page), "Named");
    await ask(second.page, "After that [[text]]");
    await look(second.page);
    await expectEventually(() => titles(second.page), "Named");
    await list(page).getByRole("link", { name: "Named" }).press("Delete");
    await page.getByRole("button", { name: "Undo" }).waitFor();
    await look(second.page);
    await expectEventually(() => titles(second.page), "");
    await page.getByRole("button", { name: "Undo" }).click();
    await expectEventually(() => titles(page), "Named");
    await look(second.page);
    await expectEventually(() => titles(second.page), "Named");
    await list(second.page).getByRole("link", { name: "Named" }).click();
    await second.page.getByText("After that [[text]]").waitFor();
    await second.page.getByRole("searchbox", { name: "Search the conversations" }).fill("from the FIRST");
    await expectEventually(() => titles(second.page), "Named");

    // An operator's export has everything but them; the owner's has them.
    const own = await second.context.request.post("/console/api/export", { headers: { origin: stack.gateway.url } });
    expect(await own.text()).toContain("From the first [[text]]");
    expect([first.problems, second.problems]).toEqual([[], []]);
  });

  test("a reload in the middle of an answer keeps what came, and another browser has it", async () => {
    const email = await newPerson();
    await using first = await open(email);
    const { page } = first;
    await keepOnServer(page);
    await write(page, "[[slow]] on its way");
    await page.getByText("What came").waitFor();
    await page.waitForURL(/\?c=/);
    await page.reload();
    await page.getByText("What came").waitFor();
    await page.getByText("Not finished").waitFor();
    await using second = await open(email);
    await second.page.goto(page.url());
    await second.page.getByText("What came").waitFor();
    expect(first.problems).toEqual([]);
  });

  test("what is written while the server is away, or full, stays in the browser and goes there later", async () => {
    const email = await newPerson();
    await using visit = await open(email);
    const { page } = visit;
    await keepOnServer(page);
    await page.route("**/console/api/conversations**", (route) => route.abort());
    await ask(page, "While it was away [[text]]");
    await page.getByText("The server cannot be reached").waitFor();
    await page.getByText("Only here").waitFor();
    await page.unroute("**/console/api/conversations**");
    await page.evaluate("dispatchEvent(new Event('online'))");
    await page.getByText("Only here").waitFor({ state: "detached" });
    await eventually("the server has it", async () =>
      (await heads(visit)).heads.some(({ content }) => content.includes("While it was away")),
    );

    // 2 MB of text fit, and 5 MB of files more do not.
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.evaluate(paste);
    await page.getByText("Pasted text").waitFor();
    await ask(page, "A large one [[text]]");
    await page.reload();
    await page.locator(".turn").getByText("A large one [[text]]").waitFor();
    const buffer = Buffer.alloc(4 * 1024 * 1024, "words of a file\n");
    await page
      .locator(".composer input[type=file]")
      .setInputFiles({ name: "large.txt", mimeType: "text/plain", buffer });
    await write(page, "Too large [[text]]");
    await page.getByText("Your space on the server is full").waitFor();
    await page.reload();
    await page.getByText("Too large [[text]]").waitFor();
    await page.locator(".turn.user").getByText("large.txt").waitFor();

    // Back to this browser, with all of it.
    await page.getByRole("button", { name: "Change…" }).click();
    await page.getByRole("button", { name: "Move to this browser" }).click();
    await page.getByText("Kept in this browser only").waitFor();
    await expectEventually(() => list(page).getByRole("link").count(), 2);
    expect(await heads(visit)).toMatchObject({ state: "off", heads: [], bytes: 0 });
    await list(page).getByRole("link", { name: "While it was away" }).click();
    await page.locator(".turn.user").getByText("While it was away").waitFor();
    await page.locator(".turn.answer .turn-foot").waitFor();
    expect(visit.problemsBut(/ERR_FAILED/)).toEqual([]);
  });

  test("an account that is deleted under way leaves nothing, and its page signs out", async () => {
    const email = await newPerson();
    await using visit = await open(email);
    const { page } = visit;
    await keepOnServer(page);
    await ask(page, "Of somebody [[text]]");
    await eventually("it is settled", async () => (await stack.gateway.show(email)).reserved === 0);
    await stack.gateway.cli("accounts", "delete", email, "--yes");
    await page.getByRole("heading", { level: 1, name: "Sign in to Tollgate" }).waitFor();
    const log = await Bun.$`grep -c "Of somebody" ${stack.gateway.dataFolder}/files.db`.nothrow().text();
    expect(log.trim()).toBe("0");
  });

  test("500 conversations are listed, searched and deleted on the server", async () => {
    const email = await newPerson();
    await using visit = await open(email);
    const { page } = visit;
    await keepOnServer(page);
    const headers = { origin: stack.gateway.url };
    for (let at = 0; at < 500; at += 1) {
      const state = {
        createdAt: at,
        updatedAt: Date.now() - at * 3_600_000,
        leaf: "a",
        lane: 0,
        settings: {},
        bytes: 1,
      };
      const records = [
        { id: "", words: "", content: JSON.stringify(state) },
        { id: "~", words: "", content: JSON.stringify({ title: `Conversation ${at}`, pinned: at === 400 }) },
        {
          id: "a",
          words: `needle ${at} `,
          content: JSON.stringify({ id: "a", parent: null, at, turn: { role: "user", text: "Hi", pictures: [] } }),
        },
      ];
      const data = { id: `c${at}`, known: false, records };
      const reply = await visit.context.request.post("/console/api/conversations/write", { data, headers });
      expect((await reply.json()) as object).toMatchObject({ state: "kept" });
    }
    const began = performance.now();
    await page.reload();
    await expectEventually(() => list(page).getByRole("link").count(), 500);
    expect((await titles(page)).startsWith("Conversation 400, Conversation 0,")).toBe(true);
    await page.getByRole("searchbox", { name: "Search the conversations" }).fill("needle 321 ");
    await expectEventually(() => titles(page), "Conversation 321");
    console.log(`500 conversations on the server: listed and searched in ${(performance.now() - began).toFixed(0)} ms`);
    await page.getByRole("searchbox", { name: "Search the conversations" }).fill("");
    await page.getByRole("button", { name: "Import, export or delete all" }).click();
    await page.getByRole("menuitem", { name: "Delete all" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete all" }).click();
    await page.getByText("What you ask is listed here.").waitFor();
    expect(await heads(visit)).toMatchObject({ heads: [], bytes: 0 });
    expect(visit.problems).toEqual([]);
  });

  test("one is exported as Markdown and JSON, and what JSON has comes back as another one", async () => {
    await using visit = await open(await newPerson());
    const { page } = visit;
    const buffer = Buffer.from("the notes");
    await page
      .locator(".composer input[type=file]")
      .setInputFiles({ name: "notes.md", mimeType: "text/plain", buffer });
    await ask(page, "A rich one [[rich]]");
    const save = async (action: string): Promise<string> => {
      await page.getByRole("button", { name: /^More for A rich one/ }).click();
      const download = page.waitForEvent("download");
      await page.getByRole("menuitem", { name: action }).click();
      return (await download).path();
    };
    const markdown = await Bun.file(await save("Export as Markdown")).text();
    for (const part of ["# A rich one", "- `notes.md` (9 bytes)", "```ts\nconst x = 1;", "| 1 | 2 |", "$$x^2$$"]) {
      expect(markdown).toContain(part);
    }
    const json = await save("Export as JSON");
    await page.locator(".kept input[type=file]").setInputFiles(json);
    await page.getByText("1 conversation is imported.").waitFor();
    await expectEventually(() => titles(page), "A rich one [[rich]], A rich one [[rich]]");
    await list(page).getByRole("link").last().click();
    await page.locator(".turn.user").getByText("notes.md").waitFor();
    await page.locator(".turn.answer pre").getByText("const x").waitFor();
    const hostile = {
      format: "tollgate-conversations",
      conversations: [
        {
          id: 1,
          messages: [
            {
              id: "a",
              parent: "a",
              role: "assistant",
              answers: [{ text: 7, sources: [{ url: "javascript:alert(1)", title: "<b>" }] }],
            },
            null,
            { role: "user" },
          ],
        },
      ],
    };
    await page
      .locator(".kept input[type=file]")
      .setInputFiles({ name: "odd.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(hostile)) });
    await expectEventually(() => list(page).getByRole("link").count(), 3);
    await page
      .locator(".kept input[type=file]")
      .setInputFiles({ name: "no.json", mimeType: "application/json", buffer: Buffer.from("[1]") });
    await page.getByText("no.json has no conversations").waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("what the next request costs stands below it, as the gateway counts it; four models answer, one goes on", async () => {
    await using visit = await open(await newPerson());
    const { page } = visit;
    const budget = page.locator(".budget");
    const quoted = page.waitForResponse("**/v1/quote**");
    await page.getByRole("textbox", { name: "Message" }).fill("What will this cost? [[text]]");
    const quote = (await (await quoted).json()) as { input_tokens: number; price_max_usd: number };
    await budget.getByText(`${quote.input_tokens} of`).waitFor();
    await budget.getByText(`at most $${quote.price_max_usd.toFixed(3)}`).waitFor();
    await page.getByLabel("Output budget").fill("60000");
    await page.getByRole("textbox", { name: "Message" }).fill("word ".repeat(250_000));
    await budget.getByText(/^Too long for/).waitFor();
    await page.getByLabel("Output budget").fill("");
    for (const name of ["Compare with another model", "Compare with one more model", "Compare with one more model"]) {
      await page.getByRole("button", { name }).click();
    }
    expect(await page.getByRole("button", { name: "Compare with one more model" }).isDisabled()).toBe(true);
    await page.setViewportSize({ width: 390, height: 844 });
    await write(page, "All of you [[text]]");
    await expectEventually(
      () =>
        page
          .locator(".lane-figures")
          .getByText(/^\$0\./)
          .count(),
      4,
    );
    expect(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
    await page.getByRole("button", { name: "Continue with this" }).nth(2).click();
    expect(await page.getByLabel("Model 2").count()).toBe(0);
    await page.reload();
    await expectEventually(() => page.locator(".lane").count(), 4);
    expect(visit.problems).toEqual([]);
  });
});

/** Runs in the page: 2 MB in the clipboard. */
const paste = `(() => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", "a word\\n".repeat(300_000));
  const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
  document.querySelector(".composer textarea").dispatchEvent(event);
})()`;
