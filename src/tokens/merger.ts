// Byte-pair merging in n log n: of all neighbouring parts whose bytes together are a token, the two with the lowest rank
// are merged, of several such pairs the leftmost, until there is none. A heap holds the pairs in this order; the parts
// are a linked list. tiktoken looks through all pairs for every merge, which takes minutes for a megabyte of one letter.
import { hashAppend, hashBase, type Vocabulary } from "./vocabulary.ts";

const none = -1;

export class Merger {
  readonly #vocabulary: Vocabulary;
  /** hashBase to the power of the index, for slices up to the longest token. */
  readonly #powers: Int32Array;
  #capacity = 0;
  /** Hash of the bytes before the index. */
  #prefixHashes = new Int32Array();
  // Of the part that starts at the index: where the next and the one before start, its token, and the rank of the token
  // that it makes with the next (none: no such token, or no part starts here any more).
  #next = new Int32Array();
  #previous = new Int32Array();
  #tokens = new Int32Array();
  #pairRanks = new Int32Array();
  /** rank * 2^26 + start of each pair, so that numbers are in the order of merging; outdated ones are left in. */
  #heap = new Float64Array();
  #heapSize = 0;

  /** Tokens of the last merge, and where in the bytes each ends. */
  tokens = new Int32Array();
  ends = new Int32Array();
  /** Pairs looked up and heap levels climbed since the merger was made. */
  steps = 0;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
    this.#powers = new Int32Array(vocabulary.longestBytes + 1).fill(1);
    for (let power = 1; power <= vocabulary.longestBytes; power++) {
      this.#powers[power] = Math.imul(this.#powers[power - 1]!, hashBase);
    }
  }

  /** Merges the bytes from `start` to before `end`; returns the number of tokens, which are in `tokens` and `ends`. */
  merge(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start;
    if (length > this.#capacity) this.#grow(length);
    this.#separate(bytes, start, length);
    const next = this.#next;
    const previous = this.#previous;
    const pairRanks = this.#pairRanks;
    while (this.#heapSize > 0) {
      const pair = this.#pop();
      const rank = Math.floor(pair / pairSpan);
      const left = pair - rank * pairSpan;
      if (pairRanks[left] !== rank) continue; // one of the two has been merged with another since
      const right = next[left]!;
      const after = next[right]!;
      this.#tokens[left] = rank;
      next[left] = after;
      previous[after] = left;
      pairRanks[right] = none;
      this.#rate(bytes, start, left, length);
      if (left > 0) this.#rate(bytes, start, previous[left]!, length);
    }
    return this.#collect(start, length);
  }

  /** Every byte a part of its own. */
  #separate(bytes: Uint8Array, start: number, length: number): void {
    let hash = 0;
    for (let at = 0; at < length; at++) {
      const byte = bytes[start + at]!;
      this.#prefixHashes[at] = hash;
      this.#next[at] = at + 1;
      this.#previous[at] = at - 1;
      this.#tokens[at] = this.#vocabulary.find(bytes, start + at, start + at + 1, hashAppend(0, byte));
      hash = hashAppend(hash, byte);
    }
    this.#prefixHashes[length] = hash;
    this.#heapSize = 0;
    for (let at = 0; at < length; at++) this.#rate(bytes, start, at, length);
  }

  /** Looks up what the part at `left` makes with the next one. */
  #rate(bytes: Uint8Array, start: number, left: number, length: number): void {
    this.steps++;
    this.#pairRanks[left] = none;
    const right = this.#next[left]!;
    if (right === length) return;
    const end = this.#next[right]!;
    if (end - left > this.#vocabulary.longestBytes) return;
    const weight = this.#powers[end - left]!;
    const hash = (this.#prefixHashes[end]! - Math.imul(this.#prefixHashes[left]!, weight)) | 0;
    const rank = this.#vocabulary.find(bytes, start + left, start + end, hash);
    if (rank === none) return;
    this.#pairRanks[left] = rank;
    this.#push(rank * pairSpan + left);
  }

  #collect(start: number, length: number): number {
    let count = 0;
    for (let at = 0; at < length; at = this.#next[at]!) {
      this.tokens[count] = this.#tokens[at]!;
      this.ends[count++] = start + this.#next[at]!;
    }
    return count;
  }

  #push(pair: number): void {
    this.#rise(this.#heapSize++, pair);
  }

  #rise(hole: number, pair: number): void {
    const heap = this.#heap;
    let at = hole;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]! <= pair) break;
      heap[at] = heap[parent]!;
      at = parent;
      this.steps++;
    }
    heap[at] = pair;
  }

  /** The hole at the top goes down along the smaller children; the last pair, mostly a late one, then rises but little. */
  #pop(): number {
    const heap = this.#heap;
    const top = heap[0]!;
    const size = --this.#heapSize;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && heap[child + 1]! < heap[child]!) child++;
      heap[at] = heap[child]!;
      at = child;
      this.steps++;
    }
    this.#rise(at, heap[size]!);
    return top;
  }

  #grow(length: number): void {
    this.#capacity = 2 ** Math.ceil(Math.log2(length));
    this.#prefixHashes = new Int32Array(this.#capacity + 1);
    this.#next = new Int32Array(this.#capacity);
    this.#previous = new Int32Array(this.#capacity + 1);
    this.#tokens = new Int32Array(this.#capacity);
    this.#pairRanks = new Int32Array(this.#capacity);
    // One pair for each byte, and two for each merge, of which there are fewer than bytes.
    this.#heap = new Float64Array(3 * this.#capacity);
    this.tokens = new Int32Array(this.#capacity);
    this.ends = new Int32Array(this.#capacity);
  }
}

/** A body has at most 2^25 bytes; ranks have 18 bits, so that the product stays far below 2^53. */
const pairSpan = 2 ** 26;
