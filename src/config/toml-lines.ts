// Finds the line of a TOML text that an error is about: the parser reports neither the line of a syntax error nor the
// place of a value.

/** Tells the line that gave a path its value ("nodes[1].slots"), or of the table it belongs in; null where it is unknown. */
export type Lines = (path: readonly (string | number)[]) => number | null;

/** The text is read once: a file of a thousand rows may have a thousand faults. */
export function linesOf(text: string): Lines {
  const lists = new Map<string, number>(); // list of tables -> position of its last one
  const given = new Map<string, number>(); // path -> the first line that gives it
  const opened = new Map<string, number>(); // table -> its last header
  let table: (string | number)[] = [];
  const give = (path: string, line: number): void => void (given.has(path) || given.set(path, line));
  for (const [index, line] of text.split("\n").entries()) {
    const header = /^\s*\[(\[?)\s*([^\]]+?)\s*\]/.exec(line);
    if (header !== null) {
      table = placeOf(words(header[2]!), header[1] === "[", lists);
      give(key(table), index + 1);
      opened.set(key(table), index + 1);
      continue;
    }
    const assigned = /^\s*((?:"[^"]*"|'[^']*'|[\w.-])+)\s*=/.exec(line);
    if (assigned !== null) give(key([...table, ...words(assigned[1]!)]), index + 1);
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

/** `nodes."a.b".models` as its three words. */
const words = (dotted: string): string[] =>
  [...dotted.matchAll(/"([^"]*)"|'([^']*)'|([\w-]+)/g)].map((match) => match[1] ?? match[2] ?? match[3]!);

/** Path of a table header; `[[nodes]]` opens the next position of its list, `[nodes.models]` belongs to the last one. */
export function placeOf(
  header: readonly string[],
  opensNext: boolean,
  tables: Map<string, number>,
): (string | number)[] {
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
