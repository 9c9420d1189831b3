// What the usage page asks for. An account may have millions of replies, so the implementation keeps an index of its
// own.
import type { AccountsAsked, AccountsFound } from "./accounts-page.ts";
import type { ActivitySplit, EarlierActivity } from "../core/activity.ts";
import type { AccountId, KeyId, Ms } from "../core/types.ts";
import type { UsageRow } from "./usage-row.ts";

export type UsageFilter = Readonly<{
  model: string | null;
  endpoint: string | null;
  /** By its number. */
  key: KeyId | null;
  /** By its name, whatever key it came by. Absent or null: all. */
  endUser?: string | null;
  from: Ms | null;
  to: Ms | null;
  /**
   * A part of a model's id in any case of ASCII letters, or the beginning of a request id or of the id of its reply;
   * "" fits all.
   */
  text: string;
}>;

/**
 * A place between two replies: those before it come next. `sequence` tells replies of the same moment apart: the line's
 * number, or its billing key where lines have none.
 */
export type UsagePlace = Readonly<{ at: Ms; sequence: number | string }>;

export type UsagePage = Readonly<{
  /** Newest first. */
  rows: readonly UsageRow[];
  /** Null after the last reply. */
  next: UsagePlace | null;
}>;

export type UsageSum = Readonly<{
  requests: number;
  /** All input tokens of the models, cached ones included. */
  input: number;
  cachedInput: number;
  output: number;
  reasoning: number;
  billedTokens: number;
}>;

export const noUsage: UsageSum = { requests: 0, input: 0, cachedInput: 0, output: 0, reasoning: 0, billedTokens: 0 };

export const plus = (one: UsageSum, other: UsageSum): UsageSum => ({
  requests: one.requests + other.requests,
  input: one.input + other.input,
  cachedInput: one.cachedInput + other.cachedInput,
  output: one.output + other.output,
  reasoning: one.reasoning + other.reasoning,
  billedTokens: one.billedTokens + other.billedTokens,
});

/** What one model did on one UTC day, as a number of days since 1970. */
export type DayUsage = UsageSum & Readonly<{ day: number; model: string }>;

/** `name` is null where it was erased, and empty where the program named no end user. */
type EndUserUsage = UsageSum & Readonly<{ key: KeyId; name: string | null }>;

export type UsageSummary = Readonly<{
  /** Of the days asked for, ascending. */
  days: readonly DayUsage[];
  total: UsageSum;
  models: readonly string[];
  endpoints: readonly string[];
  keys: readonly KeyId[];
  /** Of the days asked for: those who cost most, that one first. */
  endUsers: readonly EndUserUsage[];
}>;

export type AccountUsage = UsageSum & Readonly<{ account: AccountId }>;

/** All accounts together, where a summary is asked for. */
export const everyAccount: AccountId = 0;

/** Every reply that is on disk when it is asked counts. Calls reject with StoreUnavailable. */
export interface UsageQueries {
  /** At most `limit` replies before `before`, or from the newest on. */
  page(account: AccountId, filter: UsageFilter, before: UsagePlace | null, limit: number): Promise<UsagePage>;
  summary(account: AccountId, fromDay: number): Promise<UsageSummary>;
  /** Replies of a time by steps of it, for charts: from a step's begin on, to the end of the step that `until` is in. */
  history(from: Ms, until: Ms, stepMs: Ms, split: ActivitySplit): Promise<readonly EarlierActivity[]>;
  /** The accounts that were billed most since, that one first. */
  topAccounts(fromDay: number, limit: number): Promise<readonly AccountUsage[]>;
  /** A page of the accounts that fit, and how many fit. */
  accounts(asked: AccountsAsked): Promise<AccountsFound>;
}
