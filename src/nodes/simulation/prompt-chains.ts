// Prompts that nobody has the texts of, made from how much of each was cached. A journal says that of 8,000 tokens of input
// the node had 6,000 in its cache, not what they were. The model:
//
//   what was cached is the beginning of an earlier request of the same end user or key to the same model, its answer
//   included: of their latest requests, the one whose length fits best
//   none of them was as long       -> the beginning that all prompts to the model share, such as a system prompt
//   what was not cached            -> text that no other prompt has
//
// So a prompt that missed its cache, because it went to another node or came too late, counts as new text: the model knows
// no more sharing than the caches showed, and a change that would find more of it looks worse here than it is.
import type { PromptBlocks } from "../../core/types.ts";
import { bytesOfBlocks, mixed, promptBlocksMax } from "../queue/prompt-blocks.ts";
import { bytesPerToken } from "./virtual-engine.ts";

/** Who asks, and what they ask for and get, in tokens. */
export type Asking = Readonly<{ who: string; model: number; input: number; cached: number; output: number }>;

/** `keys`: of the prompt and its answer. */
export type Prompt = Readonly<{ blocks: PromptBlocks; keys: Uint32Array }>;

/** Runs of blocks, each with where it ends and a number that no other run has. */
type Chain = Readonly<{ tokens: number; ends: readonly number[]; seeds: readonly number[]; mark: number }>;

/** Conversations that one person is in at once. */
const chainsMax = 8;
const membersMax = 50_000;
/** Caches hold whole blocks of 16 tokens, and templates may change the end of a prompt. */
const slackTokens = 64;
/** A request that has at least this part of an earlier one goes on with it. */
const continuedPart = 0.8;

export class PromptChains {
  readonly #members = new Map<string, Chain[]>();
  #made = 0;

  next({ who, model, input, cached, output }: Asking): Prompt {
    const key = `${who} ${model}`;
    const chains = this.#members.get(key) ?? [];
    this.#members.delete(key);
    this.#members.set(key, chains);
    if (this.#members.size > membersMax) this.#members.delete(this.#members.keys().next().value!);
    const before = cached === 0 ? null : bestOf(chains, cached);
    const common: Chain = { tokens: Infinity, ends: [Infinity], seeds: [mixed(model + 1)], mark: 0 };
    const seed = mixed(0x9e3779b1 ^ ++this.#made);
    const chain = continued(before ?? common, blocksIn(cached), input + output, seed);
    const goesOn = before !== null && cached >= continuedPart * before.tokens;
    if (goesOn) chains.splice(chains.indexOf(before), 1);
    chains.push(chain);
    if (chains.length > chainsMax) chains.shift();
    const keys = keysOf(chain, blocksIn(input + output));
    const blocks: PromptBlocks = {
      hashes: keys.subarray(0, blocksIn(input)),
      bytes: input * bytesPerToken,
      end: chain.mark,
      before: goesOn ? before.mark : 0,
      beforeBytes: goesOn ? cached * bytesPerToken : 0,
    };
    return { blocks, keys };
  }
}

/** The shortest that is long enough, of which the cached part is the largest. */
function bestOf(chains: readonly Chain[], cached: number): Chain | null {
  let best: Chain | null = null;
  for (const chain of chains)
    if (chain.tokens + slackTokens >= cached && (best === null || chain.tokens <= best.tokens)) best = chain;
  return best;
}

function continued({ ends, seeds }: Chain, blocks: number, tokens: number, seed: number): Chain {
  let runs = 0;
  while (runs < ends.length && ends[runs]! < blocks) runs++;
  const isEmpty = blocks === 0;
  const kept = isEmpty ? 0 : Math.min(runs + 1, ends.length);
  return {
    tokens,
    ends: [...ends.slice(0, kept).map((end) => Math.min(end, blocks)), Infinity],
    seeds: [...seeds.slice(0, kept), seed],
    mark: mixed(seed) || 1,
  };
}

function keysOf({ ends, seeds }: Chain, blocks: number): Uint32Array {
  const keys = new Uint32Array(blocks);
  for (let at = 0, run = 0; at < blocks; at++) {
    while (at >= ends[run]!) run++;
    keys[at] = mixed(seeds[run]! + Math.imul(at, 0x85ebca6b));
  }
  return keys;
}

/** The whole blocks of a prompt's first tokens. */
function blocksIn(tokens: number): number {
  const bytes = tokens * bytesPerToken;
  let [low, high] = [0, promptBlocksMax];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (bytesOfBlocks(middle) <= bytes) low = middle;
    else high = middle - 1;
  }
  return low;
}
