// What a file says of accounts, made so on both stores.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { Teams } from "../../src/account/people/teams.ts";
import { applied, type Shop } from "../../src/office/apply.ts";
import type { Actor } from "../../src/office/verb.ts";
import { type AnyOffice, stores } from "../account/stores.ts";

const shell: Actor = { kind: "shell", user: "ada" };

for (const store of stores) {
  describe(`on ${store.name}`, () => {
    let office: AnyOffice;
    beforeAll(() => store.begin(), 60_000);
    afterAll(() => store.end());
    beforeEach(async () => {
      office = (await store.open()).office;
    });

    const apply = async (shop: Shop) => (await applied(office.units, shell, shop)).changes;
    const isOperator = async (email: string) =>
      (await office.units.read(({ accounts }) => accounts.ofEmail(email))).operator;

    test("limits that mean what a key has are no change, however they are written", async () => {
      const { id } = await office.accounts.create({ email: "ada@x" });
      await office.accountKeys.create(id, { name: "bot" });
      const shop = (limits: object): Shop => ({ accounts: [{ email: "ada@x", keys: [{ name: "bot", ...limits }] }] });
      for (const [limits, same] of [
        [{ expires_at: "2030-01-31T00:00:00Z" }, { expires_at: "2030-01-31T00:00:00.000Z" }],
        [{ addresses: ["10.0.0.0/8", "::1"] }, { addresses: ["::1", "10.0.0.0/8", "::1"] }],
        [{ limit_day: 5, weight: 2 }, { weight: 2 }],
      ] as const) {
        expect(await apply(shop(limits))).toHaveLength(1);
        expect(await apply(shop(limits))).toEqual([]);
        expect(await apply(shop(same))).toEqual([]);
      }
      expect(await apply(shop({ models: [] }))).toEqual([]);
      expect(await apply(shop({ limit_day: 6, addresses: [] }))).toEqual([
        '~ ada@x, key "bot": limit_day from 5 to 6, addresses from 10.0.0.0/8,::1 to none',
      ]);
    });

    test("an operator is left, whatever the file takes away together; another may take the place of the only one", async () => {
      await office.accounts.create({ email: "a@x", operator: true });
      await office.accounts.create({ email: "b@x", operator: true });
      await office.accounts.create({ email: "c@x" });
      const both = (row: object) => [
        { email: "a@x", ...row },
        { email: "b@x", ...row },
      ];
      await expect(apply({ accounts: both({ operator: false }) })).rejects.toThrow(
        "accounts[1]: b@x is the only operator",
      );
      await expect(apply({ accounts: both({ disabled: true }) })).rejects.toThrow("b@x is the only operator");
      expect([await isOperator("a@x"), await isOperator("b@x")]).toEqual([true, true]);
      await apply({ accounts: [...both({ operator: false }), { email: "c@x", operator: true }] });
      expect([await isOperator("a@x"), await isOperator("b@x"), await isOperator("c@x")]).toEqual([false, false, true]);
    });

    test("teams and who is in them, made with their people, and nothing a second time", async () => {
      const members = [
        { email: "ada@x", role: "admin" as const },
        { email: "bob@x", limit_day: 5, limit_month: 9 },
      ];
      const shop: Shop = {
        accounts: [{ email: "ada@x" }, { email: "bob@x" }],
        teams: [{ name: "lab", plan: "pro", credit: 7, members }],
      };
      expect(await apply(shop)).toEqual([
        "+ ada@x: plan free, credit 0",
        "+ bob@x: plan free, credit 0",
        "+ team lab: plan pro, credit 7",
        "+ lab, member ada@x: role admin",
        "+ lab, member bob@x: limit_day 5, limit_month 9",
      ]);
      expect(await apply(shop)).toEqual([]);
      const later = { name: "lab", plan: "plus", disabled: true, members: [{ email: "bob@x", limit_day: null }] };
      expect(await apply({ teams: [later] })).toEqual([
        "~ lab: plan from pro to plus",
        "~ lab: disabled",
        "~ lab, member bob@x: limit_day none",
      ]);
      expect(await apply({ teams: [later] })).toEqual([]);
      const shown = await office.units.read(async (unit) => {
        const teams = new Teams(unit.teams);
        return teams.members((await teams.named("lab")).id);
      });
      expect(shown.map(({ email, role, limit_day, limit_month }) => [email, role, limit_day, limit_month])).toEqual([
        ["ada@x", "admin", null, null],
        ["bob@x", "member", null, 9],
      ]);
      for (const [team, problem] of [
        [{ name: "ada@x" }, "teams[0]: no team is called ada@x"],
        [{ name: "lab", members: [{ email: "eve@x" }] }, "teams[0]: members[0]: no account has the e-mail eve@x"],
        [{ name: "other", members: [{ email: "lab" }] }, "teams[0]: members[0]: lab is a team"],
      ] as const)
        await expect(apply({ teams: [team as NonNullable<Shop["teams"]>[number]] })).rejects.toThrow(problem);
    });

    test("a rehearsal shows what would change, refuses what would be refused, and writes nothing", async () => {
      const good: Shop = {
        accounts: [{ email: "new@x", plan: "pro", credit: 5 }],
        invitations: [{ email: "later@x" }],
      };
      const shown = await apply({ ...good, dry_run: true });
      expect(shown).toHaveLength(2);
      await expect(office.accounts.show("new@x")).rejects.toThrow("no account");
      expect(await office.auditLog.list(10)).toEqual([]);
      expect(await apply(good)).toEqual(shown);
      for (const wrong of [
        { accounts: [{ email: "no address" }] },
        { accounts: [{ email: "new@x", plan: "gold" }] },
        { accounts: [{ email: "rich@x", credit: Number.MAX_SAFE_INTEGER }] },
        { accounts: [{ email: "new@x", keys: [{ name: "none of these" }] }] },
        { invitations: [{ email: "other@x", plan: "gold" }] },
      ]) {
        const refused = await apply(wrong).catch((thrown: Error) => thrown.message);
        expect(refused).toBeString();
        await expect(apply({ ...wrong, dry_run: true })).rejects.toThrow(refused as string);
      }
    });

    test("an invitation that says something else, and a key that is named twice, are refused", async () => {
      await apply({ invitations: [{ email: "later@x", plan: "plus", credit: 7 }] });
      expect(await apply({ invitations: [{ email: "LATER@x", plan: "plus", credit: 7 }] })).toEqual([]);
      expect(await apply({ invitations: [{ email: "later@x" }] })).toEqual([]);
      await expect(apply({ invitations: [{ email: "later@x", plan: "pro" }] })).rejects.toThrow(
        "invitations[0]: later@x has invitation 1 with plan plus, credit 7: withdraw it first",
      );
      const keys = [
        { name: "bot", limit_day: 5 },
        { name: "bot", limit_day: 6 },
      ];
      await expect(apply({ accounts: [{ email: "ada@x", keys }] })).rejects.toThrow(
        "bot stands in accounts[0].keys[0]",
      );
    });

    test("what comes eight times at once is made once", async () => {
      const eight = Array.from({ length: 8 });
      const shop = { invitations: [{ email: "a@x" }, { email: "b@x" }] };
      const changes = await Promise.all(eight.map(() => apply(shop)));
      expect(changes.flat()).toHaveLength(2);
      const made = await Promise.allSettled(
        eight.map(() => office.units.change(({ tokens }) => tokens.create("ci", "read", null))),
      );
      expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    });

    test("a thousand of each are one unit", async () => {
      const rows = (of: string) => Array.from({ length: 1_000 }, (_, at) => ({ email: `${of}${at}@x`, plan: "pro" }));
      const shop = { accounts: rows("a"), invitations: rows("i") };
      expect(await apply(shop)).toHaveLength(2_000);
      expect(await apply(shop)).toEqual([]);
    });
  });
}
