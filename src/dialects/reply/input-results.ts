// Collects what each input of a request came to, for the dialects whose replies are a list of that.
import type { Piece } from "../../core/types.ts";

export class InputResults {
  /** JSON by input. */
  readonly #results = new Map<number, string>();

  piece(piece: Piece): string {
    if (piece.kind === "input") this.#results.set(piece.index, piece.json);
    return "";
  }

  get entries(): [number, string][] {
    return [...this.#results];
  }

  /** In the order of the inputs. What was given out is no longer kept. */
  *taken(): Generator<[number, string]> {
    for (const index of [...this.#results.keys()].sort((one, other) => one - other)) {
      const json = this.#results.get(index)!;
      this.#results.delete(index);
      yield [index, json];
    }
  }
}
