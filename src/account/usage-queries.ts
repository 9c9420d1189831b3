// What the usage page asks for. An account may have millions of replies, so the implementation keeps an index of its
// own.
import type { AccountsAsked, AccountsFound } from "./accounts-page.ts";
import type { UsageSplit } from "../core/over-time.ts";
import type { ReportAsked, ReportPart } from "../core/report.ts";
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

/** All accounts together. */
export const everyAccount: AccountId = 0;

/** What is summed up over time, and by what. A step of days begins with a day in UTC, as do `from` and `until` then. */
export type UsageAsked = Readonly<{
  account: AccountId;
  from: Ms;
  until: Ms;
  stepMs: Ms;
  by: UsageSplit;
  /** Without a text and times. */
  filter: Pick<UsageFilter, "model" | "endpoint" | "key" | "endUser">;
}>;

export type UsageStep = UsageSum &
  Readonly<{
    /** When the step begins. */
    at: Ms;
    /**
     * A model, an endpoint, or a number: of a key (behind the account's and a space where all accounts are asked for), of an
     * end user (0: none) or of an account. Null: all that come after those with the most.
     */
    name: string | null;
    /** Of an end user: null where the name was erased. */
    label?: string | null;
  }>;

/** Every reply that is on disk when it is asked counts. Calls reject with StoreUnavailable. */
export interface UsageQueries {
  /** At most `limit` replies before `before`, or from the newest on. */
  page(account: AccountId, filter: UsageFilter, before: UsagePlace | null, limit: number): Promise<UsagePage>;
  summary(account: AccountId, fromDay: number): Promise<UsageSummary>;
  /** Steps with replies, in no order. `onlyDays`: of this time only sums by day are left, and shorter steps lack some. */
  overTime(asked: UsageAsked): Promise<Readonly<{ steps: readonly UsageStep[]; onlyDays: boolean }>>;
  /** Sums over what was served. */
  report(asked: ReportAsked): Promise<ReportPart>;
  /** A page of the accounts that fit, and how many fit. */
  accounts(asked: AccountsAsked): Promise<AccountsFound>;
}
