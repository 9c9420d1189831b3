// A replayed trace: the same again, more nodes, other weights and classes, and engines that a trace shows.
import { describe, expect, test } from "bun:test";
import { arrivalPage, type ArrivalRow } from "../../../src/core/arrivals.ts";
import { observe, usualAmong } from "../../../src/nodes/simulation/observed.ts";
import { PromptChains } from "../../../src/nodes/simulation/prompt-chains.ts";
import { type LinePlan, type Replayed, replay, type Setup } from "../../../src/nodes/simulation/replay.ts";
import { calibrationOf, summaryOf } from "../../../src/nodes/simulation/summary.ts";
import { type Trace, TraceReader } from "../../../src/nodes/simulation/trace.ts";
import { type EngineRates, type Job, usualRates, VirtualEngine } from "../../../src/nodes/simulation/virtual-engine.ts";
import { verdictOf } from "../../../src/nodes/simulation/verdict.ts";
import { randomOf } from "../../fixtures/random.ts";

const start = Date.UTC(2026, 2, 28);

type Load = Readonly<{ seed: number; requests: number; perSecond: number; accounts?: number; bulkFrom?: number }>;

/** Conversations of a few people of each account; accounts from `bulkFrom` on ask for bulk. */
function rowsOf({ seed, requests, perSecond, accounts = 6, bulkFrom = Infinity }: Load): ArrivalRow[] {
  const random = randomOf(seed);
  const below = (most: number): number => Math.floor(random() * most);
  const lengths = new Map<string, number>();
  let at = start;
  return Array.from({ length: requests }, () => {
    at += (-Math.log(1 - random()) * 1_000) / perSecond;
    const account = 1 + below(accounts);
    const endUser = 1 + below(3);
    const who = `${account} ${endUser}`;
    const before = lengths.get(who) ?? 0;
    const cached = before > 6_000 ? 0 : before;
    const input = cached + 200 + below(1_500);
    const output = 20 + below(200);
    lengths.set(who, input + output);
    const priority = account >= bulkFrom ? "bulk" : null;
    const course = { waitMs: null, sentMs: null, firstTokenMs: null, durationMs: null };
    return {
      at: Math.round(at),
      account,
      key: 1,
      endUser,
      input,
      cached,
      output,
      model: "m",
      node: null,
      priority,
      ...course,
    };
  });
}

function traceFrom(rows: readonly ArrivalRow[]): Trace {
  const reader = new TraceReader();
  const half = rows.length >> 1;
  for (const page of [rows.slice(0, half), rows.slice(half)]) reader.add(arrivalPage(page, null), 0);
  return reader.trace();
}
const onePlan: LinePlan = { id: "free", weight: 1, unasked: "standard" };

type More = Readonly<{
  plans?: readonly LinePlan[];
  planOf?: (account: number) => number;
  rates?: EngineRates;
  slots?: number;
}>;
function setupOf(
  trace: Trace,
  nodes: number,
  { plans = [onePlan], planOf = () => 0, rates = usualRates, slots = 64 }: More = {},
): Setup {
  return {
    nodes: Array.from({ length: nodes }, (_, at) => ({
      name: `gpu-${at + 1}`,
      slots,
      keeps: "by account",
      cacheTokens: null,
      models: trace.models,
      rates,
    })),
    maxWaitMs: 600_000,
    plans,
    planOf: trace.accounts.map(planOf),
  };
}
const meanOf = ({ firstMs }: Replayed, trace: Trace, fits: (account: number) => boolean): number => {
  const fitting = [...firstMs].filter((ms, at) => !Number.isNaN(ms) && fits(trace.accounts[trace.account[at]!]!));
  return fitting.reduce((sum, ms) => sum + ms, 0) / fitting.length;
};
const everyone = (): boolean => true;

describe.each([1, 2, 3])("a loaded trace of seed %p", (seed) => {
  const trace = traceFrom(rowsOf({ seed, requests: 1_500, perSecond: 9 }));

  test("gives the same twice", () => {
    const [one, other] = [replay(trace, setupOf(trace, 2)), replay(trace, setupOf(trace, 2))];
    expect(other).toEqual(one);
    expect(one.refused).toBe(0);
    expect([...one.firstMs].every((ms) => ms > 0)).toBe(true);
  });

  test("is never slower with another node", () => {
    const means = [1, 2, 3, 4].map((nodes) => meanOf(replay(trace, setupOf(trace, nodes)), trace, everyone));
    for (const [at, mean] of means.entries()) if (at > 0) expect(mean).toBeLessThan(1.05 * means[at - 1]!);
    expect(means[1]).toBeLessThan(0.7 * means[0]!);
  });
});

describe("rules", () => {
  const plans = (weight: number): readonly LinePlan[] => [onePlan, { ...onePlan, id: "pro", weight }];
  const isPro = (account: number): boolean => account <= 2;
  const planOf = (account: number): number => Number(isPro(account));

  test("a plan of more weight waits less, and the others wait longer", () => {
    const trace = traceFrom(rowsOf({ seed: 4, requests: 2_000, perSecond: 12 }));
    const [even, heavy] = [1, 8].map((weight) => replay(trace, setupOf(trace, 1, { plans: plans(weight), planOf })));
    expect(meanOf(heavy!, trace, isPro)).toBeLessThan(0.7 * meanOf(even!, trace, isPro));
    expect(meanOf(heavy!, trace, (account) => !isPro(account))).toBeGreaterThan(
      meanOf(even!, trace, (account) => !isPro(account)),
    );
  });

  test("bulk waits for the others, and a plan whose usual priority changes takes those with it that asked for none", () => {
    const trace = traceFrom(rowsOf({ seed: 5, requests: 2_000, perSecond: 12, bulkFrom: 4 }));
    const now = replay(trace, setupOf(trace, 1));
    const isBulk = (account: number): boolean => account >= 4;
    expect(meanOf(now, trace, isBulk)).toBeGreaterThan(2 * meanOf(now, trace, (account) => !isBulk(account)));
    const ranks = (replayed: Replayed): number[] => [...new Set(replayed.ranks)].toSorted();
    expect(ranks(now)).toEqual([1, 2]);
    const urgent: LinePlan = { ...onePlan, priority: "interactive", priorityMax: "interactive" };
    const changed = replay(trace, setupOf(trace, 1, { plans: [urgent] }));
    expect(ranks(changed)).toEqual([0, 2]);
    const { classes } = summaryOf(trace, setupOf(trace, 1, { plans: [urgent] }), changed, []);
    expect(classes.map((each) => each.class)).toEqual(["interactive", "bulk"]);
  });

  test("a plan of few parallel requests makes its accounts wait, and others less", () => {
    const trace = traceFrom(rowsOf({ seed: 4, requests: 2_000, perSecond: 12 }));
    const limited = [onePlan, { ...onePlan, id: "pro", parallel: 1 }];
    const [free, held] = [plans(1), limited].map((plans) => replay(trace, setupOf(trace, 1, { plans, planOf })));
    expect(held!.refused + free!.refused).toBe(0);
    expect(meanOf(held!, trace, isPro)).toBeGreaterThan(1.2 * meanOf(free!, trace, isPro));
    expect(meanOf(held!, trace, (account) => !isPro(account))).toBeLessThan(
      meanOf(free!, trace, (account) => !isPro(account)),
    );
  });

  test("a model of few parallel requests makes everyone wait", () => {
    const trace = traceFrom(rowsOf({ seed: 4, requests: 1_000, perSecond: 9 }));
    const [free, held] = [undefined, new Map([["m", 4]])].map((parallel) =>
      replay(trace, { ...setupOf(trace, 2), ...(parallel && { parallel }) }),
    );
    expect(meanOf(held!, trace, everyone)).toBeGreaterThan(3 * meanOf(free!, trace, everyone));
  });

  test("a longest wait refuses, and refused requests are counted without a first token", () => {
    const trace = traceFrom(rowsOf({ seed: 6, requests: 1_000, perSecond: 30 }));
    const setup = { ...setupOf(trace, 1), maxWaitMs: 1_000 };
    const replayed = replay(trace, setup);
    const { all, accounts, others } = summaryOf(trace, setup, replayed, [0, 1]);
    expect(replayed.refused).toBeGreaterThan(0);
    expect(all.refused).toBe(replayed.refused);
    expect([...accounts, others!].reduce((sum, { requests }) => sum + requests, 0)).toBe(all.requests);
    expect([...accounts, others!].reduce((sum, { refused }) => sum + refused, 0)).toBe(all.refused);
  });
});

describe("prompts", () => {
  const shared = (one: Uint32Array, other: Uint32Array): number => {
    let at = 0;
    while (at < one.length && one[at] === other[at]) at++;
    return at;
  };

  test("what was cached is the beginning of the same person's earlier request", () => {
    const chains = new PromptChains();
    const ask = (who: string, input: number, cached: number, node = -1) =>
      chains.next({ who, model: 0, input, cached, output: 64, node });
    const first = ask("ann", 3_200, 0);
    const stranger = ask("bob", 3_200, 0);
    const second = ask("ann", 4_000, 3_264);
    expect(shared(first.blocks.hashes, stranger.blocks.hashes)).toBe(0);
    expect(shared(second.keys, first.keys)).toBe(first.keys.length);
    expect(second.blocks.before).toBe(first.blocks.end);
    // Another conversation of hers goes on, and the first is not forgotten.
    ask("ann", 900, 0);
    const third = ask("ann", 5_000, 4_064);
    expect(shared(third.keys, second.keys)).toBe(second.keys.length);
  });

  test("what goes on with a request of another node shares its beginning, though nothing was cached", () => {
    const chains = new PromptChains();
    const ask = (input: number, cached: number, node: number) =>
      chains.next({ who: "ann", model: 0, input, cached, output: 64, node });
    let before = ask(2_000, 0, 0);
    for (let input = 3_000; input < 30_000; input += 1_000) before = ask(input, input - 936, 0);
    const same = ask(30_000, 0, 0);
    expect(shared(same.keys, before.keys)).toBe(0);
    const moved = ask(31_000, 0, 1);
    expect(shared(moved.keys, same.keys)).toBe(same.keys.length);
    expect(shared(ask(50_000, 0, 0).keys, moved.keys)).toBe(0); // longer than it would be if it went on
  });

  test("what nobody asked before is the beginning that all share", () => {
    const chains = new PromptChains();
    const ask = (who: string) =>
      chains.next({ who, model: 0, input: 2_000, cached: 1_600, output: 10, node: -1 }).blocks.hashes;
    const [one, other] = [ask("ann"), ask("bob")];
    expect(shared(one, other)).toBeGreaterThan(10);
    expect(shared(one, other)).toBeLessThan(one.length);
  });
});

describe("a trace with times", () => {
  /** What a gateway records that has one such engine and lets every request in. */
  function recorded(rates: EngineRates, perSecond: number): ArrivalRow[] {
    const engine = new VirtualEngine(rates, 400_000);
    const chains = new PromptChains();
    const ended: ArrivalRow[] = [];
    const runTo = (until: number): void => {
      while (engine.nextAt < until) engine.advance();
    };
    for (const row of rowsOf({ seed: 7, requests: 3_000, perSecond })) {
      runTo(row.at);
      const { input, cached, output } = row;
      const { blocks, keys, knownTokens } = chains.next({
        who: `${row.account} ${row.endUser}`,
        model: 0,
        input,
        cached,
        output,
        node: 0,
      });
      let firstTokenMs = 0;
      const job: Job = {
        inputTokens: input,
        outputTokens: output,
        promptKeys: blocks.hashes,
        keys,
        knownTokens,
        cachedTokens: 0,
        unread: -1,
        endStep: 0,
        first: (now) => void (firstTokenMs = now - row.at + rates.wayMs),
        end(now) {
          const durationMs = now - row.at + rates.wayMs;
          const course = { node: "gpu-1", waitMs: 0, sentMs: 0, firstTokenMs, durationMs };
          ended.push({ ...row, ...course, at: row.at + durationMs, cached: job.cachedTokens });
        },
      };
      engine.take(job, row.at);
    }
    runTo(Infinity);
    return ended;
  }

  test("shows how fast its engines are, and a simulation of the same meets it", () => {
    const rates: EngineRates = { readPerMs: 4, stepMs: 25, requestMs: 0.3, wayMs: 15 };
    const trace = traceFrom(recorded(rates, 1.2));
    const nodes = observe(trace);
    expect(nodes).toMatchObject([{ name: "gpu-1", requests: 3_000, models: ["m"] }]);
    const found = usualAmong(nodes);
    expect(found.readPerMs).toBeGreaterThan(0.75 * rates.readPerMs);
    expect(found.readPerMs).toBeLessThan(1.25 * rates.readPerMs);
    expect(found.stepMs).toBeLessThan(1.3 * rates.stepMs);
    const calibration = calibrationOf(trace, replay(trace, setupOf(trace, 1, { rates: found })))!;
    expect(calibration.requests).toBe(3_000);
    expect(Math.abs(calibration.error.mean_ms)).toBeLessThan(0.3);
  });

  test("shows the same of engines that always have prompts to read, and of caches that have nearly all of them", () => {
    const rates: EngineRates = { readPerMs: 4, stepMs: 25, requestMs: 0.3, wayMs: 0 };
    for (const perSecond of [1.8, 2.4]) {
      const trace = traceFrom(recorded(rates, perSecond));
      const found = usualAmong(observe(trace));
      expect(found.readPerMs).toBeWithin(0.7 * rates.readPerMs, 1.3 * rates.readPerMs);
      expect(found.wayMs).toBeLessThan(20);
      const calibration = calibrationOf(trace, replay(trace, setupOf(trace, 1, { rates: found, slots: 10_000 })))!;
      expect(Math.abs(calibration.error.mean_ms)).toBeLessThan(0.6);
    }
  });

  test("shows how many requests an engine takes only where others waited for that", () => {
    const rows = recorded(usualRates, 5);
    const waiting = rows.map((row) => ({ ...row, waitMs: 20, sentMs: 20 }));
    expect(observe(traceFrom(waiting))[0]!.isFull).toBe(false); // they waited for something else
    let endedAt = 0;
    const inTurn = rows.map((row) => {
      const waitMs = Math.max(0, endedAt - row.at);
      endedAt = Math.max(endedAt, row.at) + 500;
      const course = { waitMs, sentMs: waitMs, firstTokenMs: waitMs + 100, durationMs: endedAt - row.at };
      return { ...row, ...course, at: endedAt };
    });
    expect(observe(traceFrom(inTurn))).toMatchObject([{ peak: 1, isFull: true }]);
  });

  test("what was not recorded calibrates nothing", () => {
    const trace = traceFrom(rowsOf({ seed: 8, requests: 50, perSecond: 1 }));
    expect(calibrationOf(trace, replay(trace, setupOf(trace, 1)))).toBeNull();
    expect(observe(trace)).toEqual([]);
    expect(usualAmong([])).toEqual(usualRates);
  });
});

test.each([
  ["Neither", 1, 2],
  ["Another GPU", 12, 1],
])("the verdict: %s", (answer, perSecond, nodes) => {
  const trace = traceFrom(rowsOf({ seed: 9, requests: 1_000, perSecond }));
  const run = (configuration: "today" | "one more node", count: number) => ({
    configuration,
    ...summaryOf(trace, setupOf(trace, count), replay(trace, setupOf(trace, count)), []),
    accounts: [],
  });
  const runs = [run("today", nodes), run("one more node", nodes + 1)];
  expect(verdictOf({ runs, calibration: null, changes: [] })).toStartWith(`${answer}:`);
});
