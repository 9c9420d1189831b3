// The reply of the dialects whose replies are lists with a result for each input: one document without events.
import type { Piece } from "../../core/types.ts";
import type { AnswerEnd, Encoder } from "../dialect.ts";

export abstract class InputResults implements Encoder {
  /** JSON by input. */
  protected readonly results = new Map<number, string>();

  piece(piece: Piece): string {
    if (piece.kind === "input") this.results.set(piece.index, piece.json);
    return "";
  }

  keepAlive(): string {
    return "";
  }

  abstract end(end: AnswerEnd): string;

  failure(): string {
    return "";
  }

  /** In the order of the inputs. Results that were returned are no longer kept. */
  protected *taken(): Generator<[number, string]> {
    for (const index of [...this.results.keys()].sort((one, other) => one - other)) {
      const json = this.results.get(index)!;
      this.results.delete(index);
      yield [index, json];
    }
  }
}
