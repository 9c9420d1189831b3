// What a command of the program is, and how its part of the command line is parsed.
import { parseArgs } from "node:util";
import { nearest } from "../core/nearest.ts";
import type { Environment } from "../config/config.ts";

export type FlagTable = Readonly<Record<string, Readonly<{ type: "string" | "boolean"; multiple?: boolean }>>>;
export type Flags = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** One call of a command. */
export type Invocation = Readonly<{
  /** The words after the command's name, as many as it asks for. */
  words: readonly string[];
  flags: Flags;
  environment: Environment;
}>;

export interface Command {
  /** Names of the words it needs, in order: ["EMAIL", "PLAN"]. */
  readonly words: readonly string[];
  readonly flags: FlagTable;
  /** Does it and gives the exit code; what cannot be done is thrown. */
  run(invocation: Invocation): Promise<number>;
}

/** The command line is wrong: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Flags of every command that works on a data folder. */
export const folderFlags = {
  config: { type: "string" },
  data: { type: "string" },
  json: { type: "boolean" },
} as const satisfies FlagTable;

/** Reads the arguments after the command's name; throws UsageError naming what is wrong. */
export function readArguments(name: string, command: Command, argv: readonly string[], environment: Environment) {
  const { values, positionals } = parse(name, command, argv);
  for (const [index, word] of command.words.entries()) {
    if (positionals[index] === undefined) throw new UsageError(`${name}: ${word} is missing`);
  }
  const extra = positionals[command.words.length];
  if (extra !== undefined) throw new UsageError(`${name}: ${JSON.stringify(extra)} is one word too many`);
  return { words: positionals, flags: values as Flags, environment } satisfies Invocation;
}

function parse(name: string, command: Command, argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: command.flags, allowPositionals: true, strict: true });
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (code !== "ERR_PARSE_ARGS_UNKNOWN_OPTION") throw new UsageError(`${name}: ${message.split("\n")[0]}`);
    const negative = argv.find((word) => /^-\d/.test(word)); // it would be read as a flag, digit by digit
    if (negative !== undefined) throw new UsageError(`${name}: ${negative} is below zero, which no number here may be`);
    const typed = argv.find((word) => message.includes(`'${word.split("=")[0]}'`)) ?? "";
    const known = Object.keys(command.flags).map((flag) => `--${flag}`);
    const meant = nearest(typed.split("=")[0]!, known);
    const hint = meant === null ? `known flags: ${known.join(", ")}` : `did you mean ${meant}?`;
    throw new UsageError(`${name}: unknown flag ${typed}; ${hint}`);
  }
}

/** The text of a flag, or undefined when it was not given. */
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
