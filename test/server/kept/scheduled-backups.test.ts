// Scheduled backups: when one is due, which are kept, and that a failure costs only that one.
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ScheduledBackups } from "../../../src/server/kept/scheduled-backups.ts";
import { hourMs } from "../../../src/core/units.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { GatewayProcess } from "../../fixtures/gateway-process.ts";
import { ScriptedNode } from "../../fixtures/node-process.ts";
import { nodeTable } from "../../fixtures/stack.ts";

describe("a schedule", () => {
  const noon = Date.UTC(2026, 10, 21, 12);
  let folder: string;
  let now: number;
  let databaseBytes: number;
  let failure: Error | null;
  let log: string[];
  let open: ScheduledBackups[];
  beforeEach(() => {
    folder = join(mkdtempSync(join(tmpdir(), "tollgate-backups-")), "backups");
    databaseBytes = 1_000;
    now = noon;
    failure = null;
    log = [];
    open = [];
  });
  afterEach(() => {
    for (const backups of open) backups.close();
    rmSync(join(folder, ".."), { recursive: true });
  });

  const start = (): ScheduledBackups => {
    const backups = new ScheduledBackups({
      folder,
      databaseBytes: () => databaseBytes,
      async backup(file) {
        if (failure !== null) throw failure;
        if (existsSync(file)) throw new Error(`${file} exists`);
        writeFileSync(file, "a copy");
        return { bytes: 6 };
      },
      clock: { wall: () => now, monotonic: () => now },
      log: (level, event, fields) => log.push(`${level} ${event} ${fields?.["reason"] ?? ""}`.trim()),
    });
    open.push(backups);
    return backups;
  };
  const there = (): string[] => (existsSync(folder) ? readdirSync(folder).toSorted() : []);
  /** Follows and lets what is due be done. */
  const follow = async (backups: ScheduledBackups, everyMs: number, keep: number): Promise<void> => {
    backups.follow({ everyMs, keep });
    await Bun.sleep(5);
  };

  test("makes the first at once and says when", async () => {
    const backups = start();
    expect(backups.lastMadeAt).toBeNull();
    await follow(backups, 24 * hourMs, 7);
    expect(there()).toEqual(["scheduled-2026-11-21T12-00-00Z.db"]);
    expect(backups.lastMadeAt).toBe(noon);
    expect(log).toEqual(["info backup made"]);
  });

  test("makes none before it is due, also after a restart, and then one", async () => {
    await follow(start(), 24 * hourMs, 7);
    for (const hours of [1, 23.9, 24, 30, 47.9]) {
      now = noon + hours * hourMs;
      await follow(start(), 24 * hourMs, 7);
    }
    expect(there()).toEqual(["scheduled-2026-11-21T12-00-00Z.db", "scheduled-2026-11-22T12-00-00Z.db"]);
    expect(open.at(-1)!.lastMadeAt).toBe(noon + 24 * hourMs);
  });

  test("makes them one after the other by itself", async () => {
    const backups = start();
    backups.follow({ everyMs: 20, keep: 100 });
    await eventually("three", async () => {
      now += hourMs;
      return there().length >= 3;
    });
  });

  test("keeps as many as it is told, and nothing that is not its own goes", async () => {
    mkdirSync(folder);
    const others = ["by-hand.db", "scheduled-2026-13-41T12-00-00Z.db", "tollgate-2026-11-21T11-00-00.db"];
    for (const name of others) writeFileSync(join(folder, name), "");
    const backups = start();
    for (let day = 0; day < 5; day++) {
      now = noon + day * 24 * hourMs;
      await follow(backups, 24 * hourMs, 2);
    }
    const own = ["scheduled-2026-11-24T12-00-00Z.db", "scheduled-2026-11-25T12-00-00Z.db"];
    expect(there()).toEqual([...others, ...own].toSorted());
  });

  test("one that failed is told, removes nothing, and is tried again", async () => {
    const backups = start();
    await follow(backups, 24 * hourMs, 1);
    failure = new Error("the disk is full");
    now += 24 * hourMs;
    await follow(backups, 24 * hourMs, 1);
    expect(there()).toEqual(["scheduled-2026-11-21T12-00-00Z.db"]);
    expect(backups.lastMadeAt).toBe(noon);
    expect(log.at(-1)).toBe("error a backup failed the disk is full");
    failure = null;
    await follow(backups, 24 * hourMs, 1);
    expect(there()).toEqual(["scheduled-2026-11-22T12-00-00Z.db"]);
  });

  test("none is made on a disk that would be full of it", async () => {
    databaseBytes = 2 ** 60;
    const backups = start();
    await follow(backups, 24 * hourMs, 1);
    expect(there()).toEqual([]);
    expect(log).toHaveLength(1);
    expect(log[0]).toMatch(/^error a backup failed the disk has [\d,]+ bytes free, and a copy may be made with/);
  });

  test("a folder that is none is told, and stops neither a start nor a reload", async () => {
    writeFileSync(folder, "a file");
    await follow(start(), 24 * hourMs, 1);
    expect(log).toEqual([expect.stringMatching(/^error a backup failed E(EXIST|NOTDIR)/)]);
  });

  test("what a crash cut off is removed before the next", async () => {
    mkdirSync(folder);
    for (const name of ["scheduled-2026-11-20T12-00-00Z.db.partial", "mine.partial"])
      writeFileSync(join(folder, name), "");
    await follow(start(), 24 * hourMs, 7);
    expect(there()).toEqual(["mine.partial", "scheduled-2026-11-21T12-00-00Z.db"]);
  });

  test("one from the future, of a clock that was wrong, holds none up", async () => {
    mkdirSync(folder);
    writeFileSync(join(folder, "scheduled-2027-11-21T12-00-00Z.db"), "");
    await follow(start(), 24 * hourMs, 7);
    expect(there()).toContain("scheduled-2026-11-21T12-00-00Z.db");
  });

  test("those from the future never take the place of one that was made, nor are they the last one", async () => {
    mkdirSync(folder);
    const future = [1, 2, 3].map((day) => `scheduled-2099-01-0${day}T00-00-00Z.db`);
    for (const name of future) writeFileSync(join(folder, name), "");
    const backups = start();
    await follow(backups, 24 * hourMs, 2);
    expect(there()).toEqual(["scheduled-2026-11-21T12-00-00Z.db", future[2]!]);
    await follow(backups, 24 * hourMs, 2);
    expect(backups.lastMadeAt).toBe(noon);
    now += 24 * hourMs;
    await follow(backups, 24 * hourMs, 2);
    expect(there()).toEqual(["scheduled-2026-11-21T12-00-00Z.db", "scheduled-2026-11-22T12-00-00Z.db"]);
  });

  test("that ends makes none any more", async () => {
    const backups = start();
    await follow(backups, 24 * hourMs, 7);
    backups.follow(null);
    now += 48 * hourMs;
    await Bun.sleep(5);
    expect(there()).toHaveLength(1);
    expect(backups.lastMadeAt).toBeNull();
  });
});

test("a server makes whole ones beside requests, keeps the last, and goes on after a kill and a reload", async () => {
  await using node = await ScriptedNode.start();
  const config = `${nodeTable(node, 8)}\n[backups]\nevery_hours = 0.1\nkeep = 2\n`;
  await using gateway = await GatewayProcess.start({ config });
  const folder = join(gateway.dataFolder, "backups");
  const made = () =>
    existsSync(folder)
      ? readdirSync(folder)
          .filter((name) => name.endsWith(".db"))
          .toSorted()
      : [];
  const account = await gateway.account();
  const hoursAgo = (hours: number) =>
    `scheduled-${new Date(Date.now() - hours * hourMs).toISOString().slice(0, 19).replaceAll(":", "-")}Z.db`;
  await eventually("the first backup", async () => made().length === 1);
  for (const hours of [3, 2, 1]) {
    await gateway.kill("SIGKILL");
    const last = hoursAgo(hours); // another is due
    renameSync(join(folder, made().at(-1)!), join(folder, last));
    await gateway.restart();
    await eventually("another", async () => made().at(-1)! > last);
  }
  await eventually("the oldest is gone", async () => made().length === 2);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).toMatch(/^tollgate_backup_timestamp_seconds \d+/m);
  const copy = new Database(join(folder, made().at(-1)!), { readonly: true });
  expect(copy.query("SELECT count(*) AS found FROM accounts WHERE email = ?").get(account.email)).toEqual({ found: 1 });
  copy.close();
}, 120_000);
