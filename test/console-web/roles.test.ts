// What each kind of person comes for, in a real browser on a house with many people: each way is counted in clicks.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { colleague, failing, House, operator, password, spender } from "./house.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const phone: BrowserContextOptions = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
/** What a page does not do while a node fails or somebody may not see something. */
const expected = /status of 50\d/;

/** Counts what people do: clicks, and texts that they type. */
class Person {
  readonly page: Page;
  clicks = 0;

  constructor({ page }: Visit) {
    this.page = page;
  }

  async follow(name: string | RegExp): Promise<void> {
    this.clicks++;
    await this.page.getByRole("main").getByRole("link", { name }).first().click();
  }

  async menu(name: string): Promise<void> {
    this.clicks++;
    await this.page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click();
  }

  async press(name: string | RegExp): Promise<void> {
    this.clicks++;
    await this.page.getByRole("button", { name }).first().click();
  }

  async reads(words: string | RegExp): Promise<void> {
    await this.page.getByRole("main").getByText(words).filter({ visible: true }).first().waitFor();
  }

  /** Nothing of the page needs a scroll to the side. */
  async fits(): Promise<void> {
    expect(await this.page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(
      0,
    );
  }
}

describe.skipIf(withoutBrowser)("what people come for", () => {
  let house: House;
  let browser: Browser;
  beforeAll(async () => {
    [house, browser] = await Promise.all([House.open({ badDay: true, crowd: 1_000, rows: 3_000 }), launch()]);
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await house?.[Symbol.asyncDispose]();
  }, timeLimit);

  const enter = async (email: string, options: BrowserContextOptions = {}): Promise<[Visit, Person]> => {
    const visit = await Visit.open(browser, house.gateway.url, options);
    await visit.signIn(email, password);
    return [visit, new Person(visit)];
  };

  test(
    "a newcomer signs up and reads a first answer within five clicks",
    async () => {
      await using visit = await Visit.open(browser, house.gateway.url);
      const person = new Person(visit);
      await visit.goTo("/sign-in", "Sign in to Tollgate");
      await person.follow("Create an account");
      await person.page.getByLabel("E-mail").fill("newcomer@example.com");
      await person.page.getByLabel("Password").fill(password);
      await person.press("Create account");
      await person.follow(/continue/);
      await person.follow("Open the playground");
      await person.page.getByRole("textbox", { name: "Message" }).fill("Hello");
      await person.press("Send");
      await person.reads("The first answer came from this house's own machine.");
      expect(person.clicks).toBeLessThanOrEqual(5);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "on a bad day each of five questions is answered within two clicks of where operators land",
    async () => {
      const [visit, person] = await enter(operator);
      await using _ = visit;
      const land = async (): Promise<void> => {
        await visit.goTo("/operator", "Activity");
        await person.page.getByRole("region", { name: "Needs attention" }).waitFor();
        person.clicks = 0;
      };
      const answered = (): void => expect(person.clicks).toBeLessThanOrEqual(2);

      // Which node is down, since when and why?
      await land();
      await person.follow(/gpu-c is down/);
      await person.page.getByRole("heading", { level: 1, name: "gpu-c" }).waitFor();
      await person.reads("It cannot be reached: nothing listens at its address.");
      await person.reads("Down since");
      answered();
      await person.page.goBack();
      await person.page.getByRole("heading", { level: 1, name: "Activity" }).waitFor();

      // How much room is left on the disk?
      await land();
      await person.follow(/The disk of the data folder has/);
      await person.reads("Free on the disk");
      await person.reads(/^\d+ MB$/);
      answered();

      // Who is at the limit, and what did they ask for?
      await land();
      await person.follow(`${spender} has used`);
      await person.reads("core-3");
      answered();

      // Which model fails, and why?
      await land();
      await person.menu("Models");
      await person.page.getByRole("row").filter({ hasText: failing }).getByText("failed").waitFor();
      await person.follow(failing);
      await person.follow("Why");
      expect(person.clicks).toBeLessThanOrEqual(3);
      await person.reads("node failed");

      // What changed last, and who did it?
      await land();
      await person.page.locator("summary", { hasText: "More" }).click();
      await person.menu("Audit log");
      await person.reads("invitation.create");
      answered();
      expect(visit.problemsBut(expected)).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a drained node is taken back by one click, and its page can be shared",
    async () => {
      const [visit, person] = await enter(operator);
      await using _ = visit;
      await visit.goTo("/operator/nodes/gpu-b", "gpu-b");
      await person.press("Drain");
      await person.reads(/Drained since/);
      await person.press("Undo");
      await expectEventually(() => person.page.getByText(/Drained since/).count(), 0);
      await visit.goTo("/operator/nodes/gpu-x", "gpu-x");
      await person.reads("There is no such node.");
      await visit.goTo("/operator/models/%E0%A4%A", "%E0%A4%A");
      await person.reads("There is no such model.");
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "an operator with a thousand accounts finds one in two steps",
    async () => {
      const [visit, person] = await enter(operator);
      await using _ = visit;
      await visit.goTo("/operator/accounts", "Accounts");
      await person.page.getByRole("searchbox").first().fill("ines.jansen7");
      await expectEventually(() => person.page.getByRole("main").locator("tbody tr").count(), 1);
      await person.reads("ines.jansen7@example.com");
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a team's admin sees what the team used and makes an invitation within three clicks",
    async () => {
      const [visit, person] = await enter(colleague);
      await using _ = visit;
      await person.menu("Team");
      await person.reads(spender);
      await person.press("Invite");
      await person.press(/Make the link|Create the link/);
      await person.page.getByRole("button", { name: /Copy the link/ }).waitFor();
      expect(person.clicks).toBeLessThanOrEqual(3);
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a colleague on a phone looks at what is left and gets an answer",
    async () => {
      const [visit, person] = await enter(colleague, phone);
      await using _ = visit;
      await person.reads("To spend now");
      await person.fits();
      const tabs = person.page.getByRole("navigation", { name: "Main" });
      await tabs.getByRole("link", { name: "Usage" }).click();
      await person.page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
      await person.fits();
      await tabs.getByRole("link", { name: "Playground" }).click();
      await person.page.getByRole("textbox", { name: "Message" }).fill("Hello");
      await person.press("Send");
      await person.reads("The first answer came from this house's own machine.");
      await person.fits();
      expect(visit.problemsBut(expected)).toEqual([]);
    },
    timeLimit,
  );
});
