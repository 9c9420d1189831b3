// Whole gateways on one PostgreSQL, as processes, through HTTP: kills, pauses, partitions, lost answers and failovers under load.
// TOLLGATE_CHAOS_SECONDS is how long they last; TOLLGATE_SEED repeats what is drawn by chance.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { keyHintMs } from "../../../src/store/postgres/limits.ts";
import { longForm } from "../../fixtures/optional.ts";
import { noPostgres } from "../../fixtures/postgres.ts";
import { randomOf, seedOfRun } from "../../fixtures/random.ts";
import { Cluster, exactTokens } from "./cluster.ts";

const given = process.env["TOLLGATE_CHAOS_SECONDS"];
const seconds = Number(given ?? 30);
const isLong = seconds > 100;
const seed = seedOfRun();
const isSkipped = noPostgres || !(longForm || given !== undefined);

test.skipIf(isSkipped)(
  `gateways and PostgreSQL under faults for ${seconds} s (TOLLGATE_SEED=${seed})`,
  async () => {
    await using cluster = await Cluster.start(3, randomOf(seed));
    const rich = await cluster.askers(24);
    const poor = await cluster.askers(4, 20_000);
    let isOver = false;
    const load = cluster.load([...rich, ...poor], 16, () => isOver);
    const until = performance.now() + seconds * 1_000;
    const goesOn = () => performance.now() < until;
    const counted = async (fault: string, work: Promise<void>) => {
      cluster.count(fault);
      await work;
    };
    /** What may happen to a gateway and its network; those that take long come seldom. */
    const ofGateway = async (index: number): Promise<void> => {
      for (let turn = index; goesOn(); turn += 1) {
        await Bun.sleep(500 + cluster.below(2_000));
        const proxy = cluster.proxies[index]!;
        const drawn = cluster.below(100);
        if (drawn < 35) await counted("answer to COMMIT lost", proxy.loseAnswers(cluster.below(150)));
        else if (drawn < 55) await counted("connections broken off", Promise.resolve(proxy.breakOff()));
        else if (drawn < 68) await counted("partition, then late", proxy.silence(cluster.below(1_500), "late"));
        else if (drawn < 80)
          await counted("partition, then broken off", proxy.silence(cluster.below(1_500), "broken off"));
        else if (drawn < 84)
          await counted("partition of 6 to 20 s", proxy.silence(6_000 + cluster.below(14_000), "late"));
        else if (drawn < 94) await counted("kill -9 of a gateway", cluster.kill(index, cluster.below(500)));
        else if (drawn < 98) await counted("pause of 6 s", cluster.stop(index, 6_000));
        else await counted("pause of 20 s", cluster.stop(index, 20_000));
      }
    };
    const ofServer = async (): Promise<void> => {
      for (let turn = 0; goesOn(); turn += 1) {
        await Bun.sleep((isLong ? 10_000 : 4_000) + cluster.below(5_000));
        if (turn % 6 === 1) await counted("failover to the synchronous standby", cluster.failOver());
        else if (turn % 6 === 4) await counted("PostgreSQL away for 5 s", cluster.away(5_000));
        else if (turn % 6 === 2) await counted("an account locked for 8 s", cluster.lockAccount(8_000));
        else if (isLong && turn % 30 === 6) await counted("PostgreSQL away for 60 s", cluster.away(60_000));
        else await counted("kill -9 of PostgreSQL", cluster.away(0));
      }
    };
    await Promise.all([...cluster.gateways.map((_, index) => ofGateway(index)), ofServer()]);
    await Bun.sleep(2_000);
    isOver = true;
    await load;
    const wrong = await cluster.contradictions();
    console.log(JSON.stringify({ seed, ...cluster.report() }, null, 1));
    expect(wrong.slice(0, 20)).toEqual([]);
    expect(cluster.seen.filter(({ outcome }) => outcome === "end").length).toBeGreaterThan(10);
  },
  (seconds + 300) * 1_000,
);

describe.skipIf(isSkipped)("three gateways", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(3, randomOf(seed));
  }, 120_000);
  afterAll(async () => {
    const wrong = await cluster.contradictions();
    await cluster[Symbol.asyncDispose]();
    expect(wrong).toEqual([]);
  }, 120_000);
  const everywhere = [0, 1, 2];

  test("spend an account's last tokens exactly, whoever is asked", async () => {
    for (let round = 0; round < 3; round++) {
      // The plan grants 30,000 a day.
      const [asker] = await cluster.askers(1, 20 * exactTokens - 30_000);
      const asked = await Promise.all(Array.from({ length: 45 }, (_, index) => cluster.ask(asker!, index % 3, true)));
      expect(asked.filter(({ outcome }) => outcome === "end").length).toBe(20);
      expect(asked.filter(({ outcome, why }) => outcome !== "end" && !why.startsWith("429"))).toEqual([]);
      const { credit, reserved, spendable } = await cluster.gateways[round]!.show(asker!.email);
      expect({ credit, reserved, spendable }).toEqual({ credit: 0, reserved: 0, spendable: 0 });
    }
  }, 120_000);

  test("take no key anymore that one of them rotated or revoked, from the moment in which it says so", async () => {
    for (let round = 0; round < 6; round++) {
      const gateway = cluster.gateways[round % 3]!;
      const { email, api_key } = await gateway.account();
      const named = await gateway.makeKey(email, { name: "named" });
      for (const key of [api_key, named.api_key]) {
        const before = await Promise.all(everywhere.map((index) => cluster.ask({ email, key }, index)));
        expect(before.map(({ outcome }) => outcome)).toEqual(["end", "end", "end"]);
      }
      const rotated = await gateway.rotate(email);
      const first = await Promise.all(everywhere.map((index) => cluster.ask({ email, key: api_key }, index)));
      await gateway.revokeKey(email, named.id);
      const second = await Promise.all(everywhere.map((index) => cluster.ask({ email, key: named.api_key }, index)));
      for (const { outcome, why } of [...first, ...second]) {
        expect([outcome, why.slice(0, 4)]).toEqual(["failed", "401 "]);
      }
      const after = await Promise.all(everywhere.map((index) => cluster.ask({ email, key: rotated }, index)));
      expect(after.map(({ outcome }) => outcome)).toEqual(["end", "end", "end"]);
    }
  }, 120_000);

  test("are restarted one after the other, and no client sees more than a connection that is refused or reset", async () => {
    const from = cluster.seen.length;
    let isOver = false;
    // So many that none of them is held off for asking more than 120 times a minute.
    const load = cluster.load(await cluster.askers(isLong ? 60 : 12), 12, () => isOver);
    for (let round = 0; round < (isLong ? 10 : 1); round++) {
      for (const index of everywhere) {
        await Bun.sleep(500);
        cluster.count("restart under load");
        expect(await cluster.gateways[index]!.kill("SIGTERM")).toBe(0);
        await cluster.begin(index);
      }
    }
    isOver = true;
    await load;
    const seen = cluster.seen.slice(from);
    // The system resets what waits to be accepted when the last listener of a port goes.
    const isRefused = ({ outcome, why }: (typeof seen)[number]) =>
      outcome === "not connected" || (outcome === "cut" && why === "no head: ECONNRESET");
    const bad = seen.filter((each) => each.outcome !== "end" && !isRefused(each));
    console.log(JSON.stringify(cluster.report(), null, 1));
    expect(bad).toEqual([]);
    expect(seen.length).toBeGreaterThan(30);
  }, 300_000);

  test("answer who came before they were told to stop, though the database is slow to say who it is", async () => {
    const [asker] = await cluster.askers(1);
    await Bun.sleep(keyHintMs + 500); // nobody remembers the key
    const silence = cluster.proxies[1]!.silence(1_500, "late");
    const asked = cluster.ask(asker!, 1);
    await Bun.sleep(300);
    expect(await cluster.gateways[1]!.kill("SIGTERM")).toBe(0);
    await silence;
    const { outcome, why } = await asked;
    expect([outcome, why]).toEqual(["end", ""]);
    await cluster.begin(1);
  }, 60_000);
});
