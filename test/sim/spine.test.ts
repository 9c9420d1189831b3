// The whole gateway but its sockets under one seed: random clients in three dialects, nodes, disk faults, clock steps and
// crashes, with the invariants after every event. TOLLGATE_SPINE_EVENTS sets how many (20,000 by default), TOLLGATE_SEED
// repeats a run.
import { expect, test } from "bun:test";
import { seedOfRun } from "../fixtures/random.ts";
import { runWorlds } from "./ledger-world.ts";
import { Spine } from "./spine.ts";

const operations = Number(process.env["TOLLGATE_SPINE_EVENTS"] ?? 20_000);
const seed = seedOfRun();

async function run(spine: Spine, events: number): Promise<void> {
  await spine.start(12);
  let event = 0;
  try {
    for (; event < events; event += 1) {
      spine.compare(await spine.step());
      if (event % 1_000 === 0) await spine.compareAll();
    }
    await spine.finish();
  } catch (thrown) {
    throw new Error(`event ${event} of TOLLGATE_SEED=${spine.seed}`, { cause: thrown });
  }
}

test(
  `${operations} random events leave books that fit what every client saw (TOLLGATE_SEED=${seed})`,
  async () => {
    const done = await runWorlds({ operations, operationsPerWorld: 10_000, seed }, (each) => new Spine(each), run);
    if (process.env["TOLLGATE_SPINE_EVENTS"] !== undefined) console.log(done);
    // A run in which nothing came to its end has shown nothing.
    for (const fate of ["refused", "whole", "failed", "left", "unheard", "misfit"])
      expect(done[`fate: ${fate}`]).toBeGreaterThan(0);
  },
  120_000 + operations * 4,
);

test("the same seed makes the same run", async () => {
  const runs: unknown[] = [];
  for (const same of [7, 7]) {
    const spine = new Spine(same);
    await spine.start(4);
    for (let event = 0; event < 1_000; event += 1) await spine.step();
    runs.push([spine.done, [...spine.fates], spine.accounts.map(({ name }) => spine.model.onDisk(name))]);
  }
  expect(runs[0]).toEqual(runs[1]!);
}, 120_000);
