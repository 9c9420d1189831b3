// The journal's batches, with the real writer on a database in memory.
import { expect, test } from "bun:test";
import type { Entry } from "../../../src/account/money/entry.ts";
import type { AccountChange } from "../../../src/account/journal.ts";
import { BatchingJournal } from "../../../src/store/ledger/journal.ts";
import { StoreUnavailable } from "../../../src/core/types.ts";
import { MemoryStorage, memoryDatabase } from "../memory-storage.ts";

const entry = (billingKey: string, creditDelta = 1): Entry => ({
  billingKey,
  kind: "credit",
  account: 1,
  key: 1,
  at: 0,
  period: 0,
  used: 0,
  creditDelta,
  reply: null,
});

function setUp() {
  const database = memoryDatabase();
  const storage = new MemoryStorage(database);
  storage.immediate = false;
  const told: string[] = [];
  const listener = {
    committed: ({ billingKey }: Entry) => told.push(`committed ${billingKey}`),
    lost: ({ billingKey }: Entry) => told.push(`lost ${billingKey}`),
  };
  const journal = new BatchingJournal(storage, listener, { wall: () => 0, monotonic: () => 0 });
  journal.change({
    change: "create",
    account: 1,
    email: "a@x",
    plan: "free",
    keyHash: Buffer.alloc(32).toString("base64"),
    keyEnding: "abcd",
    passwordHash: null,
    operator: false,
    at: 0,
  });
  journal.flush();
  storage.succeed();
  const keys = () => database.query("SELECT billing_key AS key FROM journal ORDER BY sequence").all();
  const credit = () => (database.query("SELECT credit FROM accounts").get() as { credit: number }).credit;
  return { database, storage, journal, told, keys, credit };
}

test("lines of one turn are one commit, sent at its end", async () => {
  const { storage, journal, keys } = setUp();
  for (const key of ["a", "b", "c"]) journal.append(entry(key));
  expect(storage.waiting).toBe(false);
  await new Promise(setImmediate);
  expect(storage.waiting).toBe(true);
  storage.succeed();
  expect(keys()).toEqual([{ key: "a" }, { key: "b" }, { key: "c" }]);
  expect(storage.commits).toBe(2);
});

test("lines that come while a commit is under way are the next one, sent as soon as it ended", async () => {
  const { storage, journal, told } = setUp();
  journal.append(entry("a"));
  journal.flush();
  for (const key of ["b", "c"]) journal.append(entry(key));
  await new Promise(setImmediate);
  storage.succeed();
  expect(told).toEqual(["committed a"]);
  expect(storage.waiting).toBe(true);
  storage.succeed();
  expect(told).toEqual(["committed a", "committed b", "committed c"]);
  expect(journal.pending).toBe(0);
});

test("a line is durable when its commit is, whenever that is asked", async () => {
  const { storage, journal } = setUp();
  const first = journal.append(entry("a"));
  journal.flush();
  const second = journal.append(entry("b"));
  const order: string[] = [];
  const waits = [
    journal.durable(second).then(() => order.push("b")),
    journal.durable(first).then(() => order.push("a")),
  ];
  storage.succeed();
  await journal.durable(first);
  expect(order).toEqual(["a"]);
  storage.succeed();
  await Promise.all(waits);
  await journal.durable(second);
  expect(order).toEqual(["a", "b"]);
  expect(() => journal.durable(second + 1)).toThrow("was appended");
});

test("lines given up are told to the listener before their waiters, and stay given up", async () => {
  const { storage, journal, told, keys } = setUp();
  const first = journal.append(entry("a"));
  const waited = journal.durable(first).catch((thrown: unknown) => told.push((thrown as Error).name));
  journal.flush();
  const second = journal.append(entry("b"));
  storage.giveUp();
  await waited;
  expect(told).toEqual(["lost a", "StoreUnavailable"]);
  storage.succeed();
  await journal.durable(second);
  await expect(journal.durable(first)).rejects.toBeInstanceOf(StoreUnavailable);
  expect(keys()).toEqual([{ key: "b" }]);
});

test("a batch that is written twice moves no balance twice", () => {
  const { storage, journal, keys, credit } = setUp();
  journal.append(entry("a", 5));
  journal.append(entry("b", 6));
  journal.flush();
  storage.write();
  storage.write();
  storage.succeed();
  expect(keys()).toEqual([{ key: "a" }, { key: "b" }]);
  expect(credit()).toBe(11);
});

test("of many lines of a batch, those that are there already move no balance again", () => {
  const { database, storage, journal, keys, credit } = setUp();
  for (const key of ["c", "k"]) journal.append(entry(key, 100));
  journal.flush();
  storage.succeed();
  const all = [..."abcdefghijklmnopqrs"];
  all.forEach((key) => journal.append(entry(key, 1)));
  journal.flush();
  storage.succeed();
  expect(credit()).toBe(200 + all.length - 2);
  expect(keys()).toEqual(["c", "k", ...all.filter((key) => key !== "c" && key !== "k")].map((key) => ({ key })));
  expect(database.inTransaction).toBe(false);
});

test("a batch that fails in its middle leaves nothing behind and can be tried again", () => {
  const { storage, journal, keys, credit } = setUp();
  journal.append(entry("a", 5));
  journal.flush();
  storage.tear();
  expect([keys(), credit()]).toEqual([[], 0]);
  storage.succeed();
  expect([keys(), credit()]).toEqual([[{ key: "a" }], 5]);
});

test("a unit that breaks a rule of a table is refused alone, as a whole", async () => {
  const { database, storage, journal, told, keys, credit } = setUp();
  const hash = (byte: number) => Buffer.alloc(32, byte).toString("base64");
  const create = (account: number, email: string, byte: number): AccountChange => ({
    change: "create",
    account,
    email,
    plan: "free",
    keyHash: hash(byte),
    keyEnding: "abcd",
    passwordHash: null,
    operator: false,
    at: 0,
  });
  const audit = (id: number, subject: number): AccountChange => ({
    change: "audit",
    entry: { id, at: 0, operator: 1, address: "", action: "account.create", subject, detail: "" },
  });
  const line = journal.append(entry("a", 5));
  const taken = journal.changes([audit(1, 2), create(2, "A@x", 2)]);
  journal.append({ ...entry("opening:2", 9), account: 2 });
  const fits = journal.changes([create(3, "c@x", 3), audit(2, 3)]);
  journal.append({ ...entry("opening:3", 7), account: 3 });
  const sameKey = journal.change({ change: "key", account: 1, keyHash: hash(3), keyEnding: "abcd", at: 0 });
  const waits = [line, taken, fits, sameKey].map((sequence) => journal.durable(sequence));
  const outcomes = Promise.allSettled(waits);
  journal.flush();
  storage.succeed();
  const refused = (await outcomes).map((outcome) => (outcome.status === "rejected" ? outcome.reason : null));
  expect(refused.map((reason) => reason instanceof StoreUnavailable)).toEqual([false, true, false, true]);
  expect(String(refused[1])).toContain("does not take this change: UNIQUE constraint failed: accounts.email");
  expect(told).toEqual(["committed a", "lost opening:2", "committed opening:3"]);
  expect([keys(), credit()]).toEqual([[{ key: "a" }, { key: "opening:3" }], 5]);
  expect(database.query("SELECT id FROM accounts").values()).toEqual([[1], [3]]);
  expect(database.query("SELECT subject_id FROM audit_log").values()).toEqual([[3]]);
  await expect(journal.durable(taken)).rejects.toThrow("accounts.email"); // also when it is asked late
  await journal.durable(fits);
});

test("a line that breaks a rule of its table takes nothing along, and is not left out", () => {
  const { storage, journal, keys } = setUp();
  journal.append(entry("a"));
  journal.append(entry("b", Number.NaN)); // no number in JSON either
  journal.flush();
  expect(() => storage.write()).toThrow("constraint");
  expect(keys()).toEqual([]);
});

test("nor does one in the middle of many, which one statement inserts together", () => {
  const { database, storage, journal, keys, credit } = setUp();
  for (const key of "abcdefghijklmnopqrs") journal.append(entry(key, key === "n" ? Number.NaN : 1));
  journal.flush();
  expect(() => storage.write()).toThrow("constraint");
  expect([keys(), credit(), database.inTransaction]).toEqual([[], 0, false]);
});

test("closing commits what is pending, and nothing may follow", async () => {
  const { storage, journal, keys } = setUp();
  journal.append(entry("a"));
  journal.flush();
  journal.append(entry("b"));
  const closed = journal.close();
  storage.succeed();
  storage.succeed();
  await closed;
  expect(keys()).toEqual([{ key: "a" }, { key: "b" }]);
  expect(() => journal.append(entry("c"))).toThrow("closed journal");
});

test("another instance's epoch stops the writer", () => {
  const { database, storage, journal, keys } = setUp();
  database.run("UPDATE instance SET epoch = 7");
  journal.append(entry("a"));
  journal.flush();
  expect(() => storage.succeed()).toThrow("no other instance");
  expect(keys()).toEqual([]);
});
