// One timer for any number of streams: a ring of slots that is turned once a millisecond, so that pacing 10,000
// streams costs one wake-up a millisecond and not one timer for each token.

const slotMs = 1;

export class Wheel<Item> {
  readonly #slots: Item[][];
  readonly #advance: (item: Item) => boolean;
  #cursor = 0;
  #turnedMs: number;

  /** `advance` is called for an item once a revolution (`revolutionMs`) until it returns false. */
  constructor(revolutionMs: number, advance: (item: Item) => boolean) {
    this.#slots = Array.from({ length: Math.max(1, Math.round(revolutionMs / slotMs)) }, () => []);
    this.#advance = advance;
    this.#turnedMs = performance.now();
  }

  start(): void {
    setInterval(() => this.#catchUp(performance.now()), slotMs);
  }

  /** The item is advanced for the first time one revolution from now. */
  add(item: Item): void {
    this.#slots[this.#cursor]!.push(item);
  }

  /** A timer that fires late turns the slots that it missed, so that the pace holds on average. */
  #catchUp(nowMs: number): void {
    while (this.#turnedMs + slotMs <= nowMs) {
      this.#turnedMs += slotMs;
      this.#cursor = (this.#cursor + 1) % this.#slots.length;
      this.#visit(this.#slots[this.#cursor]!);
    }
  }

  #visit(slot: Item[]): void {
    let kept = 0;
    for (let index = 0; index < slot.length; index++) {
      const item = slot[index]!;
      if (this.#advance(item)) slot[kept++] = item;
    }
    slot.length = kept;
  }
}
