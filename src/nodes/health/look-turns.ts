// Limits how many nodes are probed at once, to spread out probes of many nodes, or of many that do not answer.
import type { Look } from "./look.ts";

export class LookTurns {
  readonly #atOnceMax: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax;
  }

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
