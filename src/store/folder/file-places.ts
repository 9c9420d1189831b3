// Checks that a process's open files are still the ones that their names lead to. Writes to a file that was removed or
// replaced still succeed, and all of them are lost when the process ends.
import { type BigIntStats, statSync } from "node:fs";
import { codeOf } from "./folder-faults.ts";

export class FilePlaces {
  readonly #places: Readonly<{ file: string; was: BigIntStats | null }>[];

  /** Just opened. Those that are not there yet are not looked at. */
  constructor(files: readonly string[]) {
    this.#places = files.map((file) => ({ file, was: lookAt(file) }));
  }

  /** The first file that is not where it was, in the order given; null where all are. A few microseconds. */
  get lost(): string | null {
    for (const { file, was } of this.#places) {
      if (was === null) continue;
      const is = lookAt(file);
      if (is === null || is.ino !== was.ino || is.dev !== was.dev) return file;
    }
    return null;
  }
}

/** Null where nothing is found, also on a disk that is gone. */
function lookAt(file: string): BigIntStats | null {
  try {
    return statSync(file, { bigint: true });
  } catch (thrown) {
    if (codeOf(thrown) === "") throw thrown;
    return null;
  }
}
