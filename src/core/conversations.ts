// Conversations of the console's playground that an account keeps on the server instead of in its browsers. Each is records, which
// browsers add and nobody here reads: two that write at once keep what both wrote.
import type { AccountId } from "./types.ts";

/** `words`: what a search finds it by, in lower case. `once`: what is there already stays. */
export type ConversationRecord = Readonly<{ id: string; words: string; content: string; once?: boolean }>;

export type ConversationWrite = Readonly<{
  id: string;
  /** Nothing is written where it is gone: somebody deleted it. */
  known: boolean;
  records: readonly ConversationRecord[];
}>;

/** `off`: the account keeps none here. */
export type ConversationWritten = Readonly<{ state: "kept" | "gone" | "off" | "full"; version: number }>;

/** What an account keeps; `version` changes with each write. */
export type ConversationShare = Readonly<{ version: number; conversations: number; bytes: number }>;

/** Of each conversation, its records "" and "~". */
export type ConversationHead = Readonly<{ conversation: string; id: string; content: string }>;

/** What an account may keep, and how large all accounts' may be together. */
export type ConversationBounds = Readonly<{ conversationsMax: number; accountBytesMax: number; totalBytesMax: number }>;

/** An account never finds another's. */
export interface ConversationRows {
  /** One; none where the account keeps none here. */
  conversationShare(account: AccountId): Promise<readonly ConversationShare[]>;
  conversationHeads(account: AccountId): Promise<readonly ConversationHead[]>;
  /** From `after` on, about as many as `bytesMax` holds, but at least one. */
  conversationRecords(
    account: AccountId,
    id: string,
    after: string,
    bytesMax: number,
  ): Promise<readonly Readonly<{ id: string; content: string }>[]>;
  conversationsWith(account: AccountId, words: string): Promise<readonly string[]>;
  /** From now on, or no more: that deletes all, but not (`false`) where somebody wrote since the version. */
  keepConversations(account: AccountId, on: boolean, version: number): Promise<boolean>;
  writeConversation(
    account: AccountId,
    write: ConversationWrite,
    bounds: ConversationBounds,
  ): Promise<ConversationWritten>;
  removeConversations(account: AccountId, ids: readonly string[]): Promise<void>;
}
