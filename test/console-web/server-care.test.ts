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
      await page.getByLabel("models", { exact: true }).fill("core-3 = m");
      const depths = ['low = { reasoning_effort = "a, {b" }', "high = { budget = [1, 2], think = true }"];
      await page.getByLabel("depth", { exact: true }).fill(depths.join("\n"));
      await page.getByRole("button", { name: "Review the change" }).press("Enter");
      const lines = page.getByLabel("Changed lines of the file");
      await lines.getByText('+ name = "spare"').waitFor();
      expect(await lines.textContent()).toContain('+ api_key = "…"');
      await page.getByRole("dialog").getByText("node spare: http://127.0.0.1:9/v1: it cannot be reached").waitFor();
      expect(await readFile(file, "utf8")).toBe(before);
      await page.getByRole("button", { name: "Apply" }).press("Enter");
      await page.getByRole("button", { name: "Edit nodes spare" }).waitFor();
      expect(await readFile(file, "utf8")).toContain('api_key = "sk-of-the-spare"\nmodels = { core-3 = "m" }\n');
      expect(await readFile(file, "utf8")).toContain(`depth = { ${depths.join(", ")} }\n`);

      // What is wrong is said at each field, and the first one has the focus.
      await page.getByRole("button", { name: "Edit nodes spare" }).press("Enter");
      expect(await page.content()).not.toContain("sk-of-the-spare");
      await page.getByText("More settings").click();
      expect(await page.getByLabel("depth", { exact: true }).inputValue()).toBe(depths.join("\n"));
      await page.getByLabel("slots", { exact: true }).fill("0");
      await page.getByLabel("start_timeout_seconds", { exact: true }).fill("soon");
      await page.getByLabel("url", { exact: true }).fill("nowhere");
      await page.getByRole("button", { name: "Review the change" }).click();
      await page.getByRole("alert").getByText("4 values are wrong: see the marked fields.").waitFor();
      const url = page.getByLabel("url", { exact: true });
      await page.locator('input:focus[aria-invalid="true"]').waitFor();
      for (const [key, wrong] of [
        ["url", "must be an http:// or https:// address without user, query and fragment"],
        ["api_key", "must be given again where the url changes, since it would go there"],
        ["slots", 'must be a whole number from 1 to 100000, or "auto", is 0'],
        ["start_timeout_seconds", "must be a number of seconds from 1 to 86400"],
      ] as const) {
        const field = page.getByLabel(key, { exact: true });
        expect(await field.getAttribute("aria-invalid")).toBe("true");
        const about = page.locator(`[id="${await field.getAttribute("aria-describedby")}"]`);
        expect(await about.textContent()).toContain(wrong);
      }
      await url.fill("http://127.0.0.1:9");
      expect(await url.getAttribute("aria-invalid")).toBeNull();
      await page.getByLabel("api_key", { exact: true }).fill("sk-of-the-spare");
      await page.getByLabel("start_timeout_seconds", { exact: true }).fill("");

      // Somebody else was here while the form was open.
      await page.getByLabel("slots", { exact: true }).fill("auto");
      await stack.gateway.cli("config", "edit", "--set", "nodes.spare.priority_scheduling=true");
      await page.getByRole("button", { name: "Review the change" }).click();
      const conflict = page.getByRole("dialog", { name: "Somebody else changed the file" });
      await conflict.getByText(/^command line .*nodes.spare.priority_scheduling from nothing to true/).waitFor();
      await conflict.getByRole("button", { name: "Apply mine on top" }).click();
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
    "two operators at once: who comes second sees what the first did, and takes it or puts theirs on top",
    async () => {
      const file = join(stack.gateway.folder, "tollgate.toml");
      const before = await readFile(file, "utf8");
      await stack.gateway.cli("accounts", "create", "second@example.com", "--password", password, "--operator");
      await using second = await Visit.open(browser, stack.gateway.url);
      await second.signIn("second@example.com", password);
      const wish = async ({ page }: Visit, requests: string, tokens: string): Promise<void> => {
        await page.getByRole("button", { name: "Edit limits" }).click();
        await page.getByText("More settings").click();
        await page.getByLabel("embedding_requests_per_minute", { exact: true }).fill(requests);
        await page.getByLabel("default_output_tokens", { exact: true }).fill(tokens);
      };
      for (const visit of [head, second]) await visit.goTo("/operator/config?table=others", "Configuration");
      await wish(head, "20", "2000");
      await wish(second, "30", "3000");
      const review = async ({ page }: Visit) => page.getByRole("button", { name: "Review the change" }).click();
      const apply = async ({ page }: Visit) => {
        await page.getByRole("button", { name: "Apply", exact: true }).click();
        await page.getByRole("dialog").waitFor({ state: "detached" });
      };
      await review(head);
      await page.getByLabel("Changed lines of the file").waitFor();
      await review(second); // both see what would change
      await second.page.getByLabel("Changed lines of the file").waitFor();
      await apply(head);

      await second.page.getByRole("button", { name: "Apply", exact: true }).click();
      const conflict = second.page.getByRole("dialog", { name: "Somebody else changed the file" });
      await conflict.getByText(`${operator}, now: limits.`).waitFor();
      await conflict.getByText("default_output_tokens: theirs is 2000, yours is 3000.").waitFor();
      expect(await readFile(file, "utf8")).toContain("embedding_requests_per_minute = 20\n");
      await conflict.getByRole("button", { name: "Take theirs" }).click();
      await expectEventually(
        () => second.page.getByLabel("default_output_tokens", { exact: true }).inputValue(),
        "2000",
      );

      await second.page.getByLabel("default_output_tokens", { exact: true }).fill("3000");
      await writeFile(file, `# by hand\n${await readFile(file, "utf8")}`);
      await review(second);
      await conflict.getByText("The file was edited by hand since this page read it.").waitFor();
      await conflict.getByRole("button", { name: "Apply mine on top" }).click();
      await apply(second);
      const after = await readFile(file, "utf8");
      expect([after.startsWith("# by hand\n"), after.includes("default_output_tokens = 3000\n")]).toEqual([true, true]);
      expect(second.problemsBut(/status of 409/)).toEqual([]);
      await writeFile(file, before);
      await stack.gateway.reload();
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
      // Nobody reads other people's conversations in a browser.
      const { conversations: _, ...told } = await stack.gateway.cli<Record<string, unknown>>(
        "accounts",
        "export",
        email,
      );
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
      await page.getByRole("heading", { level: 1, name: left }).waitFor();
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
  await page.getByRole("link", { name: email }).click();
  await page.getByRole("heading", { level: 1, name: email }).waitFor();
}

/** The JSON file that the browser was given. */
async function downloaded(page: Page, ask: () => Promise<void>): Promise<object> {
  const [download] = await Promise.all([page.waitForEvent("download"), ask()]);
  expect(download.suggestedFilename()).toMatch(/^tollgate-account-\d+-\d{4}-\d\d-\d\d\.json$/);
  return (await Bun.file(await download.path()).json()) as object;
}
