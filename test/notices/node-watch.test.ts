// When a node that went away or came back is told of.
import { expect, test } from "bun:test";
import { NodeWatch, type SeenNode } from "../../src/notices/node-watch.ts";

const second = 1_000;
const minute = 60 * second;

type State = Partial<Pick<SeenNode, "health" | "drainedAt">>;

/** Looks every five seconds at what the node is then, and gives what is told and when, in seconds. */
function told(forMs: number, stateAt: (now: number) => State | null): string[] {
  const watch = new NodeWatch();
  const news: string[] = [];
  for (let now = 0; now < forMs; now += 5 * second) {
    const state = stateAt(now);
    const node = { name: "gpu", health: "well", since: now, problem: null, drainedAt: null, ...state } as const;
    for (const { event, falls } of watch.look(state === null ? [] : [node], now)) {
      news.push(`${event} at ${now / second}${falls > 1 ? ` (${falls} times)` : ""}`);
    }
  }
  return news;
}

const downBetween =
  (from: number, to: number) =>
  (now: number): State =>
    now >= from * second && now < to * second ? { health: "down" } : {};

test("one that is away for half a minute is down, and up again when it was there for a while", () => {
  expect(told(10 * minute, downBetween(60, 200))).toEqual(["node.down at 90", "node.up at 215"]);
  expect(told(10 * minute, downBetween(60, 85))).toEqual([]);
  expect(told(10 * minute, downBetween(0, 600))).toEqual(["node.down at 30"]);
});

test("one that flaps for a day is told of now and then, with how often it went away, and not a thousand times", () => {
  for (const [away, there] of [
    [35, 20],
    [60, 60],
    [40, 5],
    [10, 10],
    [600, 5],
    [1_000, 300],
  ] as const) {
    const period = away + there;
    const news = told(24 * 60 * minute, (now) => ((now / second) % period < away ? { health: "down" } : {}));
    expect(news.length).toBeLessThanOrEqual(193);
    const downs = news.filter((line) => line.startsWith("node.down"));
    expect(downs.length - news.filter((line) => line.startsWith("node.up")).length).toBeWithin(0, 2);
    if (away === 60) expect(downs[1]).toContain("times)");
  }
});

test("a drained node is away by somebody's wish, and is told of when it is resumed and still away", () => {
  const drained = (now: number): State => ({ health: "down", drainedAt: now < 5 * minute ? 1 : null });
  expect(told(10 * minute, drained)).toEqual(["node.down at 330"]);
});

test("a program of ours that loads its model is not down, one that starts again and again is", () => {
  expect(told(10 * minute, (now) => (now < 5 * minute ? { health: "starting" } : {}))).toEqual([]);
  const restarted = (now: number): State => (now < minute ? {} : { health: "starting" });
  expect(told(10 * minute, restarted)).toEqual(["node.down at 90"]);
});

test("a busy node is there, and one that is no longer configured is forgotten", () => {
  expect(told(10 * minute, () => ({ health: "cooling" }))).toEqual([]);
  expect(told(10 * minute, (now) => (now < 100 * second ? { health: "down" } : null))).toEqual(["node.down at 30"]);
});
