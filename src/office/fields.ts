// Fields of verbs' inputs. A description is what help says; `placeholder`stands for a value there ("--limit N").
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { passwordMaxLength, passwordMinLength } from "../core/limits.ts";

export const accountEmail = Type.String({ description: "The account's e-mail address.", placeholder: "EMAIL" });

export const planId = (description: string) => Type.String({ description, placeholder: "PLAN" });

export const tokens = (least: number, description: string) =>
  Type.Integer({ minimum: least, description, placeholder: "TOKENS" });

export const rowsMaxUsual = 50;
export const rowsMax = Type.Optional(
  Type.Integer({
    minimum: 1,
    description: `How many to show, ${rowsMaxUsual} unless you say otherwise.`,
    placeholder: "N",
  }),
);

export const password = (description: string) =>
  Type.String({
    minLength: passwordMinLength,
    maxLength: passwordMaxLength,
    writeOnly: true,
    description,
    placeholder: "PASSWORD",
  });

export const when = (description: string) => Type.String({ description, placeholder: "WHEN" });

export const list = (placeholder: string, description: string) =>
  Type.Array(Type.String(), { description, placeholder });

/** `null` lifts a limit; on a command line the word "none" does. */
export const orNull = <Schema extends TSchema>(schema: Schema) =>
  Type.Unsafe<Static<Schema> | null>(
    Type.Union([schema, Type.Null()], {
      description: schema.description,
      placeholder: schema["placeholder"],
      flag: schema["flag"],
    }),
  );
