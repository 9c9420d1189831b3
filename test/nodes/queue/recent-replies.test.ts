// How fast a node was in the last minute.
import { expect, test } from "bun:test";
import { RecentReplies } from "../../../src/nodes/queue/recent-replies.ts";

test("is the mean time to the first piece, and the tokens of a minute per second", () => {
  const recent = new RecentReplies();
  expect(recent.quickness(0)).toEqual({ firstPieceMs: null, tokensPerSecond: 0 });
  recent.add(100, 600, 1_000);
  recent.add(300, 600, 30_000);
  expect(recent.quickness(30_000)).toEqual({ firstPieceMs: 200, tokensPerSecond: 20 });
});

test("forgets what is older than a minute, also after a long silence", () => {
  const recent = new RecentReplies();
  recent.add(100, 600, 1_000);
  recent.add(300, 1_200, 40_000);
  expect(recent.quickness(62_000)).toEqual({ firstPieceMs: 300, tokensPerSecond: 20 });
  expect(recent.quickness(3_600_000)).toEqual({ firstPieceMs: null, tokensPerSecond: 0 });
  recent.add(50, 60, 3_600_000);
  expect(recent.quickness(3_600_000)).toEqual({ firstPieceMs: 50, tokensPerSecond: 1 });
});
