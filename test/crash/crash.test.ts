// The promise that survives kill -9: a reply that a client saw to its end is charged exactly once, no request twice, and
// nothing stays reserved. TOLLGATE_CRASH_ROUNDS and TOLLGATE_CRASH_SEED choose a longer or a known run.
import { expect, test } from "bun:test";
import type { AccountState, KeyState, UsageRow } from "../fixtures/gateway-process.ts";
import { contradictions, crash, keyContradictions } from "./rig.ts";

const rounds = Number(process.env["TOLLGATE_CRASH_ROUNDS"] ?? 3);
const seed = Number(process.env["TOLLGATE_CRASH_SEED"] ?? crypto.getRandomValues(new Uint32Array(1))[0]);

test(
  `after each of ${rounds} kills the books agree with what the clients saw`,
  async () => {
    console.log(`crash rig: seed ${seed}`);
    const report = await crash({ rounds, seed, clients: 50, accounts: 10 });
    console.log(`crash rig: ${JSON.stringify({ ...report, wrong: report.wrong.length })}`);
    expect(report.wrong).toEqual([]);
    // a run in which nothing was finished or nothing was cut has shown nothing
    expect(report.complete).toBeGreaterThan(rounds * 10);
    expect(report.cut).toBeGreaterThan(0);
    expect(Object.keys(report.ways)).toHaveLength(6); // three dialects, streamed and not
  },
  60_000 + rounds * 20_000,
);

test(
  "after each of as many orderly stops under load nothing was cut, and the books agree",
  async () => {
    const stops = Math.ceil(rounds / 3);
    const report = await crash({ rounds: stops, seed, clients: 50, accounts: 10, signal: "SIGTERM" });
    expect([report.wrong, report.cut]).toEqual([[], 0]);
    expect(report.complete).toBeGreaterThan(stops * 10);
  },
  60_000 + rounds * 20_000,
);

const row: UsageRow = {
  time: "2026-01-01T00:00:00.000Z",
  request_id: "a",
  endpoint: "/v1/chat/completions",
  key: "wide",
  model: "core-3",
  input: 100,
  cached_input: 0,
  output: 40,
  reasoning: 0,
  billed_tokens: 94, // 140 x 335 cents = 46,900 per million; x 2 / 1,000 = 93.8
  cost_usd: "0.000469",
  estimated: false,
};
const state: AccountState = {
  id: 1,
  email: "a@example.com",
  plan: "free",
  allowance: { day: "2026-01-01", granted: 30_000, left: 29_906 },
  credit: 100_000_000,
  reserved: 0,
  spendable: 100_029_906,
  coder_calls: { window: "", used: 0, limit: 3 },
  searches: { day: "", used: 0, limit: 3 },
};
const usage = { input: 100, cached: null, output: 40 };
const seen = (...ids: string[]) => new Map(ids.map((id) => [id, { way: "", key: "wide", usage }]));
const oracle = { email: "a@example.com", keys: [], seen: seen("a"), anonymous: 0 };

test("the oracle finds nothing where all is well", () => {
  expect(contradictions(oracle, [row], state)).toEqual([]);
});

test.each([
  ["a lost charge", { ...oracle, seen: seen("a", "b") }, [row], state],
  ["a double charge", oracle, [row, row], state],
  ["a charge that nobody asked for", oracle, [row, { ...row, request_id: "c" }], state],
  ["a charge to another key", oracle, [{ ...row, key: "default" }], state],
  ["a wrong sum", oracle, [{ ...row, billed_tokens: 93 }], state],
  ["other usage than the client was told", oracle, [{ ...row, input: 101 }], state],
  ["a leaked reservation", oracle, [row], { ...state, reserved: 4_096 }],
  ["a balance that does not follow from the charges", oracle, [row], { ...state, credit: 99_999_999 }],
  ["an allowance that came back", oracle, [row], { ...state, allowance: { ...state.allowance, left: 30_000 } }],
])("the oracle finds %s", (_, clients, rows, account) => {
  expect(contradictions(clients, rows, account)).not.toEqual([]);
});

test("the oracle finds what a key used and was not charged, and more than its limit", () => {
  const today = { ...row, time: new Date().toISOString() };
  const key: KeyState = { id: 2, name: "wide", used_day: 94, used_month: 94, limit_day: 100, limit_month: null };
  expect(keyContradictions([today], [key], 1)).toEqual([]);
  expect(keyContradictions([today], [{ ...key, used_day: 93 }], 1)).toHaveLength(1);
  expect(keyContradictions([today, row], [{ ...key, used_month: 189 }], 1)).toHaveLength(1);
  expect(keyContradictions([{ ...today, billed_tokens: 50_000 }], [{ ...key, used_day: 50_000, used_month: 50_000 }], 1)).toHaveLength(1); // prettier-ignore
});
