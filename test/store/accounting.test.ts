// The accounting on real files with its real Worker: locks, modes, versions, crashes and a busy disk.
import { desksOf } from "../account/desks.ts";
import { by } from "../fixtures/principals.ts";
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openAccounting, type FolderAccounting } from "../../src/books/accounting.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import { DataFolderInUse, DataFolderUnusable } from "../../src/store/folder/folder-faults.ts";
import { schemaVersion } from "../../src/store/ledger/schema-version.ts";
import type { Hold } from "../../src/core/types.ts";
import { ask, coderAsk, noon, output, plans } from "../account/office.ts";

let parent = "";
let dataFolder = "";
let fatal: Error[] = [];
const opened: FolderAccounting[] = [];

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "tollgate-accounting-"));
  dataFolder = join(parent, "data");
  fatal = [];
});
afterEach(async () => {
  for (const accounting of opened.splice(0)) await accounting.close();
  rmSync(parent, { recursive: true });
  expect(fatal).toEqual([]);
});

async function open(folder = dataFolder): Promise<FolderAccounting> {
  const clock = { wall: () => noon, monotonic: () => performance.now() };
  const onFatal = (error: Error) => void fatal.push(error);
  const accounting = await openAccounting({ dataFolder: folder, catalog: { plans }, siteUrl: "s", clock, onFatal });
  opened.push(accounting);
  return accounting;
}

async function close(accounting: FolderAccounting): Promise<void> {
  opened.splice(opened.indexOf(accounting), 1);
  await accounting.close();
}

const at = (now: number) => ({ wall: now, monotonic: now });

function hold(accounting: FolderAccounting, account: number, asked = ask(10)): Hold {
  const admitted = accounting.admission.admit(
    { ...by(account), ask: asked, inputTokens: 0, requestId: crypto.randomUUID() },
    at(noon),
  );
  if (isRefusal(admitted)) throw new Error(admitted.refusal);
  return admitted;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

const databaseFile = () => join(dataFolder, "tollgate.db");

test("what was settled, bought, counted and changed is there after a restart", async () => {
  const first = await open();
  expect(await desksOf(first).accounts.none()).toBe(true);
  const { id, api_key } = await desksOf(first).accounts.create({
    email: "a@x",
    credit: 1_000,
    password: "p",
    operator: true,
  });
  const charged = hold(first, id);
  await charged.settle(output(30_100), false, noon);
  await hold(first, id, coderAsk()).ready;
  first.searches.take(id, noon)?.keep();
  await desksOf(first).accounts.changePlan("a@x", "plus");
  const rotated = await desksOf(first).accounts.rotateKey("a@x");
  const shown = await desksOf(first).accounts.show("a@x");
  await close(first);

  const second = await open();
  expect(await desksOf(second).accounts.none()).toBe(false);
  expect(await desksOf(second).accounts.show("a@x")).toEqual(shown);
  expect(shown).toMatchObject({ credit: 900, coder_calls: { used: 1 }, searches: { used: 1 }, plan: "plus" });
  expect(second.keys.principal(api_key)?.account ?? null).toBeNull();
  expect(second.keys.principal(rotated.api_key)?.account ?? null).toBe(id);
  expect(await desksOf(second).accounts.signIn("a@x", "p")).toMatchObject({ operator: true });
  expect((await desksOf(second).accounts.create({ email: "b@x" })).id).toBe(id + 1);
  expect(await second.verify()).toEqual({ accounts: 2, violations: [] });
});

test("an account that the database refuses is refused to its caller; the process goes on, and so do charges", async () => {
  const accounting = await open();
  const { id } = await desksOf(accounting).accounts.create({ email: "a@x" });
  const settled = hold(accounting, id).settle(output(10), false, noon);
  const refused = desksOf(accounting).accounts.create({ email: "b@x", credit: 5 }, () => {
    const other = new Database(databaseFile());
    other.run("UPDATE accounts SET email = 'b@x'"); // after it was looked whether somebody has it
    other.close();
  });
  expect(await refused.catch(String)).toContain("UNIQUE constraint failed: accounts.email");
  await settled;
  expect(await desksOf(accounting).accounts.show("b@x")).toMatchObject({ id, allowance: { left: 29_990 }, credit: 0 });
  await desksOf(accounting).accounts.create({ email: "c@x" });
  expect(await accounting.verify()).toEqual({ accounts: 2, violations: [] });
});

test("1,000 charges at once are a few commits, each charge once", async () => {
  const accounting = await open();
  const { id } = await desksOf(accounting).accounts.create({ email: "a@x", credit: 10_000_000 });
  const now = (i: number) => noon + i * 60_000;
  const settled = Array.from({ length: 1_000 }, (_, i) => {
    const admitted = accounting.admission.admit(
      { ...by(id), ask: ask(10), inputTokens: 0, requestId: `r${i}` },
      at(now(i)),
    );
    if (isRefusal(admitted)) throw new Error(admitted.refusal);
    return admitted.settle(output(3), false, noon);
  });
  expect(accounting.journal.pending).toBe(1_000);
  await Promise.all(settled);
  expect(await desksOf(accounting).accounts.show("a@x")).toMatchObject({ allowance: { left: 27_000 }, reserved: 0 });
  expect((await desksOf(accounting).accounts.usage("a@x", 5_000)).length).toBe(1_000);
});

test("kill -9 under load loses no acknowledged charge and makes none twice, five times over", async () => {
  const acknowledged = new Set<string>();
  for (let round = 0; round < 5; round += 1) {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "charging-process.ts"), dataFolder, `k${round}`], {
      stdout: "pipe",
      stderr: "inherit",
    });
    let text = "";
    for await (const bytes of child.stdout) {
      text += Buffer.from(bytes).toString();
      if (text.length > 3_000 + round * 1_000) child.kill("SIGKILL");
    }
    await child.exited;
    // The last line may be cut.
    for (const line of text.split("\n").slice(0, -1)) acknowledged.add(line);

    const accounting = await open();
    const usage = await desksOf(accounting).accounts.usage("a@x", 1_000_000);
    const onDisk = new Set(usage.map((row) => row.request_id));
    expect(onDisk.size).toBe(usage.length);
    expect([...acknowledged].filter((requestId) => !onDisk.has(requestId))).toEqual([]);
    expect(await accounting.verify()).toEqual({ accounts: 1, violations: [] });
    expect((await desksOf(accounting).accounts.show("a@x")).reserved).toBe(0);
    await close(accounting);
  }
  expect(acknowledged.size).toBeGreaterThan(1_000);
}, 120_000);

describe("the data folder", () => {
  test("is for its owner alone", async () => {
    const accounting = await open();
    await desksOf(accounting).accounts.create({ email: "a@x" });
    expect(statSync(dataFolder).mode & 0o777).toBe(0o700);
    for (const file of readdirSync(dataFolder)) {
      expect([file, statSync(join(dataFolder, file)).mode & 0o777]).toEqual([file, 0o600]);
    }
  });

  test("is held by one instance at a time, and free when that ended", async () => {
    const first = await open();
    await expect(open()).rejects.toBeInstanceOf(DataFolderInUse);
    await close(first);
    await close(await open());
  });

  test("is refused to a second process with the folder's name", async () => {
    await open();
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "charging-process.ts"), dataFolder, "k"], {
      stderr: "pipe",
    });
    expect(await child.stderr.text()).toContain(`DataFolderInUse: the data folder ${dataFolder} is in use`);
    expect(await child.exited).not.toBe(0);
  });

  test("that cannot be made is refused in one line", async () => {
    const file = join(parent, "file");
    writeFileSync(file, "");
    const thrown = await open(join(file, "data")).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(DataFolderUnusable);
    expect((thrown as Error).message).toStartWith(`cannot write to the data folder ${join(file, "data")}: `);
    expect((thrown as Error).message).not.toContain("\n");
  });

  test("of a newer version is refused and left as it is", async () => {
    await close(await open());
    const database = new Database(databaseFile());
    database.run(`PRAGMA user_version = ${schemaVersion + 1}`);
    database.close();
    await expect(open()).rejects.toThrow("use a newer tollgate");
  });

  test("whose database is no database, or cut short, is refused", async () => {
    const accounting = await open();
    for (let i = 0; i < 50; i += 1) await desksOf(accounting).accounts.create({ email: `a${i}@x` });
    await close(accounting);
    truncateSync(databaseFile(), 5_000);
    await expect(open()).rejects.toBeInstanceOf(DataFolderUnusable);
    writeFileSync(databaseFile(), "not a database".repeat(1_000));
    await expect(open()).rejects.toBeInstanceOf(DataFolderUnusable);
  });
});

test("while another program has the database locked, ends wait and nothing is admitted; then all go on", async () => {
  const accounting = await open();
  const { id } = await desksOf(accounting).accounts.create({ email: "a@x" });
  const first = hold(accounting, id);
  const other = new Database(databaseFile());
  other.run("BEGIN IMMEDIATE");
  const settled = first.settle(output(5), false, noon);
  await until(() => !accounting.journal.writable);
  expect(accounting.admission.admit({ ...by(id), ask: ask(10), inputTokens: 0, requestId: "r" }, at(noon))).toEqual({
    refusal: "quota_unverified",
  });
  expect(await desksOf(accounting).accounts.usage("a@x", 10)).toEqual([]);
  other.run("ROLLBACK");
  other.close();
  await settled;
  expect(accounting.journal.writable).toBe(true);
  expect((await desksOf(accounting).accounts.usage("a@x", 10)).length).toBe(1);
  hold(accounting, id)[Symbol.dispose]();
});

test("an instance whose database was taken by another one stops at once and acknowledges nothing", async () => {
  const accounting = await open();
  const { id } = await desksOf(accounting).accounts.create({ email: "a@x" });
  const other = new Database(databaseFile());
  other.run("UPDATE instance SET epoch = epoch + 1");
  other.close();
  let outcome = "none";
  void hold(accounting, id)
    .settle(output(5), false, noon)
    .then(
      () => (outcome = "acknowledged"),
      () => (outcome = "refused"),
    );
  await until(() => fatal.length > 0);
  expect(fatal.splice(0)[0]?.message).toContain("no other instance");
  expect(outcome).toBe("none");
  expect(accounting.journal.writable).toBe(false);
  // Its writer is gone: there is nothing to close.
  opened.splice(0);
});
