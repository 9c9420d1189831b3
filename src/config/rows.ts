// What a row of the configuration is: keys of a table of the file, each with its schema and its line in the reference, and
// the value that is read from them. Tables are made of rows, and what a table is read as follows from them.
import { type TSchema, Type } from "@sinclair/typebox";
import type { FaultPlace } from "./faults.ts";
import { type Kind, secretText, text, variableName } from "./kinds.ts";

/** A key as the schema and the reference know it. `otherwise`: what holds without it; empty: nothing does. */
export type Key = Readonly<{ schema: TSchema; isRequired: boolean; about: string; otherwise: string }>;
export type Keys = Readonly<Record<string, Key>>;
/** A table of the file that fits the schemas of its keys. */
export type FileTable = Readonly<Record<string, unknown>>;

export type Row<Value> = Readonly<{
  keys: Keys;
  read(table: FileTable, place: FaultPlace): Value;
  /** See Kind. */
  ofText?: Kind<Value>["ofText"];
  /** `read` of a value alone. */
  readValue?(written: unknown, place: FaultPlace): Value;
}>;

/** What a key is for; what it is where it is left out, and how the reference says that. */
export type Otherwise<Default> = Readonly<{ about: string; otherwise: Default; shown?: string }>;

/** One key that may be left out. */
export function key<Value, Default>(
  name: string,
  kind: Kind<Value>,
  { about, otherwise, shown }: Otherwise<Default>,
): Row<Value | Default> {
  const isNothing = otherwise === undefined || otherwise === null;
  const usual = isNothing ? "" : (kind.shown?.(otherwise as never) ?? String(otherwise));
  return {
    keys: { [name]: { schema: kind.schema, isRequired: false, about, otherwise: shown ?? usual } },
    read: (table, place) => (table[name] === undefined ? otherwise : kind.read(table[name], place.at(name))),
    ...(kind.ofText === undefined ? {} : { ofText: kind.ofText }),
    readValue: kind.read,
  };
}

/** One key that must be there. */
export const required = <Value>(name: string, kind: Kind<Value>, about: string): Row<Value> => ({
  keys: { [name]: { schema: kind.schema, isRequired: true, about, otherwise: "" } },
  read: (table, place) => kind.read(table[name], place.at(name)),
});

/** What a secret is for, and how the reference says what holds without it. */
export type SecretDoc = Readonly<{ about: string; aboutVariable?: string; shown?: string }>;

/**
 * A secret of the file, under `name`, or of the environment variable that `<name>_env` names; null where there is neither.
 * Logs never show it, and nodes' programs do not get the variable.
 */
export const secret = (name: string, doc: SecretDoc): Row<string | null> => orVariable(name, secretText(), doc, true);

/** The same, of what others may know. */
export const textOrVariable = (name: string, doc: SecretDoc): Row<string | null> =>
  orVariable(name, text("a text that is not empty"), doc, false);

function orVariable(
  name: string,
  kind: Kind<string>,
  { about, aboutVariable = "Variable that holds it instead.", shown = "" }: SecretDoc,
  isSecret: boolean,
): Row<string | null> {
  const ofVariable = `${name}_env`;
  return {
    keys: {
      [name]: { schema: kind.schema, isRequired: false, about, otherwise: shown },
      [ofVariable]: { schema: variableName().schema, isRequired: false, about: aboutVariable, otherwise: "" },
    },
    read(table, place) {
      const { environment, keys } = place.reading;
      const written = table[name] as string | undefined;
      const variable = table[ofVariable] as string | undefined;
      if (variable !== undefined && written !== undefined) {
        place.at(name).fault(`must be absent where ${ofVariable} is given`);
      }
      const value = variable === undefined ? written : environment[variable];
      if (variable !== undefined && (value === undefined || value === "")) {
        place.at(ofVariable).fault(`must name a set environment variable, but ${variable} is not set`);
      }
      if (isSecret && value !== undefined && value !== "") keys.add(value);
      return value ?? null;
    },
  };
}

export const apiKey = (whose: string): Row<string | null> =>
  secret("api_key", {
    about: `Key for ${whose}.`,
    aboutVariable: "Variable that holds the key instead, which keeps it out of the file.",
  });

// ---------------------------------------------------------------- tables

export type Rows = Readonly<Record<string, Row<unknown>>>;
type ValueOf<R> = R extends Row<infer Value> ? Value : never;
type OptionalNames<R extends Rows> = {
  [Name in keyof R]: undefined extends ValueOf<R[Name]> ? Name : never;
}[keyof R];
/** What the rows are read as; a value that may be undefined is one that may be absent. */
export type ValuesOf<R extends Rows> = Readonly<
  { [Name in Exclude<keyof R, OptionalNames<R>>]: ValueOf<R[Name]> } & {
    [Name in OptionalNames<R>]?: Exclude<ValueOf<R[Name]>, undefined>;
  }
>;

/** What a table of the file may have, and what it is read as. */
export type TableKind<Value> = Readonly<{
  keys: Keys;
  read(table: FileTable, place: FaultPlace): Value;
}>;

/** Of rows. `make` has their values and may find fault with them together; `given` is what was written. */
export function table<R extends Rows, Value>(
  rows: R,
  make: (values: ValuesOf<R>, place: FaultPlace, given: FileTable) => Value,
): TableKind<Value> {
  return {
    keys: Object.assign({}, ...Object.values(rows).map(({ keys }) => keys)) as Keys,
    read(written, place) {
      const sound = Object.entries(rows).filter(([, { keys }]) => !place.hasFaultAt(keys));
      const values = sound.map(([name, row]) => [name, row.read(written, place)] as const);
      if (sound.length < Object.keys(rows).length) return undefined as Value; // what was found is thrown
      return make(Object.fromEntries(values.filter(([, value]) => value !== undefined)) as ValuesOf<R>, place, written);
    },
  };
}

export const schemaOf = (keys: Keys, description: string): TSchema =>
  Type.Object(
    Object.fromEntries(
      Object.entries(keys).map(([name, { schema, isRequired }]) => [name, isRequired ? schema : Type.Optional(schema)]),
    ),
    { additionalProperties: false, description },
  );
