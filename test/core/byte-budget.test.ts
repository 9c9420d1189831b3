// The limits on waiting bytes, without threads.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ByteBudget } from "../../src/core/byte-budget.ts";

const limits = { places: 40, bytes: 4_000, accountPlaces: 10, accountBytes: 1_000 };

describe("an account's share", () => {
  test("as many places as it may have, then none until one is given back", () => {
    const room = new ByteBudget(limits);
    for (let place = 0; place < 10; place++) expect(room.enter(1, 1)).toBe(true);
    expect(room.enter(1, 1)).toBe(false);
    expect(room.enter(2, 1)).toBe(true);
    room.leave(1, 1);
    expect(room.enter(1, 1)).toBe(true);
  });

  test.each([
    [[1_000], true],
    [[1_001], false],
    [[600, 400], true],
    [[600, 401], false],
    [[0, 0, 1_000], true],
  ])("texts of %j bytes: the last one enters: %p", (sizes, enters) => {
    const room = new ByteBudget(limits);
    expect(sizes.map((bytes) => room.enter(1, bytes)).at(-1)).toBe(enters);
  });
});

describe("the room of all", () => {
  test("busy accounts fill three quarters of it, the rest is for those for whom nothing waits", () => {
    const room = new ByteBudget(limits);
    let entered = 0;
    for (let round = 0; round < 10; round++) {
      for (let account = 1; account <= 4; account++) if (room.enter(account, 100)) entered++;
    }
    expect(entered).toBe(30);
    expect(room.enter(5, 1_000)).toBe(true);
    expect(room.enter(5, 1)).toBe(false);
    for (let account = 6; account <= 14; account++) expect(room.enter(account, 0)).toBe(true);
    expect(room.enter(15, 0)).toBe(false);
  });

  test("nothing is left over when everybody has left, and the limits always hold", () => {
    const step = fc.record({ account: fc.integer({ min: 1, max: 6 }), bytes: fc.integer({ min: 0, max: 1_100 }) });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), step)), (steps) => {
        const room = new ByteBudget(limits);
        const inside: { account: number; bytes: number }[] = [];
        for (const [enters, { account, bytes }] of steps) {
          const leaving = enters ? undefined : inside.shift();
          if (leaving !== undefined) room.leave(leaving.account, leaving.bytes);
          else if (room.enter(account, bytes)) inside.push({ account, bytes });
          expect(room.places).toBe(inside.length);
          expect(room.bytes).toBe(inside.reduce((sum, one) => sum + one.bytes, 0));
          expect(room.places <= limits.places && room.bytes <= limits.bytes).toBe(true);
        }
        for (const { account, bytes } of inside) room.leave(account, bytes);
        expect([room.places, room.bytes]).toEqual([0, 0]);
      }),
    );
  });

  test("giving back what was not taken is a bug", () => {
    const room = new ByteBudget(limits);
    expect(() => room.leave(1, 1)).toThrow("once");
  });
});
