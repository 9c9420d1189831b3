// Collects the result of each input, for the dialects whose replies are lists of these.
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

  /** In the order of the inputs. Results that were returned are no longer kept. */
  *taken(): Generator<[number, string]> {
    for (const index of [...this.#results.keys()].sort((one, other) => one - other)) {
      const json = this.#results.get(index)!;
      this.#results.delete(index);
      yield [index, json];
    }
  }
}
