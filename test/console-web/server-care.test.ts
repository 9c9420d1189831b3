// What operators do to the server and to an account's data, in a real browser: reloads, backups, exports and deletions.
// Each is in the audit log.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { useStack } from "../fixtures/stack.ts";
import { expectEventually, launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const operator = "head@example.com";
const password = "correct horse battery";

describe.skipIf(withoutBrowser)("the server and the accounts' data", () => {
  const stack = useStack();
  let browser: Browser;
  let head: Visit;
  let page: Page;

  beforeAll(async () => {
    browser = await launch();
    await stack.gateway.cli("accounts", "create", operator, "--password", password, "--operator");
    head = await Visit.open(browser, stack.gateway.url);
    page = head.page;
    await head.signIn(operator, password);
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
  }, timeLimit);

  /** Waits for an entry of the audit log. */
  async function expectAudited(action: string, what: string): Promise<void> {
    await head.goTo("/operator/audit", "Audit log");
    await page.locator("tbody tr", { hasText: action }).getByText(what).first().waitFor();
  }

  const reload = async (): Promise<void> => {
    await head.goTo("/operator/server", "Server");
    await page.getByRole("button", { name: "Reload configuration" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Reload" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  const configuration = () => page.getByRole("region", { name: "Configuration" });

  test(
    "a changed configuration is applied by a button, which says what changed and what needs a restart",
    async () => {
      const { gateway } = stack;
      const file = join(gateway.folder, "tollgate.toml");
      await head.goTo("/operator/server", "Server");
      await configuration().getByText(file).waitFor();
      const readAt = () => configuration().locator("time").getAttribute("datetime");
      const before = await readAt();
      await appendFile(file, "\n[queue]\nmax_wait_seconds = 7\n[console]\nsign_up = true\n");
      await reload();
      const fact = (name: string) => configuration().locator(`dt:text-is("${name}") + dd`);
      await expectEventually(() => fact("Changed").textContent(), "queue.max_wait_seconds");
      await expectEventually(() => fact("Needs a restart").textContent(), "console.sign_up");
      expect(((await readAt()) ?? "") > (before ?? "")).toBe(true);
      await expectAudited("server.reload", "applied: queue.max_wait_seconds; needs a restart: console.sign_up");
      expect(head.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a configuration with an error is refused with its place, and changes nothing",
    async () => {
      const { gateway } = stack;
      const file = join(gateway.folder, "tollgate.toml");
      const good = await readFile(file, "utf8");
      await head.goTo("/operator/server", "Server");
      const readAt = () => configuration().locator("time").getAttribute("datetime");
      const before = await readAt();
      await writeFile(file, `${good}\n[serverr]\nport = 1\n`);
      await reload();
      await configuration().getByText("Nothing was changed.").waitFor();
      expect(await configuration().locator("pre").textContent()).toContain("serverr");
      expect(await readAt()).toBe(before);
      await expectAudited("server.reload", "refused: ");
      await writeFile(file, good);
      await reload();
      await configuration().getByText("Nothing was changed.").waitFor({ state: "detached" });
      expect(head.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a node comes, changes and goes in the console, by keyboard, with the difference shown; a click undoes it",
    async () => {
      const file = join(stack.gateway.folder, "tollgate.toml");
      const before = await readFile(file, "utf8");
      await head.goTo("/operator/nodes", "Nodes");
      await page.getByRole("link", { name: "Edit nodes" }).click();
      await page.getByRole("button", { name: "Add" }).click();
      await page.getByLabel("name", { exact: true }).fill("spare");
      await page.getByLabel("url", { exact: true }).fill("http://127.0.0.1:9");
      await page.getByText("More settings").click();
      await page.getByLabel("api_key", { exact: true }).fill("sk-of-the-spare");
      await page.getByLabel("models", { exact: true }).fill('{ "core-3" = "m" }');
      await page.keyboard.press("Enter");
      const lines = page.getByLabel("Changed lines of the file");
      await lines.getByText('+ name = "spare"').waitFor();
      expect(await lines.textContent()).toContain('+ api_key = "…"');
      await page.getByRole("dialog").getByText("node spare: http://127.0.0.1:9/v1: it cannot be reached").waitFor();
      expect(await readFile(file, "utf8")).toBe(before);
      await page.getByRole("button", { name: "Apply" }).press("Enter");
      await page.getByRole("button", { name: "Edit nodes spare" }).waitFor();
      expect(await readFile(file, "utf8")).toContain('api_key = "sk-of-the-spare"\nmodels = { core-3 = "m" }\n');

      // Somebody else was here while the form was open.
      await page.getByRole("button", { name: "Edit nodes spare" }).press("Enter");
      expect(await page.content()).not.toContain("sk-of-the-spare");
      await page.getByText("More settings").click();
      await page.getByLabel("slots", { exact: true }).fill("0");
      await stack.gateway.cli("config", "edit", "--set", "nodes.spare.priority_scheduling=true");
      await page.getByRole("button", { name: "Review the change" }).click();
      await page
        .getByRole("alert")
        .getByText(/is another one than you saw: command line .* changed it/)
        .waitFor();
      await page.getByRole("button", { name: "Read the file again" }).click();
      await page.getByRole("alert").getByText('must be a whole number from 1 to 100000, or "auto", is 0').waitFor();
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByLabel("slots", { exact: true }).fill("auto");
      await page.getByRole("button", { name: "Review the change" }).click();
      await lines.getByText('+ slots = "auto"').waitFor();
      await page.getByRole("button", { name: "Apply" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });

      const undo = page.getByRole("button", { name: "Undo the last change" });
      for (const undone of ["slots from nothing", "priority_scheduling from nothing", "+ nodes"]) {
        await undo.click();
        await page.locator(".toast").getByText(undone).waitFor();
      }
      await undo.waitFor({ state: "detached" });
      expect(await readFile(file, "utf8")).toBe(before);
      await expectAudited("server.config", "nodes.spare.slots from nothing to");
      expect(head.problems.splice(0).filter((problem) => !/status of 4(?:00|09)/.test(problem))).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a backup is made in the data folder, checked, and shown with its size",
    async () => {
      await head.goTo("/operator/server", "Server");
      const backup = page.getByRole("region", { name: "Backup" });
      await backup.getByRole("button", { name: "Make a backup" }).click();
      await backup.getByText("Done, and every page checked").waitFor();
      const file = (await backup.locator("dd code").textContent()) ?? "";
      await backup.getByText("There are no automatic backups").waitFor();
      expect(await backup.locator("tbody tr code").allTextContents()).toEqual([file]);
      const made = statSync(join(stack.gateway.dataFolder, "backups", file));
      expect(made.mode & 0o777).toBe(0o600);
      const size = `${(made.size / 1000).toFixed(made.size < 99_950 ? 1 : 0)} kB`;
      await backup.locator("dd", { hasText: size }).waitFor();
      await backup.locator("tbody td", { hasText: size }).waitFor();
      await backup.getByText(/^\d+ ms$/).waitFor();
      await expectAudited("server.backup", `${file}: ${made.size} bytes, checked`);
      expect(head.problems).toEqual([]);
    },
    timeLimit,
  );

  test(
    "an account downloads its data; an operator does too, and that is written down",
    async () => {
      const email = "grace@example.com";
      await stack.gateway.cli("accounts", "create", email, "--password", password, "--credit", "777");
      await using owner = await Visit.open(browser, stack.gateway.url);
      await owner.signIn(email, password);
      await owner.goTo("/account", "Account");
      const own = await downloaded(owner.page, () =>
        owner.page.getByRole("button", { name: "Export your data" }).click(),
      );
      expect(own).toMatchObject({ account: { email, credit: 777 }, audit: [{ action: "account.create" }] });

      await openSheet(page, head, email);
      const told = await stack.gateway.cli<object>("accounts", "export", email);
      const exported = await downloaded(page, () => page.getByRole("button", { name: "Export" }).click());
      expect(exported).toEqual(told);
      await expectAudited("account.export", email);
      expect([...owner.problems, ...head.problems]).toEqual([]);
    },
    timeLimit,
  );

  test(
    "an account is deleted when its name was typed, but not while a request of it is open",
    async () => {
      const { gateway, node } = stack;
      const account = await gateway.account();
      const leaving = new AbortController();
      const open = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${account.api_key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "core-3",
          stream: true,
          messages: [{ role: "user", content: `[[${node.marker("endless")}]]` }],
        }),
        signal: leaving.signal,
      });
      const reader = open.body!.getReader();
      const client = (async () => {
        while (!(await reader.read()).done); // until it leaves
      })().catch(() => "left");

      await openSheet(page, head, account.email);
      const dialog = page.locator("dialog.box");
      const remove = dialog.getByRole("button", { name: "Delete account" });
      await page.getByRole("button", { name: "Delete account" }).click();
      await dialog.getByLabel("Type its e-mail address").fill("somebody@example.com");
      expect(await remove.isDisabled()).toBe(true);
      await dialog.getByLabel("Type its e-mail address").fill(account.email);
      await remove.click();

      await dialog.getByText(`${account.email} has a request that is open`).waitFor();

      leaving.abort();
      await client;
      await expectEventually(async () => (await gateway.show(account.email)).reserved, 0);
      await remove.click();
      await page.getByText(`The account ${account.id} was deleted.`).waitFor();
      const left = `deleted-${account.id}@invalid`;
      await page.locator("dialog.sheet").getByRole("heading", { name: left }).waitFor();
      expect(await page.getByRole("button", { name: "Delete account" }).count()).toBe(0);
      await expectAudited("account.delete", left);
      expect(await page.getByText(account.email).count()).toBe(0);
      expect(head.problemsBut(/status of 409/)).toEqual([]);
    },
    timeLimit,
  );
});

async function openSheet(page: Page, visit: Visit, email: string): Promise<void> {
  await visit.goTo("/operator/accounts", "Accounts");
  await page.getByRole("button", { name: email }).click();
  await page.locator("dialog.sheet").getByRole("heading", { name: email }).waitFor();
}

/** The JSON file that the browser was given. */
async function downloaded(page: Page, ask: () => Promise<void>): Promise<object> {
  const [download] = await Promise.all([page.waitForEvent("download"), ask()]);
  expect(download.suggestedFilename()).toMatch(/^tollgate-account-\d+-\d{4}-\d\d-\d\d\.json$/);
  return (await Bun.file(await download.path()).json()) as object;
}
