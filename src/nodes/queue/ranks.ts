// Entries in the order of their shares, each with what waits in it.
import type { Share } from "./share.ts";
import { TagHeap } from "./tag-heap.ts";

export class Ranked<Key, Inside> {
  at = 0;

  constructor(
    readonly key: Key,
    readonly share: Share,
    readonly inside: Inside,
    readonly order: number,
    readonly moved: () => void,
  ) {}

  get tag(): number {
    return this.share.tag;
  }
}

export class Ranks<Key, Inside> {
  readonly #heap = new TagHeap<Ranked<Key, Inside>>();
  readonly #byKey = new Map<Key, Ranked<Key, Inside>>();

  get length(): number {
    return this.#heap.length;
  }

  get first(): Ranked<Key, Inside> | null {
    return this.#heap.first;
  }

  get(key: Key): Ranked<Key, Inside> | undefined {
    return this.#byKey.get(key);
  }

  /** `order`: breaks ties between equal tags. */
  add(key: Key, share: Share, inside: Inside, order: number): Ranked<Key, Inside> {
    const one: Ranked<Key, Inside> = new Ranked(key, share, inside, order, () => this.#heap.moved(one));
    this.#byKey.set(key, one);
    this.#heap.add(one);
    share.lines.add(one);
    return one;
  }

  remove(one: Ranked<Key, Inside>): void {
    this.#byKey.delete(one.key);
    this.#heap.remove(one);
    one.share.lines.delete(one);
  }

  /** From the first on; nothing may change until the caller is done. */
  inOrder(): Generator<Ranked<Key, Inside>> {
    return this.#heap.inOrder();
  }

  /** In any order. */
  [Symbol.iterator](): Iterator<Ranked<Key, Inside>> {
    return this.#byKey.values();
  }
}
