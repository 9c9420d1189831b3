// Puts a break between the rounds of an answer, for dialects with one string for the text of all rounds and one for
// their reasoning: "Let me look." and "Bun is fast." are two paragraphs.

type Kind = "text" | "reasoning";

/** The break, as the inside of a JSON string literal. */
export const roundBreak = "\\n\\n";
const breakLength = 2;

export class RoundBreaks {
  #text: "none" | "written" | "due" = "none";
  #reasoning: "none" | "written" | "due" = "none";
  #shift = 0;

  /** By how many UTF-16 units the breaks have moved the text so far. */
  get shift(): number {
    return this.#shift;
  }

  /** The gateway ran a call: what follows belongs to another round. */
  roundEnded(): void {
    if (this.#text === "written") this.#text = "due";
    if (this.#reasoning === "written") this.#reasoning = "due";
  }

  /** Whether a fragment directly continues the one before. */
  goesOn(kind: Kind): boolean {
    return (kind === "text" ? this.#text : this.#reasoning) === "written";
  }

  /** Returns true once: a break must precede the next fragment. */
  isDue(kind: Kind): boolean {
    if (kind === "reasoning") {
      const isDue = this.#reasoning === "due";
      this.#reasoning = "written";
      return isDue;
    }
    const isDue = this.#text === "due";
    this.#text = "written";
    if (isDue) this.#shift += breakLength;
    return isDue;
  }
}
