// Large bodies are read one per turn of the event loop.
import { expect, test } from "bun:test";
import { BodyTurns } from "../../src/http/body-turns.ts";

test("between two bodies, what else is ready runs", async () => {
  const turns = new BodyTurns();
  const order: string[] = [];
  const bodies = ["first", "second", "third"].map((name) =>
    turns.next().then(() => {
      order.push(name);
      setImmediate(() => order.push(`after ${name}`));
    }),
  );
  await Promise.all(bodies);
  expect(order).toEqual(["first", "after first", "second", "after second", "third"]);
});

test("a body that comes later does not wait for those that were read", async () => {
  const turns = new BodyTurns();
  await turns.next();
  let waited = 0;
  const counting = setInterval(() => waited++, 1);
  await turns.next();
  clearInterval(counting);
  expect(waited).toBeLessThan(2);
});
