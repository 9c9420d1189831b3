// Finds the line of a TOML text that an error is about: the parser reports neither the line of a syntax error nor the
// place of a value.

/** Number of the line that gave `path` its value ("nodes[1].slots"), or of the table it belongs in; null if unknown. */
export function lineOf(text: string, path: readonly (string | number)[]): number | null {
  const wanted = key(path);
  const parent = key(path.slice(0, -1));
  const tables = new Map<string, number>(); // list of tables -> position of its last one
  let table: (string | number)[] = [];
  let parentLine: number | null = null;
  for (const [index, line] of text.split("\n").entries()) {
    const header = /^\s*\[(\[?)\s*([^\]]+?)\s*\]/.exec(line);
    if (header !== null) {
      table = placeOf(words(header[2]!), header[1] === "[", tables);
      if (key(table) === wanted) return index + 1;
      if (key(table) === parent) parentLine = index + 1;
      continue;
    }
    const assigned = /^\s*((?:"[^"]*"|'[^']*'|[\w.-])+)\s*=/.exec(line);
    if (assigned !== null && key([...table, ...words(assigned[1]!)]) === wanted) return index + 1;
  }
  return parentLine;
}

/** Number of the line where the text stops being TOML: the shortest beginning of it that fails with the same message. */
export function lineOfSyntaxError(text: string, message: string): number | null {
  const lines = text.split("\n");
  for (let count = 1; count <= lines.length; count++) {
    try {
      Bun.TOML.parse(`${lines.slice(0, count).join("\n")}\n`);
    } catch (error) {
      if ((error as Error).message === message) return count;
    }
  }
  return null;
}

const key = (path: readonly (string | number)[]): string => JSON.stringify(path);

/** `nodes."a.b".models` as its three words. */
const words = (dotted: string): string[] =>
  [...dotted.matchAll(/"([^"]*)"|'([^']*)'|([\w-]+)/g)].map((match) => match[1] ?? match[2] ?? match[3]!);

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
