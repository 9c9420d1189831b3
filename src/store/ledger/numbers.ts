// Numbers of new rows of a table. None comes twice while the process runs, also where the row that had it is gone, or never was
// committed: who still names that row must not be given another one.
import { read } from "../open.ts";

export class Numbers {
  readonly #latest: () => Readonly<{ id: number }> | null;
  #given = 0;

  constructor(latest: () => Readonly<{ id: number }> | null) {
    this.#latest = latest;
  }

  next(): number {
    this.#given = Math.max(this.#given, read(this.#latest)?.id ?? 0) + 1;
    return this.#given;
  }
}
