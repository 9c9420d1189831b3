// What mail there is, and what a mail is on its way.
import { dayMs, hourMs } from "./units.ts";

/** Receivers may switch these off, in this order on the page of their account. */
export const optionalMailKinds = ["limits", "end_user_limits", "statement", "alerts"] as const;
export type OptionalMailKind = (typeof optionalMailKinds)[number];
/** End users' limits are only told where an owner asks for that. */
export const usualMailKinds: readonly OptionalMailKind[] = ["limits", "statement", "alerts"];

export const mailKinds = [
  "invitation",
  "team_invitation",
  "password",
  "address",
  "test",
  ...optionalMailKinds,
] as const;
export type MailKind = (typeof mailKinds)[number];

export const mailLanguages = ["en", "de", "zh"] as const;
export type MailLanguage = (typeof mailLanguages)[number];

/** Of what a browser or an account says; null: we do not speak it. */
export function mailLanguageOf(tags: string | null): MailLanguage | null {
  const codes = (tags ?? "").split(",", 10).map((tag) => tag.trim().slice(0, 2).toLowerCase());
  return mailLanguages.find((language) => language === codes.find((code) => code !== "")) ?? null;
}

/** How long links in mails work. */
export const mailedPasswordLinkMs = hourMs;
export const addressLinkMs = dayMs;
