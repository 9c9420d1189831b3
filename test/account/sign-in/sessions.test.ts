// Browsers that are signed in: who gets in, for how long, and what ends a session.
import { describe, expect, test } from "bun:test";
import { StoreUnavailable } from "../../../src/core/types.ts";
import { Office } from "../office.ts";

const from = { address: "192.0.2.1", browser: "a browser" };

async function setUp() {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x", password: "correct horse" });
  return { office, id, open: () => office.sessions.open(id, from) };
}

test("a token is found by its hash, and the disk knows nothing but the hash", async () => {
  const { office, id, open } = await setUp();
  const { token, session } = await open();
  expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/); // 256 bits
  expect(office.sessions.find(token, office.now)).toMatchObject({ id: session.id, account: id, ...from });
  expect(JSON.stringify(office.database.query("SELECT * FROM sessions").all())).not.toContain(token);
  const [row] = office.database.query("SELECT hex(token_hash) AS hash FROM sessions").all() as { hash: string }[];
  expect(row!.hash.toLowerCase()).toBe(new Bun.CryptoHasher("sha256").update(token).digest("hex"));
});

test("every session has another token", async () => {
  const { open } = await setUp();
  const tokens = new Set<string>();
  for (let index = 0; index < 50; index++) tokens.add((await open()).token);
  expect(tokens.size).toBe(50);
});

test.each(["", "x", "a".repeat(43), "a".repeat(44), "'; DROP TABLE sessions; --", "\u0000".repeat(43)])(
  "the token %p belongs to nobody",
  async (token) => {
    const { office, open } = await setUp();
    await open();
    expect(office.sessions.find(token, office.now)).toBeNull();
  },
);

describe("a session ends", () => {
  test("at once when it is ended, also while the disk still has it", async () => {
    const { office, id, open } = await setUp();
    const { token, session } = await open();
    await office.sessions.find(token, office.now);
    office.storage.immediate = false;
    const ended = office.sessions.end(id, session.id);
    await office.underWay();
    expect(office.sessions.find(token, office.now)).toBeNull();
    office.storage.succeed();
    expect(await ended).toBe(true);
    expect(office.sessions.find(token, office.now)).toBeNull();
    expect(office.restart().sessions.find(token, office.now)).toBeNull();
  });

  test("at once when its account is disabled, and stays ended when the account may be used again", async () => {
    const { office, id, open } = await setUp();
    const { token } = await open();
    office.storage.immediate = false;
    const disabled = office.accounts.setDisabled(id, true);
    await office.underWay();
    expect(office.sessions.find(token, office.now)).toBeNull();
    office.storage.immediate = true;
    office.storage.succeed();
    await disabled;
    await office.sessions.endAll(id, null);
    await office.accounts.setDisabled(id, false);
    expect(office.sessions.find(token, office.now)).toBeNull();
  });
});

test("all others end, also one that is on its way to disk", async () => {
  const { office, id, open } = await setUp();
  const [kept, other] = [await open(), await open()];
  office.storage.immediate = false;
  const opening = open();
  const ended = office.sessions.endAll(id, kept.session.id);
  await office.underWay();
  office.storage.succeed();
  await office.underWay();
  expect(office.sessions.find(other.token, office.now)).toBeNull();
  office.storage.immediate = true;
  office.storage.succeed();
  await ended;
  const { token } = await opening;
  for (const { sessions } of [office, office.restart()]) {
    expect(sessions.find(token, office.now)).toBeNull();
    expect(sessions.find(other.token, office.now)).toBeNull();
    expect(sessions.find(kept.token, office.now)).not.toBeNull();
  }
});

test("a session that the disk did not take is none", async () => {
  const { office, id, open } = await setUp();
  office.storage.immediate = false;
  const opening = open();
  await office.underWay();
  office.storage.giveUp();
  await expect(opening).rejects.toBeInstanceOf(StoreUnavailable);
  expect(await office.sessions.list(id)).toEqual([]);
});

describe("a sign-in with a password that is being changed", () => {
  test("opens nothing once the new one is on disk", async () => {
    const { office, id } = await setUp();
    const signingIn = office.accounts.signIn("a@x", "correct horse");
    office.database.run("UPDATE accounts SET password_hash = 'another' WHERE id = ?", [id]);
    expect(await signingIn).toBeNull();
  });

  test("is refused for an account that was disabled meanwhile", async () => {
    const { office, id } = await setUp();
    const signingIn = office.accounts.signIn("a@x", "correct horse");
    await office.accounts.setDisabled(id, true);
    expect(await signingIn).toBeNull();
  });
});

test("a disabled account's key is void at once, and works again when it is enabled", async () => {
  const office = new Office();
  const { id, api_key } = await office.accounts.create({ email: "a@x" });
  expect(office.keys.principal(api_key)?.account ?? null).toBe(id);
  office.storage.immediate = false;
  const disabled = office.accounts.setDisabled(id, true);
  await office.underWay();
  expect(office.keys.principal(api_key)?.account ?? null).toBeNull();
  office.storage.immediate = true;
  office.storage.succeed();
  await disabled;
  expect(office.keys.principal(api_key)?.account ?? null).toBeNull();
  expect(office.restart().keys.principal(api_key)?.account ?? null).toBeNull();
});

test("an account that the disk did not disable works on", async () => {
  const office = new Office();
  const { id, api_key } = await office.accounts.create({ email: "a@x" });
  office.storage.immediate = false;
  const disabled = office.accounts.setDisabled(id, true);
  await office.underWay();
  office.storage.giveUp();
  await expect(disabled).rejects.toBeInstanceOf(StoreUnavailable);
  expect(office.keys.principal(api_key)?.account ?? null).toBe(id);
});

test("an account that the disk neither disabled nor enabled is as it was", async () => {
  for (const disabled of [false, true]) {
    const office = new Office();
    const { id, api_key } = await office.accounts.create({ email: "a@x" });
    if (disabled) await office.accounts.setDisabled(id, true);
    office.storage.immediate = false;
    const changes = [true, false, true].map((each) => office.accounts.setDisabled(id, each));
    const changed = Promise.allSettled(changes);
    for (const _ of changes) {
      await office.underWay();
      office.storage.giveUp();
    }
    expect((await changed).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(office.keys.principal(api_key)?.account ?? null).toBe(disabled ? null : id);
  }
});

test("an account that is disabled stays so whatever becomes of what was asked before", async () => {
  for (const outcome of ["succeed", "giveUp"] as const) {
    const office = new Office();
    const { id, api_key } = await office.accounts.create({ email: "a@x" });
    office.storage.immediate = false;
    const changed = Promise.allSettled([true, false, true].map((each) => office.accounts.setDisabled(id, each)));
    for (const each of [outcome, outcome, "succeed"] as const) {
      await office.underWay();
      office.storage[each]();
    }
    await changed;
    expect(office.keys.principal(api_key)?.account ?? null).toBeNull();
    expect(office.restart().keys.principal(api_key)?.account ?? null).toBeNull();
  }
});
