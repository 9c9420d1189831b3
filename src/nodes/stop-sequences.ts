// Finds the first of several stop sequences in a text that comes in pieces, in linear time (Aho and Corasick, 1975).

/** Which sequence was found, and where it ends, counted from the start of the piece. */
export type Found = Readonly<{ end: number; sequence: string }>;

const unitValues = 0x1_0000;

export class StopSequences {
  /** `state * 65,536 + unit` -> state: the trie of the sequences. */
  readonly #next = new Map<number, number>();
  /** By state: the units of a sequence that it stands for, where to go when no unit fits, and the sequence that ends there. */
  readonly #depth: number[] = [0];
  readonly #otherwise: number[] = [0];
  readonly #ends: (string | null)[] = [null];
  #state = 0;

  constructor(sequences: readonly string[]) {
    for (const sequence of sequences) this.#add(sequence);
    this.#link();
  }

  /** Units at the end of the text so far that may belong to a sequence. */
  get pending(): number {
    return this.#depth[this.#state]!;
  }

  /** The first sequence that ends in the piece; the longest if several end there. */
  find(piece: string): Found | null {
    for (let at = 0; at < piece.length; at++) {
      this.#state = this.#after(this.#state, piece.charCodeAt(at));
      const sequence = this.#ends[this.#state]!;
      if (sequence !== null) return { end: at + 1, sequence };
    }
    return null;
  }

  /** The next piece does not continue the text. */
  restart(): void {
    this.#state = 0;
  }

  #add(sequence: string): void {
    let state = 0;
    for (let at = 0; at < sequence.length; at++) {
      const key = state * unitValues + sequence.charCodeAt(at);
      let next = this.#next.get(key);
      if (next === undefined) {
        next = this.#depth.push(at + 1) - 1;
        this.#otherwise.push(0);
        this.#ends.push(null);
        this.#next.set(key, next);
      }
      state = next;
    }
    this.#ends[state] = sequence;
  }

  /** By depth, because a fallback state is always less deep. */
  #link(): void {
    const edges = [...this.#next].sort(([, one], [, other]) => this.#depth[one]! - this.#depth[other]!);
    for (const [key, state] of edges) {
      const before = Math.floor(key / unitValues);
      const unit = key % unitValues;
      const otherwise = before === 0 ? 0 : this.#after(this.#otherwise[before]!, unit);
      this.#otherwise[state] = otherwise;
      this.#ends[state] ??= this.#ends[otherwise]!;
    }
  }

  #after(from: number, unit: number): number {
    for (let state = from; ; state = this.#otherwise[state]!) {
      const next = this.#next.get(state * unitValues + unit);
      if (next !== undefined) return next;
      if (state === 0) return 0;
    }
  }
}
