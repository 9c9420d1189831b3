// Named keys: what they are called, what they may do, and that their limits hold whatever runs at once.
import { describe, expect, test } from "bun:test";
import { type NewKey, type NewLimits } from "../../../src/account/people/account-keys.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import { by } from "../../fixtures/principals.ts";
import { ask, coderAsk, model, noon, Office, output } from "../office.ts";

const dayMs = 86_400_000;

async function officeWith(key: Partial<NewKey> = {}) {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x", plan: "pro", credit: 1_000_000 });
  const made = await office.accountKeys.create(id, { name: "bot", ...key });
  return { office, id, made, key: made.id };
}

/** A request of the key that came to so many tokens. */
async function spend(office: Office, account: number, key: number, tokens: number): Promise<void> {
  using hold = office.hold(account, ask(0), 0, key);
  await hold.settle(output(tokens), false, office.now);
}

describe("a key", () => {
  test("is found by its whole text, beside the first one, also after a restart", async () => {
    const { office, id, made } = await officeWith();
    expect(office.keys.principal(made.api_key)).toEqual({ account: id, key: 2, limits: null });
    expect(office.restart().keys.principal(made.api_key)).toEqual({ account: id, key: 2, limits: null });
    expect(Buffer.from(office.database.serialize()).includes(made.api_key)).toBe(false);
  });

  test("is numbered from 2 on, and no number comes twice", async () => {
    const { office, id } = await officeWith();
    await office.accountKeys.revoke(id, 2);
    const both = await Promise.all(["b", "c"].map((name) => office.accountKeys.create(id, { name })));
    expect(both.map((key) => key.id)).toEqual([3, 4]);
    expect((await office.accountKeys.list(id)).map(({ id, name }) => [id, name])).toEqual([
      [1, "default"],
      [3, "b"],
      [4, "c"],
    ]);
  });

  test.each(["", "  ", "default", "Playground", "BOT", "a\nb", "a\u202eb", "x".repeat(65)])(
    "is not called %j",
    async (name) => {
      const { office, id } = await officeWith();
      await expect(office.accountKeys.create(id, { name })).rejects.toThrow(/called|name/);
      await office.accountKeys.create(id, { name: "other" });
      await expect(office.accountKeys.rename(id, 3, name)).rejects.toThrow(/called|name/);
    },
  );

  test("gets no name that another one is about to get", async () => {
    const { office, id } = await officeWith();
    await office.accountKeys.create(id, { name: "other" });
    office.storage.immediate = false;
    const first = office.accountKeys.rename(id, 2, "ci");
    const others = [office.accountKeys.rename(id, 3, "CI"), office.accountKeys.create(id, { name: "ci" })];
    await office.underWay();
    office.storage.immediate = true;
    office.storage.succeed();
    for (const { status } of await Promise.allSettled(others)) expect(status).toBe("rejected");
    expect((await first).name).toBe("ci");
  });

  test("names models that are served, as it is made and limited anew", async () => {
    const catalog = { models: new Map([["qwen3:8b", model("qwen3:8b")]]) };
    const office = new Office();
    const { accounts, accountKeys } = office;
    const { id } = await accounts.create({ email: "a@x" });
    office.catalog.models = catalog.models;
    const { id: key } = await accountKeys.create(id, { name: "bot", models: ["qwen3:8b"] });
    for (const wrong of [["qwn3:8b"], ["qwen3:8b", "qwen3"]]) {
      await expect(accountKeys.create(id, { name: "b", models: wrong })).rejects.toThrow('did you mean "qwen3:8b"?');
      await expect(accountKeys.limit(id, key, { models: wrong })).rejects.toThrow('did you mean "qwen3:8b"?');
    }
    catalog.models.clear();
    expect(await accountKeys.limit(id, key, { models: ["qwen3:8b"], limit_day: 5 })).toMatchObject({ limit_day: 5 });
  });

  test("may have the name of one that was revoked, and its own with another case", async () => {
    const { office, id, key } = await officeWith();
    expect(await office.accountKeys.rename(id, key, "Bot")).toMatchObject({ name: "Bot" });
    await office.accountKeys.revoke(id, key);
    expect(await office.accountKeys.create(id, { name: "bot" })).toMatchObject({ id: 3 });
  });

  test.each([
    { limit_day: 0 },
    { limit_month: 1.5 },
    { expires_at: "soon" },
    { expires_at: "2030" },
    { expires_at: "1/2/2030" },
    { expires_at: "2030-02-30T00:00:00Z" },
    { expires_at: new Date(noon).toISOString() },
    { addresses: ["10.0.0.0/33"] },
    { addresses: ["localhost"] },
    { models: [""] },
    { models: Array.from({ length: 51 }, (_, index) => `m${index}`) },
  ])("is not made with %j", async (limits) => {
    const { office, id } = await officeWith();
    await expect(office.accountKeys.create(id, { name: "other", ...limits })).rejects.toThrow();
    expect(await office.accountKeys.list(id)).toHaveLength(2);
  });

  test("is one of at most 100", async () => {
    const { office, id } = await officeWith();
    const create = (index: number) => office.accountKeys.create(id, { name: `k${index}` });
    const made = await Promise.allSettled(Array.from({ length: 100 }, (_, index) => create(index)));
    expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(99);
    await office.accountKeys.revoke(id, 2);
    expect(await create(100)).toMatchObject({ id: 102 });
  });

  test("is void at once when it is revoked, before the disk knows, and stays so", async () => {
    const { office, id, made, key } = await officeWith();
    const other = await office.accountKeys.create(id, { name: "other" });
    expect(office.keys.principal(made.api_key)).not.toBeNull();
    let voids = 0;
    office.keys.onVoid = () => (voids += 1);
    office.storage.immediate = false;
    const revoked = office.accountKeys.revoke(id, key);
    await office.underWay();
    expect([voids, office.keys.principal(made.api_key)]).toEqual([1, null]);
    expect(office.admit(id, ask(1), 0, key)).toEqual({ refusal: "invalid_api_key" });
    office.storage.succeed();
    await revoked;
    expect(office.restart().keys.principal(made.api_key)).toBeNull();
    expect(office.restart().keys.principal(other.api_key)).toMatchObject({ key: other.id });
  });

  test("whose revocation never reached the disk is valid again", async () => {
    const { office, id, made, key } = await officeWith();
    office.storage.immediate = false;
    const revoked = office.accountKeys.revoke(id, key);
    await office.underWay();
    office.storage.giveUp();
    await expect(revoked).rejects.toThrow("took no writes");
    expect(office.keys.principal(made.api_key)).toMatchObject({ account: id, key });
    expect(isRefusal(office.admit(id, ask(1), 0, key))).toBe(false);
  });

  test("is not the first one where that is rotated, and the first one is not revoked or renamed", async () => {
    const { office, id, made } = await officeWith();
    await office.accounts.rotateKey("a@x");
    expect(office.keys.principal(made.api_key)).toMatchObject({ account: id });
    await expect(office.accountKeys.revoke(id, 1)).rejects.toThrow("keys rotate");
    await expect(office.accountKeys.rename(id, 1, "mine")).rejects.toThrow("keys rotate");
  });

  test("is refused with its account, and comes back with it", async () => {
    const { office, id, made, key } = await officeWith();
    expect(office.keys.principal(made.api_key)).not.toBeNull();
    await office.accounts.setDisabled(id, true);
    expect(office.keys.principal(made.api_key)).toBeNull();
    expect(office.admit(id, ask(1), 0, key)).toEqual({ refusal: "invalid_api_key" });
    await office.accounts.setDisabled(id, false);
    expect(office.keys.principal(made.api_key)).not.toBeNull();
  });

  test("and its name are erased with its account, and what it used stays", async () => {
    const { office, id, made, key } = await officeWith({
      name: "Ada's laptop",
      addresses: ["192.0.2.7"],
      models: ["core-3"],
      limit_day: 100,
    });
    office.database.run("PRAGMA secure_delete = FAST"); // as every ledger on disk
    await spend(office, id, key, 10);
    await office.accounts.erase("a@x", async () => {});
    expect(office.restart().keys.principal(made.api_key)).toBeNull();
    const everything = Buffer.from(office.database.serialize());
    expect([everything.includes("laptop"), everything.includes("192.0.2.7")]).toEqual([false, false]);
    expect(await office.accounts.usage(id, 1)).toMatchObject([{ key: "key 2", billed_tokens: 10 }]);
    expect((await office.verify()).violations).toEqual([]);
  });

  test("has its last use written down later, in a batch", async () => {
    const { office, id, key } = await officeWith();
    expect((await office.accountKeys.list(id)).map(({ last_used_at }) => last_used_at)).toEqual([null, null]);
    office.admit(id, ask(1), 0, key);
    office.now += 5_000;
    office.admit(id, ask(1), 0, key);
    office.admit(id, ask(1));
    const told = [new Date(noon + 5_000).toISOString(), new Date(noon + 5_000).toISOString()];
    expect((await office.accountKeys.list(id)).map(({ last_used_at }) => last_used_at)).toEqual(told);
    expect(office.journal.pending).toBe(0);
    office.admission.keysUsed.write(1);
    expect(office.journal.pending).toBe(1);
    office.admission.keysUsed.write(5);
    office.journal.flush();
    const after = await office.restart().accountKeys.list(id);
    expect(after.map(({ last_used_at }) => last_used_at)).toEqual(told);
  });
});

describe("what a key may be used for", () => {
  test("is void from the moment in which it expires", async () => {
    const { office, id, key } = await officeWith({ expires_at: new Date(noon + 1_000).toISOString() });
    office.now = noon + 999;
    expect(isRefusal(office.admit(id, ask(1), 0, key))).toBe(false);
    office.now = noon + 1_000;
    expect(office.admit(id, ask(1), 0, key)).toEqual({ refusal: "invalid_api_key" });
    expect((await office.accountKeys.list(id))[1]).toMatchObject({ expired: true });
  });

  test("a model that it may not use is refused, free and uncounted; an alias is as good as an id", async () => {
    const { office, id, key } = await officeWith({ models: ["core-3", "nick"] });
    const other = { ...model("core-2-pro"), aliases: ["nick"] };
    for (let i = 0; i < 130; i += 1) {
      const refused = office.admit(id, ask(1, { model: model("core-2-lite") }), 0, key);
      expect(refused).toEqual({ refusal: "model_not_for_key", detail: { model: "core-2-lite", key: "bot" } });
    }
    expect(office.admit(id, coderAsk(), 0, key)).toMatchObject({ refusal: "model_not_for_key" });
    const listed = (used: number) =>
      [model("core-2-lite"), other].map((one) => office.admission.refuseModel(by(id, used), one));
    expect(listed(key)).toMatchObject([{ refusal: "model_not_for_key" }, null]);
    expect([...listed(1), ...listed(0)]).toEqual([null, null, null, null]);
    expect(isRefusal(office.admit(id, ask(1, { model: other }), 0, key))).toBe(false);
    expect(isRefusal(office.admit(id, ask(1), 0, key))).toBe(false);
    expect(isRefusal(office.admit(id, ask(1, { model: model("core-2-lite") })))).toBe(false);
  });
});

describe("what a key may spend", () => {
  test("holds under parallel requests, and the refusal names the key", async () => {
    const { office, id, key } = await officeWith({ limit_day: 1_000 });
    const holds = Array.from({ length: 50 }, () => office.admit(id, ask(100), 0, key));
    expect(holds.filter(isRefusal)).toHaveLength(40);
    expect(holds.at(-1)).toEqual({
      refusal: "key_quota_exceeded",
      detail: {
        key: "bot",
        limit: 1_000,
        period: "day",
        spendable: 0,
        requested: 100,
        resets_at: (noon + dayMs / 2) / 1_000,
      },
    });
    expect(isRefusal(office.admit(id, ask(100)))).toBe(false); // by the first key
  });

  test("is used by charges of any size, and free again the next day, or month", async () => {
    const { office, id, key } = await officeWith({ limit_day: 1_000, limit_month: 1_500 });
    await spend(office, id, key, 990);
    expect(office.admit(id, ask(11), 0, key)).toMatchObject({
      refusal: "key_quota_exceeded",
      detail: { spendable: 10 },
    });
    office.now += dayMs;
    await spend(office, id, key, 500);
    const refused = office.admit(id, ask(11), 0, key);
    expect(refused).toMatchObject({ refusal: "key_quota_exceeded", detail: { period: "month", spendable: 10 } });
    expect(refused).toMatchObject({ detail: { resets_at: Date.UTC(2026, 3) / 1_000 } });
    expect((await office.accountKeys.list(id))[1]).toMatchObject({ used_day: 500, used_month: 1_490 });
    office.now = Date.UTC(2026, 3);
    expect(isRefusal(office.admit(id, ask(1_000), 0, key))).toBe(false);
  });

  test("is known after a kill, to the token", async () => {
    const { office, id, key } = await officeWith({ limit_day: 1_000 });
    await spend(office, id, key, 700);
    const after = office.restart();
    expect(after.admit(id, ask(301), 0, key)).toMatchObject({ detail: { spendable: 300 } });
    expect(isRefusal(after.admit(id, ask(300), 0, key))).toBe(false);
  });

  test("has what a lost charge took given back, and no other key has", async () => {
    const { office, id, key } = await officeWith({ limit_day: 1_000 });
    const { id: later } = await office.accountKeys.create(id, { name: "later", limit_day: 1_000 });
    for (const each of [key, later]) await spend(office, id, each, 200);
    office.storage.immediate = false;
    for (const each of [key, later]) {
      using hold = office.hold(id, ask(0), 0, each);
      const settled = hold.settle(output(700), false, office.now);
      office.journal.flush();
      office.storage.giveUp();
      await expect(settled).rejects.toThrow();
      for (const one of [key, later]) {
        expect(office.admit(id, ask(801), 0, one)).toMatchObject({ refusal: "key_quota_exceeded" });
        office.hold(id, ask(800), 0, one)[Symbol.dispose]();
      }
    }
  });

  test("is not overdrawn by many long inputs at once: all but one wait, and no other key's requests with them", async () => {
    const { office, id, key } = await officeWith({ limit_day: 1_000 });
    const { id: other } = await office.accountKeys.create(id, { name: "other", limit_day: 1_000 });
    const long = [1, 2, 3].map(() => office.hold(id, ask(10), 900, key));
    expect(long.map(({ ready }) => ready === null)).toEqual([true, false, false]);
    expect(office.hold(id, ask(10), 900, other).ready).toBeNull();
    expect(office.hold(id, ask(10), 900).ready).toBeNull();
    await long[0]!.settle(output(985), false, office.now);
    expect(await Promise.all(long.slice(1).map(({ ready }) => ready))).toEqual([
      null, // alone it begins, as its budget fits
      expect.objectContaining({ refusal: "key_quota_exceeded" }),
    ]);
    long[1]![Symbol.dispose]();
  });

  test("is nothing to free models", async () => {
    const { office, id, key } = await officeWith({ limit_day: 1 });
    await spend(office, id, key, 5);
    const free = { ...model("own", { kind: "flat", cents: 0 }), tier: "own" as const };
    expect(isRefusal(office.admit(id, ask(4_096, { model: free }), 50, key))).toBe(false);
  });

  test("that the disk contradicts is found", async () => {
    const { office, id, key } = await officeWith({ limit_day: 1_000 });
    await spend(office, id, key, 7);
    office.database.run("UPDATE key_use SET used = 8");
    const { violations } = await office.verify();
    expect(violations.map(({ invariant }) => invariant).sort()).toEqual(["I1", "I11"]);
  });
});

describe("other limits of a key", () => {
  test("change what is named and leave the rest, also after a restart", async () => {
    const { office, id, key } = await officeWith({ limit_day: 1_000, models: ["core-3"], addresses: ["10.0.0.0/8"] });
    const steps: readonly (readonly [NewLimits, object])[] = [
      [{ limit_month: 9_000 }, { limit_day: 1_000, limit_month: 9_000, models: ["core-3"] }],
      [
        { limit_day: null, models: null },
        { limit_day: null, limit_month: 9_000, models: null },
      ],
      [{ expires_at: "2030-01-31T01:00:00+02:00" }, { expires_at: "2030-01-30T23:00:00.000Z" }],
      [{ expires_at: "2030-01-31T01:00" }, { expires_at: "2030-01-31T01:00:00.000Z" }],
      [
        { limit_month: null, expires_at: null },
        { limit_month: null, expires_at: null, addresses: ["10.0.0.0/8"] },
      ],
      [{ addresses: null }, { addresses: null }],
    ];
    for (const [limits, expected] of steps) {
      expect(await office.accountKeys.limit(id, key, limits)).toMatchObject(expected);
      expect((await new Office(office.database).accountKeys.list(id))[1]).toMatchObject(expected);
    }
    await expect(office.accountKeys.limit(id, 1, { limit_day: 1 })).rejects.toThrow("keys of their own");
    await expect(office.accountKeys.limit(id, 9, { limit_day: 1 })).rejects.toThrow("no key 9");
  });

  test("hold for the next request on every thread; what runs keeps what it holds, and counts", async () => {
    const { office, id, made, key } = await officeWith();
    let voids = 0;
    office.keys.onVoid = () => (voids += 1);
    expect(office.keys.principal(made.api_key)?.limits).toBeNull();
    using running = office.hold(id, ask(5_000), 0, key);
    await office.accountKeys.limit(id, key, { limit_day: 8_000 });
    expect([voids, office.keys.principal(made.api_key)?.limits?.tokensPerDay]).toEqual([1, 8_000]);
    expect(office.admit(id, ask(3_001), 0, key)).toMatchObject({ refusal: "key_quota_exceeded" });
    await running.settle(output(4_000), false, office.now);
    expect(office.admit(id, ask(4_001), 0, key)).toMatchObject({ refusal: "key_quota_exceeded" });
    using within = office.hold(id, ask(4_000), 0, key);
    expect(within.ready).toBeNull();
  });

  test("count what was charged while there were none and the disk was behind", async () => {
    const { office, id, key } = await officeWith();
    office.storage.immediate = false;
    const spent = spend(office, id, key, 700);
    const limited = office.accountKeys.limit(id, key, { limit_day: 1_000 });
    await office.underWay();
    office.storage.succeed();
    await Promise.all([spent, limited]);
    expect(office.admit(id, ask(301), 0, key)).toMatchObject({ refusal: "key_quota_exceeded" });
    expect((await office.accountKeys.list(id))[1]).toMatchObject({ used_day: 700 });
  });

  test("bring an expired key back, and end one at once", async () => {
    const { office, id, made, key } = await officeWith({ expires_at: new Date(noon + 1_000).toISOString() });
    office.now += 2_000;
    expect(office.admit(id, ask(1), 0, key)).toEqual({ refusal: "invalid_api_key" });
    await office.accountKeys.limit(id, key, { expires_at: new Date(noon + dayMs).toISOString() });
    expect(isRefusal(office.admit(id, ask(1), 0, key))).toBe(false);
    expect(office.keys.principal(made.api_key)?.limits?.expiresAt).toBe(noon + dayMs);
  });

  test("that never reached the disk are not in force", async () => {
    const { office, id, key } = await officeWith({ limit_day: 10 });
    office.storage.immediate = false;
    const limited = office.accountKeys.limit(id, key, { limit_day: null });
    await office.underWay();
    office.storage.giveUp();
    await expect(limited).rejects.toThrow("took no writes");
    expect(office.admit(id, ask(11), 0, key)).toMatchObject({ refusal: "key_quota_exceeded" });
  });

  test("hold for a key whose revocation was lost meanwhile", async () => {
    const { office, id, key } = await officeWith();
    office.storage.immediate = false;
    const limited = office.accountKeys.limit(id, key, { limit_day: 10 });
    const revoked = office.accountKeys.revoke(id, key);
    await office.underWay();
    office.storage.succeed();
    await limited;
    await office.underWay();
    office.storage.giveUp();
    await expect(revoked).rejects.toThrow("took no writes");
    expect(office.admit(id, ask(11), 0, key)).toMatchObject({ refusal: "key_quota_exceeded" });
  });
});
