// Limits how many nodes are looked at once, so that looks at many nodes, or at many that do not answer, are spread out.
import type { Look } from "./look.ts";

export class LookTurns {
  readonly #atOnceMax: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax;
  }

  /** Looks when it is its turn; first come, first served. */
  async take(look: () => Promise<Look>): Promise<Look> {
    if (this.#running >= this.#atOnceMax) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await look();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
