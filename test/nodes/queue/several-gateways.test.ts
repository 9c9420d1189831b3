// Shares of weights over several gateways, each of which has a line of its own.
import { describe, expect, test } from "bun:test";
import { shareOf, slotsOf } from "../../../src/store/postgres/shares.ts";
import { randomOf } from "../../fixtures/random.ts";
import { World } from "./several-gateways.ts";

/** As PostgreSQL does for them: slots four times a second, work each second. `tells`: whether they say what they served. */
function exchanged(world: World, untilMs: number, msOf: (account: number) => number, tells = true): void {
  const granted = world.gateways.map(() => 0);
  for (let step = 0; world.now < untilMs; step++) {
    for (const [own, { pool }] of world.gateways.entries()) {
      const rows = world.gateways.map((gateway, at) => ({ ...gateway.pool.needs().get("n")!, granted: granted[at]! }));
      const share = shareOf(rows[own]!.slots, rows, own);
      granted[own] = share.granted;
      pool.share(new Map([["n", slotsOf(share)]]));
    }
    if (tells && step % 4 === 0) {
      for (const from of world.gateways) {
        const served = from.pool.takeServed();
        for (const to of world.gateways) if (to !== from) to.pool.servedElsewhere(served);
      }
    }
    world.run(world.now + 250, msOf);
  }
}

describe("an account at two gateways beside one that is at one of them", () => {
  /** What the second had, in parts of what the first had for its weight. */
  function partsOf(weights: Readonly<Record<number, number>>, seed: number, tells = true): number {
    const world = new World(2, 16, weights);
    const random = randomOf(seed);
    const msOf = (account: number) => Math.ceil(random() * (account === 1 ? 300 : 1_500));
    for (let n = 0; n < 40; n++) {
      for (const gateway of world.gateways) gateway.ask(1, msOf(1));
      world.gateways[0]!.ask(2, msOf(2));
    }
    exchanged(world, 60_000, msOf, tells);
    return world.had.get(2)! / weights[2]! / (world.had.get(1)! / weights[1]!);
  }

  test.each([[{ 1: 1, 2: 1 }], [{ 1: 1, 2: 2 }], [{ 1: 1, 2: 4 }], [{ 1: 4, 2: 1 }]])(
    "has what its weight says, not twice that: %j",
    (weights) => {
      for (const seed of [1, 2, 3]) expect(partsOf(weights, seed)).toBeWithin(0.95, 1.05);
    },
  );

  test("would have more if gateways did not tell each other what they served", () => {
    expect(partsOf({ 1: 1, 2: 1 }, 1, false)).toBeLessThan(0.6);
  });
});

test("three accounts at three gateways, each at another two of them, share by weight", () => {
  const weights = { 1: 1, 2: 2, 3: 4 };
  const world = new World(3, 24, weights);
  const random = randomOf(1);
  const msOf = () => Math.ceil(random() * 800);
  for (const [at, gateway] of world.gateways.entries())
    for (const account of [1, 2, 3]) if (account !== at + 1) for (let n = 0; n < 60; n++) gateway.ask(account, msOf());
  exchanged(world, 60_000, msOf);
  const shares = [1, 2, 3].map((account) => world.had.get(account)! / world.had.get(1)!);
  for (const [at, weight] of [1, 2, 4].entries()) expect(shares[at]! / weight).toBeWithin(0.95, 1.05);
});

test("who was alone elsewhere owes nothing for it here, and a share that is unknown here gets none", () => {
  const world = new World(1, 1);
  const [here] = world.gateways;
  here!.pool.share(new Map([["n", 1]]));
  here!.ask(1, 100);
  here!.queue.servedElsewhere({ node: "n", account: 1, work: 1e6 }); // no one waits
  here!.queue.servedElsewhere({ node: "n", account: 7, work: 1e6 });
  for (let n = 0; n < 20; n++) for (const account of [1, 2, 7]) here!.ask(account, 100);
  world.run(6_000, () => 100);
  for (const account of [2, 7]) expect(world.had.get(account)! / world.had.get(1)!).toBeWithin(0.85, 1.15);
});

test("an end user or a class that is served elsewhere gets less here", () => {
  const served = (elsewhere: boolean) => {
    const world = new World(2, 2);
    const [here, there] = world.gateways;
    for (const { pool } of world.gateways) pool.share(new Map([["n", 1]]));
    for (let n = 0; n < 10; n++) {
      for (const member of ["ada", "bob"]) here!.ask(1, 100, member);
      here!.ask(2, 100, "", "bulk");
      there!.ask(1, 100, "ada");
    }
    exchanged(world, 60_000, () => 100, elsewhere);
    return world.hadOf;
  };
  const [alone, told] = [served(false), served(true)];
  expect(alone.get("ada standard")! / alone.get("bob standard")!).toBeGreaterThan(2.5);
  expect(told.get("ada standard")! / told.get("bob standard")!).toBeWithin(1, 1.6);
  const bulk = (of: ReadonlyMap<string, number>) => of.get(" bulk")! / of.values().reduce((sum, ms) => sum + ms, 0);
  expect(bulk(alone)).toBeWithin(0.02, 0.03); // its twentieth of one gateway's work
  expect(bulk(told)).toBeWithin(0.045, 0.055);
});

test("work is told once, with its corrections, and not before someone asks for it", () => {
  const world = new World(1, 2);
  const [gateway] = world.gateways;
  const { queue, pool } = gateway!;
  pool.share(new Map([["n", 2]]));
  gateway!.ask(1, 100);
  expect([...queue.takeServed()]).toEqual([]);
  gateway!.ask(2, 300);
  expect([...queue.takeServed()]).toMatchObject([{ node: "n", account: 2, priority: "standard", work: 300 }]);
  expect([...queue.takeServed()]).toEqual([]);
});
