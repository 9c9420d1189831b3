// What is left for the end of a turn is done then, in its order, whatever becomes of the rest.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { atEndOfTurn, endOfTurn, lastInTurn } from "../../src/core/end-of-turn.ts";
import { runToEnd } from "../fixtures/children.ts";

describe("the end of a turn", () => {
  test("comes after everything of the turn, in the order in which it was asked for", async () => {
    const done: string[] = [];
    atEndOfTurn(() => void done.push("first"));
    atEndOfTurn(() => void done.push("second"));
    const waited = endOfTurn().then(() => void done.push("who waits"));
    await Promise.resolve();
    expect(done).toEqual([]);
    await waited;
    expect(done).toEqual(["first", "second", "who waits"]);
  });

  test("is shared by all who wait for it, and the next is another", async () => {
    const first = endOfTurn();
    expect(endOfTurn()).toBe(first);
    await first;
    expect(endOfTurn()).not.toBe(first);
  });

  test("is heard by all, though the work of one of them throws, which the process hears", async () => {
    const { stdout } = await runToEnd([process.execPath, "-e", throwing]);
    expect(stdout).toContain("heard: of one request, others: 1");
  });

  test("that asks for more gets it in the next turn", async () => {
    const done: string[] = [];
    atEndOfTurn(() => {
      done.push("this");
      atEndOfTurn(() => void done.push("next"));
    });
    await endOfTurn();
    expect(done).toEqual(["this"]);
    await endOfTurn();
    expect(done).toEqual(["this", "next"]);
  });

  test("leaves for the last what belongs to its work, and nobody is heard in between", async () => {
    const done: string[] = [];
    atEndOfTurn(() => {
      lastInTurn(() => void done.push("last"));
      queueMicrotask(() => void done.push("others"));
    });
    atEndOfTurn(() => void done.push("work"));
    await endOfTurn();
    expect(done).toEqual(["work", "last", "others"]);
    const alone = Promise.withResolvers<void>();
    lastInTurn(() => lastInTurn(alone.resolve));
    await alone.promise;
  });
});

const throwing = `
  import { atEndOfTurn } from ${JSON.stringify(join(import.meta.dir, "../../src/core/end-of-turn.ts"))};
  let others = 0;
  process.on("uncaughtException", (thrown) => console.log("heard: " + thrown.message + ", others: " + others));
  atEndOfTurn(() => {
    throw new Error("of one request");
  });
  atEndOfTurn(() => void others++);`;
