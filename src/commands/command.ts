// What a command of the program is, and how its part of the command line is parsed.
import { parseArgs } from "node:util";
import type { Environment } from "../config/config.ts";
import { nearest } from "../core/nearest.ts";

export type Flag = Readonly<{
  type: "string" | "boolean";
  multiple?: boolean;
  short?: string;
  isRequired?: boolean;
  /** Stands for the value in help: "FILE". */
  placeholder?: string;
  help: string;
}>;
export type FlagTable = Readonly<Record<string, Flag>>;
export type Flags = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

export type Invocation = Readonly<{
  /** The words after the command's name. */
  words: readonly string[];
  flags: Flags;
  environment: Environment;
}>;

export interface Command {
  readonly name: string;
  /** One imperative line. */
  readonly summary: string;
  readonly details?: string;
  readonly words: readonly Readonly<{ name: string; help: string }>[];
  readonly takesMore?: true;
  readonly flags: FlagTable;
  /** Returns the exit code; throws what went wrong. */
  run(invocation: Invocation): Promise<number>;
}

export type Section = readonly [heading: string, commands: readonly Command[]];

/** The command line is wrong: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Flags of every command that works on a data folder. */
export const folderFlags = {
  config: { type: "string", placeholder: "FILE", help: "The configuration file." },
  data: { type: "string", placeholder: "DIR", help: "The data folder." },
  json: { type: "boolean", help: "Print JSON for programs." },
} as const satisfies FlagTable;

export const nodeFlag = {
  node: {
    type: "string",
    multiple: true,
    placeholder: "URL",
    help: "Use the node at this address instead of those of the configuration; may be repeated.",
  },
} as const satisfies FlagTable;

/** Reads the arguments after the command's name; throws UsageError naming what is wrong. */
export function readArguments(
  { name, words, takesMore, flags }: Command,
  argv: readonly string[],
  environment: Environment,
) {
  const { values, positionals } = parse(name, flags, argv);
  for (const [index, word] of words.entries()) {
    if (positionals[index] === undefined) throw new UsageError(`${name}: ${word.name} is missing`);
  }
  const extra = positionals[words.length];
  if (extra !== undefined && !takesMore) throw new UsageError(`${name}: ${JSON.stringify(extra)} is one word too many`);
  return { words: positionals, flags: values as Flags, environment } satisfies Invocation;
}

function parse(name: string, flags: FlagTable, argv: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(flags).map(([flag, { type, multiple = false, short }]) => [
      flag,
      short === undefined ? { type, multiple } : { type, multiple, short },
    ]),
  );
  try {
    return parseArgs({ args: withNegatives(argv, flags), options, allowPositionals: true, strict: true });
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (code !== "ERR_PARSE_ARGS_UNKNOWN_OPTION") throw new UsageError(`${name}: ${message.split("\n")[0]}`);
    const negative = argv.find(isNegative); // would be read as flags, digit by digit
    if (negative !== undefined) throw new UsageError(`${name}: ${negative} is below zero, which no number here may be`);
    const typed = argv.find((word) => message.includes(`'${word.split("=")[0]}'`)) ?? "";
    const known = Object.keys(flags).map((flag) => `--${flag}`);
    const meant = nearest(typed.split("=")[0]!, known);
    const hint = meant === null ? `known flags: ${known.join(", ")}` : `did you mean ${meant}?`;
    throw new UsageError(`${name}: unknown flag ${typed}; ${hint}`);
  }
}

const isNegative = (word: string): boolean => /^-\d/.test(word);

/** A negative number behind a flag is its value: `--nodes -1` is `--nodes=-1`. */
function withNegatives(argv: readonly string[], flags: FlagTable): string[] {
  const args: string[] = [];
  for (const word of argv) {
    const before = args.at(-1) ?? "";
    const takes = before.startsWith("--") && flags[before.slice(2)]?.type === "string";
    if (takes && isNegative(word)) args[args.length - 1] = `${before}=${word}`;
    else args.push(word);
  }
  return args;
}

export function textFlag(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === "string" ? value : undefined;
}

/** A whole number of at least `least` that was typed as `text`; throws UsageError naming `what`. */
export function readWhole(what: string, text: string, least: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least) return value;
  throw new UsageError(`${what} must be a whole number >= ${least}, is ${JSON.stringify(text)}`);
}
