// Shares of the nodes' work: by weight, long prompts beside short ones, within an account, and what nobody may wait for.
import { describe, expect, test } from "bun:test";
import type { Priority } from "../../../src/core/priority.ts";
import { noBlocks } from "../../../src/nodes/queue/prompt-blocks.ts";
import { type Chooser, type Place, type SentWork, SlotQueue } from "../../../src/nodes/queue/slot-queue.ts";
import { randomOf } from "../../fixtures/random.ts";

type Work = Readonly<{ prompt: number; answer: number }>;

class Request implements Place {
  readonly modelId = "m";
  readonly prompt = noBlocks;
  readonly excluded: ReadonlySet<string> = new Set();
  node: string | null = null;
  constructor(
    readonly world: World,
    readonly account: number,
    readonly work: Work,
    readonly member = "",
    readonly priority: Priority = "standard",
    readonly own?: string,
  ) {}
  granted(node: string): void {
    this.node = node;
    this.world.running.push(this);
  }
  refused(cause: string): void {
    throw new Error(cause);
  }
}

/** Engines that read a unit of work a ms, one prompt after the other, and write answers beside that. */
class World {
  readonly queue: SlotQueue;
  running: Request[] = [];
  now = 0;
  readonly had = new Map<string, number>();
  /** By node: what is unread there, in the order in which it came. */
  readonly #unread = new Map<string, Request[]>();

  constructor(
    slots: number,
    weights: Readonly<Record<number, number>> = {},
    nodes: readonly string[] = ["a"],
    placesMax = 100_000,
    warm: string | null = null,
  ) {
    const chooser: Chooser = {
      choose: (_wanting, candidates) => {
        const free = candidates.filter(({ busy, node }) => busy < node.slots);
        const unread = ({ node }: (typeof free)[number]) => this.unreadOf(node.name).length;
        const least =
          free.find(({ node }) => node.name === warm) ??
          free.reduce((least, one) => (unread(one) < unread(least) ? one : least));
        return { best: least, free: least, savedMs: 0 };
      },
      unreadMs: (node) => this.unreadOf(node).reduce((sum, { work }) => sum + work.prompt, 0),
      readMs: (wanting) => (wanting as Request).work.prompt,
      expectedMs: (_wanting, { node }) => this.unreadOf(node.name).reduce((sum, { work }) => sum + work.prompt, 0),
      // Nobody knows how long an answer will be.
      sent: (place, node) => {
        const request = place as Request;
        this.unreadOf(node).push(request);
        return { work: request.work.prompt + 100, unreadWork: request.work.prompt };
      },
      began() {},
      ended: (sent: SentWork) => sent.unreadWork + this.#ending!.work.answer,
    };
    this.queue = new SlotQueue(1_000_000, placesMax, chooser, (account) => weights[account] ?? 1);
    this.queue.configure(nodes.map((name) => ({ name, slots, serves: () => true })));
  }

  #ending: Request | null = null;

  unreadOf(node: string): Request[] {
    let unread = this.#unread.get(node);
    if (unread === undefined) this.#unread.set(node, (unread = []));
    return unread;
  }

  ask(account: number, work: Work, member = "", priority: Priority = "standard", own?: string): Request {
    const request = new Request(this, account, work, member, priority, own);
    this.queue.enter(request, this.now);
    this.queue.check();
    return request;
  }

  /** The node reads the prompt that came first. */
  read(node = "a"): Request | undefined {
    const request = this.unreadOf(node).shift();
    if (request === undefined) return undefined;
    this.now += request.work.prompt;
    this.queue.began(request, this.now);
    this.queue.check();
    return request;
  }

  end(request: Request, isChecked = true): void {
    const unread = this.unreadOf(request.node!);
    if (unread.includes(request)) unread.splice(unread.indexOf(request), 1);
    this.running.splice(this.running.indexOf(request), 1);
    for (const key of [`${request.account}`, `${request.account} ${request.member}`])
      this.had.set(key, (this.had.get(key) ?? 0) + request.work.prompt + request.work.answer);
    this.#ending = request;
    this.queue.ended(request, null, this.now);
    if (isChecked) this.queue.check();
  }
}

const long: Work = { prompt: 20_000, answer: 400 };
const short: Work = { prompt: 50, answer: 800 };

describe("accounts that always wait", () => {
  test.each([[1], [8], [64]])(
    "with %i slots, have the work that their weights say, whatever their requests are",
    (slots) => {
      const world = new World(slots, { 1: 1, 2: 2, 3: 4 });
      const kinds: Record<number, Work> = { 1: short, 2: long, 3: { prompt: 2_000, answer: 2_000 } };
      const ask = (account: number) => world.ask(account, kinds[account]!);
      for (let round = 0; round < 4 * slots; round++) for (const account of [1, 2, 3]) ask(account);
      const random = randomOf(slots);
      for (let step = 0; step < 30_000; step++) {
        world.read();
        const read = world.running.filter((request) => !world.unreadOf("a").includes(request));
        if (read.length === 0) continue;
        const done = read[Math.floor(random() * read.length)]!;
        world.end(done);
        ask(done.account);
      }
      const shares = [1, 2, 3].map((account) => world.had.get(`${account}`)! / world.had.get("1")!);
      for (const [at, weight] of [1, 2, 4].entries()) expect(shares[at]! / weight).toBeWithin(0.95, 1.05);
    },
  );

  test("differ by no more than what was under way, at any moment", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = randomOf(seed);
      const world = new World(4);
      const work = (): Work => ({
        prompt: Math.floor(1 + random() ** 4 * 20_000),
        answer: Math.floor(random() * 3_000),
      });
      const most = 23_000;
      const accounts = [1, 2, 3, 4, 5];
      for (const account of accounts) for (let n = 0; n < 8; n++) world.ask(account, work());
      for (let step = 0; step < 2_000; step++) {
        world.read();
        const done = world.running[Math.floor(random() * world.running.length)]!;
        world.end(done);
        world.ask(done.account, work());
        const had = accounts.map((account) => world.had.get(`${account}`) ?? 0);
        expect(Math.max(...had) - Math.min(...had)).toBeLessThan(2 * (4 + 1) * most);
      }
    }
  });
});

test("within an account those whom it serves share as accounts do", () => {
  const world = new World(2);
  for (let n = 0; n < 40; n++) world.ask(1, long, "book");
  for (let n = 0; n < 400; n++) world.ask(1, short, "chat");
  for (let n = 0; n < 300; n++) {
    world.read();
    world.end(world.running[0]!);
  }
  expect(world.had.get("1 chat")! / world.had.get("1 book")!).toBeWithin(0.8, 1.2);
});

describe("idleness", () => {
  test("earns nothing: who comes takes turns from then on", () => {
    const world = new World(1);
    for (let n = 0; n < 100; n++) world.ask(1, short);
    for (let n = 0; n < 50; n++) {
      world.read();
      world.end(world.running[0]!);
    }
    for (let n = 0; n < 50; n++) world.ask(2, short);
    for (let n = 0; n < 20; n++) {
      world.read();
      world.end(world.running[0]!);
    }
    expect(world.had.get("2")! / short.answer).toBeWithin(8, 12);
  });
  test("owes nothing: who had all of it alone does not pay for that later", () => {
    const world = new World(1);
    world.ask(1, long);
    for (let n = 0; n < 200; n++) {
      world.ask(1, long);
      world.read();
      world.end(world.running[0]!);
    }
    const before = world.had.get("1")!;
    for (let n = 0; n < 50; n++) {
      world.ask(2, long);
      world.ask(1, long);
    }
    for (let n = 0; n < 40; n++) {
      world.read();
      world.end(world.running[0]!);
    }
    expect((world.had.get("1")! - before) / world.had.get("2")!).toBeWithin(0.8, 1.25);
  });
});

describe("what is unread on a node", () => {
  test("keeps back who has most of it, and lets in who has little at once", () => {
    const world = new World(100);
    world.ask(2, short);
    for (let n = 0; n < 50; n++) world.ask(1, { prompt: 400, answer: 100 });
    const sent = world.running.filter(({ account }) => account === 1).length;
    expect(sent).toBeWithin(1, 4);
    expect(world.ask(3, short).node).toBe("a");
    for (let n = 0; n < 50; n++) world.read();
    expect(world.running.filter(({ account }) => account === 1).length).toBeGreaterThan(40);
  });
  test("is no reason to wait for long where an account is alone, and none for an idle node", () => {
    const world = new World(100, {}, ["a", "b"]);
    expect(world.ask(1, { prompt: 90_000, answer: 1 }).node).toBe("a");
    expect(world.ask(1, { prompt: 90_000, answer: 1 }).node).toBe("b");
    const third = world.ask(1, short);
    expect(third.node).toBeNull();
    world.read("b");
    expect(third.node).not.toBeNull();
  });
});

describe("a light user beside one who runs many", () => {
  const nodes = ["a", "b", "c", "d"];
  const busiest = (world: World): string =>
    nodes.toSorted((one, other) => world.unreadOf(other).length - world.unreadOf(one).length)[0]!;

  const full = (priority: Priority): World => {
    const world = new World(100, {}, nodes);
    world.ask(2, { prompt: 1, answer: 10 });
    for (let n = 0; n < 200; n++) world.ask(1, { prompt: 100, answer: 1_000 }, "", priority);
    for (let n = 0; n < 80; n++) world.read(busiest(world));
    return world;
  };
  const isQuiet = (world: World) => (node: string) => world.unreadOf(node).length === 0;

  test.each([["standard"], ["bulk"]] as const)("finds a node that reads nothing, beside %s", (priority) => {
    const world = full(priority);
    let others = 0;
    for (let n = 0; n < 40; n++) {
      if (n % 4 === 0) world.ask(2, { prompt: 70, answer: 10 }, `${n}`);
      if (world.read(busiest(world))?.account === 1) others++;
      if (n > 8) expect(nodes.some(isQuiet(world))).toBe(true);
    }
    expect(others).toBeGreaterThan(20);
  });

  test("finds one again after seconds without one", () => {
    const world = full("standard");
    const small = world.ask(2, { prompt: 70, answer: 10 });
    while (!nodes.some(isQuiet(world))) world.read(busiest(world));
    while (world.unreadOf(small.node!).includes(small)) world.read(small.node!);
    world.end(small);
    for (let n = 0; n < 10; n++) {
      world.now += 2_000;
      world.read(busiest(world));
      expect(nodes.some(isQuiet(world))).toBe(true);
    }
    world.now += 11_000;
    world.queue.expire(world.now);
    expect(nodes.some(isQuiet(world))).toBe(false);
  });

  test("has none kept free when it has gone, and for 2 s at most where nodes hang", () => {
    const world = full("standard");
    world.ask(2, { prompt: 70, answer: 10 });
    while (!nodes.some(isQuiet(world))) world.read(busiest(world));
    world.now += 1_000;
    world.queue.expire(world.now);
    expect(nodes.some(isQuiet(world))).toBe(true);
    world.now += 1_500;
    world.queue.expire(world.now);
    expect(nodes.some(isQuiet(world))).toBe(false);
  });
});

describe("people whom an account serves", () => {
  const prompt: Work = { prompt: 50, answer: 10 };

  test("leave room for each other on every node, also on the one that knows their prompts", () => {
    const world = new World(100, {}, ["a"], undefined, "warm");
    const [first] = [world.ask(1, { prompt: 5, answer: 1 }, "calm"), world.ask(1, { prompt: 5, answer: 1 }, "calm")];
    world.queue.configure(["a", "warm"].map((name) => ({ name, slots: 100, serves: () => true })));
    for (let n = 0; n < 20; n++) world.ask(1, prompt, "greedy");
    expect(world.unreadOf("warm").length).toBe(2);
    world.end(first); // "a" has room, but those who wait would rather have the other
    expect(world.unreadOf("warm").length).toBe(2);
  });

  test("hold back none of its requests where it has no other person", () => {
    const world = new World(100);
    for (let n = 0; n < 20; n++) world.ask(1, prompt, "one");
    expect(world.running.length).toBe(20);
  });
});

describe("the keys of a person", () => {
  const prompt: Work = { prompt: 100, answer: 400 };
  const ended = (world: World): Request => {
    world.read();
    const done = world.running[0]!;
    world.end(done);
    return done;
  };

  test("take turns: 500 requests of one delay another by a turn, and nobody beside the person at all", () => {
    const world = new World(1);
    for (let n = 0; n < 500; n++) world.ask(1, prompt, "ada", "standard", "key 1");
    for (let n = 0; n < 100; n++) world.ask(1, prompt, "bob", "standard", "key 9");
    for (let n = 0; n < 8; n++) ended(world); // the keys of ada had their turns long before
    const own = world.ask(1, prompt, "ada", "standard", "key 2");
    expect(world.queue.forecastOf(own, world.now)!.position).toBe(4); // one of key 1, and bob's two
    const before: string[] = [];
    while (own.node === null) before.push(ended(world).own!);
    expect(before.filter((key) => key === "key 1").length).toBeWithin(1, 2);
    for (let n = 0; n < 60; n++) world.ask(1, prompt, "ada", "standard", "key 2");
    const had = { "key 1": 0, "key 2": 0, "key 9": 0 };
    for (let n = 0; n < 100; n++) had[ended(world).own as keyof typeof had]++;
    expect(had["key 9"]).toBeWithin(48, 52);
    expect(had["key 1"] / had["key 2"]).toBeWithin(0.85, 1.15);
    world.queue.check();
  });

  test("leave room for each other where the person is alone", () => {
    const world = new World(100);
    world.ask(1, prompt, "ada", "standard", "key 2");
    for (let n = 0; n < 20; n++) world.ask(1, prompt, "ada", "standard", "key 1");
    expect(world.running.length).toBeLessThan(4);
    expect(world.ask(1, prompt, "ada", "standard", "key 3").node).toBe("a");
  });
});

describe("who is alone on the nodes", () => {
  const much: Work = { prompt: 800, answer: 1 };
  test("is nobody beside an account that comes back", () => {
    const world = new World(100);
    const before = world.ask(2, short);
    world.read();
    world.end(before);
    world.ask(1, much);
    expect(world.ask(2, short).node).toBe("a");
    expect(world.ask(1, short, "another").node).toBeNull();
  });
  test("is an account still after others were refused", () => {
    const world = new World(1, {}, ["a"], 1);
    world.ask(1, short);
    world.ask(1, short); // waits
    expect(() => world.ask(2, short)).toThrow("full");
    world.queue.setSlots("a", 100, 0);
    world.ask(1, much);
    expect(world.ask(1, short, "another").node).toBe("a");
  });
});

test("100,000 accounts in line cost an event no more than a few times what 100 cost", () => {
  const cost = (accounts: number): number => {
    const world = new World(1);
    for (let account = 0; account < accounts; account++) world.queue.enter(new Request(world, account, short), 0);
    const before = process.threadCpuUsage();
    for (let event = 0; event < 3_000; event++) {
      world.end(world.running[0]!, false);
      world.queue.enter(new Request(world, event % accounts, short), 0);
    }
    const { user, system } = process.threadCpuUsage(before);
    return Math.max(user + system, 1_000);
  };
  cost(100);
  expect(cost(100_000) / cost(100)).toBeLessThan(20);
});

describe("priorities", () => {
  const end = (world: World): Request => {
    world.read();
    const done = world.running[0]!;
    world.end(done);
    return done;
  };
  test("the most urgent is next, and each gets a part, so that all end", () => {
    const world = new World(1);
    world.ask(9, short);
    for (let n = 0; n < 400; n++)
      for (const priority of ["bulk", "standard", "interactive"] as const) world.ask(1, short, priority, priority);
    for (let n = 0; n < 350; n++) end(world);
    const [interactive, standard, bulk] = ["interactive", "standard", "bulk"].map((name) =>
      world.had.get(`1 ${name}`)!,
    );
    const all = interactive! + standard! + bulk!;
    expect(interactive! / all).toBeWithin(0.85, 0.93);
    expect(standard! / all).toBeWithin(0.035, 0.08);
    expect(bulk! / all).toBeWithin(0.035, 0.08);
  });
  test("bulk leaves a quarter of the slots to others, and has all the rest where nobody else asks", () => {
    const world = new World(8);
    for (let n = 0; n < 20; n++) world.ask(1, { prompt: 1, answer: 1_000 }, "", "bulk");
    expect(world.running.length).toBe(6);
    expect(world.ask(2, short).node).toBe("a");
    expect(world.ask(1, short, "", "interactive").node).toBe("a");
    for (let n = 0; n < 25; n++) {
      if (world.running.length > 0) end(world);
    }
    expect(world.running.length).toBe(0);
    const narrow = new World(1);
    narrow.ask(1, short, "", "bulk");
    expect(narrow.running.length).toBe(1);
  });
  test("bulk is read a little at a time, so that who comes waits for little", () => {
    const world = new World(100);
    for (let n = 0; n < 20; n++) world.ask(1, { prompt: 400, answer: 1 }, "", "bulk");
    expect(world.running.length).toBe(1);
    world.read();
    expect(world.running.length).toBe(2);
    expect(world.ask(2, short).node).toBe("a");
  });
  test("who waits with less urgency does not hold up who has more, nor is overtaken by as much", () => {
    const world = new World(2);
    world.ask(1, short);
    world.ask(1, short);
    const waits = [
      world.ask(2, short, "", "bulk"),
      world.ask(3, short, "", "standard"),
      world.ask(4, short, "", "interactive"),
      world.ask(5, short, "", "interactive"),
    ];
    const order: number[] = [];
    for (let n = 0; n < 6; n++) {
      end(world);
      for (const one of waits) if (one.node !== null && !order.includes(one.account)) order.push(one.account);
    }
    expect(order).toEqual([4, 5, 3, 2]);
  });
});

describe("a forecast", () => {
  const prompt: Work = { prompt: 100, answer: 10 };
  const entrant = (account: number, member = "", priority: Priority = "standard") => {
    const { modelId, prompt: blocks, excluded } = new Request(new World(1), account, prompt, member, priority);
    return { modelId, account, member, priority, prompt: blocks, excluded };
  };
  const positionOf = (world: World, ...who: Parameters<typeof entrant>) => {
    const forecast = world.queue.forecast(entrant(...who), world.now);
    return typeof forecast === "string" ? forecast : forecast.position;
  };

  test("is 0 beside a free slot, and why where no node serves the model", () => {
    const world = new World(2);
    expect(positionOf(world, 1)).toBe(0);
    expect(world.queue.forecast({ ...entrant(1), excluded: new Set(["a"]) }, 0)).toBe("away");
  });

  test("counts a turn of each other account for each of its own requests, and what is more urgent as a whole", () => {
    const world = new World(1);
    world.ask(9, prompt);
    for (let n = 0; n < 5; n++) world.ask(1, prompt);
    expect(positionOf(world, 1)).toBe(6);
    expect(positionOf(world, 2)).toBe(2);
    world.ask(2, prompt);
    expect(positionOf(world, 2)).toBe(4); // its own, and two of the other
    for (let n = 0; n < 3; n++) world.ask(3, prompt, "", "interactive");
    expect(positionOf(world, 2)).toBe(7);
    expect(positionOf(world, 2, "", "interactive")).toBe(2);
    expect(positionOf(world, 4, "", "bulk")).toBe(10);
  });

  test("counts a turn of each other end user within an account", () => {
    const world = new World(1);
    world.ask(9, prompt);
    for (let n = 0; n < 5; n++) world.ask(1, prompt, "greedy");
    expect(positionOf(world, 1, "calm")).toBe(2);
    expect(positionOf(world, 1, "greedy")).toBe(6);
  });

  test("learns how often the node takes the next, and changes nothing", () => {
    const world = new World(1);
    const first = world.ask(9, prompt);
    for (let n = 0; n < 6; n++) world.ask(n, prompt);
    world.end(first);
    for (let n = 0; n < 3; n++) {
      world.now += 1_000;
      world.end(world.running[0]!);
    }
    const forecast = world.queue.forecast(entrant(7), world.now);
    if (typeof forecast === "string") throw new Error(forecast);
    expect(forecast.position).toBe(3);
    expect(forecast.waitMs).toBe(3_000);
    expect(world.queue.length).toBe(2);
    world.queue.check();
  });
});
