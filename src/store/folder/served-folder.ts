// The mark of a data folder whose gateway serves from a database: a start without the database's address would begin books of
// its own there, without keys.
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Ms } from "../../core/types.ts";
import { readMark, writeWhole } from "./whole-file.ts";

export const servedName = "served-from.json";

export type ServedMark = Readonly<{
  /** Identifies the books, wherever their database is; null: the mark is damaged. */
  books: string | null;
  /** The database, in words without user and password. */
  from: string;
  at: Ms;
}>;

/** Null: no gateway of this folder has served from a database. */
export function servedMark(folder: string): ServedMark | null {
  const mark = readMark<ServedMark>(join(folder, servedName));
  if (mark === null) return null;
  const { books, from, at = 0 } = mark;
  return typeof books === "string" && typeof from === "string"
    ? { books, from, at }
    : { books: null, from: `a database that the damaged ${servedName} does not tell`, at: 0 };
}

/** On disk when this returns; gives what stood there before. */
export function setServedMark(folder: string, mark: ServedMark): ServedMark | null {
  const before = servedMark(folder);
  if (before?.books !== mark.books || before.from !== mark.from) {
    writeWhole(join(folder, servedName), new TextEncoder().encode(JSON.stringify(mark)), folder);
  }
  return before;
}

/** The folder has books of its own again. */
export const clearServedMark = (folder: string): void => rmSync(join(folder, servedName), { force: true });

/** Books are known by the key that goes with them wherever they are moved. */
export const booksOf = (sealingKey: Uint8Array): string =>
  createHash("sha256").update("books").update(sealingKey).digest("hex").slice(0, 32);
