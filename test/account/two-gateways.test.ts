// What only several gateways on one PostgreSQL can do to each other: whatever they do at once has one outcome, and everybody
// is told the true one.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { LinkVoid } from "../../src/account/sign-in/access-links.ts";
import { AccountError, EmailTaken } from "../../src/account/people/accounts.ts";
import type { Unit } from "../../src/account/office.ts";
import { theServer } from "../../src/account/audit.ts";
import { hashApiKey } from "../../src/account/people/keys.ts";
import { Passwords } from "../../src/account/sign-in/passwords.ts";
import { DecidedOtherwise, purchaseRequestsPendingMax } from "../../src/account/money/purchases.ts";
import { hourMs } from "../../src/core/units.ts";
import { sessionsMax } from "../../src/account/sign-in/sessions.ts";
import { keysMax } from "../../src/account/people/account-keys.ts";
import { StoreUnavailable } from "../../src/core/types.ts";
import { eventually } from "../fixtures/eventually.ts";
import { PostgresProxy } from "../fixtures/postgres-proxy.ts";
import { cheapHasher } from "./office.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";
import { type AnyOffice, caught, type Opened, PostgresStore } from "./stores.ts";

const store = new PostgresStore(() => TestPostgres.start(), noPostgres);
const from = { address: "192.0.2.1", browser: "a browser" };

/** All that were carried out, and why the others were not. */
async function outcomes<Value>(works: readonly Promise<Value>[]): Promise<{ done: Value[]; failed: unknown[] }> {
  const all = await Promise.allSettled(works);
  return {
    done: all.flatMap((each) => (each.status === "fulfilled" ? [each.value] : [])),
    failed: all.flatMap((each) => (each.status === "rejected" ? [each.reason] : [])),
  };
}

describe.skipIf(store.missing)("two gateways", () => {
  let opened: Opened;
  let gateways: readonly [AnyOffice, AnyOffice];
  /** Works of both, in turn. */
  const both = <Value>(count: number, work: (by: AnyOffice, index: number) => Promise<Value>) =>
    Array.from({ length: count }, (_, index) => work(gateways[index % 2]!, index));
  const creditOf = async (id: number) => (await gateways[0].accounts.record(id))!.credit;

  beforeAll(() => store.begin(), 60_000);
  afterAll(() => store.end());
  beforeEach(async () => {
    opened = await store.open();
    gateways = [opened.office, opened.another()];
  });

  test("that make the same e-mail make one account, and numbers of their own for others", async () => {
    const { done, failed } = await outcomes(both(8, (by) => by.accounts.create({ email: "a@x", credit: 5 })));
    expect(done.length).toBe(1);
    for (const error of failed) expect(error).toBeInstanceOf(EmailTaken);
    const others = await Promise.all(both(8, (by, index) => by.accounts.create({ email: `b${index}@x` })));
    expect(new Set(others.map(({ id }) => id)).size).toBe(8);
    const [sums] = await store.rows("SELECT count(*)::int AS lines, sum(credit_delta)::int AS credit FROM journal");
    expect(sums).toEqual({ lines: 1, credit: 5 });
  });

  test("that decide the same request decide it once, and the other is told how", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x" });
    for (let time = 0; time < 4; time++) {
      const before = await creditOf(id);
      const request = await gateways[0].purchases.ask(id, { kind: "credit", tokens: 100 }, "");
      const note =
        (detail: string) =>
        ({ auditLog }: Unit) =>
          auditLog.append({ at: 1, operator: 1, address: "", action: "request.approve", subject: id, detail });
      const { done, failed } = await outcomes([
        gateways[0].purchases.approve(request, "", note(`approved ${time}`)),
        gateways[1].purchases.decline(request, "", note(`declined ${time}`)),
      ]);
      expect([done.length, failed.length]).toEqual([1, 1]);
      expect(failed[0]).toBeInstanceOf(DecidedOtherwise);
      const { state } = (await gateways[1].purchases.request(request.id))!;
      expect(done[0]!.state).toBe(state);
      expect((await creditOf(id)) - before).toBe(state === "approved" ? 100 : 0);
      expect((await gateways[1].auditLog.list(1))[0]!.detail).toBe(`${state} ${time}`);
    }
  });

  test("whose clocks differ keep one audit log, whose times are in the order of its entries", async () => {
    const clocks = [5_000, 3_000, 6_000, 2_000, 7_000];
    for (const [index, at] of clocks.entries()) {
      const entry = { operator: 1, address: "", action: "server.reload", subject: theServer, detail: "" } as const;
      await gateways[index % 2]!.auditLog.note({ at, ...entry });
    }
    const entries = await gateways[0].auditLog.list(5);
    expect(entries.map(({ at }) => at).reverse()).toEqual([5_000, 5_000, 6_000, 6_000, 7_000]);
  });

  test("that approve the same request, or are told of the same payment, credit it once", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x" });
    const request = await gateways[0].purchases.ask(id, { kind: "credit", tokens: 100 }, "");
    const payment = { id: "stripe:1", account: id, tokens: 1_000, paidAt: 1 };
    await Promise.all(both(8, (by) => by.purchases.approve(request, "")));
    const paid = await Promise.all(both(8, (by) => by.purchases.paid(payment)));
    expect([await creditOf(id), paid.filter(({ credited }) => credited).length]).toEqual([1_100, 1]);
  });

  test("that rotate the same key leave one that works", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x" });
    const keys = await Promise.all(both(6, (by) => by.accounts.rotateKey(id)));
    const { keyHash } = (await gateways[0].accounts.record(id))!;
    expect(keys.filter(({ api_key }) => hashApiKey(api_key) === keyHash).length).toBe(1);
  });

  test("that make keys of one name make one, and never more than an account may have", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x" });
    const { done, failed } = await outcomes(both(6, (by) => by.accountKeys.create(id, { name: "bot" })));
    expect([done.length, failed.filter((error) => error instanceof AccountError).length]).toEqual([1, 5]);
    const rows = Array.from({ length: keysMax - 2 }, (_, index) => `(${id}, ${index + 3}, 'k${index}', NULL, 0)`);
    await store.rows(`INSERT INTO api_keys (account_id, id, name, key_hash, created_at) VALUES ${rows.join(", ")}`);
    const last = await outcomes(both(4, (by, index) => by.accountKeys.create(id, { name: `last ${index}` })));
    expect([last.done.length, last.failed.length]).toEqual([1, 3]);
  });

  test("that limit and revoke the same key agree on what it is", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x" });
    for (let key = 2; key < 6; key++) {
      await gateways[0].accountKeys.create(id, { name: `bot ${key}` });
      const { failed } = await outcomes<unknown>([
        gateways[0].accountKeys.limit(id, key, { limit_day: 7 }),
        gateways[1].accountKeys.revoke(id, key),
        gateways[0].accountKeys.rename(id, key, `robot ${key}`),
      ]);
      for (const error of failed) expect(error).toBeInstanceOf(AccountError);
    }
    expect((await gateways[1].accountKeys.list(id)).length).toBe(1);
  });

  test("use one invitation once, and withdraw none that was used", async () => {
    const { now } = opened.time;
    for (let time = 0; time < 3; time++) {
      const { link } = await gateways[0].links.invite({ email: null, credit: 5, expiresAt: now + hourMs });
      const join = (by: AnyOffice, email: string) =>
        by.accounts.create({ email, credit: link.credit }, (unit, id) => unit.links.use(link.id, id));
      const { done, failed } = await outcomes<unknown>([
        join(gateways[0], `a${time}@x`),
        join(gateways[1], `b${time}@x`),
        gateways[1].links.withdraw(link.id),
      ]);
      expect(done.length).toBe(1);
      for (const error of failed) expect(error).toBeInstanceOf(LinkVoid);
    }
  });

  test("do not take the rights of the last two operators away from each other", async () => {
    const { accounts } = gateways[0];
    const ids = [
      await accounts.create({ email: "a@x", operator: true }),
      await accounts.create({ email: "b@x", operator: true }),
    ];
    const [one, other] = ids.map(({ id }) => id);
    const first = await outcomes([
      gateways[0].accounts.setOperator(one!, false),
      gateways[1].accounts.setOperator(other!, false),
    ]);
    expect([first.done.length, (first.failed[0] as Error).message]).toEqual([
      1,
      expect.stringContaining("only operator"),
    ]);
    await Promise.all([accounts.setOperator(one!, true), accounts.setOperator(other!, true)]);
    const disable = (by: AnyOffice, id: number) =>
      by.units.change(async ({ accounts, sessions }) => {
        await accounts.checkNotLastOperator(id);
        await accounts.setDisabled(id, true);
        await sessions.endAll(id, null);
      });
    const second = await outcomes([disable(gateways[0], one!), disable(gateways[1], other!)]);
    expect([second.done.length, second.failed.length]).toEqual([1, 1]);
    expect(await gateways[1].accounts.hasOperator()).toBe(true);
  });

  test("open no more sessions and take no more requests than an account may have", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x" });
    for (let round = 0; round * 6 < sessionsMax; round++) {
      await Promise.all(both(6, (by) => by.sessions.open(id, from)));
    }
    await Promise.all(both(6, (by) => by.sessions.open(id, from)));
    expect((await gateways[1].sessions.list(id)).length).toBe(sessionsMax);
    await outcomes(
      both(purchaseRequestsPendingMax + 4, (by) => by.purchases.ask(id, { kind: "credit", tokens: 1 }, "")),
    );
    expect(await gateways[1].purchases.pendingRequests(id)).toBe(purchaseRequestsPendingMax);
  });

  test("know at once what the other one ended, disabled or changed", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x", password: "old" });
    const open = () => gateways[0].sessions.open(id, from);
    const find = (token: string) => gateways[0].sessions.find(token, opened.time.now);
    const [one, two] = [await open(), await open()];
    expect(await find(one.token)).not.toBeNull();
    await gateways[1].sessions.end(id, one.session.id);
    expect([await find(one.token), (await find(two.token))?.id]).toEqual([null, two.session.id]);
    await gateways[1].accounts.setDisabled(id, true);
    expect(await find(two.token)).toBeNull();
    await gateways[1].accounts.setDisabled(id, false);
    await gateways[1].accounts.changePassword(id, "new");
    expect(await gateways[0].accounts.signIn("a@x", "old")).toBeNull();
  });

  test("to which one person comes at once make one account", async () => {
    for (let time = 0; time < 3; time++) {
      const come = (by: AnyOffice) =>
        by.units.change(async ({ accounts, identities }) => {
          const found = await identities.accountOf("issuer", `ann ${time}`);
          if (found !== null) return found;
          const { id } = await accounts.create({ email: `ann${time}@x` });
          identities.connect("issuer", `ann ${time}`, id);
          return id;
        });
      const ids = await Promise.all(both(4, come));
      expect([new Set(ids).size, await gateways[0].accounts.count()]).toEqual([1, time + 1]);
    }
  });

  test("of which one deletes an account while the other gives it something leave books that add up", async () => {
    for (let time = 0; time < 4; time++) {
      const email = `a${time}@x`;
      const { id } = await gateways[0].accounts.create({ email, credit: 5 });
      const { done } = await outcomes<unknown>([
        gateways[0].accounts.erase(email, async () => {}),
        gateways[1].accounts.credit(id, 7, `payment:${time}`),
        gateways[1].accounts.changePassword(id, "secret"),
        gateways[1].accountKeys.create(id, { name: "Ann's" }),
        gateways[1].sessions.open(id, from),
      ]);
      expect(done.length).toBeGreaterThan(1);
      expect(await gateways[1].accounts.record(id)).toMatchObject({ credit: 12, passwordHash: null });
      expect(await store.rows(`SELECT name FROM api_keys WHERE account_id = ${id} AND name NOT LIKE 'key %'`)).toEqual(
        [],
      );
    }
  });

  test("decide on what others committed while they waited for it", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x" });
    const client = new Bun.SQL({ url: store.server!.url(), max: 1 });
    let given: Promise<unknown>[] = [];
    await client.begin(async (transaction) => {
      await transaction.unsafe("UPDATE accounts SET email = 'deleted-1@invalid', disabled_at = 1 WHERE id = 1");
      given = [
        caught(gateways[0].accounts.changePlan(id, "pro")),
        caught(gateways[1].accounts.rotateKey(id)),
        caught(gateways[1].accountKeys.create(id, { name: "bot" })),
      ];
      await eventually("all wait for the row", async () => {
        const [waiting] = await store.rows("SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted");
        return waiting!["count"] === given.length;
      });
    });
    await client.close();
    for (const error of await Promise.all(given)) expect((error as Error).message).toContain("is a deleted account");
    expect(await gateways[0].accounts.record(id)).toMatchObject({ plan: "free" });
    expect((await gateways[0].accountKeys.list(id)).length).toBe(1);
  });

  test("do not wait for each other's passwords", async () => {
    const hashing = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const slow = new Passwords({
      ...cheapHasher,
      async hash(password) {
        begun.resolve();
        await hashing.promise;
        return cheapHasher.hash(password);
      },
    });
    const { id } = await gateways[1].accounts.create({ email: "a@x" });
    const changing = store.office(opened.time, undefined, slow).accounts.changePassword(id, "secret");
    await begun.promise;
    await gateways[1].accounts.credit(id, 5, "payment:1");
    const [locked] = await store.rows("SELECT count(*)::int AS count FROM pg_locks WHERE mode = 'RowShareLock'");
    expect(locked).toEqual({ count: 0 });
    hashing.resolve();
    await changing;
    expect([(await gateways[1].accounts.signIn("a@x", "secret"))?.id, await creditOf(id)]).toEqual([id, 5]);
  });

  test("where the answer to a commit is lost, it is told as unavailable, and asking again is safe", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x" });
    const proxy = new PostgresProxy(store.server!.port);
    const far = store.office(opened.time, store.server!.url("postgres", proxy.port));
    await far.accounts.count();
    const lost = proxy.loseAnswers(200);
    const error = await caught(far.accounts.addCredit("a@x", 5, "invoice 1"));
    await lost;
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(await far.accounts.addCredit("a@x", 5, "invoice 1")).toEqual({ credited: false });
    expect(await creditOf(id)).toBe(5);
    proxy.close();
  });

  test("say that they cannot be asked while the server is away, and go on when it is back", async () => {
    const { id } = await gateways[0].accounts.create({ email: "a@x" });
    await store.server!.kill();
    expect(await caught(gateways[0].accounts.show(id))).toBeInstanceOf(StoreUnavailable);
    expect(await caught(gateways[0].auditLog.note({ ...from, ...entry }))).toBeInstanceOf(StoreUnavailable);
    await store.server!.goOn();
    expect((await gateways[0].accounts.show(id)).email).toBe("a@x");
    expect((await gateways[1].accounts.show(id)).email).toBe("a@x");
  });
});

const entry = { at: 1, operator: theServer, action: "server.reload", subject: theServer, detail: "" } as const;
