// The statements of a TOML text and their lines: the parser reports neither the line of a syntax error nor the place of a
// value. But it says where a statement ends: it is the shortest run of lines that parses.
import { isRecord } from "../core/is-record.ts";

export type TomlPath = readonly (string | number)[];
export type TomlValues = Record<string, unknown>;

/** `lines`: of the text, the last one excluded. `value`: where it stands in them; null: it is a header. */
export type Statement = Readonly<{
  path: TomlPath;
  lines: readonly [from: number, to: number];
  value: readonly [from: number, to: number] | null;
}>;

export function parsed(text: string): TomlValues | null {
  try {
    return Bun.TOML.parse(text) as TomlValues;
  } catch {
    return null;
  }
}

const mayEnd = /\]|\}|"""|'''/;

/** Of the lines of a text that parses. */
export function statementsOf(lines: readonly string[]): Statement[] {
  const statements: Statement[] = [];
  const lists = new Map<string, number>(); // list of tables -> position of its last one
  let table: TomlPath = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at]!.trim();
    let to = at + 1;
    if (line.startsWith("[")) {
      const { words, isList } = wordsOf(parsed(line));
      table = placeOf(words, isList, lists);
      statements.push({ path: table, lines: [at, to], value: null });
    } else if (line !== "" && !line.startsWith("#")) {
      let text = lines[at]!;
      while (to < lines.length && parsed(text) === null) {
        do text += `\n${lines[to++]}`;
        while (to < lines.length && !mayEnd.test(lines[to - 1]!));
      }
      const equals = firstOf(text, "=", (from) => parsed(`${text.slice(0, from)}= 0`) !== null) ?? 0;
      const comment = firstOf(text, "#", (from) => from > equals && parsed(text.slice(0, from)) !== null);
      const value = text.slice(equals + 1, comment ?? text.length);
      const start = text.length - text.slice(equals + 1).trimStart().length;
      const path = [...table, ...wordsOf(parsed(`${text.slice(0, equals)}= 0`)).words];
      statements.push({ path, lines: [at, to], value: [start, equals + 1 + value.trimEnd().length] });
    }
    at = to;
  }
  return statements;
}

export function firstOf(text: string, sign: string, fits: (at: number) => boolean): number | null {
  for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + 1)) if (fits(at)) return at;
  return null;
}

/** The keys down to the value of what has only one. */
export function wordsOf(read: unknown): { words: string[]; isList: boolean } {
  const words: string[] = [];
  let inside = read;
  while (isRecord(inside) && Object.keys(inside).length > 0) {
    words.push(Object.keys(inside)[0]!);
    inside = Object.values(inside)[0];
  }
  return { words, isList: Array.isArray(inside) };
}

/** Tells the line that gave a path its value ("nodes[1].slots"), or of the table it belongs in; null where it is unknown. */
export type Lines = (path: TomlPath) => number | null;

/** The text is read once: a file of a thousand rows may have a thousand faults. */
export function linesOf(text: string): Lines {
  const given = new Map<string, number>(); // path -> the first line that gives it
  const opened = new Map<string, number>(); // table -> its last header
  for (const { path, lines, value } of statementsOf(text.split(/\r?\n/))) {
    const [line, name] = [lines[0] + 1, key(path)];
    if (!given.has(name)) given.set(name, line);
    if (value === null) opened.set(name, line);
  }
  return (path) => given.get(key(path)) ?? opened.get(key(path.slice(0, -1))) ?? null;
}

/**
 * Number of the line where the text stops being TOML: the shortest beginning of it that fails with the same message. Looked
 * for by halves, because each longer beginning fails so too, and a long file takes long to read.
 */
export function lineOfSyntaxError(text: string, message: string): number | null {
  const lines = text.split("\n");
  const fails = (count: number): boolean => {
    try {
      Bun.TOML.parse(`${lines.slice(0, count).join("\n")}\n`);
      return false;
    } catch (error) {
      return (error as Error).message === message;
    }
  };
  if (!fails(lines.length)) return null;
  let [below, found] = [0, lines.length];
  while (found - below > 1) {
    const middle = (below + found) >> 1;
    if (fails(middle)) found = middle;
    else below = middle;
  }
  return found;
}

const key = (path: readonly (string | number)[]): string => JSON.stringify(path);

/** Path of a table header; `[[nodes]]` opens the next position of its list, `[nodes.models]` belongs to the last one. */
function placeOf(header: readonly string[], opensNext: boolean, tables: Map<string, number>): (string | number)[] {
  const path: (string | number)[] = [];
  for (const [depth, word] of header.entries()) {
    path.push(word);
    const last = tables.get(key(path));
    if (opensNext && depth === header.length - 1) {
      tables.set(key(path), (last ?? -1) + 1);
      path.push((last ?? -1) + 1);
    } else if (last !== undefined) path.push(last);
  }
  return path;
}
