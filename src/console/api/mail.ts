// Mail: where an account's goes, what it wants of it, and forgotten passwords.
import { type Static, Type } from "@sinclair/typebox";
import { emailMaxLength } from "../../core/limits.ts";
import { mailLanguages, optionalMailKinds } from "../../core/mail.ts";
import { closed, email, knownPassword, nullable, oneOf } from "./shapes.ts";

const token = () => Type.String({ maxLength: 800, description: "the token of a link" });
const kinds = () =>
  Type.Array(oneOf(optionalMailKinds), { maxItems: optionalMailKinds.length, description: "kinds of mail" });

export const Forgotten = Type.Object(
  { email: Type.String({ maxLength: emailMaxLength, description: "an e-mail address" }) },
  closed,
);

export const MailState = Type.Object({
  /** Null: its mail goes nowhere. */
  address: nullable(Type.String()),
  /** What it wants, of those that it may choose from. */
  kinds: kinds(),
  choices: kinds(),
  /** What proves that it is the owner: the password, or a recent sign-in. */
  proof: oneOf(["password", "sign_in"]),
});
export type MailState = Static<typeof MailState>;

/** `address` null: none from now on. Else a mail asks there whether it is the account's. */
export const MailAddress = Type.Object(
  { address: nullable(email()), password: Type.Optional(knownPassword()) },
  closed,
);
export const MailKinds = Type.Object({ kinds: kinds() }, closed);
export const MailToken = Type.Object({ token: token() }, closed);
export const Confirmed = Type.Object({ address: Type.String() });
export const Unsubscribed = Type.Object({ kind: oneOf(optionalMailKinds) });
export const ChosenLanguage = Type.Object({ language: oneOf(mailLanguages) }, closed);

/** Of an operator, who needs no confirmation. */
export const OperatorMailAddress = Type.Object({ address: nullable(email()) }, closed);
