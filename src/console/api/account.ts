// The account's own security: its password, its browser sessions and its deletion.
import { type Static, Type } from "@sinclair/typebox";
import { emailMaxLength } from "../../core/limits.ts";
import { PurchaseRequest } from "./plan.ts";
import { closed, count, knownPassword, newPassword, nullable, oneOf, time } from "./shapes.ts";

export const PasswordChange = Type.Object({ old_password: knownPassword(), new_password: newPassword() }, closed);

/** The name that a page gave its change. */
export const Undo = Type.Object({ name: Type.String({ maxLength: 64 }) }, closed);

export const BrowserSessions = Type.Object({
  sessions: Type.Array(
    Type.Object({
      id: count(),
      created_at: time(),
      /** To within five minutes. */
      last_used_at: time(),
      address: Type.String(),
      /** The browser's User-Agent header, at most 200 characters. */
      browser: Type.String(),
      /** True for the session that made this request. */
      current: Type.Boolean(),
    }),
  ),
});
export type BrowserSessions = Static<typeof BrowserSessions>;

/** How owners may delete their account, and the outcome of the last request for it. */
export const DeletionState = Type.Object({
  way: oneOf(["self", "request", "off"]),
  /** What proves that it is the owner: the password, or a recent sign-in. */
  proof: oneOf(["password", "sign_in"]),
  is_fresh: Type.Boolean(),
  request: nullable(PurchaseRequest),
});
export type DeletionState = Static<typeof DeletionState>;

/** `confirm` is the account's e-mail address, as its owner typed it. */
export const OwnDeletion = Type.Object(
  {
    confirm: Type.String({ maxLength: emailMaxLength, description: "the account's e-mail address" }),
    password: Type.Optional(knownPassword()),
  },
  closed,
);
