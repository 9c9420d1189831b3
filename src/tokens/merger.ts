// Byte-pair merging, from the left to the right. The tokens that merging gives are the one row in which each two
// neighbours can stand together (tokenizer.ts says why), so the row is built like this: the longest token that can stand
// beside the one before; where none can, the one before is taken back for the next shorter one. A place from which the
// row could not go on is not gone to again, so that each place is left once at most. tiktoken looks through all
// pairs for every merge, which takes minutes for a megabyte of one letter.
import { assert } from "../assert.ts";
import { MergeTable } from "./merge-table.ts";
import { PrefixTree } from "./prefix-tree.ts";
import type { Vocabulary } from "./vocabulary.ts";

const none = -1;

export class Merger {
  readonly #vocabulary: Vocabulary;
  readonly #tree: PrefixTree;
  readonly #table: MergeTable;
  #capacity = 0;
  /** 1 at each place, counted from the start, from which the row cannot go on. */
  #blocked = new Uint8Array();
  #tries = 0;

  /** Tokens of the last merge, and where in the bytes each ends. */
  tokens = new Int32Array();
  ends = new Int32Array();

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
    this.#tree = new PrefixTree(vocabulary);
    this.#table = new MergeTable(vocabulary, this.#tree);
  }

  /** Tokens looked for, tokens tried and pairs looked up since the merger was made. */
  get steps(): number {
    return this.#tries + this.#tree.steps + this.#table.steps;
  }

  /**
   * Merges the bytes from `start` to before `end`, beside the token `neighbour` on their left if there is one. Returns
   * the number of tokens, which are in `tokens` and `ends`; 0 where that neighbour cannot stand there.
   */
  merge(bytes: Uint8Array, start: number, end: number, neighbour: number | null = null): number {
    if (end - start > this.#capacity) this.#grow(end - start);
    const { tokens, ends } = this;
    const blocked = this.#blocked.fill(0, 0, end - start + 1);
    const vocabulary = this.#vocabulary;
    const tree = this.#tree;
    const first = neighbour ?? none;
    let count = 0;
    let at = start;
    let before = first;
    let token = tree.longest(bytes, start, end);
    while (at < end) {
      while (token !== none && !this.#fits(before, token, at - start)) token = tree.shorter[token]!;
      if (token !== none) {
        at += vocabulary.lengthOf(token);
        tokens[count] = token;
        ends[count++] = at;
        before = token;
        token = tree.longest(bytes, at, end);
      } else if (count > 0) {
        blocked[at - start] = 1;
        token = before; // leads to a blocked place now, so that a shorter one is next
        count--;
        at = count === 0 ? start : ends[count - 1]!;
        before = count === 0 ? first : tokens[count - 1]!;
      } else {
        assert(neighbour !== null, "every text has a row of tokens");
        return 0;
      }
    }
    return count;
  }

  #fits(before: number, token: number, place: number): boolean {
    this.#tries++;
    if (this.#blocked[place + this.#vocabulary.lengthOf(token)] === 1) return false;
    return before === none || this.#table.standTogether(before, token);
  }

  #grow(length: number): void {
    this.#capacity = 2 ** Math.ceil(Math.log2(length));
    this.#blocked = new Uint8Array(this.#capacity + 1);
    this.tokens = new Int32Array(this.#capacity);
    this.ends = new Int32Array(this.#capacity);
  }
}
