// One contract for both stores: what the console and commands ask of accounts has the same answers in memory beside SQLite and
// on PostgreSQL.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { LinkVoid } from "../../src/account/sign-in/access-links.ts";
import { KeyNotFound } from "../../src/account/people/account-keys.ts";
import { AccountError, EmailTaken } from "../../src/account/people/accounts.ts";
import type { Unit } from "../../src/account/office.ts";
import { theServer } from "../../src/account/audit.ts";
import {
  DecidedOtherwise,
  purchaseRequestsPendingMax,
  purchaseRequestsPerDayMax,
} from "../../src/account/money/purchases.ts";
import { sessionMaxMs } from "../../src/core/limits.ts";
import { dayMs, hourMs } from "../../src/core/units.ts";
import { sessionIdleMs, sessionsMax, sessionUseIntervalMs } from "../../src/account/sign-in/sessions.ts";
import { type AnyOffice, caught, caughtBy, type Opened, stores } from "./stores.ts";

const from = { address: "192.0.2.1", browser: "a browser" };
const most = Number.MAX_SAFE_INTEGER;

for (const store of stores) {
  describe(`on ${store.name}`, () => {
    let opened: Opened;
    let office: AnyOffice;
    beforeAll(() => store.begin(), 60_000);
    afterAll(() => store.end());
    beforeEach(async () => {
      opened = await store.open();
      office = opened.office;
    });

    const note = ({ auditLog }: Unit, detail: string, subject = theServer) =>
      auditLog.append({ at: 1, operator: theServer, address: "", action: "account.plan", subject, detail });
    /** Notes what was done. */
    const noting =
      (detail: string, subject = theServer) =>
      (unit: Unit) =>
        note(unit, detail, subject);
    const audited = async () => (await office.auditLog.list(100)).map(({ detail }) => detail);
    const creditOf = async (email: string) => (await office.accounts.show(email)).credit;

    describe("accounts", () => {
      test("a new one has its plan's amounts, in the words of the command line", async () => {
        expect(await office.accounts.none()).toBe(true);
        const created = await office.accounts.create({ email: "a@x", plan: "standard", credit: 1_000_000 });
        const api_key = expect.stringMatching(/^sk-tg-\w{43}$/) as string;
        expect(created).toEqual({ id: 1, email: "a@x", plan: "standard", api_key });
        expect(await office.accounts.show("A@X")).toEqual({
          id: 1,
          email: "a@x",
          plan: "standard",
          disabled: false,
          cost_center: null,
          allowance: { day: "2026-03-28", granted: 265_000, left: 265_000 },
          credit: 1_000_000,
          reserved: 0,
          spendable: 1_265_000,
          coder_calls: { window: "2026-03-28T12:00:00.000Z", used: 0, limit: 40 },
          searches: { day: "2026-03-28", used: 0, limit: 50 },
        });
        expect([await office.accounts.none(), await office.accounts.count()]).toEqual([false, 1]);
        expect(await opened.another().accounts.show(1)).toMatchObject({ email: "a@x", credit: 1_000_000 });
      });

      test("the same e-mail, in any case, many times at once makes one", async () => {
        const all = await Promise.allSettled(
          Array.from({ length: 10 }, (_, index) => office.accounts.create({ email: index % 2 === 0 ? "a@x" : "A@x" })),
        );
        expect(all.filter(({ status }) => status === "fulfilled").length).toBe(1);
        for (const each of all) if (each.status === "rejected") expect(each.reason).toBeInstanceOf(EmailTaken);
        expect(await office.accounts.count()).toBe(1);
      });

      test("numbers go on after those that were given", async () => {
        await office.accounts.create({ email: "a@x" });
        expect((await opened.another().accounts.create({ email: "b@x" })).id).toBe(2);
      });

      test("what cannot be done is said in one line, and leaves nothing", async () => {
        const { accounts } = office;
        const { id } = await accounts.create({ email: "a@x" });
        for (const work of [
          () => accounts.create({ email: "no address" }),
          () => accounts.create({ email: "b@x", plan: "gold" }),
          () => accounts.create({ email: "b@x", credit: 1.5 }),
          () => accounts.create({ email: "b@x", password: "" }),
          () => accounts.show("b@x"),
          () => accounts.changePlan("a@x", "gold", noting("never")),
          () => accounts.addCredit("a@x", 0, undefined, noting("never")),
          () => accounts.addCredit("a@x", 1, "\ud800", noting("never")),
          () => accounts.addCredit("b@x", 1, undefined, noting("never")),
          () => accounts.changePassword(id, ""),
          () => accounts.invitation({ email: "a@x", credit: 0, expiresAt: opened.time.now + hourMs }),
          () => accounts.passwordLink(id, opened.time.now - 1),
        ]) {
          expect(await caughtBy(work)).toBeInstanceOf(AccountError);
        }
        expect([await accounts.count(), await creditOf("a@x"), await audited()]).toEqual([1, 0, []]);
      });

      test("are listed, and counted by plan", async () => {
        for (const email of ["a@x", "A_b%@y", "c@x"]) await office.accounts.create({ email });
        await office.accounts.changePlan("c@x", "pro");
        await office.accounts.setDisabled(1, true);
        expect((await office.accounts.list({ after: 1, limit: 1 })).map(({ email }) => email)).toEqual(["A_b%@y"]);
        const byPlan = [...(await office.accounts.byPlan())].sort((a, b) => (a.plan < b.plan ? -1 : 1));
        expect(byPlan).toEqual([
          { plan: "free", accounts: 1 },
          { plan: "pro", accounts: 1 },
        ]);
        expect(await office.accounts.record(9)).toBeNull();
      });

      test("a plan change acts at once, and its entry in the audit log knows the plan before", async () => {
        await office.accounts.create({ email: "a@x" });
        await office.accounts.changePlan("a@x", "pro", (unit, before) => note(unit, `from ${before.plan}`, before.id));
        expect((await office.accounts.show("a@x")).allowance.granted).toBe(665_000);
        expect(await audited()).toEqual(["from free"]);
      });

      test("a sign-in needs the account's own password, and an account that is not disabled", async () => {
        const { id } = await office.accounts.create({ email: "a@x", password: "correct horse" });
        await office.accounts.create({ email: "b@x" });
        expect((await office.accounts.signIn("A@x", "correct horse"))?.id).toBe(id);
        expect(await office.accounts.signIn("a@x", "wrong")).toBeNull();
        expect(await office.accounts.signIn("b@x", "correct horse")).toBeNull();
        expect(await office.accounts.signIn("c@x", "correct horse")).toBeNull();
        await office.accounts.changePassword(id, "battery");
        expect(await office.accounts.signIn("a@x", "correct horse")).toBeNull();
        expect((await office.accounts.signIn("a@x", "battery"))?.id).toBe(id);
        await office.accounts.setDisabled(id, true);
        expect(await office.accounts.signIn("a@x", "battery")).toBeNull();
      });

      test("a password is replaced by who says it, unless another was set since", async () => {
        const { id } = await office.accounts.create({ email: "a@x", password: "one" });
        const before = (await office.accounts.record(id))!;
        const replace = (password: string) =>
          office.units.change(async (unit) => {
            if (!(await unit.accounts.isAsItWas(before))) return "overtaken";
            await unit.accounts.setPassword(id, password);
            note(unit, "changed", id);
            await unit.sessions.endAll(id, null);
            return "replaced";
          });
        expect((await Promise.all([replace("two"), replace("three")])).sort()).toEqual(["overtaken", "replaced"]);
        expect([await replace("four"), await audited()]).toEqual(["overtaken", ["changed"]]);
      });

      test("the last operator stays one, and in", async () => {
        const { accounts } = office;
        const { id } = await accounts.create({ email: "a@x", operator: true });
        expect(await accounts.hasOperator()).toBe(true);
        expect((await caughtBy(() => accounts.checkNotLastOperator(id))).message).toContain("only operator");
        expect((await caught(accounts.setOperator(id, false))).message).toContain("only operator");
        const other = await accounts.create({ email: "b@x" });
        await accounts.setOperator(other.id, true);
        await accounts.setOperator(id, false);
        expect((await caught(accounts.setOperator(other.id, false))).message).toContain("only operator");
      });

      test("one that is deleted is nobody anymore, and its books stay", async () => {
        const { accounts, accountKeys, sessions, links, identities, purchases } = office;
        const { id } = await accounts.create({ email: "a@x", credit: 700, password: "secret", operator: true });
        await accountKeys.create(id, { name: "robot" });
        const { token } = await sessions.open(id, from);
        const made = await links.makeForPassword(id, opened.time.now + hourMs, noting("of a@x", id));
        await identities.connect("i", "s", id);
        await purchases.ask(id, { kind: "credit", tokens: 5 }, "I am Ann");
        let asked = 0;
        const before = async (account: number) => {
          asked = account;
          expect((await accounts.record(account))!.disabledAt).not.toBeNull();
        };
        const erased = await accounts.erase("A@X", before, noting("deleted"));
        expect([erased, asked]).toEqual([{ id, name: `deleted-${id}@invalid` }, id]);
        expect(await accounts.record(id)).toMatchObject({
          email: erased.name,
          passwordHash: null,
          operator: false,
          credit: 700,
        });
        expect(await accounts.count()).toBe(0);
        expect(await sessions.find(token, opened.time.now)).toBeNull();
        expect(await caughtBy(() => links.find(made.token))).toBeInstanceOf(LinkVoid);
        expect([await identities.accountOf("i", "s"), await identities.of(id)]).toEqual([null, []]);
        expect((await accountKeys.list(id)).map(({ name }) => name)).toEqual(["default"]);
        expect((await accountKeys.namesOf(id)).map(({ name }) => name)).toEqual(["default", "key 2"]);
        expect(await audited()).toEqual(["deleted", ""]);
        const [request] = await office.purchases.requestsOf(id, most, 10);
        expect(request!.note).toBe("");
        for (const work of [
          () => accounts.setDisabled(id, false),
          () => accounts.changePlan(id, "pro"),
          () => accounts.addCredit(erased.name, 5),
          () => accounts.rotateKey(id),
          () => accountKeys.create(id, { name: "another" }),
          () => purchases.approve(request!, ""),
          () => accounts.create({ email: erased.name }),
        ]) {
          expect(await caughtBy(work)).toBeInstanceOf(AccountError);
        }
        expect(await accounts.credit(id, 50, "payment:1")).toEqual({ credited: true });
        expect((await accounts.create({ email: "a@x" })).id).toBe(id + 1);
      });

      test("an erasure that failed elsewhere leaves the account disabled, and can be asked for again", async () => {
        const { id } = await office.accounts.create({ email: "a@x" });
        const failing = office.accounts.erase("a@x", () => Promise.reject(new Error("the disk")));
        expect((await caught(failing)).message).toBe("the disk");
        expect(await office.accounts.record(id)).toMatchObject({ email: "a@x", disabledAt: opened.time.now });
        await office.accounts.erase("a@x", async () => {});
        expect((await office.accounts.record(id))!.email).toContain("deleted-");
      });
    });

    describe("credit", () => {
      test("of the same reference counts once, in turn and at once, and by others", async () => {
        for (const email of ["a@x", "b@x"]) await office.accounts.create({ email });
        const give = (by: AnyOffice, email = "a@x") => by.accounts.addCredit(email, 500, "invoice 1", noting("given"));
        const all = await Promise.all(Array.from({ length: 10 }, () => give(office)));
        all.push(await give(office), await give(office, "b@x"));
        expect(all.filter(({ credited }) => credited).length).toBe(1);
        expect([await creditOf("a@x"), await creditOf("b@x"), await audited()]).toEqual([500, 0, ["given"]]);
        expect((await office.accounts.creditedTo("invoice 1"))?.email).toBe("a@x");
        expect(await office.accounts.creditedTo("invoice 2")).toBeNull();
        const another = opened.another();
        expect(await another.accounts.addCredit("a@x", 500, "invoice 1")).toEqual({ credited: false });
      });

      test("without a reference counts every time", async () => {
        await office.accounts.create({ email: "a@x", credit: 1 });
        await Promise.all(Array.from({ length: 5 }, () => office.accounts.addCredit("a@x", 10)));
        expect(await creditOf("a@x")).toBe(51);
        const [sum] = await opened.rows("SELECT cast(sum(credit_delta) AS text) AS sum FROM journal");
        expect(sum).toEqual({ sum: "51" });
      });
    });

    describe("keys", () => {
      let id: number;
      beforeEach(async () => ({ id } = await office.accounts.create({ email: "a@x" })));

      test("are made, listed, renamed, limited anew and revoked", async () => {
        const { accountKeys } = office;
        const { api_key, ...bot } = await accountKeys.create(
          id,
          { name: " bot ", limit_day: 10, models: ["core-3"], addresses: ["10.0.0.0/8"], forwards_users: true },
          (unit, key) => note(unit, `made ${key}`),
        );
        expect(api_key).toMatch(/^sk-tg-\w{43}$/);
        expect(bot).toMatchObject({
          id: 2,
          name: "bot",
          limit_day: 10,
          limit_month: null,
          used_day: 0,
          forwards_users: true,
        });
        expect(await accountKeys.rename(id, 2, "Robot", noting("renamed"))).toMatchObject({ id: 2, name: "Robot" });
        const expires_at = new Date(opened.time.now + dayMs).toISOString();
        const limited = await accountKeys.limit(id, 2, { limit_day: null, limit_month: 7, expires_at, models: null });
        const expected = {
          limit_day: null,
          limit_month: 7,
          models: null,
          addresses: ["10.0.0.0/8"],
          forwards_users: true,
        };
        expect(limited).toMatchObject({ ...expected, expires_at, expired: false });
        const another = opened.another();
        expect((await another.accountKeys.list(id))[1]).toEqual(limited);
        office = another;
        expect(await another.accountKeys.revoke(id, 2, noting("revoked"))).toEqual({ id: 2, name: "Robot" });
        expect((await another.accountKeys.list(id)).map(({ name }) => name)).toEqual(["default"]);
        expect((await another.accountKeys.namesOf(id)).map(({ name }) => name)).toEqual(["default", "Robot"]);
        expect(await audited()).toEqual(["revoked", "renamed", "made 2"]);
        expect((await another.accountKeys.create(id, { name: "robot" })).id).toBe(3);
      });

      test("of one name are one, also where they are made at once", async () => {
        const all = await Promise.allSettled(
          Array.from({ length: 5 }, (_, index) =>
            office.accountKeys.create(id, { name: index % 2 === 0 ? "bot" : "BOT" }),
          ),
        );
        expect(all.filter(({ status }) => status === "fulfilled").length).toBe(1);
        expect((await office.accountKeys.list(id)).length).toBe(2);
      });

      test("made at once have numbers of their own", async () => {
        const all = await Promise.all(["a", "b", "c", "d"].map((name) => office.accountKeys.create(id, { name })));
        expect(all.map((key) => key.id).sort()).toEqual([2, 3, 4, 5]);
      });

      test("that are not there, or are the first one, are left alone", async () => {
        const { accountKeys } = office;
        expect(await caughtBy(() => accountKeys.rename(id, 2, "x"))).toBeInstanceOf(KeyNotFound);
        expect(await caughtBy(() => accountKeys.revoke(id, 2))).toBeInstanceOf(KeyNotFound);
        expect(await caughtBy(() => accountKeys.revoke(id, 1))).toBeInstanceOf(AccountError);
        expect(await caughtBy(() => accountKeys.create(id, { name: "playground" }))).toBeInstanceOf(AccountError);
        expect(await caughtBy(() => accountKeys.create(id, { name: "x", limit_day: 0 }))).toBeInstanceOf(AccountError);
        expect(await caughtBy(() => office.accounts.ofEmail("b@x"))).toBeInstanceOf(AccountError);
      });

      test("the first one is another after a rotation", async () => {
        const before = (await office.accounts.record(id))!.keyHash;
        const { api_key } = await office.accounts.rotateKey("a@x", (unit, before) => note(unit, "rotated", before.id));
        const { keyHash } = (await office.accounts.record(id))!;
        expect(keyHash).toBe(new Bun.CryptoHasher("sha256").update(api_key).digest("base64"));
        expect([keyHash === before, await audited()]).toEqual([false, ["rotated"]]);
      });

      test("their last four characters are kept until an erasure takes them", async () => {
        const endings = async () => (await office.accountKeys.list(id)).map(({ ending }) => ending);
        const named = await office.accountKeys.create(id, { name: "ci" });
        const { api_key } = await office.accounts.rotateKey("a@x");
        expect(await endings()).toEqual([api_key.slice(-4), named.api_key.slice(-4)]);
        await office.accountKeys.revoke(id, 2);
        expect((await office.accountKeys.namesOf(id)).map(({ ending }) => ending)).toEqual([
          api_key.slice(-4),
          named.api_key.slice(-4),
        ]);
        await office.accounts.erase("a@x", () => Promise.resolve());
        expect((await office.accountKeys.namesOf(id)).map(({ ending }) => ending)).toEqual([null, null]);
      });

      test("nobody is behind a key that forwards nobody", async () => {
        expect(await caughtBy(() => office.accountKeys.endUser(id, "ann"))).toBeInstanceOf(AccountError);
      });
    });

    describe("sessions", () => {
      let id: number;
      beforeEach(async () => ({ id } = await office.accounts.create({ email: "a@x" })));
      const open = (by = office) => by.sessions.open(id, from);
      const find = (token: string, after = 0) => office.sessions.find(token, opened.time.now + after);

      test("are found by their tokens alone, also after a restart", async () => {
        const { token, session } = await open();
        expect(await find(token)).toMatchObject({ id: session.id, account: id, ...from });
        for (const other of ["", "x", "a".repeat(43), "\0".repeat(43)]) expect(await find(other)).toBeNull();
        expect(await opened.another().sessions.find(token, opened.time.now)).not.toBeNull();
      });

      test("end when they are not used, and after their longest time", async () => {
        const { token } = await open();
        expect(await find(token, sessionIdleMs - 1)).not.toBeNull();
        expect(await find(token, 2 * sessionIdleMs - 2)).not.toBeNull(); // used in between
        expect(await find(token, 4 * sessionIdleMs)).toBeNull();
        const used = await open();
        for (let age = 0; age < sessionMaxMs; age += sessionIdleMs - 1) await find(used.token, age);
        expect(await find(used.token, sessionMaxMs)).toBeNull();
      });

      test("end one by one, all but one, and with their account; nobody ends another's", async () => {
        const other = await office.accounts.create({ email: "b@x" });
        const [one, two, three] = [await open(), await open(), await open()];
        expect(await office.sessions.end(other.id, one.session.id)).toBe(false);
        expect(await office.sessions.end(id, one.session.id)).toBe(true);
        expect([await find(one.token), (await find(two.token))?.id]).toEqual([null, two.session.id]);
        await office.sessions.endAll(id, three.session.id);
        expect((await office.sessions.list(id)).map((each) => each.id)).toEqual([three.session.id]);
        await office.accounts.setDisabled(id, true);
        expect([await find(three.token), await office.sessions.isOpen(three.session, opened.time.now)]).toEqual([
          null,
          false,
        ]);
      });

      test("end in one commit with what they end for, or stay where that is refused", async () => {
        const { token } = await open();
        const refused = office.units.change(async ({ accounts, sessions }) => {
          await sessions.endAll(id, null);
          await accounts.changePlan(id, "gold");
        });
        expect(await caught(refused)).toBeInstanceOf(AccountError);
        expect(await find(token)).not.toBeNull();
        await office.accounts.setDisabled(id, true, async (unit) => {
          note(unit, "disabled", id);
          await unit.sessions.endAll(id, null);
        });
        await office.accounts.setDisabled(id, false);
        expect([await find(token), await audited()]).toEqual([null, ["disabled"]]);
      });

      test("are so many: the one that was used least recently goes", async () => {
        const first = await open();
        opened.time.now += sessionUseIntervalMs;
        const others: Awaited<ReturnType<typeof open>>[] = [];
        for (let index = 1; index < sessionsMax; index++) others.push(await open());
        opened.time.now += sessionUseIntervalMs;
        expect(await find(first.token)).not.toBeNull(); // so it is the last used
        await open();
        expect(await find(first.token)).not.toBeNull();
        expect((await office.sessions.list(id)).length).toBe(sessionsMax);
      });
    });

    describe("purchases", () => {
      let id: number;
      beforeEach(async () => ({ id } = await office.accounts.create({ email: "a@x" })));
      const ask = (tokens = 1_000_000) => office.purchases.ask(id, { kind: "credit", tokens }, "please");
      const decisions = ["approve", "decline", "withdraw"] as const;

      test("an approved request is credited, and approved again changes nothing", async () => {
        const request = await ask();
        expect(request).toMatchObject({ state: "pending", tokens: 1_000_000, note: "please" });
        for (let time = 0; time < 3; time++) {
          const approved = await office.purchases.approve(request, "in cash", noting("approved"));
          const decided = { state: "approved", decisionNote: "in cash", decidedAt: opened.time.now } as const;
          expect(approved).toEqual({ ...request, ...decided });
          expect(await office.purchases.request(request.id)).toEqual(approved);
        }
        expect([await creditOf("a@x"), await audited()]).toEqual([1_000_000, ["approved"]]);
      });

      test("approvals at once credit once, and an approved plan acts", async () => {
        const request = await ask();
        await Promise.all(Array.from({ length: 10 }, () => office.purchases.approve(request, "", noting("once"))));
        const plan = await office.purchases.ask(id, { kind: "plan", plan: "pro" }, "");
        await office.purchases.approve(plan, "");
        expect(await office.accounts.show("a@x")).toMatchObject({ credit: 1_000_000, plan: "pro" });
        expect(await audited()).toEqual(["once"]);
      });

      for (const first of decisions) {
        for (const second of decisions.filter((each) => each !== first)) {
          test(`what was decided is decided: ${first}, then ${second}, and both at once`, async () => {
            const request = await ask();
            await office.purchases[first](request, "");
            expect(await caughtBy(() => office.purchases[second](request, ""))).toBeInstanceOf(DecidedOtherwise);
            const [one, other] = [await ask(), await ask()];
            const credited = first === "approve" ? 1_000_000 : 0;
            expect(await creditOf("a@x")).toBe(credited);
            for (const each of [one, other]) {
              const both = await Promise.allSettled([
                office.purchases[first](each, ""),
                office.purchases[second](each, ""),
              ]);
              expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
            }
          });
        }
      }

      test("few may be pending, also when many are sent at once", async () => {
        const all = await Promise.allSettled(Array.from({ length: 12 }, () => ask()));
        expect(all.filter(({ status }) => status === "fulfilled").length).toBe(purchaseRequestsPendingMax);
        const [request] = await office.purchases.requestsOf(id, most, 1);
        await office.purchases.withdraw(request!);
        await ask();
        expect((await caught(ask())).message).toContain("may be pending");
        expect(await office.purchases.pendingRequests(null)).toBe(purchaseRequestsPendingMax);
        expect((await office.purchases.requestsIn("withdrawn", most, 5)).map((each) => each.id)).toEqual([request!.id]);
      });

      test("one for the account's deletion may be pending, which the deletion grants", async () => {
        const leave = () => office.purchases.ask(id, { kind: "deletion" }, "please");
        const both = await Promise.allSettled([leave(), leave()]);
        expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
        const last = async () => (await office.purchases.lastDeletionRequest(id))!;
        const [first] = [await last()];
        expect(await caughtBy(() => office.purchases.approve(first, ""))).toBeInstanceOf(AccountError);
        await office.purchases.decline(first, "no");
        expect(await last()).toMatchObject({ state: "declined", decisionNote: "no" });
        const credit = await ask();
        const { id: second } = await leave();
        const inWait = (kind: "credit" | "deletion" | null) => office.purchases.requestsIn("pending", most, 9, kind);
        expect([(await inWait(null)).length, (await inWait("deletion")).map((each) => each.id)]).toEqual([2, [second]]);
        await office.accounts.erase("a@x", () => Promise.resolve());
        expect(await last()).toMatchObject({ id: second, state: "approved", note: "", decidedAt: opened.time.now });
        expect(await inWait(null)).toEqual([]);
        const ended = await office.purchases.requestsIn("withdrawn", most, 1, "credit");
        expect(ended).toMatchObject([{ id: credit.id, note: "", decidedAt: opened.time.now }]);
      });

      test("few may be made in a day, also when each is withdrawn", async () => {
        for (let made = 0; made < purchaseRequestsPerDayMax; made++) await office.purchases.withdraw(await ask());
        const refused = await caught(ask());
        const freeAt = new Date(opened.time.now + dayMs).toISOString().replace(/T(.*)\.\d+Z/, " $1 UTC");
        expect(refused.message).toBe(`at most 20 requests may be made in 24 hours; ask again at ${freeAt}`);
        expect(await office.purchases.requestsOf(id, most, 100)).toHaveLength(purchaseRequestsPerDayMax);
        opened.time.now += dayMs;
        expect((await ask()).state).toBe("pending");
      });

      test("a payment that is told often, at once and one after another, is credited once", async () => {
        const payment = { id: "stripe:pi_1", account: id, tokens: 2_000_000, paidAt: opened.time.now };
        const all = await Promise.all(Array.from({ length: 10 }, () => office.purchases.paid(payment)));
        all.push(await office.purchases.paid(payment));
        expect(all.filter(({ credited }) => credited).length).toBe(1);
        expect(await opened.another().purchases.paid(payment)).toEqual({ credited: false });
        expect(await creditOf("a@x")).toBe(2_000_000);
        expect(await office.purchases.paymentsOf(id, 10)).toEqual([payment]);
      });
    });

    describe("links", () => {
      const invite = async (email: string | null = null) => {
        const { now } = opened.time;
        return office.links.invite({ email, credit: 50, expiresAt: now + hourMs }, (unit, { id }) =>
          note(unit, `link ${id}`),
        );
      };
      const join = (token: string, email: string) => () =>
        office.units.change(async (unit) => {
          const link = await unit.links.find(token);
          const made = await unit.accounts.create({ email, credit: link.credit });
          note(unit, `by link ${link.id}`, made.id);
          await unit.links.use(link.id, made.id);
          return made;
        });

      test("an invitation makes one account, whoever uses it at once", async () => {
        const { link, token } = await invite();
        expect(await office.links.find(token)).toEqual(link);
        expect((await office.links.invitations(10)).map(({ id }) => id)).toEqual([link.id]);
        const all = await Promise.allSettled([1, 2, 3, 4].map((index) => join(token, `a${index}@x`)()));
        expect(all.filter(({ status }) => status === "fulfilled").length).toBe(1);
        for (const each of all) if (each.status === "rejected") expect(each.reason).toBeInstanceOf(LinkVoid);
        expect([await office.accounts.count(), await audited()]).toEqual([1, ["by link 1", "link 1"]]);
        const [account] = await office.accounts.list();
        expect(account!.credit).toBe(50);
        expect(await office.links.invitations(10)).toEqual([]);
      });

      test("what it is for fails, and it may be used again; withdrawn or expired it is void", async () => {
        await office.accounts.create({ email: "taken@x" });
        const [used, withdrawn, expired] = [await invite(), await invite(), await invite()];
        expect(await caught(join(used.token, "taken@x")())).toBeInstanceOf(EmailTaken);
        expect((await join(used.token, "free@x")()).id).toBe(2);
        await office.links.withdraw(withdrawn.link.id, noting("withdrawn"));
        expect(await caughtBy(() => office.links.find(withdrawn.token))).toBeInstanceOf(LinkVoid);
        expect(await caughtBy(() => office.links.withdraw(withdrawn.link.id, noting("again")))).toBeInstanceOf(
          LinkVoid,
        );
        opened.time.now += hourMs;
        expect(await caughtBy(() => office.links.find(expired.token))).toBeInstanceOf(LinkVoid);
        expect(await caughtBy(() => office.links.find("?"))).toBeInstanceOf(LinkVoid);
        expect((await audited())[0]).toBe("withdrawn");
      });

      test("one for a password takes the place of the one before, and goes where the password is set otherwise", async () => {
        const { id } = await office.accounts.create({ email: "a@x" });
        const { now } = opened.time;
        const make = () => office.links.makeForPassword(id, now + hourMs, noting("made", id));
        const [first, second] = [await make(), await make()];
        expect(await caughtBy(() => office.links.find(first.token))).toBeInstanceOf(LinkVoid);
        const { token } = await office.sessions.open(id, from);
        const link = await office.links.find(second.token);
        await office.accounts.changePassword(id, "mine", async (unit) => {
          await unit.links.use(link.id, id);
          await unit.sessions.endAll(id, null);
        });
        expect((await office.accounts.signIn("a@x", "mine"))?.id).toBe(id);
        expect(await office.sessions.find(token, now)).toBeNull();
        const third = await make();
        await office.accounts.changePassword(id, "other");
        expect(await caughtBy(() => office.links.find(third.token))).toBeInstanceOf(LinkVoid);
      });
    });

    describe("identities", () => {
      const come = (by: AnyOffice, email = "a@x") =>
        by.units.change(async ({ accounts, identities }) => {
          const found = await identities.accountOf("issuer", "ann");
          if (found !== null) return found;
          const made = await accounts.create({ email });
          identities.connect("issuer", "ann", made.id);
          return made.id;
        });

      test("a person who comes in two tabs at once has one account", async () => {
        const ids = await Promise.all([1, 2, 3, 4].map(() => come(office)));
        expect([new Set(ids).size, await office.accounts.count()]).toEqual([1, 1]);
      });

      test("one takes the place of the account's other one of the same issuer", async () => {
        const id = await come(office);
        await office.identities.connect("issuer", "bob", id, noting("connected"));
        await office.identities.connect("another", "ann", id);
        const subjects = (await office.identities.of(id)).map(({ issuer, subject }) => `${issuer} ${subject}`).sort();
        expect([subjects, await audited()]).toEqual([["another ann", "issuer bob"], ["connected"]]);
        expect(await office.identities.accountOf("issuer", "ann")).toBeNull();
      });
    });

    test("what operators did is listed newest first, page by page", async () => {
      for (const detail of ["one", "two", "three"]) {
        await office.auditLog.note({
          at: 5,
          operator: 7,
          address: "192.0.2.1",
          action: "server.reload",
          subject: theServer,
          detail,
        });
      }
      const [newest, ...more] = await office.auditLog.list(2);
      expect(newest).toMatchObject({
        at: 5,
        operator: 7,
        address: "192.0.2.1",
        action: "server.reload",
        detail: "three",
      });
      const found = async (...asked: Parameters<typeof office.auditLog.list>) =>
        (await office.auditLog.list(...asked)).map(({ detail }) => detail);
      expect(more).toHaveLength(1);
      expect(await found(2, {}, 2)).toEqual(["one"]);
      expect(await found(9, { oldestFirst: true, operator: 7 })).toEqual(["one", "two", "three"]);
      expect(await found(9, { subject: theServer, action: "server.reload", from: 5, to: 6 })).toEqual(
        await found(9, {}),
      );
      for (const none of [{ operator: 8 }, { subject: 1 }, { action: "key.revoke" }, { from: 6 }, { to: 5 }] as const)
        expect([none, await found(9, none), await office.auditLog.count(none)]).toEqual([none, [], 0]);
      expect(await office.auditLog.count({ operator: 7 })).toBe(3);
    });
  });
}
