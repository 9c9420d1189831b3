// How many generations one request may cost its nodes, counted over its rounds, repeats and failovers. Six places ask again
// (see "Retries" in src/README.md); without one bound they multiply to several hundred.

/** Covers 10 tool rounds, each of which may fail over or have its schema refused once, and the repeats of a misfit. */
export const generationsPerAnswerMax = 32;

export class GenerationBudget {
  #left: number;

  constructor(answers: number) {
    this.#left = answers * generationsPerAnswerMax;
  }

  get isSpent(): boolean {
    return this.#left === 0;
  }

  /** Counts a generation that is about to begin; false: it must not. */
  take(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }
}

/** A request without a budget (an operator's test of a node) may always ask again. */
export const mayAskAgain = ({ generations }: Readonly<{ generations?: GenerationBudget }>): boolean =>
  generations?.isSpent !== true;
