// Edits single values and tables of a TOML text and leaves all else as it was written: comments, order, blank lines. After
// each edit the text must read as what was meant, or it is refused.
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

/** A string, a comment, a sign or what is between them: each place of a text is looked at once, whatever it has. */
const token =
  /"""(?:\\[^]|(?!""")[^\\])*"{3,5}|'''(?:(?!''')[^])*'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[^"'#[\]{}=\n]+|[^]/y;

/** Of the statement, or the item of a list, that begins there: its first "=", and where its value and all of it end. */
function endsOf(text: string, from: number): { equals: number; value: number; to: number } {
  let [equals, depth, value] = [-1, 0, from];
  token.lastIndex = from;
  for (let found = token.exec(text); found !== null; found = token.exec(text)) {
    const [sign] = found;
    if (sign === "\n" && depth === 0) return { equals, value, to: found.index };
    if (sign === "=" && equals < 0) equals = found.index;
    if (sign === "[" || sign === "{") depth += 1;
    else if (sign === "]" || sign === "}") depth -= 1;
    if (sign[0] !== "#" && sign.trim() !== "") value = found.index + sign.trimEnd().length;
  }
  return { equals, value, to: text.length };
}

/** Of the lines of a text that parses. */
export function statementsOf(lines: readonly string[]): Statement[] {
  const statements: Statement[] = [];
  const lists = new Map<string, number>(); // list of tables -> position of its last one
  let table: TomlPath = [];
  const text = lines.join("\n");
  for (let [at, from] = [0, 0]; at < lines.length; at += 1) {
    const line = lines[at]!.trim();
    let to = from + lines[at]!.length;
    if (line.startsWith("[")) {
      const { words, isList } = wordsOf(parsed(line));
      table = placeOf(words, isList, lists);
      statements.push({ path: table, lines: [at, at + 1], value: null });
    } else if (line !== "" && !line.startsWith("#")) {
      const ends = endsOf(text, from);
      const [first, start] = [at, /\S/.exec(text.slice(ends.equals + 1, ends.value))!.index + ends.equals + 1];
      while (to < ends.to) to += lines[++at]!.length + 1;
      const path = [...table, ...wordsOf(parsed(`${text.slice(from, ends.equals)}= 0`)).words];
      statements.push({ path, lines: [first, at + 1], value: [start - from, ends.value - from] });
    }
    from = to + 1;
  }
  return statements;
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
  const literals = items.map((item) => (item!.length === 0 ? null : tomlLiteral(item![0])));
  const [were, are] = [new Set(literals), new Set(wanted.map(tomlLiteral))];
  const kept = lines.slice(1, -1).filter((_, at) => literals[at] === null || are.has(literals[at]!));
  const commaed = kept.map((line) => {
    const { value: end } = endsOf(line, 0);
    return end === 0 || line[end - 1] === "," ? line : `${line.slice(0, end)},${line.slice(end)}`;
  });
  const indent = /^\s*/.exec(lines[1]!)![0];
  const added = [...are].filter((each) => !were.has(each)).map((each) => `${indent}${each},`);
  const next = [lines[0]!, ...commaed, ...added, lines.at(-1)!];
  return Bun.deepEquals(Object.values(parsed(next.join("\n")) ?? {}), [wanted]) ? next : null;
}

/** Tables and lists of which nothing is left may stand there or not. */
const withoutEmpty = (values: TomlValues): TomlValues =>
  Object.fromEntries(
    Object.entries(values).filter(([, value]) => Object.keys(Object(value)).length > 0 || value !== Object(value)),
  );
