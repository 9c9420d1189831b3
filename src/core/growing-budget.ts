// An open budget while its answer is written: each time half of the free part is used up, more of it is held. So a long
// answer asks a few times, and one that finds nothing more a dozen times.
import type { Clock } from "./clock.ts";
import { type GrowingBudget, type Hold, OutcomeUnknown, type OutputHeld, StoreUnavailable } from "./types.ts";

export class HeldBudget implements GrowingBudget {
  spent = 0;
  readonly #hold: Pick<Hold, "grow">;
  readonly #clock: Pick<Clock, "wall">;
  readonly #most: number;
  #held: number;
  #growsAt: number;
  #asking: Promise<void> | null = null;

  constructor(hold: Pick<Hold, "grow">, { held, most }: OutputHeld, clock: Pick<Clock, "wall">) {
    this.#hold = hold;
    this.#clock = clock;
    this.#most = most;
    this.#held = held;
    this.#growsAt = this.#nextAfter(0);
  }

  get outputTokens(): number {
    return Math.max(0, this.#held - this.spent);
  }

  grow(written: number): Promise<void> | null {
    if (this.#asking !== null) return this.#asking;
    const total = this.spent + written;
    if (total < this.#growsAt) return null;
    try {
      const held = this.#hold.grow!(total, this.#clock.wall());
      if (held instanceof Promise) return (this.#asking = this.#ask(total, held));
      this.#grown(total, held);
    } catch (thrown) {
      this.#grown(total, this.#unknown(thrown));
    }
    return null;
  }

  async #ask(written: number, asked: Promise<number>): Promise<void> {
    try {
      this.#grown(written, await asked.catch(this.#unknown));
    } finally {
      this.#asking = null;
    }
  }

  /** While the books cannot be read, the held part stays. */
  readonly #unknown = (thrown: unknown): number => {
    if (thrown instanceof StoreUnavailable || thrown instanceof OutcomeUnknown) return this.#held;
    throw thrown;
  };

  #grown(written: number, held: number): void {
    this.#held = held;
    this.#growsAt = this.#nextAfter(written);
  }

  #nextAfter(written: number): number {
    return this.#held >= this.#most ? Infinity : written + Math.max(1, Math.ceil((this.#held - written) / 2));
  }
}
