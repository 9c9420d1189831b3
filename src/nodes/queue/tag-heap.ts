// The next of many entries: the lowest tag, and of equal tags the earliest. Any entry may leave from the middle.
import { assert } from "../../core/assert.ts";

/** `order`: when it came, to break ties. `at`: its index in the heap, which the heap maintains. */
export type Tagged = { readonly tag: number; readonly order: number; at: number };

export class TagHeap<T extends Tagged> {
  readonly #all: T[] = [];

  get length(): number {
    return this.#all.length;
  }
  get first(): T | null {
    return this.#all[0] ?? null;
  }

  add(one: T): void {
    one.at = this.#all.push(one) - 1;
    this.#rise(one);
  }

  remove(one: T): void {
    assert(this.#all[one.at] === one, "it is taken out of the heap that it is in");
    const last = this.#all.pop()!;
    if (last === one) return;
    this.#put(last, one.at);
    this.moved(last);
  }

  /** Its tag has changed. */
  moved(one: T): void {
    this.#rise(one);
    this.#sink(one);
  }

  /** From the first on; nothing may change until the caller is done. */
  *inOrder(): Generator<T> {
    if (this.#all.length === 0) return;
    const next = [0];
    while (next.length > 0) {
      let least = 0;
      for (let at = 1; at < next.length; at++)
        if (isBefore(this.#all[next[at]!]!, this.#all[next[least]!]!)) least = at;
      const at = next[least]!;
      next[least] = next.at(-1)!;
      next.pop();
      for (const child of [2 * at + 1, 2 * at + 2]) if (child < this.#all.length) next.push(child);
      yield this.#all[at]!;
    }
  }

  #rise(one: T): void {
    while (one.at > 0) {
      const above = this.#all[(one.at - 1) >> 1]!;
      if (!isBefore(one, above)) return;
      this.#swap(one, above);
    }
  }

  #sink(one: T): void {
    for (;;) {
      const [left, right] = [this.#all[2 * one.at + 1], this.#all[2 * one.at + 2]];
      if (left === undefined) return;
      const least = right !== undefined && isBefore(right, left) ? right : left;
      if (!isBefore(least, one)) return;
      this.#swap(one, least);
    }
  }

  #swap(one: T, other: T): void {
    const at = one.at;
    this.#put(one, other.at);
    this.#put(other, at);
  }

  #put(one: T, at: number): void {
    this.#all[at] = one;
    one.at = at;
  }
}

function isBefore(one: Tagged, other: Tagged): boolean {
  return one.tag < other.tag || (one.tag === other.tag && one.order < other.order);
}
