// The running process's check of its own ledger: what it finds, that it reports it once, and that it notices a repair.
import { desksOf } from "../../account/desks.ts";
import { by } from "../../fixtures/principals.ts";
import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FolderAccounting, openAccounting } from "../../../src/books/accounting.ts";
import { momentOf, systemClock } from "../../../src/core/clock.ts";
import { dayMs } from "../../../src/core/units.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import { flushWarning } from "../../../src/store/folder/flush-time.ts";
import { LedgerWatch, type OpenWork } from "../../../src/store/verify/verify-watch.ts";
import { openForReading } from "../../../src/store/open.ts";
import type { Hold } from "../../../src/core/types.ts";
import { ask, output, plans } from "../../account/office.ts";
import { eventually } from "../../fixtures/eventually.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

type World = { accounting: FolderAccounting; file: string; watch: LedgerWatch; log: string[]; open: OpenWork };

async function world({ intervalMs = 20, planTable = plans } = {}): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-watch-"));
  closing.push(() => rmSync(folder, { recursive: true }));
  const accounting = await openAccounting({
    dataFolder: folder,
    catalog: { plans: planTable },
    siteUrl: "",
    clock: systemClock,
    onFatal: (error) => {
      throw error;
    },
  });
  closing.push(() => accounting.close());
  const file = join(folder, "tollgate.db");
  const reader = openForReading(file);
  closing.push(() => reader.close());
  const log: string[] = [];
  const made = { accounting, file, log, open: { requests: 0, nodesBusy: 0, waiting: 0 } } as World;
  made.watch = new LedgerWatch({
    databaseFile: file,
    reader,
    ledger: accounting.ledger,
    plans: planTable,
    clock: systemClock,
    log: (level, event, fields) => log.push(`${level} ${event} ${JSON.stringify(fields ?? {})}`),
    intervalMs,
    firstMs: 1,
  });
  made.watch.begin(() => made.open);
  closing.push(() => made.watch.close());
  return made;
}

async function spend({ admission }: FolderAccounting, account: number, tokens: number): Promise<void> {
  using hold = admission.admit(
    { ...by(account), ask: ask(0), inputTokens: 0, requestId: `req-${crypto.randomUUID()}` },
    momentOf(systemClock),
  ) as Hold;
  if (isRefusal(hold)) throw new Error(hold.refusal);
  await hold.settle(output(tokens), false, systemClock.wall());
}

/** As a faulty program would: behind the server's back. */
function write(file: string, sql: string): void {
  const database = new Database(file);
  database.run("PRAGMA busy_timeout = 5000");
  database.run(sql);
  database.close();
}

test("a stop waits until the Worker let go of the file, so that the log of the ledger is emptied", async () => {
  const { accounting, file, watch } = await world({ intervalMs: 1 });
  const account = (await desksOf(accounting).accounts.create({ email: "a@example.com", plan: "pro" })).id;
  for (let i = 0; i < 50; i++) await spend(accounting, account, 10);
  await eventually("a check", async () => watch.state.checkedAt !== null, 30_000);
  await watch.close();
  const other = new Database(file);
  other.run("PRAGMA busy_timeout = 0");
  // A log of -1 frames: the writer itself is folding it at this very moment. A reader would leave a number.
  const emptied = await eventually("nobody else folds", async () => {
    const state = other.query("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number; log: number };
    return state.log >= 0 && state;
  });
  expect(emptied).toMatchObject({ busy: 0, log: 0 });
  other.close();
});

/** Waits for a check that began after now. */
async function nextCheck({ watch }: World): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    const before = watch.state.checkedAt;
    await eventually("another check", async () => watch.state.checkedAt !== before, 30_000);
  }
}

test("a sound ledger has no violations, however much is charged meanwhile", async () => {
  const made = await world();
  const { id } = await desksOf(made.accounting).accounts.create({ email: "a@x", credit: 1_000_000 });
  for (let round = 0; round < 100; round += 1) await spend(made.accounting, id, 100);
  await nextCheck(made);
  expect(made.watch.state).toMatchObject({ violations: [] });
  expect(made.watch.state.wholePassAt).not.toBeNull();
  expect(made.log).toEqual([]);
}, 120_000);

test("what the journal does not explain is found, told once, and gone when it was put right", async () => {
  const made = await world();
  const { id } = await desksOf(made.accounting).accounts.create({ email: "a@x", credit: 1_000_000 });
  await spend(made.accounting, id, 40_000);
  write(made.file, "UPDATE accounts SET credit = credit + 1");
  const found = () =>
    made.watch.state.violations
      .map(({ invariant }) => invariant)
      .sort()
      .join();
  // on disk the balance is not the sum of the lines, and memory is not what the disk says
  await eventually("both are found", async () => found() === "I1,I11", 30_000);
  await nextCheck(made);
  expect(made.log).toHaveLength(2);
  expect(made.log[0]).toContain(`"account":${id}`);
  write(made.file, "UPDATE accounts SET credit = credit - 1");
  await eventually("all is well again", async () => found() === "", 30_000);
  expect(made.log.at(-1)).toStartWith("info the ledger keeps its invariants again");
}, 120_000);

test("lines that come later have their accounts looked at before the walk comes round to them", async () => {
  const made = await world();
  const { id } = await desksOf(made.accounting).accounts.create({ email: "a@x" });
  await nextCheck(made);
  await spend(made.accounting, id, 5);
  write(made.file, "UPDATE journal SET output = output + 1000");
  await eventually("it is found", async () => made.watch.state.violations.some(({ invariant }) => invariant === "I5"));
}, 120_000);

test("a line of an account that does not exist is found behind the last account", async () => {
  const made = await world();
  const { id } = await desksOf(made.accounting).accounts.create({ email: "a@x" });
  await spend(made.accounting, id, 5);
  write(made.file, "UPDATE journal SET account_id = 900");
  await eventually("it is found", async () =>
    made.watch.state.violations.some(({ invariant, account }) => invariant === "I10" && account === 900),
  );
}, 120_000);

test("what is held, busy or in line for no open request is a leak", async () => {
  const made = await world();
  const { id } = await desksOf(made.accounting).accounts.create({ email: "a@x" });
  const hold = made.accounting.admission.admit(
    { ...by(id), ask: ask(100), inputTokens: 0, requestId: "req-1" },
    momentOf(systemClock),
  ) as Hold;
  made.open = { requests: 1, nodesBusy: 2, waiting: 30 }; // as one for several answers may have
  await nextCheck(made);
  expect(made.watch.state.violations).toEqual([]);
  made.open = { requests: 0, nodesBusy: 1, waiting: 2 };
  await eventually("it is found", async () => made.watch.state.violations.length === 3);
  expect(made.watch.state.violations.map(({ detail }) => detail)).toEqual([
    "1 reservations with 0 open requests",
    "1 busy places on nodes with 0 open requests",
    "2 places in line with 0 open requests",
  ]);
  hold[Symbol.dispose]();
}, 120_000);

test("plans that have changed have their bounds from the next check on", async () => {
  const planTable = structuredClone(plans);
  const made = await world({ planTable });
  const { accounting, file, watch } = made;
  const { id } = await desksOf(accounting).accounts.create({ email: "a@x", plan: "pro" });
  await nextCheck(made);
  const used = plans.pro.searchesPerDay + 1;
  const day = Math.floor(systemClock.wall() / dayMs) + 2; // bounds hold for periods that begin later
  write(
    file,
    `INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta)
     VALUES ('search:1', 'search', ${id}, ${day * dayMs}, ${day}, ${used}, 0);
     INSERT INTO quota_use (account_id, quota, period, used) VALUES (${id}, 'searches', ${day}, ${used})`,
  );
  await nextCheck(made);
  const isAbove = () => watch.state.violations.some(({ detail }) => detail === `searches of ${day} is ${used}`);
  expect(isAbove()).toBe(true);
  Object.assign(planTable.pro, { searchesPerDay: used });
  watch.plansChanged();
  await nextCheck(made);
  expect(isAbove()).toBe(false);
});

test("a walk over 2,000 accounts comes to its end", async () => {
  const made = await world({ intervalMs: 1 });
  write(
    made.file,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
     INSERT INTO accounts (id, email, plan, credit, key_hash, operator, created_at, key_created_at)
     SELECT i, i || '@x', 'free', 0, randomblob(32), 0, 0, 0 FROM n`,
  );
  const before = made.watch.state.wholePassAt;
  await eventually("a whole pass", async () => made.watch.state.wholePassAt !== before, 60_000);
  expect(made.watch.state.violations).toEqual([]);
}, 90_000);

test.each([
  [200, 0.001, "power cut"],
  [200, 0.5, null],
  [200, 80, "80 ms or more"],
])("flushes of a disk: %d of %d ms", (samples, ms, warning) => {
  const found = flushWarning(Array<number>(samples).fill(ms));
  if (warning === null) expect(found).toBeNull();
  else expect(found).toContain(warning);
});

test("one slow flush in 200 is no warning", () => {
  expect(flushWarning([...Array<number>(199).fill(1), 900])).toBeNull();
});
