// The kinds of values that options have: what each must be, how it is read from the file, and how it is written as the text
// of a flag or a variable. A schema's description is what errors and the reference say of it.
import { resolve } from "node:path";
import { type TSchema, Type } from "@sinclair/typebox";
import { dayMs, hourMs } from "../core/units.ts";
import type { Ms } from "../core/types.ts";
import type { FaultPlace } from "./faults.ts";

/** A value of the file, which fits the schema, as the program has it. */
export type Kind<Value> = Readonly<{
  schema: TSchema;
  read(written: any, place: FaultPlace): Value;
  /** What is written in the file, of the text of a flag or a variable; null: it is not such a value. */
  ofText?(text: string): unknown;
  /** A value as the reference writes it; absent: as text. */
  shown?(value: Value): string;
}>;

const as = <Value>(schema: TSchema, more: Partial<Kind<Value>> = {}): Kind<Value> => ({
  schema,
  read: (written) => written as Value,
  ...more,
});

/** The same kind, read further. */
export const mapped = <From, Value>(
  kind: Kind<From>,
  to: (value: From, place: FaultPlace) => Value,
  shown?: (value: Value) => string,
): Kind<Value> => ({
  schema: kind.schema,
  read: (written, place) => to(kind.read(written, place), place),
  ...(kind.ofText === undefined ? {} : { ofText: kind.ofText }),
  ...(shown === undefined ? {} : { shown }),
});

// ---------------------------------------------------------------- texts

export const text = (description: string): Kind<string> =>
  as(Type.String({ minLength: 1, description }), { ofText: (typed) => typed });

export const anyText = (): Kind<string> => as(Type.String());

export const textLike = (pattern: string, description: string): Kind<string> =>
  as(Type.String({ pattern, description }));

/**
 * What reaches beyond requests: programs, paths, variables of the environment. Only who may use the machine sets it, and
 * nobody in a browser.
 */
export const ofMachine = <Value>(kind: Kind<Value>): Kind<Value> => ({
  ...kind,
  schema: { ...kind.schema, ofMachine: true },
});

/** A path from the file's folder. */
export const path = (what: "file" | "folder"): Kind<string> =>
  ofMachine(mapped(text(`the path of a ${what}`), (written, { reading }) => resolve(reading.folder, written)));

export const secretText = (): Kind<string> =>
  as(Type.String({ minLength: 1, writeOnly: true, description: "a text that is not empty" }));

export const variableName = (): Kind<string> =>
  ofMachine(textLike("^[A-Za-z_][A-Za-z0-9_]*$", "the name of an environment variable"));

/** Of a program; they may be secrets. */
export const variables = (): Kind<Readonly<Record<string, string>>> =>
  ofMachine(
    as(
      Type.Record(Type.String(), Type.String({ writeOnly: true }), { description: "a table of environment variables" }),
    ),
  );

export const textTable = (description: string): Kind<Readonly<Record<string, string>>> =>
  as(Type.Record(Type.String(), Type.String({ minLength: 1 }), { description }));

/** A table of another program, which may hold its secrets. */
export const jsonTable = (description: string): Kind<Readonly<Record<string, unknown>>> =>
  as(Type.Record(Type.String(), Type.Unknown(), { writeOnly: true, description }));

export const oneOf = <const Word extends string>(words: readonly Word[]): Kind<Word> =>
  as(
    Type.Union(
      words.map((word) => Type.Literal(word)),
      { description: `one of ${words.map((word) => `"${word}"`).join(", ")}` },
    ),
    { ofText: (typed) => words.find((word) => word === typed) ?? null },
  );

/** `least`: how many there must be. */
export const listOf = <Item>(item: Kind<Item>, description: string, least = 0): Kind<readonly Item[]> => ({
  schema: Type.Array(item.schema, { ...(least > 0 ? { minItems: least } : {}), description }),
  read: (written: readonly unknown[], place) => written.map((each, index) => item.read(each, place.at(index))),
});

export const names = (what: string): Kind<readonly string[]> =>
  listOf(as<string>(Type.String({ minLength: 1 })), `a list of one or more ${what}`, 1);

// ---------------------------------------------------------------- numbers

export const yesOrNo = (): Kind<boolean> => as(Type.Boolean({ description: "true or false" }));

/** Or one of some words. */
export const yesOrNoOr = <const Word extends string>(words: readonly Word[]): Kind<boolean | Word> =>
  as(
    Type.Union([Type.Boolean(), ...words.map((word) => Type.Literal(word))], {
      description: `true, false, ${words
        .map((word) => `"${word}"`)
        .join(", ")
        .replace(/, (?=[^,]*$)/, " or ")}`,
    }),
  );

export const whole = (
  minimum: number,
  maximum: number,
  description = `a whole number from ${minimum} to ${maximum}`,
): Kind<number> =>
  as(Type.Integer({ minimum, maximum, description }), {
    ofText(typed) {
      const value = /^\d{1,15}$/.test(typed) ? Number(typed) : Number.NaN;
      return value >= minimum && value <= maximum ? value : null;
    },
  });

/** Or one word in its place. */
export const wholeOr = <const Word extends string>(word: Word, minimum: number, maximum: number): Kind<number | Word> =>
  as(
    Type.Union([Type.Literal(word), Type.Integer({ minimum, maximum })], {
      description: `a whole number from ${minimum} to ${maximum}, or "${word}"`,
    }),
  );

export const number = (minimum: number, maximum: number, description = `a number from ${minimum} to ${maximum}`) =>
  as<number>(Type.Number({ minimum, maximum, description }));

const times =
  (unitMs: Ms, unit: string) =>
  (minimum: number, maximum: number, description = `a number of ${unit} from ${minimum} to ${maximum}`): Kind<Ms> =>
    mapped(
      number(minimum, maximum, description),
      (value) => value * unitMs,
      (ms) => String(ms / unitMs),
    );
export const seconds = times(1_000, "seconds");
export const days = times(dayMs, "days");
/** 0 is none. */
export const hoursOrNone = (minimum: number, maximum: number): Kind<Ms> =>
  mapped(
    as<number>(
      Type.Union([Type.Literal(0), Type.Number({ minimum, maximum })], {
        description: `a number of hours from ${minimum} to ${maximum}, or 0 (none)`,
      }),
    ),
    (value) => value * hourMs,
  );
export const mebibytes = (minimum: number, maximum: number): Kind<number> =>
  mapped(
    number(minimum, maximum, `a number of MiB from ${minimum} to ${maximum}`),
    (value) => value * 1024 ** 2,
    (bytes) => String(bytes / 1024 ** 2),
  );

// ---------------------------------------------------------------- addresses

export const webAddress = "an http:// or https:// address";
export const plainAddress = `${webAddress} without user, query and fragment`;

/** Without a slash at its end; null where it is not one that can be built upon. */
export function readAddress(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { protocol, username, password, search, hash, href } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") return null;
  if (username !== "" || password !== "" || search !== "" || hash !== "") return null;
  return href.replace(/\/+$/, "");
}

/** A checked address without its trailing slash. */
export const address = (): Kind<string> =>
  mapped(text(webAddress), (url, place) => {
    const found = readAddress(url);
    if (found === null) place.mustBe(plainAddress, url);
    return found ?? "";
  });

/** A checked address exactly as it was written: a query or a slash at its end may be part of it. */
export const endpoint = (): Kind<string> =>
  mapped(text(webAddress), (url, place) => {
    const parsed = URL.parse(url);
    const isWeb = parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.username + parsed.password === "";
    if (!isWeb) place.mustBe(`${webAddress} without user`, url);
    return url;
  });

/** As browsers write them: in lower case, without a usual port. Pages of programs have schemes of their own. */
export const origins = (): Kind<readonly string[]> =>
  mapped(listOf(anyText(), 'a list of origins such as "https://app.example.com", or ["*"] for all'), (typed, place) =>
    typed.map((origin, index) => readOrigin(origin, typed.length === 1, place.at(index))),
  );

function readOrigin(origin: string, isAlone: boolean, place: FaultPlace): string {
  if (origin === "*") {
    if (!isAlone) place.fault('must be alone: "*" is all origins');
    return origin;
  }
  const found = origin.includes("*") ? null : readAddress(origin);
  if (found !== null && new URL(found).pathname === "/") return new URL(found).origin;
  const isOfProgram = /^(?!https?:)[A-Za-z][A-Za-z0-9+.-]*:\/\/[A-Za-z0-9._:[\]-]+$/.test(origin);
  if (!isOfProgram) place.mustBe('an origin such as "https://app.example.com", without a path', origin);
  return origin.toLowerCase();
}
