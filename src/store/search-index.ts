// The full-text index of a folder's files, in a SQLite file of its own. Everything in it can be made again from the
// folder: an index of another version, or one that SQLite cannot read, is removed and started anew.
import { Database } from "bun:sqlite";
import { closeSync, openSync, rmSync } from "node:fs";
import { giveToOwner } from "./folder/whole-file.ts";
import { DataFolderUnusable, messageOf } from "./folder/folder-faults.ts";

/** Raised with every change of the tables, and of how texts are read from files. */
const version = 1;

/** A file as it was when it was last looked at. */
export type IndexedFile = Readonly<{
  path: string;
  modifiedMs: number;
  bytes: number;
  /** Of its content; null where that was not read. */
  hash: Uint8Array | null;
  /** Why it cannot be found; null for a file that can. */
  skipped: string | null;
}>;

export type FileText = Readonly<{ title: string; passages: readonly string[] }>;

/** A file that fits a query, and the passages that fit best, in the order of the file. */
export type Found = Readonly<{ path: string; title: string; passages: readonly string[] }>;

/** A passage's row is its file's id times this, and its number in the file: so a file's passages are one range. */
const passagesMax = 65_536;
/** Passages of one file that are shown; further ones say less. */
const passagesShown = 3;
/** Several of the best passages may be of one file. */
const passagesPerResult = 6;

/** Creates the index, readable by its owner alone, if there is none of this version. Throws DataFolderUnusable. */
export function prepareSearchIndex(file: string): void {
  try {
    closeSync(openSync(file, "a", 0o600));
    if (versionOf(file) !== version) remove(file);
    giveToOwner(file);
    const database = openWriting(file);
    database.transaction(() => {
      database.run(`
        CREATE TABLE IF NOT EXISTS files (
          id INTEGER PRIMARY KEY,
          path TEXT NOT NULL UNIQUE,
          modified_ms REAL NOT NULL,
          bytes INTEGER NOT NULL,
          hash BLOB,
          skipped TEXT,
          title TEXT NOT NULL
        ) STRICT`);
      // Stems of English words, accents away; for what has no spaces between words, see spaced().
      database.run(`
        CREATE VIRTUAL TABLE IF NOT EXISTS passages
        USING fts5(title, path, text, tokenize = "porter unicode61 remove_diacritics 2")`);
      database.run(`PRAGMA user_version = ${version}`);
    })();
    database.close();
  } catch (thrown) {
    throw new DataFolderUnusable(`cannot use the search index ${file}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Null for a file that SQLite cannot read. */
function versionOf(file: string): number | null {
  const database = new Database(file, { readwrite: true });
  try {
    return (database.query("PRAGMA user_version").get() as { user_version: number }).user_version;
  } catch (thrown) {
    const code = (thrown as { code?: string }).code ?? "";
    if (code === "SQLITE_NOTADB" || code === "SQLITE_CORRUPT") return null;
    throw thrown;
  } finally {
    database.close();
  }
}

function remove(file: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
  closeSync(openSync(file, "a", 0o600));
}

function openWriting(file: string): Database {
  const database = new Database(file, { readwrite: true, strict: true });
  // `tollgate search` may bring the same index up to date beside the server.
  database.run("PRAGMA busy_timeout = 10000");
  database.run("PRAGMA journal_mode = WAL");
  database.run("PRAGMA synchronous = NORMAL");
  return database;
}

export class SearchIndexWriter {
  readonly #database: Database;
  readonly #statements;

  constructor(file: string) {
    const database = openWriting(file);
    this.#database = database;
    this.#statements = {
      files: database.prepare<IndexedFile, []>(
        "SELECT path, modified_ms AS modifiedMs, bytes, hash, skipped FROM files",
      ),
      put: database.prepare<{ id: number }, [string, number, number, Uint8Array | null, string | null, string]>(`
        INSERT INTO files (path, modified_ms, bytes, hash, skipped, title) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (path) DO UPDATE SET modified_ms = excluded.modified_ms, bytes = excluded.bytes,
          hash = excluded.hash, skipped = excluded.skipped, title = excluded.title
        RETURNING id`),
      touch: database.prepare<unknown, [number, number, string]>(
        "UPDATE files SET modified_ms = ?, bytes = ? WHERE path = ?",
      ),
      remove: database.prepare<{ id: number }, [string]>("DELETE FROM files WHERE path = ? RETURNING id"),
      insertPassage: database.prepare<unknown, [number, string, string, string]>(
        "INSERT INTO passages (rowid, title, path, text) VALUES (?, ?, ?, ?)",
      ),
      removePassages: database.prepare<unknown, [number, number]>("DELETE FROM passages WHERE rowid BETWEEN ? AND ?"),
    };
  }

  files(): IndexedFile[] {
    return this.#statements.files.all();
  }

  /** Puts files in, each in the place of what was there by its path. A skipped one has no text. */
  put(files: readonly Readonly<{ file: IndexedFile; text: FileText | null }>[]): void {
    this.#database.transaction(() => {
      for (const { file, text } of files) this.#putOne(file, text);
    })();
  }

  #putOne({ path, modifiedMs, bytes, hash, skipped }: IndexedFile, text: FileText | null): void {
    const { put, insertPassage } = this.#statements;
    const title = text?.title ?? "";
    const { id } = put.get(path, modifiedMs, bytes, hash, skipped, title)!;
    this.#removePassages(id);
    const words = spaced(path.replace(/\.[^./]*$/, ""));
    for (const [number, passage] of (text?.passages ?? []).slice(0, passagesMax).entries()) {
      insertPassage.run(id * passagesMax + number, spaced(title), words, spaced(passage));
    }
  }

  /** The content is what it was. */
  touch(files: readonly IndexedFile[]): void {
    this.#database.transaction(() => {
      for (const { path, modifiedMs, bytes } of files) this.#statements.touch.run(modifiedMs, bytes, path);
    })();
  }

  remove(paths: readonly string[]): void {
    this.#database.transaction(() => {
      for (const path of paths) {
        const removed = this.#statements.remove.get(path);
        if (removed !== null) this.#removePassages(removed.id);
      }
    })();
  }

  #removePassages(id: number): void {
    this.#statements.removePassages.run(id * passagesMax, (id + 1) * passagesMax - 1);
  }

  close(): void {
    this.#database.close();
  }
}

export class SearchIndexReader {
  readonly #database: Database;
  readonly #statements;

  constructor(file: string) {
    this.#database = new Database(file, { readonly: true, strict: true });
    this.#database.run("PRAGMA busy_timeout = 10000");
    this.#statements = {
      // What stands in a title counts four times as much as in a text, what stands in a path twice.
      match: this.#database.prepare<{ id: number }, [string, number]>(
        "SELECT rowid AS id FROM passages WHERE passages MATCH ? ORDER BY bm25(passages, 4.0, 2.0, 1.0) LIMIT ?",
      ),
      passage: this.#database.prepare<{ text: string }, [number]>("SELECT text FROM passages WHERE rowid = ?"),
      file: this.#database.prepare<{ path: string; title: string }, [number]>(
        "SELECT path, title FROM files WHERE id = ?",
      ),
    };
  }

  /** Files with all words of the query come first, then those with any; at most `resultsMax`. */
  search(query: string, resultsMax: number): Found[] {
    const phrases = phrasesOf(query);
    if (phrases.length === 0) return [];
    return this.#database.transaction(() => {
      const best = new Map<number, number[]>();
      this.#collect(phrases.join(" AND "), resultsMax, best);
      if (best.size < resultsMax && phrases.length > 1) this.#collect(phrases.join(" OR "), resultsMax, best);
      return [...best].slice(0, resultsMax).map(([file, passages]) => this.#found(file, passages));
    })();
  }

  /** Adds files in the order of their best passage, with the ids of their passages. */
  #collect(expression: string, resultsMax: number, best: Map<number, number[]>): void {
    for (const { id } of this.#statements.match.all(expression, resultsMax * passagesPerResult)) {
      const file = Math.floor(id / passagesMax);
      const passages = best.get(file);
      if (passages === undefined) best.set(file, [id]);
      else if (passages.length < passagesShown && !passages.includes(id)) passages.push(id);
    }
  }

  #found(file: number, passages: readonly number[]): Found {
    const { path, title } = this.#statements.file.get(file)!;
    const inOrder = passages.toSorted((a, b) => a - b);
    return { path, title, passages: inOrder.map((id) => unspaced(this.#statements.passage.get(id)!.text)) };
  }

  close(): void {
    this.#database.close();
  }
}

/** Scripts whose words have no spaces between them, or particles without one after them (Hangul). */
const unspacedScripts =
  "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}\\p{Script=Lao}" +
  "\\p{Script=Khmer}\\p{Script=Myanmar}ー";
export const unspacedRun = new RegExp(`[${unspacedScripts}]+`, "gu");
/** A run of such characters, or of other letters, digits and marks. */
export const queryRun = new RegExp(
  `[${unspacedScripts}]+|(?:(?![${unspacedScripts}])[\\p{L}\\p{N}\\p{M}\\p{Co}])+`,
  "gu",
);
/** Ends a word for SQLite's tokenizer and shows as nothing. */
const breakPoint = "\u200b";
/** 24 of the commonest words of 20,000 files take a second and a half. */
const phrasesMax = 24;
const wordMaxLength = 64;

/** Each character of such scripts as a word of its own, so that any part of them can be found, as a phrase. */
const spaced = (text: string): string =>
  text.replace(unspacedRun, (run) => breakPoint + [...run].join(breakPoint) + breakPoint);
const unspaced = (text: string): string => text.replaceAll(breakPoint, "");

/**
 * The words of a query as phrases of FTS5's query language. They consist of letters, digits and marks alone, so that no
 * quote, operator or column name of a client can be part of it.
 */
function phrasesOf(query: string): string[] {
  const phrases = new Set<string>();
  for (const [run] of query.toWellFormed().matchAll(queryRun)) {
    for (const word of run.search(unspacedRun) === 0 ? pairsOf(run) : [run]) {
      if (!/[\p{L}\p{N}]/u.test(word)) continue;
      phrases.add(`"${spaced(word.slice(0, wordMaxLength).toWellFormed())}"`);
      if (phrases.size === phrasesMax) return [...phrases];
    }
  }
  return [...phrases];
}

/** Without word boundaries: most words are found by pairs of characters. */
function pairsOf(run: string): string[] {
  const characters = [...run];
  if (characters.length <= 2) return [run];
  return characters.slice(1).map((character, index) => characters[index] + character);
}
