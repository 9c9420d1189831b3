// Slots that follow what an engine has to do, against engines that are modeled: each runs so many at once, and the others
// that it is given wait inside it.
import { describe, expect, test } from "bun:test";
import { AutoSlots, autoSlotsStart } from "../../../src/nodes/queue/auto-slots.ts";

/** What an engine that runs at most `most` says when it has so many requests. */
const engine =
  (most: number, cacheOfEach = 0) =>
  (has: number) => {
    const running = Math.min(most, has);
    return { running, waiting: has - running, cacheUse: Math.min(1, running * cacheOfEach) };
  };

/** Gateways whose lines are never empty, and end a part of what they have between two looks. */
function looks(gateways: readonly AutoSlots[], says: ReturnType<typeof engine>, count: number, busy: number[]): void {
  for (let look = 0; look < count; look++) {
    for (const [index, gateway] of gateways.entries()) {
      busy[index] = Math.max(gateway.slots, busy[index]! - Math.ceil(busy[index]! / 4));
      gateway.take(says(busy.reduce((sum, one) => sum + one, 0)), busy[index]!);
    }
  }
}

function settled(most: number, requestsMax: number | null = null, cacheOfEach = 0): number {
  const slots = new AutoSlots(requestsMax);
  looks([slots], engine(most, cacheOfEach), 60, [0]);
  return slots.slots;
}

describe("alone on an engine", () => {
  test.each([[1], [4], [16], [48], [256], [2_000]])("that runs %i at once: about as many", (most) => {
    const slots = settled(most);
    expect(slots).toBeGreaterThanOrEqual(most);
    expect(slots).toBeLessThanOrEqual(Math.ceil(most * 1.15) + 2);
  });
  test("one that says how many it runs gets exactly so many, from the beginning", () => {
    expect(new AutoSlots(4).slots).toBe(4);
    expect(settled(4, 4)).toBe(4);
  });
  test("a large engine is filled within three seconds of looks", () => {
    const slots = new AutoSlots(null);
    looks([slots], engine(512), 12, [0]);
    expect(slots.slots).toBeGreaterThanOrEqual(512);
  });
  test("what is there beyond its slots is not held against it while that ends", () => {
    const slots = new AutoSlots(null);
    const busy = Array.from({ length: 20 }, (_, ended) => 24 - ended);
    for (const now of busy) slots.take(engine(4)(now), now);
    expect(slots.slots).toBe(4);
  });
  test("what it is not asked for does not grow", () => {
    const slots = new AutoSlots(null);
    for (let look = 0; look < 50; look++) slots.take({ running: 3, waiting: 0, cacheUse: 0.1 }, 3);
    expect(slots.slots).toBe(autoSlotsStart);
  });
  test("bulk alone fills an engine although it leaves slots to others, until the engine has queued", () => {
    const slots = new AutoSlots(null);
    const most = 48;
    const bulk = (): number => Math.floor(0.75 * slots.slots);
    let fullest = 0;
    for (let look = 0; look < 80; look++) {
      const busy = bulk();
      slots.take(engine(most)(busy), busy, 0, slots.slots - busy);
      fullest = Math.max(fullest, busy);
    }
    expect(fullest).toBeGreaterThanOrEqual(most);
    expect(slots.slots).toBeLessThanOrEqual(most + 8);
    expect(bulk()).toBeLessThan(most);
  });
  test("prompts that wait to be read are no queue, and do not keep it from growing", () => {
    const reading = new AutoSlots(null);
    for (let look = 0; look < 8; look++) reading.take({ running: 4, waiting: 12, cacheUse: 0.1 }, reading.slots, 3_000);
    expect(reading.slots).toBeGreaterThan(autoSlotsStart);
    const queued = new AutoSlots(null);
    for (let look = 0; look < 8; look++) queued.take({ running: 4, waiting: 12, cacheUse: 0.1 }, queued.slots, 0);
    expect(queued.slots).toBeLessThanOrEqual(4);
  });
  test("requests that wait for the engine's next step are no queue", () => {
    const slots = new AutoSlots(64);
    for (let look = 0; look < 20; look++) slots.take({ running: 60, waiting: 4, cacheUse: 0.1 }, 64);
    expect(slots.slots).toBe(64);
  });
  test("one burst in which many wait is not held against it", () => {
    const slots = new AutoSlots(64);
    slots.take({ running: 4, waiting: 60, cacheUse: 0 }, 64);
    slots.take({ running: 64, waiting: 0, cacheUse: 0 }, 64);
    expect(slots.slots).toBe(64);
  });
});

describe("the engine's cache", () => {
  test("bounds what it gets before it is full", () => {
    const slots = settled(1_000, null, 1 / 40); // full with 40
    expect(slots).toBeGreaterThanOrEqual(30);
    expect(slots).toBeLessThan(40);
  });
  test("is given time to empty: what is above the slots must end first", () => {
    const slots = new AutoSlots(64);
    for (let look = 0; look < 10; look++) slots.take({ running: 64, waiting: 0, cacheUse: 0.99 }, 64);
    expect(slots.slots).toBe(56);
  });
});

describe("with others on the same engine", () => {
  test("a gateway that comes later gets a part of what another one has, and little waits in the engine", () => {
    const [one, two] = [new AutoSlots(null), new AutoSlots(null)];
    const busy = [0, 0];
    looks([one], engine(64), 30, busy); // the first has it all
    looks([one, two], engine(64), 400, busy);
    expect(one.slots + two.slots).toBeLessThanOrEqual(80);
    expect(two.slots).toBeGreaterThanOrEqual(12);
  });
  test("what they have is known", () => {
    const slots = new AutoSlots(16);
    slots.take({ running: 10, waiting: 2, cacheUse: null }, 3);
    expect(slots.elsewhere).toBe(9);
    slots.take({ running: 2, waiting: 0, cacheUse: null }, 3); // one has just been sent
    expect(slots.elsewhere).toBe(0);
  });
  test("where they fill it, one slot stays, and it grows again when they leave", () => {
    const slots = new AutoSlots(null);
    for (let look = 0; look < 20; look++) slots.take({ running: 16, waiting: 100, cacheUse: 0.5 }, slots.slots);
    expect(slots.slots).toBe(1);
    looks([slots], engine(64), 16, [1]);
    expect(slots.slots).toBeGreaterThanOrEqual(64);
  });
});
