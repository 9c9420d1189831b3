// Conversations of the playground, kept in a real browser: versions, two models side by side, presets, two tabs, two
// accounts, a browser that keeps nothing or has no room, and what a phone shows.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { eventually } from "../fixtures/eventually.ts";
import { finish, role, type Step, text, usualUsage } from "../fixtures/scripts.ts";
import { Stack } from "../fixtures/stack.ts";
import { pdf } from "../fixtures/pdf.ts";
import { pixel, pixelBase64 } from "../fixtures/pictures.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";
import { ask, list, openPlayground, password, titles, wide, write } from "./playground.ts";

setDefaultTimeout(120_000);

const ada = "ada@example.com";
const bob = "bob@example.com";
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

type SentBody = Readonly<{ model: string; messages: readonly Readonly<{ role: string; content: string }>[] }>;

describe.skipIf(withoutBrowser)("conversations of the playground", () => {
  let stack: Stack;
  let browser: Browser;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([Stack.start(), launch()]);
    for (const email of [ada, bob]) {
      await stack.gateway.cli("accounts", "create", email, "--password", password, "--plan", "pro");
    }
    const version = (words: string) => ({ steps: [role, ...text(words), ...finish("stop")] });
    await stack.node.define("versions", {
      advance: "attempts",
      replies: ["first", "second", "third", "fourth", "fifth", "sixth"].map((word) => version(`The ${word} answer.`)),
    });
    await stack.node.define("again", {
      advance: "attempts",
      replies: [{ status: 400, steps: [{ raw: "no" }] }, version("It works now.")],
    });
    const waits: Step = { waitMs: 60_000 };
    await stack.node.define("slow", { advance: "attempts", replies: [{ steps: [role, ...text("What came"), waits] }] });
    await stack.node.define("cut", {
      advance: "attempts",
      replies: [{ steps: [role, ...text("Half of it"), { die: "rst" }] }],
    });
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.[Symbol.asyncDispose]();
  });

  const open = (options: BrowserContextOptions = wide, email = ada): Promise<Visit> =>
    openPlayground(browser, stack.gateway.url, email, options);

  /** Of a conversation's menu, or of the one for all of them. */
  async function more(page: Page, title: string, action: string): Promise<void> {
    const name = title === "all" ? "Import, export or delete all" : new RegExp(`^More for ${title}`);
    const button = page.getByRole("button", { name });
    await button.focus(); // it appears
    await button.click();
    await page.getByRole("menuitem", { name: action }).click();
  }

  test("a conversation is there again after a reload, with its image, its numbers and its address", async () => {
    await using visit = await open();
    const { page } = visit;
    const file = { name: "dot.png", mimeType: "image/png", buffer: pixel };
    await page.locator(".composer input[type=file]").setInputFiles(file);
    await ask(page, "What is on it? [[text]]");
    await page.waitForURL(/\?c=\w+$/);
    const foot = await page.locator(".turn.answer .turn-foot").innerText();
    expect(foot).toMatch(/first token .* in · .* out\s+\$0\.\d+/s);
    const cost = (await stack.gateway.usage(ada))[0]!.cost_usd;
    expect(foot).toContain(`$${Number(cost)}`);
    await page.reload();
    await page.locator(".turn.answer .turn-foot").waitFor();
    expect(await page.locator(".turn.answer .turn-foot").innerText()).toBe(foot);
    expect(await page.locator(".turn.user canvas").getAttribute("aria-label")).toBe("dot.png");
    expect(await page.title()).toBe("What is on it? [[text]] · Playground · Tollgate");

    const sent = page.waitForRequest("**/v1/chat/completions");
    await write(page, "And now? [[text]]");
    const body = JSON.stringify((await sent).postDataJSON());
    expect(body).toContain(`data:image/png;base64,${pixelBase64}`);
    expect(visit.problems).toEqual([]);
  });

  test("PDFs and text files are chosen, pasted and dropped, sent in every dialect and kept", async () => {
    await using visit = await open();
    const { page } = visit;
    const utf16 = Buffer.from("\ufeffWörter, und mehr", "utf16le");
    await page.locator(".composer input[type=file]").setInputFiles([
      { name: "paper.pdf", mimeType: "application/pdf", buffer: pdf("Hello from a page") },
      { name: "notes.md", mimeType: "", buffer: utf16 },
      { name: "tool.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0, 1, 2, 255]) },
      { name: "large.txt", mimeType: "text/plain", buffer: Buffer.alloc(8 * 1024 * 1024 + 1, "a") },
    ]);
    await page.getByText("tool.bin is neither").waitFor();
    await page.getByText("large.txt is larger than 8 MiB").waitFor();
    for (const [kind, name] of [
      ["paste", "pasted.csv"],
      ["drop", "dropped.txt"],
    ] as const) {
      const event = kind === "paste" ? "ClipboardEvent" : "DragEvent";
      const given = kind === "paste" ? "clipboardData" : "dataTransfer";
      await page.evaluate(`{
        const data = new DataTransfer();
        data.items.add(new File(["the words of ${name}"], "${name}"));
        const field = document.querySelector("textarea[aria-label=Message]");
        field.dispatchEvent(new ${event}("${kind}", { ${given}: data, bubbles: true, cancelable: true }));
      }`);
      await page.getByRole("button", { name: `Remove ${name}` }).waitFor();
    }
    await page.getByRole("button", { name: "Remove dropped.txt" }).click();
    const seen: string[] = [];
    for (const [dialect, endpoint] of [
      ["chat-completions", "/v1/chat/completions"],
      ["messages", "/v1/messages"],
      ["responses", "/v1/responses"],
    ] as const) {
      await page.getByLabel("Dialect").selectOption(dialect);
      const sent = page.waitForRequest(`**${endpoint}`);
      await ask(page, seen.length === 0 ? "What do they say? [[text]]" : "Once more [[text]]");
      expect((await (await sent).response())!.status()).toBe(200);
      const request = JSON.stringify((await stack.node.requests("text")).at(-1));
      for (const words of ["Hello from a page", "Wörter, und mehr", "the words of pasted.csv", "notes.md"]) {
        expect(request).toContain(words);
      }
      expect(request).not.toContain("dropped.txt");
      seen.push(endpoint);
      await page.reload(); // the files are kept with the conversation
      await page.locator(".turn.user").first().getByText("paper.pdf").waitFor();
    }
    expect(visit.problems).toEqual([]);
  });

  test("an answer asked for again and an edited question stay beside the earlier ones, after a reload too", async () => {
    await using visit = await open();
    const { page } = visit;
    await ask(page, "[[versions]] please");
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.getByText("The second answer.").waitFor();
    await page.getByText("2 / 2").waitFor();
    await page.getByRole("button", { name: "Earlier version" }).click();
    await page.getByText("The first answer.").waitFor();

    const sent = page.waitForRequest("**/v1/chat/completions");
    await ask(page, "Go on with the first [[text]]");
    const { messages } = (await sent).postDataJSON() as SentBody;
    expect(messages.map(({ content }) => content).join("|")).toContain("The first answer.");

    const question = page.locator(".turn.user").first();
    await question.hover();
    await question.getByRole("button", { name: "Edit the question" }).click();
    const editor = page.getByRole("textbox", { name: "The question" });
    expect(await editor.inputValue()).toBe("[[versions]] please");
    await editor.fill("[[versions]] instead");
    await editor.press("Control+Enter");
    await page.getByText("The third answer.").waitFor();
    await expectEventually(() => page.locator(".turn").count(), 2);
    await page.getByText(/^(?:free|\$0\.)/).waitFor();

    await page.reload();
    await page.getByText("The third answer.").waitFor();
    await page.locator(".turn.user").hover();
    await page.locator(".turn.user").getByRole("button", { name: "Earlier version" }).click();
    await expectEventually(() => page.locator(".turn").count(), 4);
    await page.getByText("Go on with the first").last().waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("after an error the same is tried again, and the failure is no version", async () => {
    await using visit = await open();
    const { page } = visit;
    await write(page, "[[again]]");
    await page.getByRole("alert").waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("It works now.").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await page.getByRole("group", { name: "Versions" }).count()).toBe(0);
    expect(visit.problemsBut(/status of 400/)).toEqual([]);
  });

  test("what came stays when a stream is cut, when it is stopped, and when the page goes in the middle of it", async () => {
    await using visit = await open();
    const { page } = visit;
    await write(page, "[[cut]]");
    await page.getByRole("alert").waitFor();
    await page.getByText("Half of it").waitFor();

    await page.getByRole("button", { name: "New conversation" }).click();
    await write(page, "[[slow]] stopped");
    await page.getByText("What came").waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByText("Stopped", { exact: true }).waitFor();
    await page.getByText("What came").waitFor();

    await page.getByRole("button", { name: "New conversation" }).click();
    await write(page, "[[slow]] gone");
    await page.getByText("What came").waitFor();
    await page.waitForURL(/\?c=/);
    await page.reload();
    await page.getByText("Not finished").waitFor();
    await page.getByText("What came").waitFor();
    await list(page).getByRole("link", { name: "[[cut]]" }).click();
    await page.getByText("Half of it").waitFor();
    await page.getByRole("alert").waitFor();
  });

  test("an answer goes on while another conversation is shown", async () => {
    await stack.node.define("long", {
      advance: "attempts",
      replies: [
        { steps: [role, ...text("begun "), { waitMs: 1_000 }, ...text("and ended."), ...finish("stop", usualUsage)] },
      ],
    });
    await using visit = await open();
    const { page } = visit;
    await write(page, "[[long]]");
    await page.getByText("begun").waitFor();
    await page.getByRole("button", { name: "New conversation" }).click();
    await ask(page, "Another [[text]]");
    await list(page).getByRole("link", { name: "[[long]]" }).click();
    await page.getByText("begun and ended.").waitFor();
    await page.locator(".turn-foot").waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("two models answer side by side, each with its own time, tokens, cost and past; one of them goes on", async () => {
    await using visit = await open();
    const { page } = visit;
    const sent: SentBody[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/chat/completions")) sent.push(request.postDataJSON() as SentBody);
    });
    await page.getByRole("button", { name: "Compare with another model" }).click();
    const second = await page.getByLabel("Model 2").inputValue();
    const first = await page.getByLabel("Model", { exact: true }).inputValue();
    expect(first).not.toBe(second);
    await write(page, "Both [[versions]]");
    const lanes = page.locator(".lane");
    for (const lane of [0, 1]) {
      const figures = lanes.nth(lane).locator(".lane-figures");
      await figures.getByText(/^\$0\./).waitFor();
      expect(await figures.innerText()).toMatch(
        /First token\s+\d+ ms\s+Speed\s+(?:–|[\d,]+ tokens\/s)\s+Tokens out\s+20\s+Cost/,
      );
    }
    expect(sent.map(({ model }) => model).sort()).toEqual([first, second].sort());
    const rows = await stack.gateway.usage(ada);
    expect(
      rows
        .slice(0, 2)
        .map(({ model }) => model)
        .sort(),
    ).toEqual([first, second].sort());
    const said = await Promise.all([0, 1].map((lane) => lanes.nth(lane).locator(".markdown").innerText()));
    expect(said[0]).not.toBe(said[1]);

    sent.length = 0;
    await write(page, "More [[text]]");
    await expectEventually(() => page.locator(".lane .turn-foot").count(), 4);
    for (const [lane, model] of [first, second].entries()) {
      const past = sent.find((body) => body.model === model)!.messages.map(({ content }) => content);
      expect(past[1]).toBe(said[lane]!);
    }
    await page.getByRole("button", { name: "Continue with this" }).last().click();
    expect(await page.getByLabel("Model 2").count()).toBe(0);
    sent.length = 0;
    await eventually("the browser has kept the choice", async () => page.evaluate<boolean>(latestComparesNone));
    await page.reload();
    await page.locator(".lane").first().waitFor();
    await ask(page, "Alone [[text]]");
    expect(sent.map(({ model }) => model)).toEqual([second]);
    expect(sent[0]!.messages[1]!.content).toBe(said[1]!);
    expect(visit.problems).toEqual([]);
  });

  test("conversations are searched by title and content, renamed, exported and deleted, one or all", async () => {
    await using visit = await open();
    const { page } = visit;
    for (const title of ["Apples [[text]]", "Pears [[versions]]", "Plums [[text]]"]) {
      await ask(page, title);
      await page.getByRole("button", { name: "New conversation" }).click();
    }
    await expectEventually(() => titles(page), "Plums [[text]], Pears [[versions]], Apples [[text]]");
    const search = page.getByRole("searchbox", { name: "Search the conversations" });
    await search.fill("APPL");
    await expectEventually(() => titles(page), "Apples [[text]]");
    await search.fill("answer."); // said by the model alone
    await expectEventually(() => titles(page), "Pears [[versions]]");
    await search.fill("nothing says this");
    await page.getByText("No conversation contains this").waitFor();
    await search.fill("");

    // By the keyboard alone: down the list, renamed, pinned, deleted and put back.
    await list(page).getByRole("link", { name: "Pears" }).focus();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("F2");
    await page.keyboard.type("Damsons");
    await page.keyboard.press("Enter");
    await expectEventually(() => titles(page), "Damsons, Pears [[versions]], Apples [[text]]");
    await list(page).getByRole("link", { name: "Apples" }).focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("menuitem", { name: "Pin" }).press("Enter");
    await expectEventually(() => titles(page), "Apples [[text]], Damsons, Pears [[versions]]");
    await list(page).getByRole("link", { name: "Apples" }).press("Delete");
    await expectEventually(() => titles(page), "Damsons, Pears [[versions]]");
    await page.getByRole("button", { name: "Undo" }).press("Enter");
    await expectEventually(() => titles(page), "Apples [[text]], Damsons, Pears [[versions]]");
    await more(page, "Apples", "Unpin");
    await expectEventually(() => titles(page), "Damsons, Pears [[versions]], Apples [[text]]");

    const download = page.waitForEvent("download");
    await more(page, "all", "Export all as JSON");
    const file = await (await download).path();
    const exported = (await Bun.file(file).json()) as {
      conversations: { title: string; messages: { role: string; text?: string; answers?: { cost_usd: number }[] }[] }[];
    };
    expect(exported.conversations.map(({ title }) => title)).toEqual([
      "Damsons",
      "Pears [[versions]]",
      "Apples [[text]]",
    ]);
    const [question, answer] = exported.conversations[0]!.messages;
    expect([question?.role, question?.text, answer?.role]).toEqual(["user", "Plums [[text]]", "assistant"]);
    expect(answer?.answers?.[0]?.cost_usd).toBeGreaterThan(0);

    await list(page).getByRole("link", { name: "Pears" }).click();
    await more(page, "Pears", "Delete");
    await expectEventually(() => titles(page), "Damsons, Apples [[text]]");
    await page.locator(".empty-title").waitFor();
    await page.waitForURL(/\/playground$/);
    await more(page, "all", "Delete all");
    await page.getByRole("dialog").getByRole("button", { name: "Delete all" }).click();
    await expectEventually(() => titles(page), "");
    await page.reload();
    await page.getByText("What you ask is listed here.").waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("presets keep model and settings under a name", async () => {
    await using visit = await open();
    const { page } = visit;
    await page.getByLabel("Model", { exact: true }).selectOption("core-3");
    await page.getByLabel("System prompt").fill("Be brief.");
    await page.getByLabel("Temperature").fill("0.2");
    await page.getByRole("button", { name: "Save as a preset" }).click();
    await page.getByLabel("Name").fill("Brief <b>");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expectEventually(
      () => page.getByLabel("Preset", { exact: true }).locator("option:checked").innerText(),
      "Brief <b>",
    );
    await page.reload();
    await page.getByLabel("Preset", { exact: true }).selectOption({ label: "Brief <b>" });
    expect(await page.getByLabel("System prompt").inputValue()).toBe("Be brief.");
    expect(await page.getByLabel("Temperature").inputValue()).toBe("0.2");
    expect(await page.getByLabel("Model", { exact: true }).inputValue()).toBe("core-3");
    await page.getByRole("button", { name: "Delete the preset Brief" }).click();
    await expectEventually(() => page.getByLabel("Preset", { exact: true }).locator("option").count(), 1);
    expect(visit.problems).toEqual([]);
  });

  test("who signs in after another sees nothing of that account, which finds everything again", async () => {
    await using visit = await open();
    const { page } = visit;
    await ask(page, "A secret of Ada [[text]]");
    await page.waitForURL(/\?c=/);
    const address = page.url();
    await page.getByRole("button", { name: "Sign out" }).click();
    await visit.signIn(bob, password);
    await page.getByRole("link", { name: "Playground" }).first().click();
    await page.getByText("What you ask is listed here.").waitFor();
    expect(await page.getByText("A secret of Ada").count()).toBe(0);
    await page.goto(address);
    await page.getByText("This conversation is not kept here").waitFor();
    expect(await page.getByText("A secret of Ada").count()).toBe(0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await visit.signIn(ada, password);
    await page.goto(address);
    await page.locator(".turn").getByText("A secret of Ada [[text]]").waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("two tabs add to the same conversation and lose nothing; a deleted one does not come back", async () => {
    await using visit = await open();
    const { page } = visit;
    await ask(page, "Shared [[text]]");
    await page.waitForURL(/\?c=/);
    const other = await visit.context.newPage();
    await other.goto(page.url());
    await other.locator(".turn.answer .turn-foot").waitFor();
    // Both go on from the same answer, before either has the next one.
    const bothSent = Promise.withResolvers<void>();
    for (const tab of [page, other]) {
      await tab.route("**/v1/chat/completions", async (route) => {
        await bothSent.promise;
        await route.continue();
      });
    }
    await Promise.all([write(page, "From the first tab [[text]]"), write(other, "From the second tab [[text]]")]);
    bothSent.resolve();
    for (const tab of [page, other]) await expectEventually(() => tab.locator(".turn.answer .turn-foot").count(), 2);
    for (const tab of [page, other]) await tab.getByText("/ 2").waitFor();
    await page.reload();
    await page.getByText("/ 2").waitFor();
    const questions = new Set<string>();
    for (const button of ["Earlier version", "Later version"]) {
      const chooser = page.getByRole("button", { name: button });
      if (await chooser.isEnabled()) await chooser.click();
      questions.add(await page.locator(".turn.user .bubble").nth(1).innerText());
    }
    expect([...questions].sort()).toEqual(["From the first tab [[text]]", "From the second tab [[text]]"]);

    await more(page, "Shared", "Rename");
    await page.getByLabel("Title").fill("Renamed");
    await page.keyboard.press("Enter");
    await expectEventually(() => titles(other), "Renamed");
    await ask(other, "After the renaming [[text]]");
    await expectEventually(() => titles(page), "Renamed");

    await write(other, "[[slow]] while it is deleted");
    await other.getByText("What came").waitFor();
    await more(page, "all", "Delete all");
    await page.getByRole("dialog").getByRole("button", { name: "Delete all" }).click();
    await other.locator(".empty-title").waitFor();
    await ask(other, "A new one [[text]]");
    await expectEventually(() => titles(other), "A new one [[text]]");
    await expectEventually(() => titles(page), "A new one [[text]]");
    expect(visit.problems).toEqual([]);
  });

  test("a browser that keeps nothing has its conversation until the page is closed, and says so", async () => {
    await using visit = await Visit.open(browser, stack.gateway.url, wide);
    await visit.context.addInitScript({
      content: "Object.defineProperty(globalThis, 'indexedDB', { value: undefined })",
    });
    const { page } = visit;
    await visit.signIn(ada, password);
    await page.goto("/playground");
    await page.getByText("This browser keeps nothing here").waitFor();
    await ask(page, "Once [[text]]");
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.getByText("2 / 2").waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("a browser without room says so, goes on, and keeps again when there is some", async () => {
    await using visit = await open();
    const { page } = visit;
    const devtools = await visit.context.newCDPSession(page);
    const { origin } = new URL(page.url());
    await devtools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1 });
    await write(page, "Not kept [[text]]");
    await page.locator(".toast").getByText("This browser has no room left to keep").waitFor();
    await page.locator(".kept .form-error").waitFor();
    await page.locator(".turn.answer .turn-foot").waitFor();
    expect(await titles(page)).toBe("");
    await devtools.send("Storage.overrideQuotaForOrigin", { origin });
    await ask(page, "Kept [[text]]");
    await expectEventually(() => titles(page), "Not kept [[text]]");
    await page.reload();
    await expectEventually(() => page.locator(".turn.answer .turn-foot").count(), 2);
    expect(visit.problems).toEqual([]);
  });

  test("500 conversations are listed and searched, and a megabyte can be pasted", async () => {
    await using visit = await open();
    const { page } = visit;
    await page.getByText("What you ask is listed here.").waitFor();
    await page.evaluate(manyConversations(`${(await accountOf(visit)).id} ${ada}`));
    await page.reload();
    const began = performance.now();
    await expectEventually(() => list(page).getByRole("link").count(), 500);
    await page.getByRole("searchbox", { name: "Search the conversations" }).fill("needle 321 ");
    await expectEventually(() => titles(page), "Conversation 321");
    const searchMs = performance.now() - began;
    await page.getByRole("searchbox", { name: "Search the conversations" }).fill("");

    console.log(`500 conversations: listed and searched in ${searchMs.toFixed(0)} ms`);
    await page.evaluate(paste);
    await page.getByText("Pasted text, 1,050,000 characters").waitFor();
    expect(visit.problems).toEqual([]);
  });

  test("on a phone the composer stays above the keyboard, and conversations are in a drawer", async () => {
    await using visit = await open(phone);
    const { page } = visit;
    await ask(page, "On the way [[text]]");
    await page.getByRole("textbox", { name: "Message" }).tap();
    await page.setViewportSize({ width: 390, height: 420 }); // as a keyboard does that makes the page smaller
    expect(await page.getByRole("navigation", { name: "Main" }).isVisible()).toBe(false);
    const bottom = async (): Promise<number> => {
      const { y, height } = (await page.locator(".composer-box").boundingBox())!;
      return y + height;
    };
    await eventually("the composer is above the keyboard", async () => (await bottom()) <= 420);
    await page.setViewportSize({ width: 390, height: 844 });
    // As one that is laid over the page; the page sets it anew when it hears of its new size.
    await eventually("the composer is above a keyboard over the page", async () => {
      await page.evaluate("document.documentElement.style.setProperty('--keyboard', '336px')");
      return (await bottom()) <= 844 - 336;
    });
    await page.evaluate("document.documentElement.style.removeProperty('--keyboard')");
    await page.getByRole("textbox", { name: "Message" }).fill("line");
    await page.keyboard.press("Enter"); // a new line, as in every phone's messages
    expect(await page.getByRole("textbox", { name: "Message" }).inputValue()).toBe("line\n");
    await page.getByRole("log").tap();
    await page.getByRole("navigation", { name: "Main" }).waitFor();

    await page.getByRole("button", { name: "New conversation" }).tap();
    await page.getByRole("button", { name: "Conversations" }).tap();
    await page.getByRole("dialog").getByRole("link", { name: "On the way" }).tap();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.locator(".turn").getByText("On the way [[text]]").waitFor();
    const past = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    expect(past).toBeLessThanOrEqual(0);
    expect(visit.problems).toEqual([]);
  });

  test("a model that reads no images is not sent any", async () => {
    await using visit = await Visit.open(browser, stack.gateway.url, wide);
    const { page } = visit;
    await visit.signIn(ada, password);
    await page.route("**/console/api/models", async (route) => {
      const reply = await route.fetch();
      const json = (await reply.json()) as { models: object[] };
      await route.fulfill({ json: { models: json.models.map((model) => ({ ...model, reads_images: false })) } });
    });
    await page.goto("/playground");
    await page.locator(".empty-title").waitFor();
    const file = { name: "dot.png", mimeType: "image/png", buffer: pixel };
    await page.locator(".composer input[type=file]").setInputFiles(file);
    await page.getByRole("textbox", { name: "Message" }).fill("What is on it?");
    await page.getByText("reads no images").waitFor();
    expect(await page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true);
  });

  const accountOf = async (visit: Visit): Promise<{ id: number }> => {
    const reply = await visit.context.request.get("/console/api/session");
    return ((await reply.json()) as { account: { id: number } }).account;
  };

  test("nothing is reserved when all of them are done", async () => {
    await eventually("all are settled", async () => (await stack.gateway.show(ada)).reserved === 0);
  });
});

/** Runs in the page: a megabyte in the clipboard. */
const paste = `(() => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", "a word\\n".repeat(150_000));
  const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
  document.querySelector(".composer textarea").dispatchEvent(event);
})()`;

/** Runs in the page: whether the conversation that was kept last has one model. */
const latestComparesNone = `new Promise((resolve, reject) => {
  const request = indexedDB.open("tollgate-playground", 1);
  request.onerror = reject;
  request.onsuccess = () => {
    const all = request.result.transaction("entries").objectStore("entries").getAll();
    all.onerror = reject;
    all.onsuccess = () => {
      request.result.close();
      const [latest] = all.result.sort((one, other) => other.updatedAt - one.updatedAt);
      resolve(latest?.settings.others === "");
    };
  };
})`;

/** Runs in the page: 500 conversations as the store writes them. */
const manyConversations = (owner: string): string => `new Promise((resolve, reject) => {
  const request = indexedDB.open("tollgate-playground", 1);
  request.onerror = reject;
  request.onsuccess = () => {
    const transaction = request.result.transaction(["entries", "steps"], "readwrite");
    transaction.oncomplete = resolve;
    transaction.onabort = reject;
    for (let index = 0; index < 500; index++) {
      const at = Date.now() - index * 3_600_000;
      const of = { owner: ${JSON.stringify(owner)} };
      const id = "c" + index;
      const entry = { id, title: "Conversation " + index, createdAt: at, updatedAt: at, leaf: "b", lane: 0, settings: {}, bytes: 1 };
      transaction.objectStore("entries").put({ ...of, ...entry });
      const question = { id: "a", parent: null, at, turn: { role: "user", text: "x ".repeat(2_000), pictures: [] } };
      const answer = { role: "assistant", model: "core-3", startedAt: at, state: "done", text: "needle " + index + " " + "y ".repeat(2_000) };
      const replies = { id: "b", parent: "a", at, turn: { role: "replies", lanes: [answer] } };
      for (const step of [question, replies]) {
        transaction.objectStore("steps").put({ ...of, conversation: id, id: step.id, step });
      }
    }
  };
})`;
