// Units of work and lanes on the same rows: what an operator changes holds for the next request on every gateway, and the books
// add up whatever comes at once.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { hashApiKey } from "../../../src/account/people/keys.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import type { Refusal } from "../../../src/core/types.ts";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import type { OpenHold, LaneOperation, LaneRules } from "../../../src/store/postgres/decide.ts";
import { Lane } from "../../../src/store/postgres/lane.ts";
import { systemPace } from "../../../src/store/postgres/pace.ts";
import { ask, output, plans } from "../../account/office.ts";
import { noPostgres, TestPostgres } from "../../fixtures/postgres.ts";
import { type AnyOffice, type Opened, PostgresStore } from "../../account/stores.ts";
import { randomOf, seedOfRun } from "../../fixtures/random.ts";

const rules: LaneRules = { plans, siteUrl: "http://site", maxWaitMs: 600_000, inputRequestsPerMinute: 3_000 };
const store = new PostgresStore(() => TestPostgres.start(), noPostgres);

describe.skipIf(store.missing)("on one database", () => {
  let opened: Opened;
  let office: AnyOffice;
  let lanes: Lane[];
  let requests = 0;

  beforeAll(() => store.begin(), 60_000);
  afterAll(() => store.end());
  beforeEach(async () => {
    opened = await store.open();
    opened.time.now = Date.now(); // lanes go by the server's clock
    office = opened.office;
    lanes = [];
  });

  async function openLane(): Promise<Lane> {
    const lane = new Lane({
      server: new PostgresServer(store.server!.url()),
      gateway: `g${lanes.length}`,
      version: "test",
      rules,
      log: () => {},
      configDigest: () => "",
      decided: () => {},
      pace: systemPace,
    });
    await lane.open();
    lanes.push(lane);
    return lane;
  }

  const admit = async (lane: Lane, account: number, key: number, apiKey: string, most: number) =>
    (await lane.put({
      op: "admit",
      account,
      key,
      keyHash: hashApiKey(apiKey),
      ask: ask(most),
      inputTokens: 0,
      requestId: `r${(requests += 1)}`,
      endUser: null,
    } as LaneOperation)) as OpenHold | Refusal;

  async function closeAll(): Promise<void> {
    for (const lane of lanes) await lane.close();
  }

  const heldSums = () =>
    store.rows(`SELECT held::int, waiting_held::int, begun, expected::int FROM accounts
      UNION ALL SELECT held::int, waiting_held::int, begun, expected::int FROM api_keys`);

  test("a limit that a key gets counts what its open requests hold, and one that it loses leaves nothing", async () => {
    const { id } = await office.accounts.create({ email: "a@x", plan: "pro", credit: 1_000_000 });
    const { api_key } = await office.accountKeys.create(id, { name: "bot" });
    const [one, two] = [await openLane(), await openLane()];
    const running = (await admit(one, id, 2, api_key, 5_000)) as OpenHold;
    await office.accountKeys.limit(id, 2, { limit_day: 8_000 });
    expect(await admit(two, id, 2, api_key, 3_001)).toMatchObject({ refusal: "key_quota_exceeded" });
    const within = (await admit(two, id, 2, api_key, 3_000)) as OpenHold;
    expect(within.requestId).toBeString();
    expect(await one.put({ op: "settle", hold: running, usage: output(4_000), estimated: false })).toBe("settled");
    await office.accountKeys.limit(id, 2, { limit_day: null });
    expect(await two.put({ op: "settle", hold: within, usage: output(3_000), estimated: false })).toBe("settled");
    await office.accountKeys.limit(id, 2, { limit_month: 10_000 });
    expect((await office.accountKeys.list(id))[1]).toMatchObject({ used_day: 7_000, used_month: 7_000 });
    expect(await admit(one, id, 2, api_key, 3_001)).toMatchObject({ refusal: "key_quota_exceeded" });
    await closeAll();
    expect(new Set((await heldSums()).map((row) => JSON.stringify(row))).size).toBe(1);
  });

  test("a key that was rotated or revoked, and an account that was disabled, are refused by the next request", async () => {
    const { id, api_key } = await office.accounts.create({ email: "a@x", plan: "pro" });
    const named = await office.accountKeys.create(id, { name: "bot" });
    const lane = await openLane();
    const isTaken = async (key: number, text: string) => !isRefusal(await admit(lane, id, key, text, 10));
    expect([await isTaken(1, api_key), await isTaken(2, named.api_key)]).toEqual([true, true]);
    const rotated = await office.accounts.rotateKey(id);
    await office.accountKeys.revoke(id, 2);
    expect([await isTaken(1, api_key), await isTaken(2, named.api_key)]).toEqual([false, false]);
    expect(await isTaken(1, rotated.api_key)).toBe(true);
    await office.accounts.setDisabled(id, true);
    expect(await isTaken(1, rotated.api_key)).toBe(false);
    await closeAll();
  });

  test("open requests keep an account from being deleted, and are seen by who looks at it", async () => {
    const { id, api_key } = await office.accounts.create({ email: "a@x", plan: "pro" });
    const lane = await openLane();
    const hold = (await admit(lane, id, 1, api_key, 500)) as OpenHold;
    expect(await office.accounts.numbers(id)).toMatchObject({ reserved: 500, openReservations: 1, spendable: 664_500 });
    const error = await office.accounts.erase("a@x", async () => {}).then(String, String);
    expect(error).toContain("is disabled and has 1 open requests");
    expect((await office.accounts.record(id))!.disabledAt).not.toBeNull();
    expect(await lane.put({ op: "settle", hold, usage: output(500), estimated: false })).toBe("settled");
    await office.accounts.erase("a@x", async () => {});
    const { allowance } = await office.accounts.show(id);
    expect(allowance.left).toBe(664_500);
    await closeAll();
  });

  const seed = seedOfRun();
  test(`charges of two gateways and changes of two others at once leave books that add up (TOLLGATE_SEED=${seed})`, async () => {
    const random = randomOf(seed);
    const below = (limit: number) => Math.floor(random() * limit);
    const { id, api_key } = await office.accounts.create({ email: "a@x", plan: "free", credit: 1_000 });
    const { api_key: named } = await office.accountKeys.create(id, { name: "bot", limit_day: 5_000 });
    const offices = [office, opened.another()];
    const both = [await openLane(), await openLane()];
    const request = async (): Promise<void> => {
      const lane = both[below(2)]!;
      const isNamed = random() < 0.5;
      const hold = await admit(lane, id, isNamed ? 2 : 1, isNamed ? named : api_key, 1 + below(900));
      if (isRefusal(hold)) return;
      const settle = { op: "settle", hold, usage: output(1 + below(900)), estimated: false } as const;
      await lane.put(random() < 0.3 ? { op: "release", hold } : settle);
    };
    const change = async (index: number): Promise<void> => {
      const by = offices[index % 2]!;
      const limits = [
        { limit_day: 3_000 + below(9_000) },
        { limit_day: null },
        { limit_month: 50_000 },
        { limit_month: null },
      ];
      if (index % 3 === 0) await by.accounts.credit(id, 100, `payment:${index}`);
      else if (index % 3 === 1) await by.accountKeys.limit(id, 2, limits[below(4)]!);
      else await by.accounts.changePlan(id, index % 2 === 0 ? "free" : "pro");
    };
    for (let round = 0; round < 5; round++) {
      const requested = Array.from({ length: 12 }, request);
      await Promise.all([...requested, ...Array.from({ length: 6 }, (_, index) => change(round * 6 + index))]);
    }
    await closeAll();
    const [account] = await store.rows(`SELECT credit::int, holds,
      (SELECT sum(credit_delta)::int FROM journal) AS booked, allowance_used::int AS used,
      (SELECT sum(used)::int FROM journal WHERE kind = 'charge') AS charged,
      (SELECT count(*)::int FROM holds) AS rows FROM accounts`);
    expect(account).toMatchObject({ credit: account!["booked"], used: account!["charged"], holds: 0, rows: 0 });
    const empty = { held: 0, waiting_held: 0, begun: 0, expected: 0 };
    expect(await heldSums()).toEqual([empty, empty]);
    const [keyUse] = await store.rows(`SELECT coalesce((SELECT sum(used) FROM key_use), 0)::int AS used,
      coalesce((SELECT sum(billed_tokens) FROM journal WHERE key_id = 2), 0)::int AS billed`);
    expect(keyUse!["used"]).toBe(keyUse!["billed"]);
  });
});
