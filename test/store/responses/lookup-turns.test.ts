// Turns of look-ups among accounts: who goes next, and how many at once.
import { expect, test } from "bun:test";
import { storedResponsesLookupsMax, storedResponsesLookupsWaitingMax } from "../../../src/core/limits.ts";
import { LookupTurns } from "../../../src/store/responses/lookup-turns.ts";

/** Look-ups that run until they are told to end, by the names under which they began. */
class World {
  readonly turns = new LookupTurns();
  readonly running = new Map<string, PromiseWithResolvers<void>>();

  begin(...names: string[]): void {
    for (const name of names) void this.turns.run(Number(name[0]), () => this.#run(name)).catch(() => undefined);
  }

  async end(name: string, error: Error | null = null): Promise<string[]> {
    const run = this.running.get(name)!;
    this.running.delete(name);
    if (error === null) run.resolve();
    else run.reject(error);
    await Bun.sleep(0);
    return [...this.running.keys()];
  }

  #run(name: string): Promise<void> {
    const run = Promise.withResolvers<void>();
    this.running.set(name, run);
    return run.promise;
  }
}

test("an account's look-ups run one after the other, and nobody waits for more than one of them", async () => {
  const world = new World();
  world.begin("1a", "1b", "1c", "2a");
  expect([...world.running.keys()]).toEqual(["1a", "2a"]);
  expect(await world.end("1a")).toEqual(["2a", "1b"]);
  expect(await world.end("2a")).toEqual(["1b"]);
  world.begin("2b");
  expect(await world.end("1b", new Error("failed"))).toEqual(["2b", "1c"]);
});

test("only so many run at once; an account that had its turn goes behind those that wait", async () => {
  const world = new World();
  const accounts = Array.from({ length: storedResponsesLookupsMax }, (_, index) => `${index + 1}`);
  world.begin(...accounts.map((account) => `${account}a`), "1b", "1c", "8a", "9a");
  expect([...world.running.keys()]).toEqual(accounts.map((account) => `${account}a`));
  expect(await world.end("2a")).not.toContain("1b");
  expect([...world.running.keys()]).toContain("8a");
  expect(await world.end("1a")).toContain("1b");
  expect(await world.end("1b")).toContain("9a");
  expect(await world.end("9a")).toContain("1c");
  expect(world.running.size).toBe(storedResponsesLookupsMax);
});

test("an account's line has an end, and others' lines are their own", async () => {
  const world = new World();
  world.begin(...Array.from({ length: storedResponsesLookupsWaitingMax }, (_, index) => `1-${index}`));
  expect(world.turns.isFull(1)).toBe(false); // one of them runs
  world.begin("1-last");
  expect([world.turns.isFull(1), world.turns.isFull(2)]).toEqual([true, false]);
  await world.end("1-0");
  expect(world.turns.isFull(1)).toBe(false);
});
