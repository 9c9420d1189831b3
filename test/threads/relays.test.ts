// Does the ledger stay exact when sixteen relays ask for everything by message, in any interleaving? Everything is decided
// by one seed; TOLLGATE_SEED repeats a run and TOLLGATE_RELAY_EVENTS sets its length.
import { expect, test } from "bun:test";
import { seedOfRun } from "../fixtures/random.ts";
import { SimulatedRelays } from "./simulated-relays.ts";

const events = Number(process.env["TOLLGATE_RELAY_EVENTS"] ?? 30_000);
const seed = seedOfRun();

test(`${events} random events on 16 relays leave books that fit what every client saw (TOLLGATE_SEED=${seed})`, async () => {
  const world = new SimulatedRelays(seed);
  await world.start(12);
  for (let event = 0; event < events; event += 1) {
    await world.step();
    if (world.wrong.length > 0) break;
  }
  await world.quiet();
  expect(world.wrong).toEqual([]);

  // Nothing is left anywhere: holds, places, questions.
  const { office, relays, queue } = world;
  expect(office.ledger.totals()).toMatchObject({
    holds: 0,
    heldTokens: 0,
    expectedTokens: 0,
    waiting: 0,
    uncommitted: 0,
  });
  expect(world.waited).toBeGreaterThan(0);
  expect(queue.length).toBe(0);
  expect(queue.states().map(({ busy }) => busy)).toEqual([0, 0]);
  for (const { session, mainThread } of relays) {
    expect([session.openRequests, session.places, session.heldEnds, mainThread.asked]).toEqual([0, 0, 0, 0]);
  }
  // Who saw a whole reply paid for it once, and nobody else paid; and the balances are what the journal says.
  const charged = office.database.query(
    "SELECT coalesce(sum(billed_tokens), 0) AS sum FROM journal WHERE account_id = ?",
  );
  for (const { id, email } of world.accounts) {
    const { sum } = charged.get(id) as { sum: number };
    expect({ email, sum }).toEqual({ email, sum: world.costs.get(id) ?? 0 });
  }
  expect(await office.verify()).toMatchObject({ violations: [] });
  expect(Math.min(...Object.values(world.fates))).toBeGreaterThan(0);
}, 120_000);

test("the same seed makes the same run", async () => {
  const run = async () => {
    const world = new SimulatedRelays(7, 4);
    await world.start(3);
    for (let event = 0; event < 2_000; event += 1) await world.step();
    await world.quiet();
    return { fates: world.fates, costs: [...world.costs] };
  };
  expect(await run()).toEqual(await run());
});
