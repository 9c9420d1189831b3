// What suites of the playground do in a browser.
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { Visit } from "./browser.ts";

export const password = "correct horse battery";
export const wide = { viewport: { width: 1480, height: 900 } };

/** A browser of its own, signed in and on the playground. */
export async function openPlayground(
  browser: Browser,
  url: string,
  email: string,
  options: BrowserContextOptions = wide,
): Promise<Visit> {
  const visit = await Visit.open(browser, url, { reducedMotion: "reduce", ...options });
  await visit.signIn(email, password);
  await visit.page.goto("/playground");
  await visit.page.locator(".empty-title").waitFor();
  return visit;
}

export async function write(page: Page, words: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(words);
  await page.getByRole("button", { name: "Send", exact: true }).click();
}

/** Sends and waits for the end, and for what it cost. */
export async function ask(page: Page, words: string): Promise<void> {
  const answers = await page.locator(".turn.answer").count();
  await write(page, words);
  const answer = page.locator(".turn.answer").nth(answers);
  await answer.getByText(/^(?:free|\$0\.)/).waitFor();
}

export const list = (page: Page) => page.getByRole("navigation", { name: "Conversations" });
export const titles = async (page: Page): Promise<string> =>
  (await list(page).getByRole("link").allInnerTexts()).join(", ");
