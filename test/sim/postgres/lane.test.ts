// The books in PostgreSQL against their model: answers lost before and after COMMIT, messages that come late, a standby that
// takes over, pauses, kills and clock steps. TOLLGATE_LANE_REQUESTS sets how many requests, TOLLGATE_SEED repeats a run.
import { expect, test } from "bun:test";
import { fullLength, longForm } from "../../fixtures/optional.ts";
import { seedOfRun } from "../../fixtures/random.ts";
import { World, type WorldOptions } from "./world.ts";

const requests = Number(process.env["TOLLGATE_LANE_REQUESTS"] ?? (fullLength ? 60_000 : longForm ? 30_000 : 2_000));
const seed = seedOfRun();
const requestsPerWorld = 2_000;
/** A busy machine takes 5 ms for a request. */
const limitMs = Math.max(600_000, requests * 20);

async function run(options: Omit<WorldOptions, "seed" | "requests">): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let done = 0, world = 0; done < requests; done += requestsPerWorld, world += 1) {
    const size = Math.min(requestsPerWorld, requests - done);
    const one = new World({ ...options, seed: seed + world, requests: size });
    try {
      await one.run();
    } catch (thrown) {
      throw new Error(`world ${world} of TOLLGATE_SEED=${seed}`, { cause: thrown });
    }
    for (const [what, count] of one.counts) counts.set(what, (counts.get(what) ?? 0) + count);
  }
  if (process.env["TOLLGATE_SHOW"] !== undefined) console.log(Object.fromEntries([...counts].sort()));
  return counts;
}

test(
  `one gateway whose requests wait for each other, without faults (TOLLGATE_SEED=${seed})`,
  async () => {
    const counts = await run({ gateways: 1, faults: false, lines: true });
    expect(counts.get("waited")).toBeGreaterThan(0);
    expect(counts.get("unavailable") ?? 0).toBe(0);
    expect(counts.get("gone") ?? 0).toBe(0);
  },
  limitMs,
);

test(
  `one gateway, and all that may go wrong (TOLLGATE_SEED=${seed})`,
  async () => {
    await run({ gateways: 1, faults: true, lines: true });
  },
  limitMs,
);

test(
  `three gateways, and all that may go wrong (TOLLGATE_SEED=${seed})`,
  async () => {
    const counts = await run({ gateways: 3, faults: true, lines: false });
    expect(counts.get("readBack")).toBeGreaterThan(0);
    expect(counts.get("given back")).toBeGreaterThan(0);
  },
  limitMs,
);

test(
  `three gateways with a line each, and all that may go wrong (TOLLGATE_SEED=${seed})`,
  async () => {
    const counts = await run({ gateways: 3, faults: true, lines: true });
    expect(counts.get("waited")).toBeGreaterThan(0);
  },
  limitMs,
);

test(
  "an outage makes nobody gone, nor does a short pause behind it",
  async () => {
    const world = new World({
      seed: 1,
      gateways: 3,
      requests: 300,
      faults: false,
      lines: false,
      script({ timeline, postgres, gateways }) {
        timeline.after(3_000, () => postgres.crash(9_000));
        timeline.after(11_500, () => gateways[1]!.process.pause(10_500)); // its row is as it was for 19 s
        timeline.after(26_000, () => postgres.crash(40_000));
      },
    });
    await world.run();
    expect(world.counts.get("unknown")).toBeGreaterThan(0);
    expect([world.counts.get("gone"), world.counts.get("given back") ?? 0]).toEqual([0, 0]);
  },
  limitMs,
);

test(
  "what was read back is safe before it is told, also where the standby takes over at once",
  async () => {
    let broken = 0;
    const world = new World({
      seed: 2,
      gateways: 1,
      requests: 200,
      faults: false,
      lines: false,
      script(world) {
        const { timeline, postgres, gateways } = world;
        timeline.after(3_000, () => (world.breaksNext = () => broken++ % 7 === 0));
        let seen = 0;
        const look = () => {
          const { readBack } = gateways[0]!.lane.counts;
          if (readBack > seen) postgres.failOver(300);
          seen = readBack;
          timeline.after(0.01, look);
        };
        timeline.after(3_000, look);
        timeline.after(30_000, () => (world.breaksNext = () => false));
      },
    });
    await world.run();
    expect(world.counts.get("readBack")).toBeGreaterThan(2);
  },
  limitMs,
);

test.each(["accounts:1", "api_keys:1 2"])(
  "whoever keeps %s locked keeps the requests of that account alone waiting",
  async (row) => {
    const world = new World({
      seed: 4,
      gateways: 3,
      requests: 1_200,
      faults: false,
      lines: false,
      script: (own) => void own.timeline.after(3_000, () => own.operatorLocks(row, 60_000)),
    });
    await world.run();
    const { counts } = world;
    expect(counts.get("locked by an operator")).toBe(1);
    const failed = ["unavailable", "cut", "admission unavailable"] as const;
    const failedOf = (account: number) =>
      failed.reduce((sum, told) => sum + (counts.get(`${told} of ${account}`) ?? 0), 0);
    expect(failedOf(1)).toBeGreaterThan(10);
    expect([2, 3, 4, 5, 6].map(failedOf)).toEqual([0, 0, 0, 0, 0]);
    expect(counts.get("gone")).toBe(0);
  },
  limitMs,
);

test(
  "who waits too long for an end of which nobody knows is cut off, and was charged where the server had it",
  async () => {
    const world = new World({
      seed: 5,
      gateways: 1,
      requests: 2_000,
      faults: false,
      lines: false,
      script({ timeline, postgres }) {
        let commits = 0;
        world.breaksNext = () => {
          if (commits++ % 25 !== 24) return false;
          timeline.after(0.01, () => postgres.crash(15_000));
          return true;
        };
      },
    });
    await world.run();
    expect(world.counts.get("cut")).toBeGreaterThan(2);
    expect(world.counts.get("readBack")).toBeGreaterThan(2);
  },
  limitMs,
);
