// One line of the journal: a charge, a purchase or a counted call. Balances are always the sums of these lines.
import type { AccountId, CentParts, Course, Endpoint, KeyId, Ms } from "../../core/types.ts";
import type { Period, Quota } from "./quota.ts";

export type EntryKind =
  | "charge"
  /** A coder call, counted when it was accepted. */
  | "coder_call"
  /** The tokens of a coder call's reply; nothing is billed. */
  | "coder_usage"
  /** A search of the day that found something. */
  | "search"
  | "credit";

export type Entry = Readonly<{
  /** Minted by the gateway, never by a client, and at most one line has it: the request id where there is a reply. */
  billingKey: string;
  kind: EntryKind;
  account: AccountId;
  /** By which it was asked for; the first key where the line is about no request. */
  key: KeyId;
  /** For whom that key's program asked, by name. Absent or null: it may not say so, or the line is about no request. */
  endUser?: string | null;
  at: Ms;
  /** The day or window whose quota was used; 0 where the kind uses none. */
  period: Period;
  /** Added to the use of the kind's quota in that period: tokens, calls or searches. */
  used: number;
  /** Added to the credit, in balance tokens. */
  creditDelta: number;
  /** The reply that was paid; null where the line is about no reply. */
  reply: Reply | null;
}>;

export type Reply = Readonly<{
  endpoint: Endpoint;
  model: string;
  inputFresh: number;
  inputCached: number;
  output: number;
  /** A part of `output`. */
  reasoning: number;
  /** The rates of the day, so that a charge can be checked after the catalog changed. */
  inputCents: number;
  cachedInputCents: number;
  outputCents: number;
  /** Beside the whole cents; absent where there are none. */
  parts?: CentParts | undefined;
  billedTokens: number;
  /** True where the node gave no usable usage and the gateway counted by itself. */
  estimated: boolean;
  /** Absent if not reported. */
  course?: Course | undefined;
  costCenter?: string | null;
}>;

/** The quota that a line's `used` counts for. */
export function quotaOf(kind: EntryKind): Quota | null {
  switch (kind) {
    case "charge":
      return "allowance";
    case "coder_call":
      return "coder_calls";
    case "search":
      return "searches";
    case "coder_usage":
    case "credit":
      return null;
    default:
      return kind satisfies never;
  }
}
