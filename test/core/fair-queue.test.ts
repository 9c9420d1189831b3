// The order of jobs in the fair queue, without threads.
import { describe, expect, test } from "bun:test";
import { FairQueue } from "../../src/core/fair-queue.ts";

type Job = { account: number; name: string; slices: number };

/** Runs every slice of the jobs; returns the names in the order in which they ended. */
function run(jobs: readonly Job[], arrivals: Readonly<Record<number, Job>> = {}): string[] {
  const queue = new FairQueue<Job>();
  for (const job of jobs) queue.enter(job);
  const ended: string[] = [];
  for (let slice = 0; !queue.isEmpty; slice++) {
    const arrived = arrivals[slice];
    if (arrived !== undefined) queue.enter(arrived);
    const job = queue.next()!;
    if (--job.slices > 0) continue;
    queue.leave(job);
    ended.push(job.name);
  }
  expect(queue.next()).toBeNull();
  return ended;
}

describe("turns", () => {
  test("a short text waits one slice for each account with a long one, not for the long ones", () => {
    const jobs = [1, 2, 3].map((account) => ({ account, name: `long ${account}`, slices: 1_000 }));
    const queue = new FairQueue<Job>();
    for (const job of jobs) queue.enter(job);
    queue.next();
    const short = { account: 4, name: "short", slices: 1 };
    queue.enter(short);
    const turns = [queue.next(), queue.next(), queue.next(), queue.next()].map((job) => job!.name);
    expect(turns).toEqual(["long 2", "long 3", "long 1", "short"]);
  });

  test("an account with many texts gets no more turns than one with one text", () => {
    const many = Array.from({ length: 50 }, (_none, index) => ({ account: 1, name: `many ${index}`, slices: 1 }));
    expect(run([...many, { account: 2, name: "one", slices: 3 }]).indexOf("one")).toBe(3);
  });

  test("within an account, first come, first served", () => {
    expect(
      run([
        { account: 1, name: "a", slices: 5 },
        { account: 1, name: "b", slices: 1 },
        { account: 1, name: "c", slices: 1 },
      ]),
    ).toEqual(["a", "b", "c"]);
  });

  test("who arrives later is served in the same round", () => {
    const jobs = [
      { account: 1, name: "long", slices: 100 },
      { account: 2, name: "middle", slices: 10 },
    ];
    expect(run(jobs, { 7: { account: 3, name: "late", slices: 1 } })).toEqual(["late", "middle", "long"]);
  });
});

describe("leaving", () => {
  test("a job that nobody wants any more gets no turn", () => {
    const queue = new FairQueue<Job>();
    const [a, b] = ["a", "b"].map((name) => ({ account: 1, name, slices: 9 })) as [Job, Job];
    queue.enter(a);
    queue.enter(b);
    expect(queue.next()).toBe(a);
    queue.leave(a);
    expect(queue.next()).toBe(b);
    queue.leave(b);
    expect(queue.isEmpty).toBe(true);
  });

  test("leaving twice is a bug", () => {
    const queue = new FairQueue<Job>();
    const job = { account: 1, name: "a", slices: 1 };
    queue.enter(job);
    queue.leave(job);
    expect(() => queue.leave(job)).toThrow("once");
  });
});
