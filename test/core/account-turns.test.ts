// Turns at something expensive: never more than allowed, and accounts take turns at them.
import { describe, expect, test } from "bun:test";
import { AccountTurns } from "../../src/core/account-turns.ts";

const stays = new AbortController().signal;

/** Turns as they are given: "2" for account 2. */
function recorder(turns: AccountTurns) {
  const given: number[] = [];
  const open: Disposable[] = [];
  const enter = (account: number, cancelSignal = stays) =>
    turns.enter(account, cancelSignal).then((turn) => {
      given.push(account);
      open.push(turn);
    });
  return { given, open, enter };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("turns", () => {
  test("as many at once as allowed, in all and for one account", async () => {
    const turns = new AccountTurns(3, 2);
    const { given, enter } = recorder(turns);
    for (const account of [1, 1, 1, 2, 3]) void enter(account);
    await settled();
    expect(given).toEqual([1, 1, 2]);
    expect([turns.running, turns.waitingOf(1), turns.waitingOf(3)]).toEqual([3, 1, 1]);
  });

  test("a turn that ends goes to the longest waiting whose account has one left", async () => {
    const turns = new AccountTurns(3, 2);
    const { given, open, enter } = recorder(turns);
    for (const account of [1, 1, 1, 2, 3, 1]) void enter(account);
    await settled();
    open[2]![Symbol.dispose](); // account 2's: account 1 has its two
    await settled();
    expect(given).toEqual([1, 1, 2, 3]);
    open[0]![Symbol.dispose]();
    await settled();
    expect(given).toEqual([1, 1, 2, 3, 1]);
  });

  test("an account with many that wait holds another up for one of them", async () => {
    const turns = new AccountTurns(1, 1);
    const { given, open, enter } = recorder(turns);
    for (const account of [1, 1, 1, 1, 2, 3, 2]) void enter(account);
    for (let turn = 0; turn < 6; turn++) {
      await settled();
      open[turn]![Symbol.dispose]();
    }
    await settled();
    expect(given).toEqual([1, 1, 2, 3, 1, 2, 1]);
  });

  test("who leaves the line gets none, and one that is given back twice counts once", async () => {
    const turns = new AccountTurns(1, 1);
    const { given, open, enter } = recorder(turns);
    await enter(1);
    const leaving = new AbortController();
    const left = enter(2, leaving.signal).catch(() => "left");
    leaving.abort();
    expect(await left).toBe("left");
    expect(await enter(2, leaving.signal).catch(() => "left")).toBe("left");
    open[0]![Symbol.dispose]();
    open[0]![Symbol.dispose]();
    expect([turns.running, turns.waitingOf(2)]).toEqual([0, 0]);
    await enter(3);
    expect(given).toEqual([1, 3]);
  });
});
