// An encoding's byte sequences and their ranks (a token's id is its rank), in flat arrays: about 7 MB for o200k_base
// instead of the tens that a Map of strings takes.
import { assert } from "../core/assert.ts";
import type { EncodingName } from "../core/types.ts";
import { readSequences, type Sequences } from "./sequences.ts";

/** Odd, so that it has an inverse modulo 2^32 and every byte of a slice counts. */
const hashBase = 0x01000193;
/** 38 % full: a search reads 1.3 slots on average. */
const slotsLog2 = 19;
const slotMask = 2 ** slotsLog2 - 1;
const emptySlot = -1;

/** The hash of a sequence with one more byte; starts from 0. Signed 32-bit. */
export function hashAppend(hash: number, byte: number): number {
  return (Math.imul(hash, hashBase) + byte + 1) | 0;
}

export class Vocabulary {
  /** Ranks are 0 to size - 1. */
  readonly size: number;
  /** No token is longer. */
  readonly longestBytes: number;
  /** Every sequence, one after the other, by rank. */
  readonly bytes: Uint8Array;
  /** Where a rank's sequence starts; one entry more than there are ranks. An unused rank has no bytes. */
  readonly starts: Uint32Array;
  readonly #slotRanks: Int32Array;
  /** The hash of the slot's sequence: a different one saves the comparison. */
  readonly #slotHashes: Int32Array;

  constructor({ bytes, starts }: Sequences) {
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
      if (end > start) this.#insert(rank, start, end);
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

/** Similar hashes (one byte apart) would crowd neighboring slots: the multiplication spreads them. */
function slotOf(hash: number): number {
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> (32 - slotsLog2);
}

/** An encoding of the tiktoken package. */
export function loadVocabulary(encoding: EncodingName): Vocabulary {
  return new Vocabulary(readSequences(encoding));
}
