// The byte sequences of o200k_base and their ranks (a token's id is its rank), in flat arrays: about 7 MB instead of the
// tens that a Map of strings takes. A sequence is found by a polynomial hash, because the hash of any slice of a text
// then follows from the hashes of two prefixes in constant time (merger.ts), whatever the slice's length.
import o200kBase from "tiktoken/encoders/o200k_base.json" with { type: "json" };
import { assert } from "../assert.ts";

const head = "! 0 ";

/** Odd, so that it has an inverse modulo 2^32 and no byte of a slice loses its weight. */
export const hashBase = 0x01000193;
/** 38 % full: a search looks at 1.3 slots on average. */
const slotsLog2 = 19;
const slotMask = 2 ** slotsLog2 - 1;
const emptySlot = -1;

const space = 0x20;
const padding = 0x3d;

/** The hash of a sequence with one more byte; a sequence starts from 0. Signed 32-bit. */
export function hashAppend(hash: number, byte: number): number {
  return (Math.imul(hash, hashBase) + byte + 1) | 0;
}

export class Vocabulary {
  /** Number of ranks, which are 0 to size - 1. */
  readonly size: number;
  /** No token is longer. */
  readonly longestBytes: number;
  /** Every sequence, one after the other, by rank. */
  readonly bytes: Uint8Array;
  /** Where a rank's sequence starts; one more than there are ranks. */
  readonly starts: Uint32Array;
  readonly #slotRanks: Int32Array;
  /** The hash of the slot's sequence: a differing one saves the comparison. */
  readonly #slotHashes: Int32Array;

  /** `ranks`: one line of `! <first rank> <base64> <base64> ...`, the form in which the tiktoken package keeps them. */
  constructor(ranks: string) {
    assert(ranks.startsWith(head) && !ranks.includes("\n"), "the ranks are one line that counts from 0");
    const { bytes, starts } = decodeSequences(ranks);
    this.size = starts.length - 1;
    this.bytes = bytes;
    this.starts = starts;
    this.#slotRanks = new Int32Array(2 ** slotsLog2).fill(emptySlot);
    this.#slotHashes = new Int32Array(2 ** slotsLog2);
    assert(this.size * 2 <= slotMask, "the table is at most half full");
    let longest = 0;
    for (let rank = 0; rank < this.size; rank++) {
      const start = starts[rank]!;
      const end = starts[rank + 1]!;
      longest = Math.max(longest, end - start);
      this.#insert(rank, start, end);
    }
    this.longestBytes = longest;
  }

  /** The rank of the slice, or -1 where it is no token. `hash` is `hashAppend` over its bytes. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const ranks = this.#slotRanks;
    const hashes = this.#slotHashes;
    for (let slot = slotOf(hash); ; slot = (slot + 1) & slotMask) {
      const rank = ranks[slot]!;
      if (rank === emptySlot || (hashes[slot] === hash && this.#equals(rank, bytes, start, end))) return rank;
    }
  }

  /** Bytes of the token. */
  lengthOf(rank: number): number {
    return this.starts[rank + 1]! - this.starts[rank]!;
  }

  /** Every rank, those of short tokens first. */
  ranksByLength(): Uint32Array {
    const places = new Uint32Array(this.longestBytes + 2);
    for (let rank = 0; rank < this.size; rank++) places[this.lengthOf(rank) + 1]!++;
    for (let length = 1; length < places.length; length++) places[length]! += places[length - 1]!;
    const ranks = new Uint32Array(this.size);
    for (let rank = 0; rank < this.size; rank++) ranks[places[this.lengthOf(rank)]!++] = rank;
    return ranks;
  }

  #equals(rank: number, bytes: Uint8Array, start: number, end: number): boolean {
    const own = this.bytes;
    let ownAt = this.starts[rank]!;
    if (this.starts[rank + 1]! - ownAt !== end - start) return false;
    for (let at = start; at < end; at++, ownAt++) if (own[ownAt] !== bytes[at]) return false;
    return true;
  }

  #insert(rank: number, start: number, end: number): void {
    let hash = 0;
    for (let at = start; at < end; at++) hash = hashAppend(hash, this.bytes[at]!);
    let slot = slotOf(hash);
    while (this.#slotRanks[slot] !== emptySlot) slot = (slot + 1) & slotMask;
    this.#slotRanks[slot] = rank;
    this.#slotHashes[slot] = hash;
  }
}

/** Neighbouring hashes (one byte apart) would crowd neighbouring slots: the multiplication spreads them. */
function slotOf(hash: number): number {
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> (32 - slotsLog2);
}

const sextets = new Int8Array(128).fill(-1);
for (const [value, digit] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  sextets[digit.charCodeAt(0)] = value;
}

/** Every sequence of the line. By hand, because 200,000 calls of a base64 decoder take 250 ms and this takes 20. */
function decodeSequences(ranks: string): { bytes: Uint8Array; starts: Uint32Array } {
  const bytes = new Uint8Array(ranks.length);
  const starts: number[] = [0];
  let end = 0;
  let bits = 0;
  let bitCount = 0;
  for (let at = head.length; at <= ranks.length; at++) {
    const digit = at === ranks.length ? space : ranks.charCodeAt(at);
    if (digit === space) {
      if (end > starts.at(-1)!) starts.push(end);
      bitCount = 0;
    } else if (digit !== padding) {
      const sextet = sextets[digit] ?? -1;
      assert(sextet >= 0, "the ranks are base64");
      bits = (bits << 6) | sextet;
      bitCount += 6;
      if (bitCount >= 8) {
        bitCount -= 8;
        bytes[end++] = bits >>> bitCount;
      }
    }
  }
  return { bytes: bytes.slice(0, end), starts: Uint32Array.from(starts) };
}

/** o200k_base as the tiktoken package has it. */
export function loadVocabulary(): Vocabulary {
  return new Vocabulary(o200kBase.bpe_ranks);
}
