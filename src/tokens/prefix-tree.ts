// The longest token that a text goes on with: a tree of bytes in which each token ends at the node of its own rank, so
// that walking down needs no second table. Nodes where no token ends are numbered after the ranks.
import type { Vocabulary } from "./vocabulary.ts";

const none = -1;
/** 40 % full: a step looks at 1.3 slots on average. */
const slotsLog2 = 20;
/** 512 KiB, which a core's cache holds; says of 9 in 10 steps that lead nowhere that they do. */
const filterBitsLog2 = 22;
const slotMask = 2 ** slotsLog2 - 1;

export class PrefixTree {
  /** By rank: the longest other token that the token begins with, or -1. */
  readonly shorter: Int32Array;
  /** Tokens looked for since the tree was made. */
  steps = 0;
  /** Nodes below this are tokens. */
  readonly #tokenCount: number;
  #nodeCount: number;
  /** The nodes of the first byte and of the first two. */
  readonly #firstNodes = new Int32Array(2 ** 8).fill(none);
  readonly #secondNodes = new Int32Array(2 ** 16).fill(none);
  /** A bit for the hash of each other step: most walks end with one that is not there. */
  readonly #filter = new Int32Array(2 ** (filterBitsLog2 - 5));
  /** The other steps, two numbers a slot: node * 256 + byte, and the node that this leads to. */
  readonly #slots = new Int32Array(2 * 2 ** slotsLog2).fill(none);
  /**
   * A run of one byte is a single step, since the tokens of dashes or spaces go up to 128 bytes: by byte the longest run
   * in the tree, and by byte * `#runsPerByte` + length the node and the longest token on the way to it.
   */
  readonly #runLengths = new Uint8Array(2 ** 8);
  readonly #runNodes: Int32Array;
  readonly #runTokens: Int32Array;
  readonly #runsPerByte: number;

  constructor(vocabulary: Vocabulary) {
    const { size, longestBytes, bytes, starts } = vocabulary;
    this.#tokenCount = size;
    this.#nodeCount = size;
    this.shorter = new Int32Array(size);
    this.#runsPerByte = longestBytes + 1;
    this.#runNodes = new Int32Array(2 ** 8 * this.#runsPerByte).fill(none);
    this.#runTokens = new Int32Array(2 ** 8 * this.#runsPerByte).fill(none);
    // Short ones first: when a token is entered, each shorter one that it begins with has its node.
    for (const rank of vocabulary.ranksByLength()) this.#enter(rank, bytes, starts[rank]!, starts[rank + 1]! - 1);
    for (let byte = 0; byte < 2 ** 8; byte++) this.#enterRuns(new Uint8Array(longestBytes).fill(byte));
  }

  /** The longest token at `start` that ends at `end` or before; -1 where `start` is `end`. */
  longest(bytes: Uint8Array, start: number, end: number): number {
    this.steps++;
    if (start === end) return none;
    const first = bytes[start]!;
    let found = this.#firstNodes[first]!;
    if (start + 1 === end) return found;
    const second = bytes[start + 1]!;
    let node = this.#secondNodes[(first << 8) | second]!;
    let at = start + 2;
    if (first === second && node !== none) {
      const runEnd = Math.min(end, start + this.#runLengths[first]!);
      while (at < runEnd && bytes[at] === first) at++;
      const run = first * this.#runsPerByte + (at - start);
      node = this.#runNodes[run]!;
      found = this.#runTokens[run]!;
    }
    for (; node !== none; at++) {
      if (node < this.#tokenCount) found = node;
      if (at === end) break;
      node = this.#child(node, bytes[at]!);
    }
    return found;
  }

  #enter(rank: number, bytes: Uint8Array, start: number, last: number): void {
    let node = none;
    let shorter = none;
    for (let at = start; at < last; at++) {
      let next = this.#next(bytes, start, at, node);
      if (next === none) {
        next = this.#nodeCount++;
        this.#link(bytes, start, at, node, next);
      } else if (next < this.#tokenCount) shorter = next;
      node = next;
    }
    this.#link(bytes, start, last, node, rank);
    this.shorter[rank] = shorter;
  }

  #enterRuns(run: Uint8Array): void {
    const byte = run[0]!;
    let node = none;
    let token = none;
    for (let index = 0; index < run.length; index++) {
      node = this.#next(run, 0, index, node);
      if (node === none) return;
      if (node < this.#tokenCount) token = node;
      this.#runLengths[byte] = index + 1;
      this.#runNodes[byte * this.#runsPerByte + index + 1] = node;
      this.#runTokens[byte * this.#runsPerByte + index + 1] = token;
    }
  }

  /** Where the byte at `at` leads to from `node`, the node of those from `start`; -1: no token goes on so. */
  #next(bytes: Uint8Array, start: number, at: number, node: number): number {
    const byte = bytes[at]!;
    if (at === start) return this.#firstNodes[byte]!;
    if (at === start + 1) return this.#secondNodes[(bytes[start]! << 8) | byte]!;
    return this.#child(node, byte);
  }

  #link(bytes: Uint8Array, start: number, at: number, node: number, next: number): void {
    const byte = bytes[at]!;
    if (at === start) {
      this.#firstNodes[byte] = next;
      return;
    }
    if (at === start + 1) this.#secondNodes[(bytes[start]! << 8) | byte] = next;
    else this.#insert(node * 256 + byte, next);
  }

  #child(node: number, byte: number): number {
    const slots = this.#slots;
    const key = node * 256 + byte;
    const hash = hashOf(key);
    const bit = hash >>> (32 - filterBitsLog2);
    if ((this.#filter[bit >>> 5]! & (1 << (bit & 31))) === 0) return none;
    for (let slot = hash >>> (32 - slotsLog2); ; slot = (slot + 1) & slotMask) {
      const found = slots[2 * slot]!;
      if (found === key) return slots[2 * slot + 1]!;
      if (found === none) return none;
    }
  }

  #insert(key: number, next: number): void {
    const hash = hashOf(key);
    const bit = hash >>> (32 - filterBitsLog2);
    this.#filter[bit >>> 5]! |= 1 << (bit & 31);
    let slot = hash >>> (32 - slotsLog2);
    while (this.#slots[2 * slot] !== none) slot = (slot + 1) & slotMask;
    this.#slots[2 * slot] = key;
    this.#slots[2 * slot + 1] = next;
  }
}

function hashOf(key: number): number {
  return Math.imul(key ^ (key >>> 15), 0x2c1b3c6d);
}
