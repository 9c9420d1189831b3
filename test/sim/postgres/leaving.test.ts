// A client that leaves its account's line in the moment in which the line decides: its hold is given back once.
import { expect, test } from "bun:test";
import { isRefusal } from "../../../src/core/refusals.ts";
import type { Refusal } from "../../../src/core/types.ts";
import type { OpenHold, LaneOperation } from "../../../src/store/postgres/decide.ts";
import { Lane } from "../../../src/store/postgres/lane.ts";
import { ask, output, plans } from "../../account/office.ts";
import { SimulatedPostgres } from "./simulated-postgres.ts";
import { SimulatedProcess, Timeline } from "./timeline.ts";

test("who leaves while a batch refuses it gives back nothing twice", async () => {
  const timeline = new Timeline();
  const postgres = new SimulatedPostgres(timeline, Date.UTC(2026, 2, 28, 12), {
    random: () => 0.5,
    fault: () => null,
    breaksCommit: () => false,
    committed: () => {},
    failedOver: () => {},
  });
  const sums = { held: 0, waiting_held: 0, begun: 0, expected: 0, holds: 0, searches_held: 0 };
  postgres.rows.set("accounts:1", {
    id: 1,
    key_hash: "hash",
    plan: "free",
    credit: 0,
    disabled: false,
    key_used_at: null,
    ...sums,
    allowance_day: -1,
    allowance_used: 0,
    coder_window: -1,
    coder_used: 0,
    searches_day: -1,
    searches_used: 0,
    minute: null,
    flood_opens: 0,
    flood_latest: 0,
    flood_count: 0,
    inputs_opens: 0,
    inputs_latest: 0,
    inputs_count: 0,
  });
  const process = new SimulatedProcess(timeline, postgres.startedAt, 0);
  const told: (Refusal | null)[] = [];
  const lane = new Lane({
    server: postgres.serverFor(process),
    gateway: "g",
    version: "1",
    pace: process.pace,
    log: () => {},
    rules: { plans, siteUrl: "http://site", maxWaitMs: 600_000, inputRequestsPerMinute: 3_000 },
    configDigest: () => "",
    decided: (_hold, refusal) => void told.push(refusal),
  });
  const done = async <Value>(work: Promise<Value>): Promise<Value> => {
    let isDone = false;
    const ended = () => void (isDone = true);
    work.then(ended, ended);
    while (!isDone) timeline.step();
    return work;
  };
  const admit = (requestId: string, budget: number, inputTokens = 0) =>
    lane.put({
      op: "admit",
      account: 1,
      key: 1,
      keyHash: "hash",
      ask: ask(budget),
      inputTokens,
      requestId,
      endUser: null,
    } satisfies LaneOperation) as Promise<OpenHold>;
  await done(lane.open());
  const first = await done(admit("r1", 15_000));
  const second = await done(admit("r2", 5_000));
  const waiting = await done(admit("r3", 8_000, 100_000));
  expect([first, second, waiting].map(({ record }) => record.waits)).toEqual([false, false, true]);

  const settled = lane.put({ op: "settle", hold: first, usage: output(28_000), estimated: false });
  timeline.step(); // its batch begins
  const released = lane.put({ op: "release", hold: waiting });
  expect(await done(settled)).toBe("settled");
  expect(await done(released)).toBe("released");
  expect(told.map((refusal) => refusal !== null && isRefusal(refusal) && refusal.refusal)).toEqual(["quota_exceeded"]);
  const { held, holds, waiting_held } = postgres.rows.get("accounts:1") as Record<string, number>;
  expect({ held, holds, waiting_held }).toEqual({ held: 5_000, holds: 1, waiting_held: 0 });
  expect(lane.openHolds).toBe(1);
});
