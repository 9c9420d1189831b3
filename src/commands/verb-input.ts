// Makes the input of a verb from words and flags, and prints its result.
import type { TSchema } from "@sinclair/typebox";
import { resolve } from "node:path";
import { CommandError } from "../core/expected-error.ts";
import { problemWith, type Verb } from "../office/verb.ts";
import { type Invocation, readWhole, textFlag, UsageError } from "./command.ts";

export function tell<Input, Result>(
  { flags }: Pick<Invocation, "flags">,
  verb: Verb<Input, Result>,
  input: Input,
  result: Result,
): number {
  console.log(flags["json"] === true ? JSON.stringify(verb.json?.(result) ?? result) : verb.print(result, input));
  return 0;
}

/** Throws UsageError, or CommandError if --yes is missing. */
export function inputOf<Input>(verb: Verb<Input>, { words, flags }: Invocation): Input {
  const { name, input: schema } = verb;
  const read: Record<string, unknown> = {};
  for (const [field, each] of Object.entries<TSchema>(schema.properties)) {
    const place = verb.words.indexOf(field);
    const flag = flagOf(field, each);
    const value = place < 0 ? valueOfFlag(flags, flag, each) : valueOf(placeholderOf(each), words[place]!, each);
    if (value !== undefined) read[field] = value;
    else if (schema.required?.includes(field)) throw new UsageError(`${name}: --${flag} is missing`);
  }
  const input = read as Input; // each field was read by its schema
  const wrong = problemWith(verb, input);
  if (wrong !== null) {
    const field = String(wrong.path[0] ?? "");
    const isWord = verb.words.includes(field);
    const named = field === "" ? "" : `${isWord ? field : `--${flagOf(field, schema.properties[field]!)}`} `;
    throw new UsageError(`${name}: ${named}${wrong.problem}`);
  }
  if (verb.warning !== undefined && flags["yes"] !== true) {
    throw new CommandError(`${verb.warning(input)}; say --yes to do it`);
  }
  return input;
}

/** `limit_day` is --limit-day, unless the schema says otherwise; null: no flag. */
export function flagOf(field: string, schema: TSchema): string | null {
  const flag: unknown = schema["flag"];
  return flag === null ? null : typeof flag === "string" ? flag : field.replaceAll("_", "-");
}

export const placeholderOf = (schema: TSchema): string => String(schema["placeholder"]);

function valueOfFlag(flags: Invocation["flags"], flag: string | null, schema: TSchema): unknown {
  if (flag === null) return undefined;
  if (schema["type"] !== "boolean") {
    const given = flags[flag];
    if (Array.isArray(given)) return given.map(String); // it is repeated: its values may have commas
    const text = textFlag(flags, flag);
    return text === undefined ? undefined : valueOf(`--${flag}`, text, schema);
  }
  const [is, isNot] = [flags[flag] === true, flags[`no-${flag}`] === true];
  if (is && isNot) throw new UsageError(`--${flag} and --no-${flag} contradict each other`);
  return is ? true : isNot ? false : undefined;
}

function valueOf(what: string, text: string, schema: TSchema): unknown {
  const [inner]: readonly (TSchema | undefined)[] = schema["anyOf"] ?? [];
  if (inner !== undefined) return text === "none" ? null : valueOf(what, text, inner);
  if (schema["type"] === "integer") return readWhole(what, text, Number(schema["minimum"]));
  if (schema["type"] === "array") {
    if (text === "") throw new UsageError(`${what} must not be empty`);
    return text.split(",").map((part) => part.trim());
  }
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
  if (text.length < minLength || text.length > maxLength) {
    throw new UsageError(`${what} must have ${minLength} to ${maxLength} characters, has ${text.length}`);
  }
  return schema["path"] === true ? resolve(text) : text;
}
