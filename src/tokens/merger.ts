// Byte-pair merging: of all neighbors that can merge, those with the lowest rank do, the leftmost first, until none
// can. tiktoken scans all pairs for every merge, which takes minutes for a megabyte of one letter. Here the pairs are
// the leaves of a tree whose nodes are the lesser of their two children. The next merge is at the root, and a merge
// changes three leaves and their ancestors. The time depends only on the number of bytes and merges.
import { assert } from "../core/assert.ts";
import { none, PairTable, tokenBits } from "./pair-table.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** A leaf is the rank of its pair's merged token and, in the lower bits, its place, so that the leftmost of equals is least. */
const placeBits = 31 - tokenBits;
const placeMask = 2 ** placeBits - 1;
/** The leaf of a pair that cannot merge; above all others. */
const never = 2 ** 31 - 1;

/** Longer stretches cannot be merged at once. */
export const mergedBytesMax = 2 ** placeBits;

export class Merger {
  readonly #pairs = new PairTable();
  /** Tokens of single bytes and of two bytes, from which every merge starts. */
  readonly #byteTokens = new Int32Array(2 ** 8).fill(none);
  readonly #twoByteTokens = new Int32Array(2 ** 16).fill(none);

  /** The parts, named by the index of their first byte: their token, where the next begins, and where the previous one. */
  readonly #tokens = new Int32Array(mergedBytesMax);
  readonly #nexts = new Int32Array(mergedBytesMax);
  readonly #befores = new Int32Array(mergedBytesMax + 1);
  /** Node n is the lesser of nodes 2n and 2n + 1. The leaf of the pair whose left part is at `place` is `pairs + place`. */
  readonly #tree = new Int32Array(2 * mergedBytesMax);

  /** Tokens of the last merge, and where in the bytes each ends. */
  readonly tokens = new Int32Array(mergedBytesMax);
  readonly ends = new Int32Array(mergedBytesMax);
  /** Bytes read and merges made since the merger was created. */
  steps = 0;

  constructor({ size, bytes, starts }: Vocabulary) {
    assert(size <= 2 ** tokenBits && size <= never >>> placeBits, "a token fits in a leaf and in the table");
    for (let token = 0; token < size; token++) {
      const start = starts[token]!;
      if (starts[token + 1]! - start === 1) this.#byteTokens[bytes[start]!] = token;
    }
    // Merging a token's bytes by lower ranks leaves the two tokens that merge to it.
    for (let token = 0; token < size; token++) {
      const start = starts[token]!;
      const end = starts[token + 1]!;
      if (end - start < 2) continue;
      const count = this.merge(bytes, start, end);
      assert(count === 2, "every token is the merge of two");
      this.#pairs.insert(this.tokens[0]!, this.tokens[1]!, token);
      if (end - start === 2) this.#twoByteTokens[(bytes[start]! << 8) | bytes[start + 1]!] = token;
    }
    this.steps = 0;
  }

  /** Merges the bytes from `start` to before `end`, at most `mergedBytesMax`; returns the number of tokens. */
  merge(bytes: Uint8Array, start: number, end: number): number {
    assert(end > start && end - start <= mergedBytesMax, "there are bytes, and each has a place");
    const length = end - start;
    this.#lay(bytes, start, length);
    if (length > 1) this.#mergeAll(length);
    this.steps += length;
    return this.#collect(start, length);
  }

  #lay(bytes: Uint8Array, start: number, length: number): void {
    const tokens = this.#tokens;
    const nexts = this.#nexts;
    const befores = this.#befores;
    const tree = this.#tree;
    const byteTokens = this.#byteTokens;
    const twoByteTokens = this.#twoByteTokens;
    const pairs = length - 1;
    let byte = bytes[start]!;
    for (let place = 0; place < pairs; place++) {
      const next = bytes[start + place + 1]!;
      const merged = twoByteTokens[(byte << 8) | next]!;
      tokens[place] = byteTokens[byte]!;
      nexts[place] = place + 1;
      befores[place + 1] = place;
      tree[pairs + place] = leafOf(merged, place);
      byte = next;
    }
    tokens[pairs] = byteTokens[byte]!;
    nexts[pairs] = length;
    befores[0] = none;
    for (let node = pairs - 1; node > 0; node--) tree[node] = Math.min(tree[2 * node]!, tree[2 * node + 1]!);
  }

  #mergeAll(length: number): void {
    const tokens = this.#tokens;
    const nexts = this.#nexts;
    const befores = this.#befores;
    const tree = this.#tree;
    const table = this.#pairs;
    const pairs = length - 1;
    for (let least = tree[1]!; least !== never; least = tree[1]!) {
      const merged = least >>> placeBits;
      const place = least & placeMask;
      const right = nexts[place]!;
      const after = nexts[right]!;
      const before = befores[place]!;
      tokens[place] = merged;
      nexts[place] = after;
      befores[after] = place;
      if (right < pairs) setLeaf(tree, pairs + right, never);
      if (before !== none) setLeaf(tree, pairs + before, leafOf(table.find(tokens[before]!, merged), before));
      const next = after < length ? table.find(merged, tokens[after]!) : none;
      setLeaf(tree, pairs + place, leafOf(next, place));
      this.steps++;
    }
  }

  #collect(start: number, length: number): number {
    let count = 0;
    for (let place = 0; place < length;) {
      this.tokens[count] = this.#tokens[place]!;
      place = this.#nexts[place]!;
      this.ends[count++] = start + place;
    }
    return count;
  }
}

function leafOf(merged: number, place: number): number {
  return merged === none ? never : (merged << placeBits) | place;
}

/** Sets a leaf, and the nodes above it as far as they change. */
function setLeaf(tree: Int32Array, leaf: number, value: number): void {
  let least = value;
  let node = leaf;
  tree[node] = least;
  while (node > 1) {
    // Math.min compiles without a branch, and which of the two is less is unpredictable.
    least = Math.min(least, tree[node ^ 1]!);
    node >>= 1;
    if (tree[node] === least) return;
    tree[node] = least;
  }
}
