// Exports of accounts for browsers: their contents, and who may have to wait.
import { desksOf } from "../../account/desks.ts";
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AccountRecord } from "../../../src/account/records.ts";
import { type FolderAccounting, openAccounting } from "../../../src/books/accounting.ts";
import { exportOfFile, writeExport } from "../../../src/store/backup/account-export.ts";
import { AccountExports, exportsPerHourMax } from "../../../src/server/kept/account-exports.ts";
import { hourMs } from "../../../src/core/units.ts";
import { requestsName } from "../../../src/store/folder/data-folder.ts";
import { StoreUnavailable } from "../../../src/core/types.ts";
import { noon, plans } from "../../account/office.ts";

let dataFolder: string;
let accounting: FolderAccounting;
let exports: AccountExports;
let opened: ReadableStream[];
let now: number;
beforeEach(async () => {
  dataFolder = mkdtempSync(join(tmpdir(), "tollgate-exports-"));
  accounting = await openAccounting({
    dataFolder,
    catalog: { plans },
    siteUrl: "",
    clock: { wall: () => noon, monotonic: () => 0 },
    onFatal(error) {
      throw error;
    },
  });
  exports = new AccountExports(
    dataFolder,
    (email, file, conversations) => writeExport(accounting.databaseFile, email, file, conversations),
    {
      monotonic: () => now,
    },
  );
  now = 0;
  opened = [];
});
afterEach(async () => {
  for (const stream of opened) if (!stream.locked) await stream.cancel();
  await accounting.close();
  rmSync(dataFolder, { recursive: true });
});

async function account(email: string): Promise<AccountRecord> {
  const { id } = await desksOf(accounting).accounts.create({ email });
  return (await desksOf(accounting).accounts.record(id))!;
}

/** Null where there is no place. */
async function open(record: AccountRecord, asking = record.id): Promise<ReadableStream | null> {
  const found = await exports.open(record, asking);
  if (found instanceof ReadableStream) {
    opened.push(found);
    return found;
  }
  expect(found).toEqual({ noExport: "busy", retrySeconds: 10 });
  return null;
}

/** Of a@x. */
const piecesOf = async (file: string): Promise<string[]> => Array.fromAsync((await exportOfFile(file).account("a@x"))!);

const accounts = (count: number): Promise<AccountRecord[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => account(`${index}@x`)));

test("is whole where the request log has no table yet", async () => {
  await account("a@x");
  const log = new Database(join(dataFolder, requestsName), { create: true });
  log.run("PRAGMA user_version = 1"); // which writes the first page
  log.close();
  const given = (await piecesOf(accounting.databaseFile)).join("");
  expect(JSON.parse(given)).toMatchObject({ account: { email: "a@x" }, refused_requests: [] });
});

test("is what the command gives, and leaves no file behind", async () => {
  const one = await account("a@x");
  await desksOf(accounting).accounts.addCredit("a@x", 1_000_000);
  const given = await new Response(await open(one)).text();
  expect(given).toBe((await piecesOf(accounting.databaseFile)).join(""));
  expect(JSON.parse(given)).toMatchObject({ account: { email: "a@x" }, usage: [{ credit_delta: 1_000_000 }] });
  expect(readdirSync(dataFolder).filter((name) => name.startsWith("export"))).toEqual([]);
});

test("that nobody reads keeps nobody else waiting, and its own account until it was left", async () => {
  const all = await accounts(8);
  const unread: (ReadableStream | null)[] = [];
  for (const one of all) unread.push(await open(one));
  expect(unread.filter((each) => each === null)).toEqual([]);
  expect(await open(all[0]!)).toBeNull();
  await unread[0]!.cancel();
  expect(await open(all[0]!)).not.toBeNull();
});

test("an account that keeps its own unread, or has used up its own, keeps no operator from making one", async () => {
  const [one, operator] = [await account("a@x"), await account("operator@x")];
  for (let time = 0; time < exportsPerHourMax - 1; time += 1) await (await open(one))!.cancel();
  expect(await open(one)).not.toBeNull();
  const given = await open(one, operator.id);
  expect(JSON.parse(await new Response(given).text())).toMatchObject({ account: { email: "a@x" } });
});

test("four are written at once, over all accounts", async () => {
  const all = await accounts(6);
  const streams = await Promise.all(all.map((one) => open(one)));
  expect(streams.map((each) => each !== null)).toEqual([true, true, true, true, false, false]);
  expect(await open(all[5]!)).not.toBeNull();
});

test("that fails is told as such and keeps no place", async () => {
  const one = await account("a@x");
  for (let time = 0; time < 5; time += 1) {
    await expect(open({ ...one, email: "nobody@x" })).rejects.toBeInstanceOf(StoreUnavailable);
  }
  expect(await open(one)).not.toBeNull();
});

test("of one account is made six times in any hour, whatever became of them", async () => {
  const [one, other] = [await account("a@x"), await account("b@x")];
  const made = async (record: AccountRecord): Promise<unknown> => {
    const found = await exports.open(record, record.id);
    if (!(found instanceof ReadableStream)) return found;
    await found.cancel();
    return "made";
  };
  expect(await made(one)).toBe("made");
  now = 1_000;
  for (let time = 1; time < exportsPerHourMax; time += 1) expect(await made(one)).toBe("made");
  expect(await made(one)).toEqual({ noExport: "too_many", retrySeconds: 3_599 });
  expect(await made(other)).toBe("made");
  now = hourMs;
  expect(await made(one)).toBe("made");
  expect(await made(one)).toEqual({ noExport: "too_many", retrySeconds: 1 });
});

test("is read from the database by a Worker, so that a row of many MB holds up no stream", async () => {
  const one = await account("a@x");
  const query = spyOn(Database.prototype, "query");
  try {
    expect((await piecesOf(accounting.databaseFile)).length).toBeGreaterThan(0);
    expect(query).toHaveBeenCalled(); // on this thread
    query.mockClear();
    expect(JSON.parse(await new Response((await open(one))!).text())).toMatchObject({ account: { email: "a@x" } });
    expect(query).not.toHaveBeenCalled();
  } finally {
    query.mockRestore();
  }
});
