// Prompts that nobody has the texts of, made from how much of each was cached. A journal says that of 8,000 tokens of input
// the node had 6,000 in its cache, not what they were. The model:
//
//   what was cached is the beginning of an earlier request of the same end user or key to the same model, its answer
//   included: of their latest requests, the last one that ends there, else the last one that is longer
//   none of them was as long       -> the beginning that all prompts to the model share, such as a system prompt
//   what was not cached            -> text that no other prompt has; but one request on another node, which this one
//                                     exceeds by about as much as such ones usually do, is taken to go on with this one
//
// A prompt that missed its node's cache because it came too late counts as new text: of such sharing the model knows no more
// than the caches showed, and a change that would find more of it looks worse here than it is. Without the other node's
// request each move would be a miss here and a miss again in the replay: near a full load the mean was 150 % too long
// instead of 5.
import type { PromptBlocks } from "../../core/types.ts";
import { blockBytes, bytesOfBlocks, mixed, promptBlocksMax } from "../queue/prompt-blocks.ts";
import { bytesPerToken } from "./virtual-engine.ts";

/** Who asks, and what they ask for and get, in tokens. */
export type Asking = Readonly<
  Record<"model" | "input" | "cached" | "output", number> & {
    who: string;
    /** Where it was; -1: unknown. */
    node: number;
  }
>;

/** `keys`: of the prompt and its answer. `knownTokens`: its beginning that earlier prompts have, to the token. */
export type Prompt = Readonly<{ blocks: PromptBlocks; keys: Uint32Array; knownTokens: number }>;

/** Runs of blocks, each with where it ends and a number that no other run has. */
type Chain = Readonly<{
  tokens: number;
  ends: readonly number[];
  seeds: readonly number[];
  mark: number;
  node: number;
}>;
/** Somebody's latest requests, and how many tokens those add that go on with one of them. */
type Member = { readonly chains: Chain[]; addedTokens: number };

/** Conversations that one person is in at once. */
const chainsMax = 8;
const membersMax = 50_000;
/** Caches hold whole blocks of 16 tokens, and templates may change the end of a prompt. */
const slackTokens = 64;
/** A request that has at least this part of an earlier one goes on with it. */
const continuedPart = 0.8;
/** How much the latest request that goes on weighs in the mean of what such ones add. */
const addedPart = 0.1;
const addedTimesMax = 2;

export class PromptChains {
  readonly #members = new Map<string, Member>();
  #made = 0;

  next({ who, model, input, cached, output, node }: Asking): Prompt {
    const key = `${who} ${model}`;
    const member = this.#members.get(key) ?? { chains: [], addedTokens: 0 };
    const { chains } = member;
    this.#members.delete(key);
    this.#members.set(key, member);
    if (this.#members.size > membersMax) this.#members.delete(this.#members.keys().next().value!);
    const moved = movedFrom(member, input, cached, node);
    const before = moved ?? (cached === 0 ? null : bestOf(chains, cached));
    const common: Chain = { tokens: Infinity, ends: [Infinity], seeds: [mixed(model + 1)], mark: 0, node };
    const known = moved === null ? cached : Math.min(moved.tokens, input - 1);
    const run = { tokens: input + output, seed: mixed(0x9e3779b1 ^ ++this.#made), node };
    const chain = continued(before ?? common, blocksIn(known), run);
    const goesOn = before !== null && known >= continuedPart * before.tokens;
    if (goesOn) {
      chains.splice(chains.indexOf(before), 1);
      if (moved === null) member.addedTokens += addedPart * (input - before.tokens - member.addedTokens);
    }
    chains.push(chain);
    if (chains.length > chainsMax) chains.shift();
    const keys = keysOf(chain, blocksIn(input + output));
    const blocks: PromptBlocks = {
      hashes: keys.subarray(0, blocksIn(input)),
      bytes: input * bytesPerToken,
      end: chain.mark,
      before: goesOn ? before.mark : 0,
      beforeBytes: goesOn ? known * bytesPerToken : 0,
    };
    return { blocks, keys, knownTokens: known };
  }
}

/** The only request on another node that this one may go on with; null where there are none or several. */
function movedFrom({ chains, addedTokens }: Member, input: number, cached: number, node: number): Chain | null {
  if (node < 0) return null;
  const fitting = chains.filter((chain) => {
    const added = input - chain.tokens;
    const isOther = chain.node >= 0 && chain.node !== node && cached < continuedPart * chain.tokens;
    return isOther && added > 0 && added <= addedTimesMax * addedTokens;
  });
  return fitting.length === 1 ? fitting[0]! : null;
}

/** The last of which all whole blocks were cached, else the last that is long enough. */
function bestOf(chains: readonly Chain[], cached: number): Chain | null {
  const wholeTokens = blockBytes(blocksIn(cached)) / bytesPerToken;
  const long = chains.filter(({ tokens }) => tokens + slackTokens >= cached);
  return long.findLast(({ tokens }) => tokens < cached + wholeTokens) ?? long.at(-1) ?? null;
}

type Run = Readonly<{ tokens: number; seed: number; node: number }>;

function continued({ ends, seeds }: Chain, blocks: number, { tokens, seed, node }: Run): Chain {
  let runs = 0;
  while (runs < ends.length && ends[runs]! < blocks) runs++;
  const isEmpty = blocks === 0;
  const kept = isEmpty ? 0 : Math.min(runs + 1, ends.length);
  return {
    tokens,
    ends: [...ends.slice(0, kept).map((end) => Math.min(end, blocks)), Infinity],
    seeds: [...seeds.slice(0, kept), seed],
    mark: mixed(seed) || 1,
    node,
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
