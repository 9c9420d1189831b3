// Which two tokens can stand beside each other: those that merging their bytes gives again. Known from the last merge
// of each token, without looking at a byte.
import { assert } from "../assert.ts";
import type { PrefixTree } from "./prefix-tree.ts";
import { hashAppend, type Vocabulary } from "./vocabulary.ts";

const none = -1;
/** 38 % full: a search looks at 1.3 slots on average. */
const slotsLog2 = 19;
const slotMask = 2 ** slotsLog2 - 1;
/** 256 KiB, which a core's cache holds; says of 19 in 20 pairs that are not merged that they are not. */
const filterBitsLog2 = 21;
/** 16,384 answers; texts that ask much, such as long runs of dashes, ask the same again and again. */
const knownLog2 = 14;
/** Fewer looks than this are not dearer than remembering. */
const knownLooksMin = 4;

export class MergeTable {
  /** Pairs looked up since the table was made. */
  steps = 0;
  /** By rank: the two tokens of its last merge; of a byte itself. */
  readonly #lefts: Int32Array;
  readonly #rights: Int32Array;
  /** Ranks by the two tokens of their last merge. */
  readonly #slotRanks = new Int32Array(2 ** slotsLog2).fill(none);
  readonly #filter = new Int32Array(2 ** (filterBitsLog2 - 5));
  /** Answers given before, two numbers each: the left token, and the right one * 2 + the answer. */
  readonly #known = new Int32Array(2 * 2 ** knownLog2).fill(none);

  constructor(vocabulary: Vocabulary, tree: PrefixTree) {
    this.#lefts = new Int32Array(vocabulary.size);
    this.#rights = new Int32Array(vocabulary.size);
    for (let rank = 0; rank < vocabulary.size; rank++) this.#enter(rank, vocabulary, tree);
    this.steps = 0;
  }

  /** Whether merging the bytes of both together gives the two again. */
  standTogether(left: number, right: number): boolean {
    const known = this.#known;
    const at = 2 * (hashOf(left, right) >>> (32 - knownLog2));
    const before = this.steps++;
    if (known[at] === left && known[at + 1]! >> 1 === right) return (known[at + 1]! & 1) === 1;
    const answer = this.#borderStands(left, right);
    if (this.steps - before >= knownLooksMin) {
      known[at] = left;
      known[at + 1] = (right << 1) | (answer ? 1 : 0);
    }
    return answer;
  }

  /**
   * Undoes the merges of both, the last one first (it has the higher rank), and asks each time whether the two parts at
   * the border would have been merged before it. Of two pairs with the same rank the left one is merged first: across
   * the border that is before a merge on the right of it, but after one on the left.
   */
  #borderStands(leftToken: number, rightToken: number): boolean {
    const lefts = this.#lefts;
    const rights = this.#rights;
    let left = leftToken;
    let right = rightToken;
    /** A merge across the border with a rank from here on would have come too late. */
    let tooLate = lefts.length;
    for (;;) {
      this.steps++;
      const merged = this.#find(left, right);
      if (merged !== none && merged < tooLate) return false;
      const leftIsLast = left > right;
      if (leftIsLast && rights[left] !== left) {
        tooLate = left;
        left = rights[left]!;
      } else if (lefts[right] !== right) {
        tooLate = right + 1;
        right = lefts[right]!;
      } else if (rights[left] !== left) {
        tooLate = left;
        left = rights[left]!;
      } else {
        return true;
      }
    }
  }

  /** Finds out the token's last merge; those of lower ranks are known. */
  #enter(rank: number, vocabulary: Vocabulary, tree: PrefixTree): void {
    this.#lefts[rank] = rank;
    this.#rights[rank] = rank;
    const start = vocabulary.starts[rank]!;
    const end = vocabulary.starts[rank + 1]!;
    if (end - start === 1) return;
    for (let left = tree.shorter[rank]!; left !== none; left = tree.shorter[left]!) {
      const right = left < rank ? tokenOf(vocabulary, start + vocabulary.lengthOf(left), end) : none;
      if (right === none || right > rank || !this.#borderStands(left, right)) continue;
      this.#lefts[rank] = left;
      this.#rights[rank] = right;
      this.#insert(rank, hashOf(left, right));
      return;
    }
    // Else the token could only be a piece by itself, and no row of tokens could hold it.
    assert(false, "every token is the merge of two");
  }

  #insert(rank: number, hash: number): void {
    const bit = hash >>> (32 - filterBitsLog2);
    this.#filter[bit >>> 5]! |= 1 << (bit & 31);
    let slot = hash >>> (32 - slotsLog2);
    while (this.#slotRanks[slot] !== none) slot = (slot + 1) & slotMask;
    this.#slotRanks[slot] = rank;
  }

  /** The token that the two are merged to, or -1. */
  #find(left: number, right: number): number {
    const hash = hashOf(left, right);
    const bit = hash >>> (32 - filterBitsLog2);
    if ((this.#filter[bit >>> 5]! & (1 << (bit & 31))) === 0) return none;
    const ranks = this.#slotRanks;
    for (let slot = hash >>> (32 - slotsLog2); ; slot = (slot + 1) & slotMask) {
      const rank = ranks[slot]!;
      if (rank === none || (this.#lefts[rank] === left && this.#rights[rank] === right)) return rank;
    }
  }
}

/** The token of the vocabulary's own bytes from `start` to before `end`, or -1. */
function tokenOf(vocabulary: Vocabulary, start: number, end: number): number {
  const { bytes } = vocabulary;
  let hash = 0;
  for (let at = start; at < end; at++) hash = hashAppend(hash, bytes[at]!);
  return vocabulary.find(bytes, start, end, hash);
}

function hashOf(left: number, right: number): number {
  const mixed = Math.imul(left, 0x2c1b3c6d) ^ Math.imul(right, 0x297a2d39);
  return Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
}
