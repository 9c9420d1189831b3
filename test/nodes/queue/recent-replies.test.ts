// How fast a node was lately.
import { expect, test } from "bun:test";
import { RecentReplies } from "../../../src/nodes/queue/recent-replies.ts";

const minute = 60_000;

test("is the tokens of a minute per second, and forgets older ones, also after a long silence", () => {
  const recent = new RecentReplies();
  expect(recent.quickness(0)).toEqual({ firstPieceP50: null, firstPieceP99: null, tokensPerSecond: 0 });
  recent.add(100, 600, 1_000);
  recent.add(300, 1_200, 40_000);
  expect(recent.quickness(40_000).tokensPerSecond).toBe(30);
  expect(recent.quickness(62_000).tokensPerSecond).toBe(20);
  expect(recent.quickness(60 * minute).tokensPerSecond).toBe(0);
  recent.add(50, 60, 60 * minute);
  expect(recent.quickness(60 * minute).tokensPerSecond).toBe(1);
});

test("half of the first pieces of ten minutes came within the one time, 99 of 100 within the other", () => {
  const recent = new RecentReplies();
  for (let reply = 0; reply < 98; reply += 1) recent.add(100, 1, reply * 5_000);
  for (let reply = 0; reply < 2; reply += 1) recent.add(10_000, 1, 9 * minute);
  const { firstPieceP50, firstPieceP99 } = recent.quickness(9 * minute);
  expect(firstPieceP50! / 100).toBeWithin(0.9, 1.1);
  expect(firstPieceP99! / 10_000).toBeWithin(0.9, 1.1);
  expect(recent.quickness(18.5 * minute).firstPieceP50! / 10_000).toBeWithin(0.9, 1.1);
  expect(recent.quickness(40 * minute)).toMatchObject({ firstPieceP50: null, firstPieceP99: null });
});
