// What operators are told of: real accounts and keys in memory, with nodes, backups, the ledger's check and the disk as the
// test has them.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WebhookConfig } from "../../src/config/webhooks.ts";
import { dayMs } from "../../src/core/units.ts";
import { noticeEvents } from "../../src/core/notice.ts";
import { bodyOf } from "../../src/notices/post.ts";
import {
  diskLookMs,
  diskLowBytes,
  diskWellBytes,
  ledgerNoticeIntervalMs,
  NoticeWatch,
} from "../../src/server/notice-watch.ts";
import type { BackupFailure } from "../../src/server/kept/scheduled-backups.ts";
import type { TellOnce } from "../../src/store/postgres/told-once.ts";
import type { LedgerState } from "../../src/store/verify/ledger-report.ts";
import { ask, Office, output } from "../account/office.ts";
import { eventually } from "../fixtures/eventually.ts";

const webhook: WebhookConfig = {
  name: "ops",
  url: "http://ops",
  host: "ops",
  secret: null,
  format: "json",
  events: noticeEvents,
};

type Told = Readonly<{ id: string; type: string; text: string; data: Record<string, unknown> }>;

let folder: string;
let office: Office;
let told: Told[];
let failure: BackupFailure | null;
let ledger: LedgerState;
let free: number;
let threshold: number;
let watches: NoticeWatch[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-notices-"));
  office = new Office();
  told = [];
  failure = null;
  ledger = { violations: [], checkedAt: 1, durationMs: 1, wholePassAt: null };
  free = 2 * diskWellBytes;
  threshold = 50_000;
  watches = [];
});
afterEach(() => {
  for (const watch of watches) watch.close();
  rmSync(folder, { recursive: true });
});

/** Of a server that starts on the folder. */
function start(gateway: string | null = null, tellOnce: TellOnce | null = null): NoticeWatch {
  const started = office;
  const watch = new NoticeWatch({
    dataFolder: folder,
    baseUrl: "https://llm.example.com",
    pool: { states: () => [] },
    accounting: {
      memory: started.ledger,
      office: started.units,
      finds: tellOnce === null ? null : { batches: { onFall: null, onSpent: null }, tellOnce },
    },
    gateway,
    watch: {
      get state() {
        return ledger;
      },
    },
    backups: {
      get failure() {
        return failure;
      },
    },
    lowBalanceTokens: () => threshold,
    clock: { wall: () => started.now, monotonic: () => started.now },
    log: () => {},
    post: async (to, notice) => {
      const { id } = notice;
      told.push({ id, ...(JSON.parse(await bodyOf(to, notice)) as Omit<Told, "id">) });
      return null;
    },
    freeBytes: async () => free,
  });
  watch.configure([webhook]);
  watches.push(watch);
  return watch;
}

/** Looks, and gives what was told since the last time. */
async function look(watch: NoticeWatch): Promise<Told[]> {
  watch.look();
  await Bun.sleep(0);
  return told.splice(0);
}

describe("a low balance", () => {
  test("is told once of an account that had credit, and again after it bought more", async () => {
    const { id } = await office.accounts.create({ email: "ada@example.com", credit: 60_000 });
    const watch = start();
    office.ledger.account(id);
    expect(await look(watch)).toEqual([]);
    await office.spend(id, 30_000); // the allowance of the day
    await office.spend(id, 5_000);
    expect(await look(watch)).toEqual([]);
    await office.spend(id, 10_000);
    const [low, ...more] = await look(watch);
    expect(low).toMatchObject({
      type: "balance.low",
      text: "Tollgate at https://llm.example.com: The balance of ada@example.com is low: 45,000 balance tokens are left.",
      data: { account: id, email: "ada@example.com", balance_tokens: 45_000, threshold_tokens: 50_000 },
    });
    expect(more).toEqual([]);
    office.now += dayMs;
    await office.spend(id, 35_000);
    expect(await look(watch)).toEqual([]);
    await office.accounts.addCredit("ada@example.com", 100_000, undefined);
    expect(await look(watch)).toEqual([]);
    await office.spend(id, 120_000);
    expect(await look(watch)).toMatchObject([{ type: "balance.low" }]);
  });

  test("is not told of who never had that much, nor where the threshold is 0, nor again after a restart", async () => {
    const poor = await office.accounts.create({ email: "poor@example.com", credit: 40_000 });
    const rich = await office.accounts.create({ email: "rich@example.com", credit: 60_000 });
    const watch = start();
    for (const { id } of [poor, rich]) office.ledger.account(id);
    await look(watch);
    threshold = 0;
    for (const { id } of [poor, rich]) await office.spend(id, 60_000);
    expect(await look(watch)).toEqual([]);
    threshold = 50_000;
    expect(await look(watch)).toMatchObject([{ data: { email: "rich@example.com" } }]);
    office = office.restart();
    for (const { id } of [poor, rich]) await office.spend(id, 1);
    expect(await look(start())).toEqual([]);
  });

  test("names an account as it is when it is told: one that was erased meanwhile has no name", async () => {
    const { id } = await office.accounts.create({ email: "gone@example.com", credit: 60_000 });
    const watch = start();
    office.ledger.account(id);
    await look(watch);
    await office.spend(id, 60_000);
    await office.accounts.erase("gone@example.com", async () => {});
    const [low] = await look(watch);
    expect(JSON.stringify(low)).not.toContain("gone@example.com");
    expect(low).toMatchObject({ type: "balance.low", data: { account: id } });
  });
});

describe("a key's budget", () => {
  const limited = async (limit: object): Promise<{ id: number; key: number }> => {
    const { id } = await office.accounts.create({ email: "ada@example.com", credit: 1_000_000 });
    const { id: key } = await office.accountKeys.create(id, { name: "bot", ...limit });
    return { id, key };
  };
  const spend = async (account: number, key: number, tokens: number): Promise<void> => {
    using hold = office.hold(account, ask(0), 0, key);
    await hold.settle(output(tokens), false, office.now);
  };

  test("is told once a period where it is used up, also over a restart", async () => {
    const { id, key } = await limited({ limit_day: 1_000 });
    const watch = start();
    await spend(id, key, 900);
    expect(await look(watch)).toEqual([]);
    await spend(id, key, 100);
    const [used] = await look(watch);
    expect(used).toMatchObject({
      type: "key.budget_used",
      text: 'Tollgate at https://llm.example.com: The key "bot" of ada@example.com has used up its budget of the day: 1,000 of 1,000 balance tokens.',
      data: { account: id, key, key_name: "bot", period: "day", used_tokens: 1_000, limit_tokens: 1_000 },
    });
    expect(await look(watch)).toEqual([]);
    await eventually("it is kept", async () => existsSync(join(folder, "told-budgets.json")));
    office = office.restart();
    office.admit(id, ask(1), 0, key);
    expect(await look(start())).toEqual([]);
    office.now += dayMs;
    await spend(id, key, 1_000);
    const [next] = await look(start());
    expect(next).toMatchObject({ type: "key.budget_used" });
    expect(next!.id).not.toBe(used!.id);
  });

  test("is told where what is left is too little for a request, and not where others only hold it", async () => {
    const { id, key } = await limited({ limit_day: 10_000, limit_month: 100_000 });
    const watch = start();
    {
      using _hold = office.hold(id, ask(9_000), 0, key);
      expect(office.admit(id, ask(9_000), 0, key)).toMatchObject({ refusal: "key_quota_exceeded" });
      expect(await look(watch)).toEqual([]);
    }
    await spend(id, key, 8_000);
    expect(office.admit(id, ask(4_096), 0, key)).toMatchObject({ refusal: "key_quota_exceeded" });
    expect(await look(watch)).toMatchObject([{ text: expect.stringContaining("8,000 of 10,000 balance tokens used") }]);
  });

  test("is told of one that has none only once it gets one, and not for a refusal by one that it had before", async () => {
    const { id, key } = await limited({});
    const watch = start();
    await spend(id, key, 900);
    expect(await look(watch)).toEqual([]);
    await office.accountKeys.limit(id, key, { limit_day: 1_000 });
    expect(office.admit(id, ask(200), 0, key)).toMatchObject({ refusal: "key_quota_exceeded" });
    await office.accountKeys.limit(id, key, { limit_day: 2_000 });
    expect(await look(watch)).toEqual([]);
    await office.accountKeys.limit(id, key, { limit_day: 800 });
    expect(await look(watch)).toMatchObject([{ data: { key, used_tokens: 900, limit_tokens: 800 } }]);
  });
});

test("a backup that failed is told once, and so is the next one", async () => {
  const watch = start();
  failure = { at: office.now, reason: "the disk has 1 MiB free" };
  expect(await look(watch)).toMatchObject([
    {
      type: "backup.failed",
      text: expect.stringContaining("No backup was made: the disk has 1 MiB free."),
      data: failure && { reason: failure.reason },
    },
  ]);
  expect(await look(watch)).toEqual([]);
  failure = null;
  await look(watch);
  failure = { at: office.now + 1, reason: "again" };
  expect(await look(watch)).toHaveLength(1);
});

test("contradictions of the ledger are told when they are new, and not at each of its checks", async () => {
  const watch = start();
  const violation = (account: number) => ({ invariant: "I1", account, detail: "5 is not 6" }) as const;
  ledger = { ...ledger, violations: [violation(1)], checkedAt: 2 };
  expect(await look(watch)).toMatchObject([
    { type: "ledger.contradiction", data: { violations: 1, first: ["I1 account 1: 5 is not 6"] } },
  ]);
  ledger = { ...ledger, checkedAt: 3 };
  expect(await look(watch)).toEqual([]);
  ledger = { ...ledger, violations: Array.from({ length: 1_000 }, (_, account) => violation(account)), checkedAt: 4 };
  expect(await look(watch)).toEqual([]);
  office.now += ledgerNoticeIntervalMs;
  const [many] = await look(watch);
  expect(many!.data).toMatchObject({ violations: 1_000 });
  expect(JSON.stringify(many).length).toBeLessThan(2_000);
});

test("a disk that is nearly full is told once, and again after there was room", async () => {
  const watch = start();
  const at = async (bytes: number): Promise<number> => {
    free = bytes;
    office.now += diskLookMs;
    return (await look(watch)).length;
  };
  expect([await at(diskLowBytes), await at(diskLowBytes - 1), await at(1_000), await at(diskLowBytes + 1)]).toEqual([
    0, 1, 0, 0,
  ]);
  expect([await at(1_000), await at(diskWellBytes + 1), await at(1_000)]).toEqual([0, 0, 1]);
});

test("without a webhook nothing is looked at", () => {
  const watch = start();
  watch.configure([]);
  expect(watch.states()).toEqual([]);
});

test("several gateways tell each of its own disk, by name, and one of them of the books that they share", async () => {
  const known = new Map<string, string>();
  let isAway = true;
  const tellOnce: TellOnce = async (name, occurrence) => {
    if (isAway) throw new Error("the database is away");
    const isFirst = known.get(name) !== occurrence;
    known.set(name, occurrence);
    return isFirst;
  };
  const gateways = ["east", "west"].map((name) => start(name, tellOnce));
  ledger = {
    violations: [{ invariant: "I1", account: 1, detail: "7 is not 8" }],
    checkedAt: 1,
    durationMs: 1,
    wholePassAt: 1,
  };
  free = diskLowBytes - 1;
  for (const each of gateways) each.look();
  await eventually("each has told of its disk", async () => told.length === 2);
  const disks = told.splice(0);
  expect(disks.map(({ type, text, data }) => [type, text.slice(0, 46), data["gateway"]])).toEqual([
    ["disk.low", "Tollgate at https://llm.example.com, gateway e", "east"],
    ["disk.low", "Tollgate at https://llm.example.com, gateway w", "west"],
  ]);
  expect(disks[0]!.id).not.toBe(disks[1]!.id);
  isAway = false; // who could not find out does so at its next look
  office.now += ledgerNoticeIntervalMs;
  for (const each of gateways) each.look();
  await eventually("one has told of the books", async () => told.length > 0);
  for (const each of gateways) each.look();
  await Bun.sleep(0);
  expect(told.map(({ type, text }) => [type, text.slice(0, 43)])).toEqual([
    ["ledger.contradiction", "Tollgate at https://llm.example.com: The le"],
  ]);
});
