// The proof of an earlier sign-in that a browser keeps: nobody else can make it, and it ends with the password.
import { expect, test } from "bun:test";
import { KnownBrowsers } from "../../../src/account/sign-in/known-browsers.ts";

const browsers = new KnownBrowsers(new Uint8Array(32).fill(7));
const owner = { id: 5, passwordHash: "$argon2id$of-the-owner", disabledAt: null };
const kept = browsers.introduce(owner, null);

test("a browser is known where it signed in before, also after a restart, and stays the same one", () => {
  const browser = browsers.recognize(kept, owner);
  expect(browser).toMatch(/^[\w-]{16}$/);
  expect(new KnownBrowsers(new Uint8Array(32).fill(7)).recognize(kept, owner)).toBe(browser);
  expect(browsers.recognize(browsers.introduce(owner, browser), owner)).toBe(browser);
  expect(browsers.recognize(browsers.introduce(owner, null), owner)).not.toBe(browser);
});

test("it says nothing but two numbers", () => {
  expect(kept).toMatch(/^5\.[\w-]{16}\.[\w-]{43}$/);
  expect(kept).not.toContain("argon");
});

const [account, browser, signature] = kept.split(".");
test.each([
  ["another password", kept, { ...owner, passwordHash: "$argon2id$of-the-owner-2" }],
  ["no password", kept, { ...owner, passwordHash: null }],
  ["a disabled account", kept, { ...owner, disabledAt: 1 }],
  ["another account", kept, { ...owner, id: 6 }],
  ["another account's number", `6.${browser}.${signature}`, { ...owner, id: 6 }],
  ["another browser's number", `${account}.${"A".repeat(16)}.${signature}`, owner],
  ["a signature of nothing", `${account}.${browser}.${"A".repeat(43)}`, owner],
  ["nobody", kept, null],
  ["nothing kept", null, owner],
  ["no text of ours", "5", owner],
  ["a long text", "5.".repeat(1_000_000), owner],
])("it is not known with %s", (_, text, of) => {
  expect(browsers.recognize(text, of)).toBeNull();
});

test("another server does not know it", () => {
  expect(new KnownBrowsers(new Uint8Array(32).fill(8)).recognize(kept, owner)).toBeNull();
});
