// What webhooks report to operators: events that someone should look at.
import type { Soon } from "./soon.ts";
import type { AccountId, Ms } from "./types.ts";

/** The events that webhooks may subscribe to. */
export const noticeEvents = [
  "node.down",
  "node.up",
  "balance.low",
  "key.budget_used",
  "backup.failed",
  "ledger.contradiction",
  "disk.low",
] as const;
export type NoticeEvent = (typeof noticeEvents)[number];

export const webhookFormats = ["json", "slack", "discord"] as const;
export type WebhookFormat = (typeof webhookFormats)[number];

/** `text` is one sentence or two for people, `data` the same for programs. */
export type NoticeContent = Readonly<{
  text: string;
  data: Readonly<Record<string, string | number | readonly string[] | null>>;
}>;

export type Notice = Readonly<{
  /** The same for every delivery of it, and for a repeat of the same event: receivers may skip those. */
  id: string;
  event: NoticeEvent | "test";
  at: Ms;
  /** Built for each delivery: an account that is erased meanwhile is not named. */
  content(): Soon<NoticeContent>;
}>;

/** An account's name for notices, at the time of the call. */
export type NameOfAccount = (account: AccountId) => Promise<string>;
