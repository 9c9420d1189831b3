// Edits single values and tables of a TOML text and leaves all else as it was written: comments, order, blank lines. Bun's
// own parser says where a statement ends: it is the shortest run of lines that parses. After each edit the text must read
// as what was meant, or it is refused.
import { CommandError } from "../core/expected-error.ts";
import { isRecord } from "../core/is-record.ts";
import { tomlText } from "../core/toml-text.ts";
import { placeOf } from "./toml-lines.ts";

export type TomlPath = readonly (string | number)[];
export type TomlValues = Record<string, unknown>;

/** `lines`: of the text, the last one excluded. `value`: where it stands in them; null: it is a header. */
type Statement = Readonly<{
  path: TomlPath;
  lines: readonly [from: number, to: number];
  value: readonly [from: number, to: number] | null;
}>;

function parsed(text: string): TomlValues | null {
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

function firstOf(text: string, sign: string, fits: (at: number) => boolean): number | null {
  for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + 1)) if (fits(at)) return at;
  return null;
}

/** The keys down to the value of what has only one. */
function wordsOf(read: unknown): { words: string[]; isList: boolean } {
  const words: string[] = [];
  let inside = read;
  while (isRecord(inside) && Object.keys(inside).length > 0) {
    words.push(Object.keys(inside)[0]!);
    inside = Object.values(inside)[0];
  }
  return { words, isList: Array.isArray(inside) };
}

const refused = (why: string) => new CommandError(`${why}: edit the file itself`);

const isBelow = (path: TomlPath, above: TomlPath): boolean => above.every((step, at) => path[at] === step);

/** As one line of a file has it. */
export function tomlLiteral(value: unknown): string {
  if (typeof value === "string") return tomlText(value);
  if (Array.isArray(value)) return `[${value.map(tomlLiteral).join(", ")}]`;
  if (!isRecord(value)) return String(value);
  const members = Object.entries(value).map(([key, each]) => `${keyText(key)} = ${tomlLiteral(each)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
const keyText = (key: string): string => (/^[A-Za-z0-9_-]+$/.test(key) ? key : tomlText(key));

export const valueAt = (values: unknown, path: TomlPath): unknown =>
  path.reduce<unknown>((inside, step) => (inside as TomlValues | undefined)?.[step], values);

export class TomlFile {
  #lines: string[];
  readonly #newLine: string;
  #values: TomlValues;

  constructor(text: string) {
    this.#newLine = text.includes("\r\n") ? "\r\n" : "\n";
    this.#lines = text.split(/\r?\n/);
    try {
      this.#values = Bun.TOML.parse(text) as TomlValues;
    } catch (error) {
      throw refused((error as Error).message);
    }
  }

  get text(): string {
    return this.#lines.join(this.#newLine);
  }

  get values(): TomlValues {
    return this.#values;
  }

  /** Sets a value; undefined: takes it out. The last step of a path may be the next row of a list. */
  set(path: TomlPath, value: unknown): void {
    const meant = Bun.TOML.parse(this.text) as TomlValues; // dates cannot be cloned
    const [last, above] = [path.at(-1)!, path.slice(0, -1)];
    let inside: any = meant;
    for (const [at, step] of above.entries()) inside = inside[step] ??= typeof path[at + 1] === "number" ? [] : {};
    if (value !== undefined) inside[last] = value;
    else if (typeof last === "number") inside.splice(last, 1);
    else delete inside[last];
    this.#write(path, value, meant);
    const after = parsed(this.text);
    if (after === null || !Bun.deepEquals(withoutEmpty(after), withoutEmpty(meant))) {
      throw refused(`${path.join(".")} stands in the file in a form that cannot be changed here`);
    }
    this.#values = after;
  }

  /** With `"…"` for each value that is hidden. */
  hiding(isHidden: (path: TomlPath) => boolean): string {
    const lines = this.#lines.map((line) => {
      const said = /^(\s*#\s*)(\S.*)$/.exec(line);
      const { words } = wordsOf(said === null ? null : parsed(said[2]!));
      return words.length > 0 && isHidden(words) ? `${said![1]}${words.join(".")} = "…"` : line;
    });
    for (const {
      path,
      lines: [from, to],
      value,
    } of statementsOf(this.#lines).toReversed()) {
      if (value !== null && isHidden(path)) lines.splice(from, to - from, this.#withValue(from, to, value, '"…"'));
    }
    return lines.join("\n");
  }

  /** The statement of these lines with another value. */
  #withValue(from: number, to: number, [start, end]: readonly [number, number], value: string): string {
    const text = this.#lines.slice(from, to).join("\n");
    return text.slice(0, start) + value + text.slice(end);
  }

  #write(path: TomlPath, value: unknown, meant: TomlValues): void {
    const statements = statementsOf(this.#lines);
    const whole = statements.find((each) => each.value !== null && isBelow(path, each.path));
    if (whole !== undefined) {
      const [from, to] = whole.lines;
      const isGone = value === undefined && whole.path.length === path.length;
      const wanted = valueAt(meant, whole.path);
      const own = this.#lines.slice(from, to);
      const next = () => listByLines(own, wanted) ?? [this.#withValue(from, to, whole.value!, tomlLiteral(wanted))];
      this.#lines.splice(from, to - from, ...(isGone ? [] : next()));
      return;
    }
    const parts = statements.filter((each) => isBelow(each.path, path));
    if (parts.length === 0) return value === undefined ? undefined : this.#add(path, value, statements);
    const before = valueAt(this.#values, path);
    if (isRecord(value) && isRecord(before)) {
      for (const key of new Set([...Object.keys(before), ...Object.keys(value)])) {
        if (!Bun.deepEquals(before[key], value[key])) this.#write([...path, key], value[key], meant);
      }
      return;
    }
    for (const {
      lines: [from, to],
      value: own,
    } of parts.toReversed()) {
      const [start, end] = own === null ? [this.#ownedFrom(from), this.#ownedTo(to)] : [from, this.#ownedTo(to)];
      this.#lines.splice(start, end - start);
      if (own === null && (this.#lines[start - 1] ?? "").trim() === "" && (this.#lines[start] ?? "").trim() === "") {
        this.#lines.splice(start, 1); // of two blank lines, one
      }
    }
    if (value !== undefined) this.#add(path, value, statementsOf(this.#lines));
  }

  #add(path: TomlPath, value: unknown, statements: readonly Statement[]): void {
    const above = path.slice(0, -1);
    if (typeof path.at(-1) === "number") {
      const list = above.map((step) => keyText(String(step))).join(".");
      const rows = Object.entries(value as TomlValues).map(([key, each]) => `${keyText(key)} = ${tomlLiteral(each)}`);
      const last = statements.findLast((each) => isBelow(each.path, above));
      return this.#insertBlock(last === undefined ? null : this.#ownedTo(last.lines[1]), [`[[${list}]]`, ...rows]);
    }
    const line = `${keyText(String(path.at(-1)))} = ${tomlLiteral(value)}`;
    const header = statements.findIndex(
      ({ path: each, value }) => value === null && each.length === above.length && isBelow(each, above),
    );
    if (header < 0) {
      const name = above
        .filter((step) => typeof step === "string")
        .map(keyText)
        .join(".");
      return this.#insertBlock(null, [`[${name}]`, line]);
    }
    let last = header;
    while (statements[last + 1]?.value != null) last += 1;
    const [from, to] = statements[last]!.lines;
    const indent = /^\s*/.exec(this.#lines[from]!)![0];
    this.#lines.splice(to, 0, indent + line);
  }

  /** `at` null: at the end. */
  #insertBlock(at: number | null, block: readonly string[]): void {
    if (at !== null) {
      this.#lines.splice(at, 0, "", ...block, ...((this.#lines[at] ?? "").trim() === "" ? [] : [""]));
      return;
    }
    while (this.#lines.at(-1)?.trim() === "") this.#lines.pop();
    this.#lines.push(...(this.#lines.length === 0 ? [] : [""]), ...block, "");
  }

  /** With the comments directly above. */
  #ownedFrom(from: number): number {
    let start = from;
    while (this.#lines[start - 1]?.trim().startsWith("#") === true) start -= 1;
    return start;
  }

  /** With the comments directly below, unless they are those of what follows. */
  #ownedTo(to: number): number {
    let end = to;
    while (this.#lines[end]?.trim().startsWith("#") === true) end += 1;
    return this.#lines[end] === undefined || this.#lines[end]!.trim() === "" ? end : to;
  }
}

/** A list with an item a line keeps its lines, and so their comments; null: it is another one, or is in another order. */
function listByLines(lines: readonly string[], wanted: unknown): readonly string[] | null {
  if (!Array.isArray(wanted) || lines.length < 3) return null;
  const items = lines.slice(1, -1).map((line) => parsed(`item = [${line}\n]`)?.["item"] as unknown[] | undefined);
  if (items.some((item) => item === undefined || item.length > 1)) return null;
  const isKept = (item: unknown): boolean => wanted.some((each) => Bun.deepEquals(each, item));
  const kept = lines.slice(1, -1).filter((_, at) => items[at]!.length === 0 || isKept(items[at]![0]));
  const commaed = kept.map((line) => {
    const end = firstOf(`${line}#`, "#", (at) => parsed(`item = [${line.slice(0, at)}\n]`) !== null)!;
    const item = line.slice(0, end).trimEnd();
    return item === "" || item.endsWith(",") ? line : `${item},${line.slice(item.length)}`;
  });
  const indent = /^\s*/.exec(lines[1]!)![0];
  const added = wanted.filter((each) => !items.some((item) => Bun.deepEquals(item, [each])));
  const next = [lines[0]!, ...commaed, ...added.map((each) => `${indent}${tomlLiteral(each)},`), lines.at(-1)!];
  return Bun.deepEquals(Object.values(parsed(next.join("\n")) ?? {}), [wanted]) ? next : null;
}

/** Tables and lists of which nothing is left may stand there or not. */
const withoutEmpty = (values: TomlValues): TomlValues =>
  Object.fromEntries(
    Object.entries(values).filter(([, value]) => Object.keys(Object(value)).length > 0 || value !== Object(value)),
  );
