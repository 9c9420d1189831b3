// Whole gateways on one PostgreSQL, as processes, through HTTP: kills, pauses, partitions, lost answers and failovers under load.
// TOLLGATE_CHAOS_SECONDS is how long they last; TOLLGATE_SEED repeats what is drawn by chance.
import { expect, test } from "bun:test";
import { longForm } from "../../fixtures/optional.ts";
import { noPostgres } from "../../fixtures/postgres.ts";
import { randomOf, seedOfRun } from "../../fixtures/random.ts";
import { Cluster } from "./cluster.ts";

const given = process.env["TOLLGATE_CHAOS_SECONDS"];
const seconds = Number(given ?? 40);
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
        await Bun.sleep(cluster.below(600));
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
        await Bun.sleep(3_000 + cluster.below(4_000));
        if (turn % 6 === 1) await counted("failover to the synchronous standby", cluster.failOver());
        else if (turn % 6 === 4) await counted("PostgreSQL away for 5 s", cluster.away(5_000));
        else if (isLong && turn % 12 === 6) await counted("PostgreSQL away for 60 s", cluster.away(60_000));
        else await counted("kill -9 of PostgreSQL", cluster.away(0));
      }
    };
    await Promise.all([...cluster.gateways.map((_, index) => ofGateway(index)), ofServer()]);
    await Bun.sleep(2_000);
    isOver = true;
    await load;
    const wrong = await cluster.contradictions();
    console.log(JSON.stringify({ seed, ...cluster.report() }, null, 1));
    expect(wrong).toEqual([]);
    expect(cluster.seen.filter(({ outcome }) => outcome === "end").length).toBeGreaterThan(50);
  },
  (seconds + 300) * 1_000,
);
