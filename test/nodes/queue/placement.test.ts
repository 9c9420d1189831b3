// Where requests go, without time or sockets: stated cases, and a random world in which every engine's cache is known.
import { describe, expect, test } from "bun:test";
import { Placement, type Used, type Wanting } from "../../../src/nodes/queue/placement.ts";
import { promptBlocks } from "../../../src/nodes/queue/prompt-blocks.ts";
import { SlotQueue, type Place } from "../../../src/nodes/queue/slot-queue.ts";
import { randomOf } from "../../fixtures/random.ts";

const text = (seed: number, tokens: number): string => {
  const random = randomOf(seed);
  return Array.from(
    { length: tokens },
    () =>
      ` ${Math.floor(4_096 * random())
        .toString(16)
        .padStart(3, "0")}`,
  ).join("");
};
const wantingOf = (content: string, account = 1, modelId = "m"): Wanting => ({
  modelId,
  account,
  prompt: promptBlocks([{ role: "user", content }], []),
});
const answered = (wanting: Wanting, cachedTokens = 0): Used => ({
  inputTokens: Math.ceil(wanting.prompt.bytes / 4),
  cachedTokens,
  outputTokens: 100,
});

class World {
  now = 0;
  /** Of plan "odd" or "even". */
  readonly placement = new Placement(
    (account) => (account % 2 === 0 ? "even" : "odd"),
    (model) => (model === "m:preset" ? "m" : null),
  );
  readonly busy = new Map<string, number>();
  constructor(readonly names: readonly string[]) {
    for (const name of names) this.placement.know(name, "for all", null);
  }
  chosen(wanting: Wanting, slots = 100): string {
    const candidates = this.names.map((name) => ({ node: { name, slots }, busy: this.busy.get(name) ?? 0 }));
    return this.placement.choose(wanting, candidates, this.now).best.node.name;
  }
  /** It is answered at once. */
  serve(wanting: Wanting, node = this.chosen(wanting), cached = 0): string {
    const sent = this.placement.sent(wanting, node, this.now);
    this.now += 100;
    this.placement.began(sent, this.now);
    this.now += 1_000;
    this.placement.ended(sent, answered(wanting, cached), this.now);
    return node;
  }
  expected(wanting: Wanting, name: string): number {
    return this.placement.expectedMs(wanting, { node: { name, slots: 100 }, busy: 0 }, this.now);
  }
}

test("gateways that list equal nodes in another order choose the same one for a new prompt", () => {
  const names = ["a", "b", "c", "d"];
  const gateways = [new World(names), new World(names.toReversed())];
  const chosen = (world: World) => Array.from({ length: 100 }, (_, seed) => world.chosen(wantingOf(text(seed, 300))));
  gateways[1]!.serve(wantingOf(text(1_000, 300)), "c"); // what one of them knows makes no difference
  expect(chosen(gateways[0]!)).toEqual(chosen(gateways[1]!));
  expect(new Set(chosen(gateways[0]!)).size).toBe(4);
});

describe("a prompt", () => {
  test("goes where its beginning was read, whatever stands behind it", () => {
    const world = new World(["a", "b", "c"]);
    for (let seed = 1; seed <= 20; seed++) {
      const node = world.serve(wantingOf(text(seed, 3_000)));
      expect(world.chosen(wantingOf(text(seed, 3_000) + text(99, 500)))).toBe(node);
    }
  });
  test("of another model, or of another account where those are kept apart, has nothing there", () => {
    const world = new World(["a", "b"]);
    const prompt = text(1, 3_000);
    world.serve(wantingOf(prompt), "a");
    expect(world.expected(wantingOf(prompt, 2), "a")).toBeLessThan(world.expected(wantingOf(prompt, 2), "b"));
    expect(world.expected(wantingOf(prompt, 1, "n"), "a")).toBe(world.expected(wantingOf(prompt, 1, "n"), "b"));
    const preset = wantingOf(prompt, 1, "m:preset"); // the same model of the nodes
    expect(world.expected(preset, "a")).toBeLessThan(world.expected(preset, "b"));
    world.placement.know("a", "by account", null);
    world.serve(wantingOf(prompt), "a");
    expect(world.expected(wantingOf(prompt, 2), "a")).toBeGreaterThan(world.expected(wantingOf(prompt, 1), "a"));
    world.placement.know("a", "by plan", null);
    world.serve(wantingOf(prompt), "a");
    expect(world.expected(wantingOf(prompt, 3), "a")).toBe(world.expected(wantingOf(prompt, 1), "a"));
    expect(world.expected(wantingOf(prompt, 2), "a")).toBeGreaterThan(world.expected(wantingOf(prompt, 1), "a"));
    world.placement.know("a", "nothing", null);
    world.serve(wantingOf(prompt), "a");
    expect(world.expected(wantingOf(prompt), "a")).toBeGreaterThan(100);
  });
  test("of another member of a team has nothing there, unless the team shares", () => {
    const world = new World(["a", "b"]);
    const prompt = text(1, 3_000);
    world.placement.know("a", "by account", null);
    const [ada, bob] = [1, 2].map((person) => ({ ...wantingOf(prompt), member: `person ${person}` }));
    world.serve(ada!, "a");
    expect(world.expected(bob!, "a")).toBeGreaterThan(world.expected(ada!, "a"));
    world.placement.know("a", "by team", null);
    world.serve(ada!, "a");
    expect(world.expected(bob!, "a")).toBe(world.expected(ada!, "a"));
  });
  test("that everybody has at once is read on other nodes when that is sooner", () => {
    const world = new World(["a", "b", "c", "d"]);
    const shared = text(1, 2_000);
    world.serve(wantingOf(shared), "a");
    const used = new Map<string, number>();
    for (let n = 0; n < 40; n++) {
      const wanting = wantingOf(shared + text(100 + n, 1_000));
      const node = world.chosen(wanting);
      world.placement.sent(wanting, node, world.now);
      world.busy.set(node, (world.busy.get(node) ?? 0) + 1);
      used.set(node, (used.get(node) ?? 0) + 1);
    }
    expect(used.size).toBe(4);
    expect(Math.max(...used.values())).toBeLessThan(20);
  });
  test("continues where its turn before was answered, though the answer was never seen here", () => {
    const world = new World(["a", "b"]);
    const [system, asked, said] = [text(1, 1_500), text(2, 30), text(3, 200)];
    const first = {
      modelId: "m",
      account: 1,
      prompt: promptBlocks(
        [
          { role: "system", content: system },
          { role: "user", content: asked },
        ],
        [],
      ),
    };
    world.serve(wantingOf("other"), "a");
    world.serve(first, "b");
    const next = {
      ...first,
      prompt: promptBlocks(
        [
          { role: "system", content: system },
          { role: "user", content: asked },
          { role: "assistant", content: said, reasoning: null, calls: [] },
          { role: "user", content: "And now?" },
        ],
        [],
      ),
    };
    expect(world.expected(next, "b")).toBeLessThan(5);
  });
});

describe("a node", () => {
  test("that restarted is cold at once, and has its part again", () => {
    const world = new World(["a", "b"]);
    const prompt = wantingOf(text(1, 3_000));
    world.serve(prompt, "a");
    world.placement.cold("a");
    expect(world.expected(prompt, "a")).toBeGreaterThan(300);
    const used = new Set(Array.from({ length: 30 }, (_none, n) => world.serve(wantingOf(text(n + 2, 2_000)))));
    expect(used.size).toBe(2);
  });
  test("that has nothing of what it had is cold without another word, unless it never says what it has", () => {
    const world = new World(["a", "b"]);
    const prompts = [1, 2, 3].map((seed) => wantingOf(text(seed, 5_000)));
    for (const prompt of prompts) world.serve(prompt, "a");
    world.serve(prompts[0]!, "a"); // says 0 cached, as one that never says it
    expect(world.expected(prompts[1]!, "a")).toBeLessThan(60); // the block that is not full
    world.serve(prompts[0]!, "a", 4_900);
    world.serve(prompts[0]!, "a", 0);
    expect(world.expected(prompts[1]!, "a")).toBeGreaterThan(70);
    expect(world.expected(prompts[0]!, "a")).toBeLessThan(60); // what it has read just now
  });
  test("that reads faster is known by its first tokens, and gets more", () => {
    const world = new World(["fast", "slow"]);
    for (let n = 0; n < 40; n++) {
      for (const [name, pace] of [
        ["fast", 64],
        ["slow", 8],
      ] as const) {
        const wanting = wantingOf(text(n, 5_000) + name);
        const sent = world.placement.sent(wanting, name, world.now);
        world.now += 20 + wanting.prompt.bytes / pace;
        world.placement.began(sent, world.now);
        world.placement.ended(sent, answered(wanting), (world.now += 2_000));
      }
    }
    const prompt = wantingOf(text(777, 8_000));
    expect(world.expected(prompt, "slow") / world.expected(prompt, "fast")).toBeGreaterThan(5);
    expect(world.chosen(prompt)).toBe("fast");
  });
  test("is given up for what it still has to read, and that shrinks as time goes by", () => {
    const world = new World(["a", "b"]);
    world.placement.sent(wantingOf(text(1, 20_000)), "a", 0);
    const small = wantingOf("hi");
    expect(world.expected(small, "a")).toBeGreaterThan(3_000);
    world.now = 2_000;
    expect(world.expected(small, "a")).toBeLessThan(2_100);
    world.now = 60_000;
    expect(world.expected(small, "a")).toBeLessThan(10);
  });
});

test("an engine that keeps less than was thought is known to, and one that says how much it keeps is believed", () => {
  const world = new World(["a"]);
  world.placement.know("a", "for all", 10_000);
  for (let seed = 1; seed <= 4; seed++) world.serve(wantingOf(text(seed, 4_000)), "a", 1);
  expect(world.expected(wantingOf(text(1, 4_000)), "a")).toBeGreaterThan(100);
  expect(world.expected(wantingOf(text(4, 4_000)), "a")).toBeLessThan(20);
  const learns = new World(["a"]);
  for (let round = 0; round < 40; round++)
    for (let seed = 1; seed <= 6; seed++) learns.serve(wantingOf(text(seed, 4_000)), "a", 600);
  expect(learns.expected(wantingOf(text(1, 4_000)), "a")).toBeGreaterThan(50);
  expect(learns.placement.counts.expectedTokens).toBeGreaterThan(learns.placement.counts.reportedTokens);
});

describe("in line", () => {
  const placeOf = (wanting: Wanting, log: string[]): Place => ({
    ...wanting,
    member: "",
    priority: "standard",
    excluded: new Set(),
    granted: (node) => void log.push(node),
    refused: (cause) => void log.push(cause),
  });
  const warmAndFull = () => {
    const placement = new Placement();
    const queue = new SlotQueue(60_000, 100, placement);
    queue.configure(["a", "b"].map((name) => ({ name, slots: 1, serves: () => true })));
    const long = wantingOf(text(1, 80_000));
    const log: string[] = [];
    const sent = placement.sent(long, "a", 0);
    placement.began(sent, 13_000);
    placement.ended(sent, answered(long), 13_500);
    const first = placeOf(long, log);
    queue.enter(first, 14_000);
    expect(log).toEqual(["a"]);
    return { queue, log, long, first };
  };
  test("a long prompt waits for the node that has it, while another is free, and gets that", () => {
    const { queue, log, long, first } = warmAndFull();
    queue.enter(placeOf(long, log), 14_100);
    queue.check();
    expect([log, queue.length]).toEqual([["a"], 1]);
    const short = placeOf(wantingOf("hi", 2), log);
    queue.enter(short, 14_150);
    expect(log).toEqual(["a", "b"]);
    queue.ended(short, null, 14_200);
    expect(log).toEqual(["a", "b"]);
    queue.ended(first, null, 14_300);
    expect(log).toEqual(["a", "b", "a"]);
  });
  test("no longer than that saves", () => {
    const { queue, log, long } = warmAndFull();
    queue.enter(placeOf(long, log), 14_100);
    const until = queue.nextExpiry()!;
    expect(until).toBeGreaterThan(14_100);
    expect(until).toBeLessThan(14_100 + 30_000);
    queue.expire(until);
    queue.check();
    expect(log).toEqual(["a", "b"]);
  });
  test.each([[[1]], [[1, 2]], [[1, 2, 3]]])(
    "nobody waits for longer than long prompts should be read for, where no first token comes: of accounts %j",
    (accounts) => {
      const queue = new SlotQueue(900_000, 100, new Placement());
      queue.configure([{ name: "a", slots: 8, serves: () => true }]);
      const hung: string[] = [];
      for (const account of accounts) queue.enter(placeOf(wantingOf(text(account, 20_000), account), hung), 0);
      while (hung.length < accounts.length) queue.expire(queue.nextExpiry()!);
      const log: string[] = [];
      for (const account of accounts) queue.enter(placeOf(wantingOf("hi", account), log), 1);
      expect(log).toEqual([]);
      let now = 1;
      while (log.length < accounts.length) queue.expire((now = queue.nextExpiry()!));
      expect(now).toBeWithin(1_000, 4_000 + 5_000 * accounts.length);
      expect(queue.nextExpiry()).toBeNull();
      queue.check();
    },
  );
  test("who leaves while it waits for its node leaves nothing behind", () => {
    const { queue, log, long } = warmAndFull();
    const place = placeOf(long, log);
    queue.enter(place, 14_100);
    expect(queue.leave(place)).toBe(true);
    queue.check();
    expect([queue.nextExpiry(), queue.length]).toEqual([null, 0]);
  });
});

test("in a random world a prompt of which some node has a part goes to one of those, and what is expected is what they have", () => {
  const random = randomOf(7);
  const world = new World(["a", "b", "c", "d"]);
  const had = new Map(world.names.map((name) => [name, new Set<string>()]));
  let [wrong, all] = [0, 0];
  for (let step = 0; step < 800; step++) {
    const branch = Math.floor(random() * 30);
    const depth = 1 + Math.floor(random() * 8);
    const parts = Array.from({ length: depth }, (_none, at) => text(at < 2 ? at : 100 * branch + at, 300));
    const wanting = wantingOf(parts.join(""));
    const node = world.chosen(wanting);
    const prefixes = parts.map((_part, at) => parts.slice(0, at + 1).join(""));
    const cached = prefixes.findLastIndex((prefix) => had.get(node)!.has(prefix)) + 1;
    all++;
    const warm = world.names.filter((name) => prefixes.some((prefix) => had.get(name)!.has(prefix)));
    if (warm.length > 0 && !warm.includes(node)) wrong++;
    world.serve(wanting, node, cached * 300);
    for (const prefix of prefixes) had.get(node)!.add(prefix);
    if (step % 200 === 199) {
      const lost = world.names[Math.floor(random() * 4)]!;
      had.get(lost)!.clear();
      world.placement.cold(lost);
    }
  }
  expect([wrong, all]).toEqual([0, 800]);
  const { expectedTokens, reportedTokens } = world.placement.counts;
  expect(expectedTokens / reportedTokens).toBeWithin(0.8, 1.1);
});
