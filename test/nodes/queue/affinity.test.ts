// Which requests count as beginning alike, where accounts share what nodes keep of prompts and where they do not.
import { expect, test } from "bun:test";
import { affinityOf, allShare } from "../../../src/nodes/queue/affinity.ts";
import { NodePool } from "../../../src/nodes/queue/pool.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import { askOf } from "../../fixtures/asks.ts";

const node = (name: string) => ({ name, url: "http://127.0.0.1:9", apiKey: null, slots: 9, models: { "*": "m" } });

test("an account is part of it, unless it is everybody's", () => {
  expect(affinityOf(askOf(), 1)).not.toBe(affinityOf(askOf(), 2));
  expect(affinityOf(askOf(), null)).toBe(affinityOf(askOf(), null));
});

test("it is everybody's where every node shares it", () => {
  const shares = { ...node("a"), sharePrefixCache: true };
  expect(allShare([shares, shares])).toBe(true);
  expect(allShare([shares, node("b")])).toBe(false);
  expect(allShare([shares, { ...node("b"), sharePrefixCache: false }])).toBe(false);
});

test("accounts that ask the same meet on one node where it is shared, and spread where it is not; as it is set now", () => {
  const pool = new NodePool(["a", "b", "c"].map(node), {
    clock: systemClock,
    queueMaxWaitMs: 1,
    log() {},
    looks: false,
  });
  const nodesOf = (): number => {
    const used = new Set<string>();
    for (let account = 1; account <= 40; account++) {
      const slot = pool.enter(askOf(), account, new AbortController().signal);
      if (slot instanceof Promise || isRefusal(slot)) throw new Error("no slot");
      used.add(slot.nodeName);
      slot[Symbol.dispose]();
    }
    return used.size;
  };
  expect(nodesOf()).toBe(3);
  pool.sharePrefixCaches(true);
  expect(nodesOf()).toBe(1);
  pool.reconfigure([...["a", "b"].map(node), { ...node("c"), sharePrefixCache: false }]);
  expect(nodesOf()).toBe(3); // a node with a word of its own
  pool.sharePrefixCaches(null);
  expect(nodesOf()).toBe(3);
  void pool.close();
});
