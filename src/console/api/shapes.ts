// Shapes that several parts of the console's contract share, and the shape of every failure.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { emailMaxLength, passwordMaxLength, passwordMinLength } from "../../core/limits.ts";

export const closed = { additionalProperties: false } as const;
export const time = () => Type.String({ description: "a time such as 2026-03-28T00:00:00.000Z" });
export const tokens = () => Type.Integer({ description: "a whole number of balance tokens" });
export const count = () => Type.Integer({ minimum: 0, description: "a whole number" });

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

export const oneOf = <const Words extends readonly string[]>(words: Words) =>
  Type.Union(
    words.map((word) => Type.Literal<Words[number]>(word)),
    { description: `one of ${words.map((word) => `"${word}"`).join(", ")}` },
  );
export const reason = () => Type.String({ maxLength: 500, description: "a text of at most 500 characters" });

/** A number in an address, where everything is text. */
export const wholeText = () => Type.String({ pattern: "^[0-9]{1,15}$", description: "a whole number" });
export const usagePageMax = 200;
export const pageMax = 100;
export const email = () => Type.String({ minLength: 3, maxLength: emailMaxLength, description: "an e-mail address" });

export const newPassword = () =>
  Type.String({
    minLength: passwordMinLength,
    maxLength: passwordMaxLength,
    writeOnly: true,
    description: `a password of ${passwordMinLength} to ${passwordMaxLength} characters`,
  });
export const knownPassword = () =>
  Type.String({ maxLength: passwordMaxLength, writeOnly: true, description: "the password" });
export const cents = () => Type.Number({ minimum: 0 });

/** The last four characters of a key; null for keys from before Tollgate kept them. */
export const keyEnding = () => nullable(Type.String());
export const planId = () => Type.String({ minLength: 1, maxLength: 64, description: "the id of a plan" });

/** Every failure. `code` is a fixed word, `message` a sentence for people. */
export const ApiError = Type.Object({
  error: Type.Object({
    code: oneOf([
      "invalid_request",
      "not_signed_in",
      "wrong_credentials",
      "forbidden",
      "foreign_origin",
      "not_found",
      "conflict",
      "too_many_attempts",
      "busy",
      "unavailable",
      "internal",
    ]),
    message: Type.String(),
    /** With too_many_attempts and busy: when to try again; also in the retry-after header. */
    retry_seconds: Type.Optional(count()),
    /** Of the configuration file: each value that is wrong; `problem` follows its path. */
    faults: Type.Optional(
      Type.Array(Type.Object({ path: Type.Array(Type.Union([Type.String(), Type.Number()])), problem: Type.String() })),
    ),
  }),
});
export type ApiError = Static<typeof ApiError>;

export type Faults = NonNullable<ApiError["error"]["faults"]>;
export type ApiErrorCode = ApiError["error"]["code"];

export const Done = Type.Object({ done: Type.Literal(true) });
export type Done = Static<typeof Done>;
