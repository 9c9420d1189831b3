// An active set holds its members, and nothing of members that left.
import { edenGC, fullGC, heapStats } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ActiveSet, type ActiveHandle } from "../../src/core/active-set.ts";

/** Counted by what it carries: the runtime counts no classes of ours. */
class Visitor {
  readonly luggage = new AbortController();
}
const visitors = () => heapStats().objectTypeCounts["AbortController"] ?? 0;

/** Visitors that are still in memory after each of them has left again; each comes before the one before it goes. */
function leftInMemory(come: (visitor: Visitor) => () => void): number {
  let leave: (() => void) | null = null;
  for (let round = 0; round < 20; round++) {
    for (let visit = 0; visit < 1_000; visit++) {
      const next = come(new Visitor());
      leave?.();
      leave = next;
    }
    edenGC();
  }
  const left = visitors();
  fullGC();
  return left;
}

describe("a roster", () => {
  test("has who came and did not leave, whatever the order", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 9 })), (steps) => {
        const roster = new ActiveSet<number>();
        const expected = new Set<number>();
        const seats: ActiveHandle<number>[] = [];
        steps.forEach((step, at) => {
          if (step < 6) {
            seats.push(roster.join(at));
            expected.add(at);
          } else if (seats.length > 0) {
            const handle = seats[(step * 7 + at) % seats.length]!;
            if (handle.member !== null) expected.delete(handle.member);
            roster.leave(handle); // a second time too
          }
          expect(roster.size).toBe(expected.size);
        });
        expect(new Set(roster.members())).toEqual(expected);
      }),
    );
  });

  test("lets the young collections of the runtime take those who have left, where a Set keeps them for a full one", () => {
    const set = new Set<Visitor>();
    const kept = leftInMemory((visitor) => {
      set.add(visitor);
      return () => set.delete(visitor);
    });
    const roster = new ActiveSet<Visitor>();
    const left = leftInMemory((visitor) => {
      const handle = roster.join(visitor);
      return () => roster.leave(handle);
    });
    expect(left).toBeLessThan(100);
    expect(kept).toBeGreaterThan(1_000);
  });
});
