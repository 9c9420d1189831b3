// API keys: their shape, their randomness and how they are found.
import { expect, test } from "bun:test";
import { hashApiKey, mintApiKey } from "../../../src/account/people/keys.ts";
import { Office } from "../office.ts";

test("a key is sk-tg- and 43 base62 characters, never twice the same", () => {
  const keys = Array.from({ length: 10_000 }, () => mintApiKey());
  expect(keys.every((key) => /^sk-tg-[0-9A-Za-z]{43}$/.test(key))).toBe(true);
  expect(new Set(keys).size).toBe(keys.length);
});

test("every character is equally likely: the 8 byte values that would be a bias are thrown away", () => {
  let next = 248;
  const everyByteInTurn = (bytes: Uint8Array) => bytes.fill(next++ % 256);
  const counts = new Map<string, number>();
  for (let key = 0; key < 248; key += 1) {
    const [character = ""] = mintApiKey(everyByteInTurn).slice("sk-tg-".length);
    counts.set(character, (counts.get(character) ?? 0) + 1);
  }
  expect(counts.size).toBe(62);
  expect(new Set(counts.values())).toEqual(new Set([4]));
});

test("a key finds its account, and only the whole key does", async () => {
  const office = new Office();
  const { id, api_key } = await office.accounts.create({ email: "a@x" });
  expect(office.keys.principal(api_key)?.account ?? null).toBe(id);
  expect(office.keys.principal(api_key)?.account ?? null).toBe(id);
  const last = api_key.at(-1) === "a" ? "b" : "a";
  for (const other of [api_key.slice(0, -1), `${api_key}a`, api_key.slice(0, -1) + last, ` ${api_key}`, ""]) {
    expect(office.keys.principal(other)?.account ?? null).toBeNull();
  }
});

test("hostile header values are no keys", () => {
  const office = new Office();
  const hostile = [
    "\0",
    "sk-tg-",
    `sk-tg-${"é".repeat(43)}`,
    `sk-tg-${"0".repeat(42)}\n`,
    "' OR 1=1 --",
    "x".repeat(1_000_000),
    "__proto__",
    "\ud800",
  ];
  for (const value of hostile) expect(office.keys.principal(value)?.account ?? null).toBeNull();
});

test("the disk holds the hash of a key and not the key", async () => {
  const office = new Office();
  const { api_key } = await office.accounts.create({ email: "a@x" });
  const everything = Buffer.from(office.database.serialize());
  expect(everything.includes(Buffer.from(hashApiKey(api_key), "base64"))).toBe(true);
  expect(everything.includes(api_key)).toBe(false);
  expect(everything.includes(api_key.slice(6))).toBe(false);
});

test("a rotated key is void at once, before the disk knows", async () => {
  const office = new Office();
  const { id, api_key } = await office.accounts.create({ email: "a@x" });
  expect(office.keys.principal(api_key)?.account ?? null).toBe(id);
  office.storage.immediate = false;
  const rotated = office.accounts.rotateKey("a@x");
  await office.underWay();
  expect(office.keys.principal(api_key)?.account ?? null).toBeNull();
  office.storage.succeed();
  const after = await rotated;
  expect(office.keys.principal(api_key)?.account ?? null).toBeNull();
  expect(office.keys.principal(after.api_key)?.account ?? null).toBe(id);
  expect(office.restart().keys.principal(api_key)?.account ?? null).toBeNull();
});

test("a rotation that never reached the disk leaves the old key valid", async () => {
  const office = new Office();
  const { id, api_key } = await office.accounts.create({ email: "a@x" });
  office.storage.immediate = false;
  const rotated = office.accounts.rotateKey("a@x");
  await office.underWay();
  office.storage.giveUp();
  await expect(rotated).rejects.toThrow("took no writes");
  expect(office.keys.principal(api_key)?.account ?? null).toBe(id);
});

test("two rotations that never reached the disk leave the old key valid", async () => {
  const office = new Office();
  const { api_key } = await office.accounts.create({ email: "a@x" });
  office.storage.immediate = false;
  const rotated = Promise.allSettled([office.accounts.rotateKey("a@x"), office.accounts.rotateKey("a@x")]);
  for (let time = 0; time < 2; time += 1) {
    await office.underWay();
    office.storage.giveUp();
  }
  expect((await rotated).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(office.keys.principal(api_key)?.account ?? null).toBe(1);
});

test("a rotation that reached the disk before one that did not leaves its own key valid", async () => {
  const office = new Office();
  await office.accounts.create({ email: "a@x" });
  office.storage.immediate = false;
  const first = office.accounts.rotateKey("a@x");
  const second = office.accounts.rotateKey("a@x");
  await office.underWay();
  office.storage.succeed();
  const { api_key } = await first;
  await office.underWay();
  office.storage.giveUp();
  await expect(second).rejects.toThrow("took no writes");
  expect(office.keys.principal(api_key)?.account ?? null).toBe(1);
});
