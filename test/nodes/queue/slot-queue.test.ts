// The slot queue without time or sockets: fairness, all small worlds, random large ones.
import { queuePlacesMax } from "../../../src/core/limits.ts";
import { describe, expect, test } from "bun:test";
import { nodeLines } from "../../../src/nodes/queue/line-view.ts";
import { SlotQueue } from "../../../src/nodes/queue/slot-queue.ts";
import { noBlocks } from "../../../src/nodes/queue/prompt-blocks.ts";
import type { Chooser, NodeHealth, Place, QueueNode, RefusalCause } from "../../../src/nodes/queue/slot-queue.ts";
import { idlest } from "./idlest.ts";

/** On nodes now, in the order in which they came there. */
let running: TestPlace[] = [];

class TestPlace implements Place {
  node: string | null = null;
  cause: RefusalCause | null = null;
  readonly prompt = noBlocks;
  constructor(
    readonly account: number,
    readonly modelId = "m",
    readonly excluded: ReadonlySet<string> = new Set(),
    readonly member = "",
    readonly priority = "standard" as const,
  ) {}
  granted(node: string): void {
    if (this.node !== null || this.cause !== null) throw new Error("told twice");
    this.node = node;
    running.push(this);
  }
  refused(cause: RefusalCause): void {
    if (this.node !== null || this.cause !== null) throw new Error("told twice");
    this.cause = cause;
  }
}

const node = (name: string, slots = 1, models: readonly string[] = ["m"]): QueueNode => ({
  name,
  slots,
  serves: (model) => models.includes(model),
});

function queueOf(nodes: readonly QueueNode[], maxWaitMs = 1_000, placesMax = queuePlacesMax): SlotQueue {
  running = [];
  const queue = new SlotQueue(maxWaitMs, placesMax, idlest);
  queue.configure(nodes);
  return queue;
}

/** One of those on the node ends. */
function release(queue: SlotQueue, name: string, now?: number): void {
  const at = running.findIndex(({ node: of }) => of === name);
  const [place] = running.splice(at, 1);
  queue.ended(place!, null, now);
}

function enter(queue: SlotQueue, place: TestPlace, now = 0): TestPlace {
  queue.enter(place, now);
  queue.check();
  return place;
}

describe("entering", () => {
  test("a free slot is granted at once, else the request waits", () => {
    const queue = queueOf([node("a")]);
    expect(enter(queue, new TestPlace(1)).node).toBe("a");
    const second = enter(queue, new TestPlace(1));
    expect([second.node, second.cause, queue.length]).toEqual([null, null, 1]);
    release(queue, "a");
    expect([second.node, queue.length]).toEqual(["a", 0]);
  });
  test("refused when no node serves the model, when all are down, when all are excluded, when the lines are full", () => {
    const queue = queueOf([node("a")], 1_000, 1);
    expect(enter(queue, new TestPlace(1, "other")).cause).toBe("unlisted");
    expect(enter(queue, new TestPlace(1, "m", new Set(["a"]))).cause).toBe("away");
    enter(queue, new TestPlace(1));
    enter(queue, new TestPlace(1));
    expect(enter(queue, new TestPlace(2)).cause).toBe("full");
    queue.setHealth("a", "starting");
    expect(enter(queue, new TestPlace(1)).cause).toBe("away");
    expect(queue.length).toBe(0);
  });
  test("a cooling node gets nothing, and its line waits", () => {
    const queue = queueOf([node("a")]);
    queue.setHealth("a", "cooling");
    const place = enter(queue, new TestPlace(1));
    expect([place.node, place.cause]).toEqual([null, null]);
    queue.setHealth("a", "well");
    expect(place.node).toBe("a");
  });
});

describe("which node", () => {
  test("that with the smallest part of its slots in use, where nobody else chooses; what others have there counts", () => {
    const queue = queueOf([node("a", 4), node("b", 4)]);
    expect([1, 2, 3, 4].map((account) => enter(queue, new TestPlace(account)).node)).toEqual(["a", "b", "a", "b"]);
    queue.setSlots("a", 4, 40);
    expect([5, 6].map((account) => enter(queue, new TestPlace(account)).node)).toEqual(["b", "b"]);
    expect(enter(queue, new TestPlace(7)).node).toBe("a"); // nobody waits beside a free slot
  });
  test("who chooses is asked of those that have room and did not fail lately, where there are several", () => {
    const asked: string[][] = [];
    const last: Chooser = {
      unreadMs: () => 0,
      readMs: () => 0,
      expectedMs: () => 0,
      sent: () => ({ work: 1, unreadWork: 0 }),
      began() {},
      ended: () => 1,
      choose(_wanting, candidates) {
        asked.push(candidates.filter(({ busy, node }) => busy < node.slots).map((candidate) => candidate.node.name));
        const free = candidates.findLast(({ busy, node }) => busy < node.slots)!;
        return { best: free, free, savedMs: 0 };
      },
    };
    const queue = new SlotQueue(1_000, 10, last);
    queue.configure(["a", "b", "c"].map((name) => node(name, 1)));
    queue.doubt("c", 100);
    const got = [1, 2, 3, 4].map((account) => enter(queue, new TestPlace(account), 50).node);
    expect(got).toEqual(["b", "a", "c", null]);
    expect(asked).toEqual([["a", "b"], ["a"], ["c"]]); // the one that failed where no other has room
  });
  test("slots that grow go to those who wait, at once; where they shrink, what runs may end", () => {
    const queue = queueOf([node("a")]);
    const places = Array.from({ length: 5 }, () => enter(queue, new TestPlace(1)));
    queue.setSlots("a", 3, 0);
    queue.check();
    expect(places.map((place) => place.node)).toEqual(["a", "a", "a", null, null]);
    queue.setSlots("a", 1, 0);
    release(queue, "a");
    release(queue, "a");
    queue.check();
    expect([places[3]!.node, queue.length]).toEqual([null, 2]);
    release(queue, "a");
    expect(places[3]!.node).toBe("a");
    queue.setSlots("gone", 9, 9); // it was reconfigured in the meantime
    queue.setHealth("a", "down");
    queue.setSlots("a", 9, 0);
    expect(places[4]!.node).toBeNull();
  });
});

describe("fairness", () => {
  test("a node on which a request failed is chosen only where no other has room, for a while or until it answered", () => {
    const nodes = [node("a", 9), node("b", 1)];
    const from = (queue: SlotQueue, now: number) => enter(queue, new TestPlace(1), now).node;
    const affine = from(queueOf([node("a", 9), node("b", 9)]), 0)!;
    const other = affine === "a" ? "b" : "a";
    const queue = queueOf(nodes.map((each) => ({ ...each, slots: each.name === affine ? 9 : 1 })));
    queue.doubt(affine, 100);
    expect([from(queue, 1), from(queue, 1)]).toEqual([other, affine]);
    release(queue, other);
    expect([from(queue, 99), from(queue, 100)]).toEqual([other, affine]);
    release(queue, other);
    release(queue, affine);
    release(queue, affine);
    queue.doubt(affine, 200);
    queue.doubt(affine, 0);
    expect(from(queue, 101)).toBe(affine);
  });
  test("an account with 500 requests waits behind its own", () => {
    const queue = queueOf([node("a", 2)]);
    const flood = Array.from({ length: 502 }, () => enter(queue, new TestPlace(1)));
    const others = [2, 3, 4].map((account) => enter(queue, new TestPlace(account)));
    for (let turn = 0; turn < 4; turn++) release(queue, "a");
    expect(others.map(({ node: granted }) => granted)).toEqual(["a", "a", "a"]);
    expect(flood.filter(({ node: granted }) => granted !== null).length).toBe(3);
  });
  test("accounts take turns, and each account's own requests keep their order", () => {
    const queue = queueOf([node("a")]);
    enter(queue, new TestPlace(0));
    const places = [1, 1, 1, 2, 2, 3].map((account) => enter(queue, new TestPlace(account)));
    const order: number[] = [];
    for (let turn = 0; turn < 6; turn++) {
      release(queue, "a");
      order.push(places.findIndex((place, index) => place.node !== null && !order.includes(index)));
    }
    expect(order).toEqual([0, 3, 5, 1, 4, 2]);
  });
  test("waiting in several lines gives no more turns", () => {
    const queue = queueOf([node("a", 1, ["m", "n"]), node("b", 1, ["n"])]);
    enter(queue, new TestPlace(9, "m"));
    enter(queue, new TestPlace(9, "n"));
    const greedy = ["m", "n", "m", "n"].map((model) => enter(queue, new TestPlace(1, model)));
    const modest = [enter(queue, new TestPlace(2, "m")), enter(queue, new TestPlace(2, "m"))];
    for (let turn = 0; turn < 4; turn++) release(queue, "a");
    expect(greedy.filter((place) => place.node !== null).length).toBe(2);
    expect(modest.filter((place) => place.node !== null).length).toBe(2);
  });
});

describe("leaving", () => {
  test("a place in line is given up once", () => {
    const queue = queueOf([node("a")]);
    enter(queue, new TestPlace(1));
    const waiting = [1, 2, 3].map((account) => enter(queue, new TestPlace(account)));
    expect(queue.leave(waiting[1]!)).toBe(true);
    expect(queue.leave(waiting[1]!)).toBe(false);
    release(queue, "a");
    release(queue, "a");
    expect(waiting.map((place) => place.node)).toEqual(["a", null, "a"]);
  });
  test("waiting too long", () => {
    const queue = queueOf([node("a")], 100);
    enter(queue, new TestPlace(1));
    const [early, late] = [enter(queue, new TestPlace(1), 10), enter(queue, new TestPlace(2), 50)];
    expect(queue.nextExpiry()).toBe(110);
    queue.expire(109);
    expect(early.cause).toBeNull();
    queue.expire(110);
    expect([early.cause, late.cause]).toEqual(["waited-too-long", null]);
    expect(queue.nextExpiry()).toBe(150);
  });
  test("a place that is given back twice is a bug", () => {
    const queue = queueOf([node("a")]);
    expect(() => queue.ended(new TestPlace(1))).toThrow("given back once");
    const place = enter(queue, new TestPlace(1));
    queue.ended(place);
    expect(() => queue.ended(place)).toThrow("given back once");
  });
});

describe("another configuration", () => {
  test("those who wait get new slots, a node that went keeps what runs on it", () => {
    const queue = queueOf([node("a")]);
    enter(queue, new TestPlace(1));
    const waiting = [enter(queue, new TestPlace(1)), enter(queue, new TestPlace(2))];
    queue.configure([node("b")]);
    queue.check();
    expect(waiting.map((place) => place.node)).toEqual(["b", null]);
    release(queue, "a");
    expect(queue.states().map(({ name, busy }) => [name, busy])).toEqual([["b", 1]]);
    expect(waiting[1]!.node).toBeNull();
    release(queue, "b");
    expect(waiting[1]!.node).toBe("b");
  });
  test("fewer slots are given back first, a model that is gone is refused", () => {
    const queue = queueOf([node("a", 2, ["m", "n"])]);
    enter(queue, new TestPlace(1));
    enter(queue, new TestPlace(1));
    const [stays, goes] = [enter(queue, new TestPlace(1)), enter(queue, new TestPlace(1, "n"))];
    queue.configure([node("a", 1)]);
    queue.check();
    expect([stays.cause, goes.cause]).toEqual([null, "unlisted"]);
    release(queue, "a");
    expect(stays.node).toBeNull();
    release(queue, "a");
    expect(stays.node).toBe("a");
  });
  test("a node taken away and brought back while it is busy counts on", () => {
    const queue = queueOf([node("a")]);
    enter(queue, new TestPlace(1));
    queue.configure([]);
    queue.configure([node("a")]);
    expect(queue.states()).toMatchObject([{ name: "a", busy: 1 }]);
    release(queue, "a");
    expect(queue.states()).toMatchObject([{ name: "a", busy: 0 }]);
  });
});

describe("small worlds", () => {
  // All sequences of events over two accounts, two models and two nodes; `check` holds after every event, nobody is told
  // twice, and at the end everybody was told.
  type World = { queue: SlotQueue; granted: TestPlace[]; all: TestPlace[]; now: number };
  const events: ((world: World) => void)[] = [
    (world) => ask(world, new TestPlace(1)),
    (world) => ask(world, new TestPlace(2)),
    (world) => ask(world, new TestPlace(1, "n")),
    (world) => release(world),
    (world) =>
      void world.queue.leave(
        world.all.find(({ node: given, cause }) => given === null && cause === null) ??
          world.all[0] ??
          new TestPlace(0),
      ),
    (world) => world.queue.setHealth("a", "down"),
    (world) => world.queue.setHealth("a", "cooling"),
    (world) => world.queue.setHealth("a", "well"),
    (world) => world.queue.expire((world.now += 60)),
  ];
  /** Too many for all sequences: what a request shows of a node that is down. */
  const moreEvents: typeof events = [
    ...events,
    (world) => world.queue.setHealth("b", "down"),
    (world) => world.queue.setHealth("b", "starting"),
    (world) => world.queue.setHealth("b", "well"),
    (world) => world.queue.trialFailed("a"),
    (world) => world.queue.trialHolds("a"),
    (world) => world.queue.trialFailed("b"),
    (world) => world.queue.trialHolds("b"),
    (world) => world.queue.drain(new Set(["a"])),
    (world) => world.queue.drain(new Set(["b"])),
    (world) => world.queue.drain(new Set(["a", "b"])),
    (world) => world.queue.drain(new Set()),
    (world) => ask(world, new TestPlace(2, "m", new Set(["a"]))),
  ];
  function ask(world: World, place: TestPlace): void {
    world.all.push(place);
    world.queue.enter(place, world.now);
  }
  function release(world: World): void {
    const running = world.all.find((place) => place.node !== null && !world.granted.includes(place));
    if (running === undefined) return;
    world.granted.push(running);
    world.queue.ended(running);
  }
  function run(steps: readonly number[]): void {
    const queue = queueOf([node("a", 1, ["m"]), node("b", 1, ["m", "n"])], 100);
    const world: World = { queue, granted: [], all: [], now: 0 };
    for (const step of steps) {
      moreEvents[step]!(world);
      queue.check();
    }
    for (let left = world.all.length; left > 0; left--) release(world);
    queue.check();
    queue.expire(1_000_000);
    expect(queue.length).toBe(0);
    expect(queue.states().every(({ busy }) => busy === 0)).toBe(true);
  }
  test("every sequence of five events", () => {
    const total = events.length ** 5;
    for (let code = 0; code < total; code++) {
      const steps: number[] = [];
      for (let rest = code, step = 0; step < 5; step++, rest = Math.floor(rest / events.length))
        steps.push(rest % events.length);
      run(steps);
    }
  });
  test("long random sequences", () => {
    let state = 20_261_120;
    const random = (): number => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 8;
    for (let round = 0; round < 400; round++) run(Array.from({ length: 200 }, () => random() % moreEvents.length));
  });
});

describe("a drained node", () => {
  test("gets nothing new, what runs there ends, and others take what they serve", () => {
    const queue = queueOf([node("a"), node("b")]);
    queue.drain(new Set(["a"]));
    queue.check();
    expect([enter(queue, new TestPlace(1)).node, enter(queue, new TestPlace(1)).node]).toEqual(["b", null]);
    release(queue, "b");
    expect(queue.states()).toMatchObject([{ busy: 0 }, { busy: 1 }]);
    expect([queue.takes("m"), queue.serves("m")]).toEqual([true, true]);
  });
  test("is waited for where no other serves the model, through its engine's restart, and until it is resumed", () => {
    const queue = queueOf([node("a")]);
    const running = enter(queue, new TestPlace(1));
    queue.drain(new Set(["a"]));
    const waits = enter(queue, new TestPlace(2));
    release(queue, "a");
    for (const health of ["down", "starting", "well"] as const) {
      queue.setHealth("a", health);
      queue.check();
      enter(queue, new TestPlace(3, "m", new Set(["a"])));
    }
    expect([running.node, waits.node, waits.cause, queue.takes("m")]).toEqual(["a", null, null, false]);
    queue.drain(new Set());
    queue.check();
    expect(waits.node).toBe("a");
  });
  test("says why to who waited too long, and nothing of the kind where others serve the model", () => {
    const queue = queueOf([node("a"), node("b", 1, ["n"])], 100);
    queue.drain(new Set(["a"]));
    enter(queue, new TestPlace(1, "n"));
    const [paused, busy] = [enter(queue, new TestPlace(1)), enter(queue, new TestPlace(1, "n"))];
    queue.expire(100);
    expect([paused.cause, busy.cause]).toEqual(["drained", "waited-too-long"]);
  });
  test("is waited for by nobody whose request another node failed, nor where the others are away", () => {
    const queue = queueOf([node("a"), node("b")]);
    queue.drain(new Set(["a"]));
    expect(enter(queue, new TestPlace(1, "m", new Set(["b"]))).cause).toBe("away");
    queue.setHealth("b", "starting");
    expect(enter(queue, new TestPlace(1)).cause).toBe("away");
  });
  test("is tried by a request when it is resumed and still down", () => {
    const queue = queueOf([node("a")]);
    queue.setHealth("a", "down");
    queue.drain(new Set(["a"]));
    const [first, second] = [enter(queue, new TestPlace(1)), enter(queue, new TestPlace(2))];
    queue.drain(new Set());
    expect([first.node, second.node, second.cause]).toEqual(["a", null, null]);
    queue.trialFailed("a");
    release(queue, "a");
    expect(second.cause).toBe("away");
  });
  test("stays drained through other configurations, also one that it is not in", () => {
    const queue = queueOf([node("a")]);
    queue.drain(new Set(["a"]));
    for (const nodes of [[node("a", 2)], [node("b", 1, ["n"])], [node("a")]]) queue.configure(nodes);
    expect(enter(queue, new TestPlace(1)).node).toBeNull();
    queue.check();
  });
});

test("who stands in the line of each node: how many of how many accounts, since when, and who has most there", () => {
  const queue = queueOf([node("a"), node("b", 1, ["m", "n"]), node("c", 1, ["k"])]);
  for (const model of ["m", "m", "k"]) enter(queue, new TestPlace(9, model));
  for (const [at, account] of [1, 2, 2, 3, 2, 3].entries()) enter(queue, new TestPlace(account), 10 + at);
  enter(queue, new TestPlace(1, "n"), 5);
  const lines = nodeLines({ ...queue.seen(20), now: 20, wall: 20, nodes: ["a", "b"] }, 2);
  const most = [
    { account: 2, waiting: 3 },
    { account: 3, waiting: 2 },
  ];
  expect(lines.get("a")).toEqual({
    firstTokenMs: expect.any(Number),
    waiting: 6,
    byPriority: { interactive: 0, standard: 6, bulk: 0 },
    since: 10,
    accounts: 3,
    most,
  });
  expect(lines.get("b")).toMatchObject({ waiting: 7, since: 5, most: [{ account: 2, waiting: 3 }, { waiting: 2 }] });
  expect(lines.get("c")).toBeUndefined();
});

describe("a node that is down, where no other is there", () => {
  const downQueue = (slots = 2): SlotQueue => {
    const queue = queueOf([node("a", slots)]);
    queue.setHealth("a", "down");
    return queue;
  };
  test("gets one request as its trial, others wait for that and are refused when it fails", () => {
    const queue = downQueue();
    const [trial, waits] = [enter(queue, new TestPlace(1)), enter(queue, new TestPlace(2))];
    expect([trial.node, waits.node, waits.cause]).toEqual(["a", null, null]);
    queue.trialFailed("a");
    expect(waits.cause).toBe("away");
    release(queue, "a");
    expect(enter(queue, new TestPlace(2)).node).toBe("a");
  });
  test("is given to those who wait when it is well again, or when the trial holds", () => {
    for (const event of ["well", "holds"]) {
      const queue = downQueue();
      enter(queue, new TestPlace(1));
      const waits = enter(queue, new TestPlace(2));
      if (event === "well") queue.setHealth("a", "well");
      else queue.trialHolds("a");
      expect(waits.node).toBe("a");
      queue.check();
    }
  });
  test("has the next in line as its trial when the client of the first left", () => {
    const queue = downQueue();
    enter(queue, new TestPlace(1));
    const waits = enter(queue, new TestPlace(2));
    release(queue, "a");
    expect(waits.node).toBe("a");
  });
  test("gets none of those who wait for another, and none that another node failed", () => {
    const queue = queueOf([node("a"), node("b")]);
    queue.setHealth("a", "down");
    expect(enter(queue, new TestPlace(1)).node).toBe("b");
    const waits = enter(queue, new TestPlace(2));
    release(queue, "b");
    expect(waits.node).toBe("b");
    queue.setHealth("b", "down");
    expect(enter(queue, new TestPlace(1, "m", new Set(["b"]))).cause).toBe("away");
  });
  test("of several, the one that was tried longest ago", () => {
    const queue = queueOf([node("a"), node("b")]);
    for (const name of ["a", "b"]) queue.setHealth(name, "down");
    const tried = [1, 2, 3, 4].map((account) => {
      const { node: name } = enter(queue, new TestPlace(account));
      queue.trialFailed(name!);
      release(queue, name!);
      return name;
    });
    expect(tried).toEqual(["a", "b", "a", "b"]);
  });
});

test("10,000 who wait cost no more per event than 100", () => {
  const cost = (waiting: number): number => {
    const queue = queueOf([node("a")]);
    queue.enter(new TestPlace(0), 0);
    for (let one = 0; one < waiting; one++) queue.enter(new TestPlace(one % 1_000), 0);
    const before = process.threadCpuUsage();
    for (let event = 0; event < 4_000; event++) {
      queue.enter(new TestPlace(event % 1_000), 0);
      release(queue, "a");
    }
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  };
  cost(100);
  // Some systems count processor time in steps of a few milliseconds, so that a short run may cost nothing.
  const costOfFive = (waiting: number): number => {
    let sum = 0;
    for (let run = 0; run < 5; run++) sum += cost(waiting);
    return Math.max(sum, 5_000);
  };
  expect(costOfFive(10_000) / costOfFive(100)).toBeLessThan(20);
});

test("health is kept by name", () => {
  const queue = queueOf([node("a"), node("b")]);
  const health = (): NodeHealth[] => queue.states().map((state) => state.health);
  queue.setHealth("a", "down");
  queue.setHealth("unknown", "down");
  expect(health()).toEqual(["down", "well"]);
});
