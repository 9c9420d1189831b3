// A real Chromium for the console's tests. Every visit notes what a good page never does: errors in its console,
// exceptions, and requests to any other server.
import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { eventually } from "../fixtures/eventually.ts";
import { missing } from "../fixtures/optional.ts";

const executable = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export const withoutBrowser = missing(
  "Chromium",
  existsSync(executable),
  "install it (apt-get install chromium) or name it in the variable CHROMIUM",
);

export const launch = (): Promise<Browser> =>
  chromium.launch({
    executablePath: executable,
    args: [
      "--headless",
      "--no-sandbox", // the tests may run as root
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });

/** Generous: it only ends a test that has failed, and other work may share the machine. */
const patienceMs = 30_000;

/**
 * Every reply comes so much later. What a loaded machine does now and then, a read that does not wait for what it reads,
 * this does every time.
 */
const delayMs = Number(process.env["TOLLGATE_BROWSER_DELAY_MS"] ?? 0);

export class Visit implements AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What a good page never does. */
  readonly problems: string[] = [];

  private constructor(context: BrowserContext, page: Page, url: string) {
    this.context = context;
    this.page = page;
    page.setDefaultTimeout(patienceMs);
    page.on("pageerror", (error) => this.problems.push(`exception: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error") this.problems.push(`console: ${message.text()}`);
    });
    context.on("request", (request) => {
      if (!request.url().startsWith(url)) this.problems.push(`request: ${request.url()}`);
    });
  }

  /** An empty browser profile whose relative addresses are the gateway's. */
  static async open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
    const context = await browser.newContext({ baseURL: url, viewport: { width: 1280, height: 860 }, ...options });
    if (delayMs > 0) {
      await context.route("**/*", async (route) => {
        await Bun.sleep(delayMs);
        await route.fallback();
      });
    }
    return new Visit(context, await context.newPage(), url);
  }

  /** Goes to a page and waits for its heading. */
  async goTo(path: string, heading: string): Promise<void> {
    await this.page.goto(path);
    await this.page.getByRole("heading", { level: 1, name: heading }).waitFor();
  }

  async signIn(email: string, password: string): Promise<void> {
    await this.goTo("/sign-in", "Sign in to Tollgate");
    await this.page.getByLabel("E-mail").fill(email);
    await this.page.getByLabel("Password").fill(password);
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  }

  /** Calls the console's API as a page of this visit would, for what a test needs to be there. */
  async post(path: string, data: object): Promise<void> {
    const headers = { origin: new URL(this.page.url()).origin };
    const reply = await this.context.request.post(`/console/api${path}`, { data, headers });
    if (!reply.ok()) throw new Error(`${path} was answered with ${reply.status()}: ${await reply.text()}`);
  }

  /** Problems so far, without those that the test brought about itself. */
  problemsBut(expected: RegExp): string[] {
    return this.problems.filter((problem) => !expected.test(problem));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close();
  }
}

type Shown = string | number | boolean | null;

/** Waits until the page shows it: what is read at once may be of the moment before. */
export async function expectEventually(read: () => Promise<Shown>, wanted: Shown): Promise<void> {
  await eventually(`the page shows ${wanted}`, async () => (await read()) === wanted, patienceMs);
}
