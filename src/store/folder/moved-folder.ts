// The mark of a data folder whose books were moved into a database: from before the move begins, so that no process writes here
// what would not be there. Only a move that ended says that they are there.
import { join } from "node:path";
import type { Ms } from "../../core/types.ts";
import { DataFolderUnusable } from "./folder-faults.ts";
import { readMark, writeWhole } from "./whole-file.ts";

const movedName = "moved.json";

export type MovedMark = Readonly<{
  /** Of this move: the database knows it by it. */
  id: string;
  to: string;
  state: "moving" | "moved";
  at: Ms;
}>;

/** Null: no move has begun. Throws DataFolderUnusable if it is damaged: the books may be in a database. */
export function movedMark(folder: string): MovedMark | null {
  const mark = readMark<MovedMark>(join(folder, movedName));
  if (mark === null) return null;
  const isWhole = [mark.id, mark.to].every((text) => typeof text === "string") && Number.isSafeInteger(mark.at);
  if (isWhole && (mark.state === "moving" || mark.state === "moved")) return mark as MovedMark;
  throw new DataFolderUnusable(
    `${join(folder, movedName)} is damaged, which says where the books of ${folder} were moved: have the gateway of the ` +
      `database that has them serve with another folder (--data DIR), or, if no database has them, remove that file`,
  );
}

/** On disk when this returns. */
export function setMovedMark(folder: string, mark: MovedMark): void {
  writeWhole(join(folder, movedName), new TextEncoder().encode(JSON.stringify(mark)), folder);
}

/** Why nothing may be written here, in a sentence; null if the books were not moved. */
export function whyMoved(folder: string): string | null {
  const mark = movedMark(folder);
  if (mark === null) return null;
  if (mark.state === "moved") {
    return (
      `the books of ${folder} were moved to ${mark.to} at ${new Date(mark.at).toISOString()}, and this folder's are closed: ` +
      `name that database in [ledger] url or TOLLGATE_DATABASE_URL`
    );
  }
  return (
    `a move of the books of ${folder} to ${mark.to} was cut off: run \`tollgate move --to URL --data ${folder}\` again, which ` +
    `finds out how it ended (if that database is lost for good, remove ${join(folder, movedName)})`
  );
}
