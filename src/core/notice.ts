// What operators are told of by webhooks: something happened that somebody should look at.
import type { Soon } from "./soon.ts";
import type { AccountId, Ms } from "./types.ts";

/** What webhooks may ask for. */
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
  /** The same for every delivery of it, and for the same thing told again: receivers may leave it out then. */
  id: string;
  event: NoticeEvent | "test";
  at: Ms;
  /** Made for each delivery: an account that is erased meanwhile is not named. */
  content(): Soon<NoticeContent>;
}>;

/** Names of accounts for notices, as they are then. */
export type NameOfAccount = (account: AccountId) => Promise<string>;
