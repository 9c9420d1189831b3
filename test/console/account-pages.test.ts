// What the account's own pages show and change.
import { expect, test } from "bun:test";
import type { UsageFilter, UsagePlace } from "../../src/account/usage-queries.ts";
import { dayMs } from "../../src/core/units.ts";
import { noon } from "../account/office.ts";
import { ConsoleSite } from "./console-site.ts";

test("regenerating the key voids the old one at once and shows the new one this once", async () => {
  const site = new ConsoleSite();
  const browser = await site.signedIn("a@x");
  const { id, api_key: old } = browser.account;
  site.office.now += 5_000;
  const { body } = await browser.post("/key/regenerate", { confirm: true });
  expect(site.office.keys.principal(old)?.account ?? null).toBeNull();
  expect(site.office.keys.principal(body.api_key)?.account ?? null).toBe(id);
  const { body: state } = await browser.get("/key");
  expect(state).toEqual({ prefix: "sk-tg-", ending: body.api_key.slice(-4), created_at: body.created_at });
  expect(state.created_at).toBe(new Date(noon + 5_000).toISOString());
});

test("the overview has the numbers, what was spent, and the last requests", async () => {
  const today = Math.floor(noon / dayMs);
  const sum = { requests: 1, input: 1, cachedInput: 0, output: 1, reasoning: 0 };
  const asked: unknown[] = [];
  const site = new ConsoleSite({
    usage: {
      page: (...call) => {
        asked.push(call);
        return Promise.resolve({ rows: [], next: null });
      },
      overTime: () => Promise.reject(new Error("not asked")),
      report: () => Promise.reject(new Error("not asked")),
      accounts: () => Promise.reject(new Error("not asked")),
      summary: (...call) => {
        asked.push(call);
        const days = [
          { day: today - 29, model: "core-3", ...sum, billedTokens: 1_000_000 },
          { day: today, model: "core-3", ...sum, billedTokens: 200_000 },
          { day: today, model: "open-01", ...sum, billedTokens: 50_000 },
        ];
        return Promise.resolve({
          days,
          total: { ...sum, billedTokens: 0 },
          models: [],
          endpoints: [],
          keys: [],
          endUsers: [],
        });
      },
    },
  });
  const browser = await site.signedIn("a@x", { plan: "plus" });
  await site.office.spend(browser.account.id, 1_000);
  const { body } = await browser.get("/overview");
  expect(body).toMatchObject({
    plan: { id: "plus", name: "Plus" },
    numbers: { spendable: 79_000, allowance: { granted: 80_000, left: 79_000 } },
    last_requests: [],
    spend: { today_tokens: 250_000, today_usd: 1.25, days30_tokens: 1_250_000, days30_usd: 6.25 },
  });
  expect(asked).toContainEqual([browser.account.id, today - 29]);
});

test("filters and places reach the index as they were meant, and pages are bounded", async () => {
  const asked: unknown[][] = [];
  const row = {
    time: "t",
    request_id: '=1+1,"x"',
    endpoint: "/v1/messages",
    model: "core-3",
    input: 1,
    cached_input: 0,
    output: 2,
    reasoning: 0,
    billed_tokens: 3,
    cost_usd: 0.000015,
    estimated: false,
    key: "default",
    end_user: null,
  };
  const site = new ConsoleSite({
    usage: {
      page: (account: number, filter: UsageFilter, before: UsagePlace | null, limit: number) => {
        asked.push([account, filter, before, limit]);
        return Promise.resolve({ rows: [row], next: before === null ? { at: 5, sequence: 6 } : null });
      },
      summary: () => Promise.reject(new Error("not asked")),
      overTime: () => Promise.reject(new Error("not asked")),
      report: () => Promise.reject(new Error("not asked")),
      accounts: () => Promise.reject(new Error("not asked")),
    },
  });
  const browser = await site.signedIn("a@x");
  const { id } = browser.account;
  const query =
    "model=core-3&endpoint=%2Fv1%2Fmessages&from=2026-03-01&to=2026-03-02T12%3A00%3A00Z&text=%25_&limit=999";
  const first = await browser.get(`/usage?${query}`);
  expect(first.body).toEqual({ rows: [row], next: "5-6" });
  await browser.get(`/usage?after=${first.body.next}&from=`);
  expect(asked).toEqual([
    [
      id,
      {
        model: "core-3",
        endpoint: "/v1/messages",
        key: null,
        endUser: null,
        from: Date.UTC(2026, 2, 1),
        to: Date.UTC(2026, 2, 2, 12),
        text: "%_",
      },
      null,
      200,
    ],
    [
      id,
      { model: null, endpoint: null, key: null, endUser: null, from: null, to: null, text: "" },
      { at: 5, sequence: "6" }, // as it stands in the address: each store reads it
      50,
    ],
  ]);
  for (const bad of ["from=yesterday", "limit=x", "after=1", "after=1-%24", `endpoint=/${"v".repeat(200)}`, "page=2"]) {
    expect([bad, (await browser.get(`/usage?${bad}`)).status]).toEqual([bad, 400]);
  }
  const { response } = await browser.get("/usage.csv?model=core-3");
  expect(response.headers.get("content-disposition")).toBe('attachment; filename="usage-2026-03-28.csv"');
  const line = `t,"'=1+1,""x""",/v1/messages,core-3,1,0,2,0,3,0.000015,false,default,`;
  expect((await response.text()).split("\r\n").slice(1)).toEqual([line, line, ""]);
});

test("the plan page has the plans, the packs, and the account's own requests", async () => {
  const site = new ConsoleSite();
  const browser = await site.signedIn("a@x");
  const { body: asked } = await browser.post("/plan/requests", { kind: "plan", plan: "pro", note: "for work" });
  const { body } = await browser.get("/plan");
  expect(body.plans.map(({ id, worth_usd }: any) => [id, worth_usd])).toEqual([
    ["free", 0.15],
    ["plus", 0.4],
    ["standard", 1.325],
    ["pro", 3.325],
  ]);
  expect(body.packs).toEqual([
    { tokens: 1_000_000, price_usd: 5 },
    { tokens: 2_000_000, price_usd: 10 },
    { tokens: 5_000_000, price_usd: 25 },
  ]);
  expect(body.custom).toEqual({ min_tokens: 1_000_000, max_tokens: 100_000_000, usd_per_million: 5 });
  expect([body.plan, body.payment, body.requests]).toEqual(["free", null, [asked]]);
  expect((await browser.post("/plan/requests", { kind: "plan", plan: "free" })).status).toBe(400);
  expect((await browser.post("/plan/checkout", { tokens: 1_000_000 })).status).toBe(404);
  const withdrawn = await browser.post(`/plan/requests/${asked.id}/withdraw`);
  expect(withdrawn.body.state).toBe("withdrawn");
});
