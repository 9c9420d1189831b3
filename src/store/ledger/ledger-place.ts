// Checks that the ledger's files are in place under a running server: what is written to removed or replaced files is
// lost, so nothing may be acknowledged until they are back.
import { FilePlaces } from "../folder/file-places.ts";

/** What was to be written would not be there after the next start; the message is for the operator. */
export class LedgerMisplaced extends Error {
  override readonly name = "LedgerMisplaced";
  constructor(
    file: string,
    /** Into files that are lost for all we know. */
    readonly isWritten: boolean,
    isLog: boolean,
  ) {
    const what = `${file} was removed, moved or replaced while the server runs, which takes no requests now`;
    const remedy = isLog
      ? "stop the server, which saves what that file held, and start it again"
      : "put that very file back and it goes on; else save what the server still has with `tollgate backup FILE`, stop it " +
        "and restore that file with `tollgate restore FILE`";
    super(`${what}: ${remedy}`);
  }
}

export class LedgerPlace {
  readonly #file: string;
  readonly #places: FilePlaces;

  /** When the database is open and has been read, which makes the files beside it. */
  constructor(file: string) {
    this.#file = file;
    this.#places = new FilePlaces([file, `${file}-wal`, `${file}-shm`]);
  }

  check(isWritten = false): void {
    const { lost } = this.#places;
    if (lost !== null) throw new LedgerMisplaced(lost, isWritten, lost !== this.#file);
  }
}
