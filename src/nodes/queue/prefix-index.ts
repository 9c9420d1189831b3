// The prompt prefixes that a node is thought to have cached: blocks by their keys; the least recently used is
// evicted first. A block counts as used whenever a later block of its prompt is, and after it. So the end of a prompt
// is evicted before its beginning, as in engines, and the blocks that are present are a prompt's first ones.
import { blockBytes } from "./prompt-blocks.ts";

const none = 0xffff_ffff;
const entriesMin = 64;
/** About 22 bytes each. */
export const indexEntriesMax = 32_768;

/** Keys are 32-bit numbers. A collision is so rare and cheap that it is tolerated. */
export class PrefixIndex {
  #bytesMax: number;
  #bytes = 0;
  #size = 0;
  #buckets = new Uint32Array(2 * entriesMin).fill(none);
  #keys = new Uint32Array(entriesMin);
  #next = new Uint32Array(entriesMin);
  #newer = new Uint32Array(entriesMin);
  #older = new Uint32Array(entriesMin);
  /** In units of 256 bytes. The highest bit: sent there but not read yet. */
  #sizes = new Uint8Array(entriesMin);
  #free = none;
  #used = 0;
  #newest = none;
  #oldest = none;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of prompt text. */
  get bytes(): number {
    return this.#bytes;
  }
  get bytesMax(): number {
    return this.#bytesMax;
  }
  get blocks(): number {
    return this.#size;
  }
  get memoryBytes(): number {
    return 17 * this.#keys.length + 4 * this.#buckets.length;
  }

  limit(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#evict();
  }

  /** How many of the prompt's first blocks are present; with `read`, only those that the engine has read. */
  match(keys: Uint32Array, read = false, least = 0, most = keys.length): number {
    let [low, high] = [least, most];
    if (high > low && !this.#has(keys[low]!, read)) return low;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#has(keys[middle - 1]!, read)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The prompt is sent there. */
  use(keys: Uint32Array): void {
    for (let at = keys.length - 1; at >= 0; at--) {
      const found = this.#find(keys[at]!);
      if (found === none) this.#insert(keys[at]!, blockBytes(at) >> 8);
      else if (found !== this.#newest) {
        this.#unlink(found);
        this.#link(found);
      }
    }
    this.#evict();
  }

  /** The engine has answered the prompt that `mark` stands for, which took this much room beyond the prompt's blocks. */
  note(mark: number, bytes: number): void {
    if (this.has(mark)) return;
    this.#insert(mark, Math.min(sizeBits, Math.ceil(bytes / 256)));
    this.read(Uint32Array.of(mark), 0);
    this.#evict();
  }

  has(key: number): boolean {
    return this.#find(key) !== none;
  }

  /** The engine has read the blocks from `from` on. */
  read(keys: Uint32Array, from: number): void {
    for (let at = from; at < keys.length; at++) {
      const found = this.#find(keys[at]!);
      if (found !== none) this.#sizes[found]! &= sizeBits;
    }
  }

  forget(key: number): void {
    const found = this.#find(key);
    if (found !== none) this.#remove(found);
  }

  clear(): void {
    this.#buckets.fill(none);
    this.#free = this.#newest = this.#oldest = none;
    this.#used = this.#size = this.#bytes = 0;
  }

  #has(key: number, read: boolean): boolean {
    const found = this.#find(key);
    return found !== none && (!read || this.#sizes[found]! <= sizeBits);
  }

  #find(key: number): number {
    let at = this.#buckets[key & (this.#buckets.length - 1)]!;
    while (at !== none && this.#keys[at] !== key) at = this.#next[at]!;
    return at;
  }

  #insert(key: number, size: number): void {
    if (this.#size >= indexEntriesMax) this.#remove(this.#oldest);
    if (this.#free === none && this.#used === this.#keys.length) this.#grow();
    let at = this.#free;
    if (at === none) at = this.#used++;
    else this.#free = this.#next[at]!;
    this.#keys[at] = key;
    this.#sizes[at] = size | unreadBit;
    const bucket = key & (this.#buckets.length - 1);
    this.#next[at] = this.#buckets[bucket]!;
    this.#buckets[bucket] = at;
    this.#link(at);
    this.#size++;
    this.#bytes += size << 8;
  }

  #remove(at: number): void {
    const bucket = this.#keys[at]! & (this.#buckets.length - 1);
    let before = this.#buckets[bucket]!;
    if (before === at) this.#buckets[bucket] = this.#next[at]!;
    else {
      while (this.#next[before] !== at) before = this.#next[before]!;
      this.#next[before] = this.#next[at]!;
    }
    this.#unlink(at);
    this.#next[at] = this.#free;
    this.#free = at;
    this.#size--;
    this.#bytes -= (this.#sizes[at]! & sizeBits) << 8;
  }

  #evict(): void {
    while (this.#bytes > this.#bytesMax && this.#size > 0) this.#remove(this.#oldest);
  }

  #link(at: number): void {
    this.#newer[at] = none;
    this.#older[at] = this.#newest;
    if (this.#newest === none) this.#oldest = at;
    else this.#newer[this.#newest] = at;
    this.#newest = at;
  }

  #unlink(at: number): void {
    const [newer, older] = [this.#newer[at]!, this.#older[at]!];
    if (newer === none) this.#newest = older;
    else this.#older[newer] = older;
    if (older === none) this.#oldest = newer;
    else this.#newer[older] = newer;
  }

  #grow(): void {
    const length = 2 * this.#keys.length;
    const longer = (array: Uint32Array): Uint32Array<ArrayBuffer> => {
      const grown = new Uint32Array(length);
      grown.set(array);
      return grown;
    };
    [this.#keys, this.#next] = [longer(this.#keys), longer(this.#next)];
    [this.#newer, this.#older] = [longer(this.#newer), longer(this.#older)];
    const sizes = new Uint8Array(length);
    sizes.set(this.#sizes);
    this.#sizes = sizes;
    this.#buckets = new Uint32Array(2 * length).fill(none);
    for (let at = 0; at < this.#used; at++) {
      const bucket = this.#keys[at]! & (this.#buckets.length - 1);
      this.#next[at] = this.#buckets[bucket]!;
      this.#buckets[bucket] = at;
    }
  }
}

const unreadBit = 0x80;
const sizeBits = 0x7f;
