// What a relay does with its nodes by itself: it lets them count, those that the main thread says take requests.
import { expect, test } from "bun:test";
import { systemClock } from "../../src/core/clock.ts";
import { unknownEngine } from "../../src/nodes/engine.ts";
import { FollowedNodes } from "../../src/threads/followed-nodes.ts";
import type { MainThreadClient } from "../../src/threads/main-thread-client.ts";
import type { News } from "../../src/threads/messages.ts";
import { RelayPool } from "../../src/threads/relay-pool.ts";
import { hostedModel } from "../fixtures/asks.ts";
import { RawNode, wholeReply } from "../fixtures/raw-node.ts";

test("drained nodes count nothing, also for a relay that begins later", async () => {
  const node = new RawNode((_, reply) => reply.write(wholeReply("200 OK", '{"count":7,"tokens":[]}')));
  const followed = new FollowedNodes();
  followed.nodesChanged([{ name: "a", url: node.url, apiKey: null, slots: 1, models: { "*": "m" } }]);
  followed.engineFound("a", { ...unknownEngine, kind: "vllm" });
  const pool = new RelayPool({} as MainThreadClient, systemClock); // no place is asked for
  const told: News[] = [];
  const hear = (news: News): void => {
    told.push(news);
    if (news.news === "nodes") pool.nodesChanged(news.nodes);
    else if (news.news === "engine") pool.engineFound(news.node, news.engine);
    else if (news.news === "drained") pool.drainedChanged(news.nodes);
  };
  for (const news of followed.known()) hear(JSON.parse(JSON.stringify(news)) as News);
  const count = () => pool.countText(hostedModel, "Hello", new AbortController().signal);
  expect(await count()).toBe(7);
  followed.onNews = (news) => hear(JSON.parse(JSON.stringify(news)) as News);
  followed.drainedChanged(["a"]);
  expect(await count()).toBeNull();
  expect([...followed.known()]).toContainEqual({ news: "drained", nodes: ["a"] });
  followed.drainedChanged([]);
  expect(await count()).toBe(7);
  expect(told.at(-1)).toEqual({ news: "drained", nodes: [] });
  pool.nodesChanged([]);
  node.stop();
});
