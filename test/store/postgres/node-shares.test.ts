// Shares of a node's slots on a real PostgreSQL: gateways that begin at once, one that leaves, one that is gone.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import type { NodeWork } from "../../../src/core/node-work.ts";
import { NodeShares } from "../../../src/store/postgres/node-shares.ts";
import { systemPace } from "../../../src/store/postgres/pace.ts";
import type { NodeNeed } from "../../../src/store/postgres/shares.ts";
import { type Databases, startDatabases } from "../../fixtures/postgres.ts";
import { randomOf } from "../../fixtures/random.ts";
import { World } from "../../nodes/queue/several-gateways.ts";

const idle: NodeNeed = { busy: 0, waiting: 0, accounts: 0, waitedMs: 0 };

describe("shares of nodes", () => {
  let postgres: Databases;
  beforeAll(async () => {
    postgres = await startDatabases();
  }, 60_000);
  afterAll(() => postgres[Symbol.asyncDispose]());

  async function gatewaysOn(name: string, slots: Readonly<Record<string, number>>, count: number) {
    const url = await postgres.database(name);
    const server = new PostgresServer(url);
    const connection = await server.connect();
    await migrate(connection);
    connection.close();
    const client = new Bun.SQL({ url, max: 1 });
    const gateways = [];
    for (let index = 0; index < count; index += 1) {
      const lane = `gateway ${index}/"life"`;
      await client.unsafe("INSERT INTO lanes VALUES ($1, 'g', 0, now(), NULL, 't', '')", [lane]);
      const gateway = { lane, need: { ...idle }, has: new Map<string, number>(), shares: null! as NodeShares };
      const pool = {
        needs: () => new Map(Object.entries(slots).map(([node, most]) => [node, { slots: most, ...gateway.need }])),
        share: (given: ReadonlyMap<string, number>) => void (gateway.has = new Map(given)),
      };
      const pace = { ...systemPace, after: () => () => {} }; // each exchange is the test's
      gateway.shares = new NodeShares({ server, pool, lane: () => gateway.lane, pace, log: () => {} });
      gateways.push(gateway);
    }
    return { gateways, client };
  }

  test("gateways that begin at once never have more than there is, and all of it a moment later", async () => {
    const { gateways, client } = await gatewaysOn("together", { 'a"b\\': 16, b: 1 }, 3);
    const sum = (node: string) => gateways.reduce((all, { has }) => all + (has.get(node) ?? 0), 0);
    await Promise.all(gateways.map(({ shares }) => shares.exchange()));
    expect([sum('a"b\\') <= 16, sum("b")]).toEqual([true, 1]);
    for (let round = 0; round < 2; round += 1) for (const { shares } of gateways) await shares.exchange();
    expect(gateways.map(({ has }) => has.get('a"b\\'))).toEqual([6, 5, 5]);

    // One has much to do: the others give back, then it has what they left.
    gateways[1]!.need = { busy: 5, waiting: 40, accounts: 9, waitedMs: 200.25 };
    for (let round = 0; round < 2; round += 1) for (const { shares } of gateways) await shares.exchange();
    expect(gateways.map(({ has }) => has.get('a"b\\'))).toEqual([0, 16, 0]);

    // Its share goes to the others when it leaves, and when it is gone.
    await gateways[0]!.shares.close();
    await client.unsafe("UPDATE lanes SET gone_at = now() WHERE id = $1", [gateways[1]!.lane]);
    await gateways[2]!.shares.exchange();
    expect([gateways[2]!.has.get('a"b\\'), gateways[2]!.has.get("b")]).toEqual([16, 1]);
    await client.close();
  });

  test("a gateway that comes back under another life counts what runs", async () => {
    const { gateways, client } = await gatewaysOn("again", { a: 4 }, 2);
    gateways[0]!.need = { busy: 3, waiting: 0, accounts: 1, waitedMs: 0 };
    await gateways[0]!.shares.exchange();
    await gateways[1]!.shares.exchange();
    expect(gateways.map(({ has }) => has.get("a"))).toEqual([4, 0]);
    await gateways[0]!.shares.exchange();
    await gateways[1]!.shares.exchange();
    expect(gateways[1]!.has.get("a")).toBe(0); // 3 run, and the first has the odd one
    await client.close();
  });

  test("an account at two gateways has what its weight says, because each tells the other what it served", async () => {
    const url = await postgres.database("work");
    const server = new PostgresServer(url);
    const connection = await server.connect();
    await migrate(connection);
    connection.close();
    const client = new Bun.SQL({ url, max: 1 });
    const weights = { 1: 1, 2: 2 };
    const world = new World(2, 16, weights);
    const pace = { ...systemPace, monotonic: () => world.now, after: () => () => {} };
    const exchanges = world.gateways.map(({ pool }, index) => {
      const lane = `gateway ${index}`;
      return new NodeShares({ server, pool, lane: () => lane, pace, log: (_, message) => expect(message).toBe("") });
    });
    for (const index of [0, 1])
      await client.unsafe("INSERT INTO lanes VALUES ($1, 'g', 0, now(), NULL, 't', '')", [`gateway ${index}`]);
    const random = randomOf(1);
    const msOf = () => Math.ceil(random() * 1_000);
    for (let n = 0; n < 40; n++) {
      for (const gateway of world.gateways) gateway.ask(1, msOf());
      world.gateways[0]!.ask(2, msOf());
    }
    for (let step = 0; step < 240; step++) {
      for (const exchange of exchanges) await exchange.exchange();
      world.run(world.now + 250, msOf);
    }
    expect(world.had.get(2)! / world.had.get(1)!).toBeWithin(1.9, 2.1);
    const told = () => client.unsafe("SELECT lane, number, work FROM served_work ORDER BY lane, number");
    expect((await told()).length).toBeWithin(2, 121);

    // A gateway that begins hears no more than a moment of it, each row once, and old rows go.
    const heard: NodeWork[] = [];
    const beginner = () =>
      new NodeShares({
        server,
        pool: {
          needs: () => new Map(),
          share: () => {},
          takeServed: () => [{ node: "n", account: 9, work: 1.4 }],
          servedElsewhere: (served) => void heard.push(...served),
        },
        lane: () => "beginner",
        pace,
        log: () => {},
      });
    await client.unsafe("UPDATE served_work SET at = now() - interval '1 minute'");
    const work: readonly NodeWork[] = [
      { node: "n", account: 3, work: 40 },
      { node: "m", account: 4, work: -5 },
    ];
    await client.unsafe("INSERT INTO served_work VALUES ('gateway 0', 1000, now(), $1)", [JSON.stringify(work)]);
    const begins = beginner();
    await begins.exchange();
    world.now += 1_000;
    await begins.exchange();
    expect(heard).toEqual([...work]);
    expect((await told()).map(({ lane, number, work }: Record<string, unknown>) => [lane, number, work])).toEqual([
      ["beginner", 1, '[{"node":"n","account":9,"work":1}]'],
      ["beginner", 2, '[{"node":"n","account":9,"work":1}]'],
      ["gateway 0", 1_000, JSON.stringify(work)],
    ]);
    await client.close();
  }, 60_000);
});
