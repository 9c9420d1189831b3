// Fields of verbs' inputs. A description is what help says; `placeholder`stands for a value there ("--limit N").
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { passwordMaxLength, passwordMinLength } from "../core/limits.ts";

/** Of a text that no rule makes shorter: errors show it in a line, and a database can index it. */
const textMaxLength = 500;
const line = {
  maxLength: textMaxLength,
  pattern: "^[^\\u0000-\\u001f\\u007f]*$",
  rule: `a line of at most ${textMaxLength} characters`,
};

export const text = (description: string, placeholder: string, more: object = {}) =>
  Type.String({ ...line, description, placeholder, ...more });

export const accountEmail = text("The account's e-mail address.", "EMAIL");

export const teamName = text("The team's name.", "TEAM");

export const planId = (description: string) => text(description, "PLAN");

export const wholeNumber = (
  minimum: number,
  description: string,
  placeholder: string,
  maximum = Number.MAX_SAFE_INTEGER,
) => Type.Integer({ minimum, maximum, description, placeholder });

/** Balance tokens. */
export const tokens = (least: number, description: string) => wholeNumber(least, description, "TOKENS");

export const oneOf = <const Word extends string>(words: readonly Word[], description: string, placeholder: string) =>
  Type.Union(
    words.map((word) => Type.Literal(word)),
    { description, placeholder },
  );

export const rowsMaxUsual = 50;
export const rowsMax = Type.Optional(
  wholeNumber(1, `How many to show, ${rowsMaxUsual} unless you say otherwise.`, "N"),
);

export const password = (description: string) =>
  Type.String({
    minLength: passwordMinLength,
    maxLength: passwordMaxLength,
    writeOnly: true,
    description,
    placeholder: "PASSWORD",
  });

export const when = (description: string) => text(description, "WHEN");

export const list = (placeholder: string, description: string) =>
  Type.Array(Type.String(line), { description, placeholder });

export const repeated = (placeholder: string, description: string) =>
  Type.Array(Type.String(), { placeholder, description, repeats: true, maxItems: 100 });

/** `null` lifts a limit; on a command line the word "none" does. */
export const orNull = <Schema extends TSchema>(schema: Schema) =>
  Type.Unsafe<Static<Schema> | null>(
    Type.Union([schema, Type.Null()], {
      description: schema.description,
      placeholder: schema["placeholder"],
      flag: schema["flag"],
    }),
  );
