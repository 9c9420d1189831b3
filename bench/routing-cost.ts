// What does it cost to choose a node: for a short request, for a long prompt, and the memory of what all nodes are thought to
// have in their caches?
//
//   bun bench/routing-cost.ts [--runs 20000]
import { Placement, type Wanting } from "../src/nodes/queue/placement.ts";
import { promptBlocks } from "../src/nodes/queue/prompt-blocks.ts";
import type { Turn } from "../src/core/types.ts";
import { readFlags } from "./flags.ts";

const routingCostDefaults = { runs: 20_000 };

const words = (seed: number, bytes: number): string => {
  let text = "";
  for (let at = seed * 7_919; text.length < bytes; at++) text += ` ${((at * 2_654_435_761) >>> 0).toString(36)}`;
  return text.slice(0, bytes);
};
const turnsOf = (seed: number, bytes: number): Turn[] => [{ role: "user", content: words(seed, bytes) }];

/** Microseconds of processor time a request, from its turns to its end. */
function costOf(nodes: number, bytes: number, runs: number): number {
  const placement = new Placement();
  const candidates = Array.from({ length: nodes }, (_none, at) => ({
    node: { name: `node-${at}`, slots: 64 },
    busy: at % 7,
  }));
  for (const { node } of candidates) placement.know(node.name, "for all", 1_000_000);
  const prompts = Array.from({ length: 64 }, (_none, seed) => turnsOf(seed, bytes));
  const round = (run: number): void => {
    const wanting: Wanting = { modelId: "m", account: 1, prompt: promptBlocks(prompts[run & 63]!, []) };
    const { node } = placement.choose(wanting, candidates, run).best;
    const sent = placement.sent(wanting, node.name, run);
    placement.began(sent, run + 1);
    placement.ended(sent, { inputTokens: bytes >> 2, cachedTokens: bytes >> 2, outputTokens: 99 }, run + 2);
  };
  for (let run = 0; run < runs / 4; run++) round(run);
  const before = process.cpuUsage();
  for (let run = 0; run < runs; run++) round(run);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / runs;
}

/** Of so many nodes whose caches of so many tokens are full. */
function memoryOf(nodes: number, tokens: number, promptBytes: number): number {
  const placement = new Placement();
  for (let node = 0; node < nodes; node++) {
    placement.know(`node-${node}`, "for all", tokens);
    for (let filled = 0, n = 0; filled < 5 * tokens; filled += promptBytes, n++) {
      const wanting: Wanting = {
        modelId: "m",
        account: 1,
        prompt: promptBlocks(turnsOf(1_000 * node + n, promptBytes), []),
      };
      placement.ended(placement.sent(wanting, `node-${node}`, n), null, n);
    }
  }
  return placement.memoryBytes;
}

if (import.meta.main) {
  const { runs } = readFlags(routingCostDefaults);
  for (const nodes of [2, 8, 64]) {
    for (const bytes of [200, 6_000, 240_000]) {
      const us = costOf(nodes, bytes, bytes > 100_000 ? runs / 20 : runs);
      console.log(`${nodes} nodes, a prompt of ${bytes} bytes: ${us.toFixed(1)} us a request`);
    }
  }
  for (const promptBytes of [8_000, 200_000])
    console.log(
      `64 nodes of 1 M tokens, prompts of ${promptBytes} bytes: ${(memoryOf(64, 1_000_000, promptBytes) / 2 ** 20).toFixed(1)} MiB`,
    );
}
