// What operators see of the line: who waits and runs, and the work of the last hour.
import { describe, expect, test } from "bun:test";
import type { Forecast } from "../../../src/core/forecast.ts";
import type { Priority } from "../../../src/core/priority.ts";
import { factsOf } from "../../../src/core/refusals.ts";
import { refusalOf } from "../../../src/nodes/failure/failure.ts";
import { LastHour } from "../../../src/nodes/queue/last-hour.ts";
import { lineView, nodeLines } from "../../../src/nodes/queue/line-view.ts";
import { noBlocks } from "../../../src/nodes/queue/prompt-blocks.ts";
import { type Chooser, type Place, SlotQueue } from "../../../src/nodes/queue/slot-queue.ts";

/** A request is 10 of work, and its first token takes 100 ms. */
const chooser: Chooser = {
  choose: (_wanting, [first]) => ({ best: first!, free: first!, savedMs: 0 }),
  unreadMs: () => 0,
  readMs: () => 0,
  expectedMs: () => 100,
  sent: () => ({ work: 10, unreadWork: 5 }),
  began() {},
  ended: () => 30,
};

type Asked = Readonly<{ account: number; member?: string; priority?: Priority; modelId?: string }>;

class Line {
  readonly queue: SlotQueue;
  readonly refusals: (Forecast | undefined)[] = [];
  constructor(placesMax = 100) {
    this.queue = new SlotQueue(1_000_000, placesMax, chooser);
    this.queue.configure([{ name: "a", slots: 2, serves: () => true }]);
  }
  seen(now: number) {
    return { ...this.queue.seen(now), now, wall: 1_000 + now, nodes: ["a"], weightOf: () => 1, caches: new Map() };
  }
  expectedMs = (): number | null => this.queue.seen(0).expectedMs("a");
  ask({ account, member = "key 1", priority = "standard", modelId = "m" }: Asked, now: number): Place {
    const granted = (): void => {};
    const refused = (_cause: string, forecast?: Forecast) => void this.refusals.push(forecast);
    const place = {
      account,
      member,
      priority,
      modelId,
      prompt: noBlocks,
      excluded: new Set<string>(),
      granted,
      refused,
    };
    this.queue.enter(place, now);
    return place;
  }
}

describe("the line", () => {
  test("has a row for each user that waits, the next first, and a group for each account that runs", () => {
    const line = new Line();
    const first = line.ask({ account: 1 }, 0);
    line.ask({ account: 1 }, 5);
    line.queue.began(first, 8);
    line.ask({ account: 2, priority: "bulk" }, 10);
    line.ask({ account: 3, member: "user ada" }, 20);
    line.ask({ account: 3, member: "user ada", modelId: "n" }, 30);
    line.ask({ account: 3, member: "user grace", priority: "interactive" }, 40);
    const { waiting, next, running } = lineView(line.seen(50), 10);
    expect(waiting).toEqual({ interactive: 1, standard: 2, bulk: 1 });
    expect(
      next.map(({ account, member, priority, models, requests, since, forecast }) => {
        return [account, member, priority, models.join(), requests, since, forecast?.position];
      }),
    ).toEqual([
      [3, "user grace", "interactive", "m", 1, 1_040, 1],
      [3, "user ada", "standard", "m,n", 2, 1_020, 2],
      [2, "key 1", "bulk", "m", 1, 1_010, 4],
    ]);
    expect(running).toEqual([
      { node: "a", account: 1, priority: "standard", modelId: "m", requests: 2, reading: 1, since: 1_000 },
    ]);
    // What runs has its part already; its end replaces that.
    const { accounts, classes, models } = lineView(line.seen(50), 10);
    expect(accounts.map(({ key, work, requests }) => [key, work.standard, requests])).toEqual([[1, 20, 2]]);
    expect([classes[0]!.key, models[0]!.work.standard]).toEqual(["standard", 20]);
    expect(lineView(line.seen(50), 1).next).toHaveLength(1);
    expect(nodeLines(line.seen(50), 0).get("a")).toMatchObject({ waiting: 4, byPriority: waiting, most: [] });
  });

  test("is as long for a newcomer as it is; a drained node has none", () => {
    const line = new Line();
    expect(line.expectedMs()).toBe(100);
    for (const account of [1, 1, 1, 1, 2]) line.ask({ account }, 0);
    // one of the first account and one of the second go first
    expect(line.expectedMs()).toBe(3 * 100 + 100);
    line.queue.drain(new Set(["a"]));
    expect(line.expectedMs()).toBeNull();
  });

  test("that is full says the place that a newcomer would have, counted once a second", () => {
    const line = new Line(2);
    for (const account of [1, 1, 2, 3]) line.ask({ account }, 0);
    line.ask({ account: 4 }, 0);
    line.queue.leave(line.ask({ account: 5 }, 10));
    expect(line.refusals).toEqual([
      { position: 3, waitMs: 300, firstTokenMs: 400 },
      { position: 3, waitMs: 300, firstTokenMs: 400 },
    ]);
    expect(line.refusals[1]).toBe(line.refusals[0]);
    expect(factsOf(refusalOf("full", "m", true, line.refusals[0]))).toEqual({
      reason: "too_many_waiting",
      position: 3,
      expected_first_token_ms: 400,
    });
    line.ask({ account: 4 }, 1_001);
    expect(line.refusals[2]).not.toBe(line.refusals[1]);
  });

  test("counts the work of a request when it ended, with its wait, by account, class, model and node", () => {
    const line = new Line();
    const { queue } = line;
    const places = [1, 1, 2].map((account) => line.ask({ account, priority: "interactive" }, 0));
    queue.ended(places[0]!, null, 500);
    queue.ended(places[2]!, null, 600);
    const { served } = queue;
    const work = { interactive: 60, standard: 0, bulk: 0 };
    expect(served.work).toEqual(work);
    expect(served.classes.sums(600).get("interactive")).toEqual({ work, requests: 2, waitedMs: 500 });
    expect(served.nodes.sums(600).get("a")).toEqual({ work, requests: 2, waitedMs: 500 });
    expect(served.models.sums(600).get("m")!.requests).toBe(2);
    expect(served.accounts.sums(600).get(2)).toEqual({
      work: { ...work, interactive: 30 },
      requests: 1,
      waitedMs: 500,
    });
  });
});

describe("the last hour", () => {
  const minuteMs = 60_000;
  const counts = (keysMax?: number) =>
    new LastHour<string, { count: number }>(
      () => ({ count: 0 }),
      (sum, { count }) => void (sum.count += count),
      keysMax,
    );

  test("is the sum of its minutes, and forgets those before", () => {
    const hour = counts();
    for (let minute = 0; minute < 100; minute++) hour.of(minute < 50 ? "early" : "late", minute * minuteMs).count++;
    const sums = (minute: number) => [...hour.sums(minute * minuteMs)].map(([key, { count }]) => [key, count]);
    expect(sums(99)).toEqual([
      ["early", 10],
      ["late", 50],
    ]);
    expect(sums(120)).toEqual([["late", 39]]); // nothing happened in between
    expect(sums(160)).toEqual([]);
  });

  test("keeps so many keys a minute; the others share a sum", () => {
    const hour = counts(2);
    for (const key of ["a", "b", "c", "d", "a"]) hour.of(key, 0).count++;
    for (const key of ["c", "d"]) hour.of(key, minuteMs).count++;
    expect(Object.fromEntries([...hour.sums(minuteMs)].map(([key, { count }]) => [String(key), count]))).toEqual({
      a: 2,
      b: 1,
      c: 1,
      d: 1,
      null: 2,
    });
  });
});
