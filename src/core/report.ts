// Sums of what was served in a time, grouped: what `tollgate report` asks the store that has the journal.
import type { ReportGroup } from "./report-columns.ts";
import type { AccountId, Ms } from "./types.ts";

export type ReportAsked = Readonly<{
  from: Ms;
  until: Ms;
  /** Null: of all. */
  account: AccountId | null;
  /** A key and an end user belong to an account, so that these ask for `account`, too. */
  by: readonly ReportGroup[];
  /** One tag of several is enough. Null, as below: any. */
  tag: string | null;
  costCenter: string | null;
  rowsMax: number;
}>;

/** Groups that were not asked for are null; so is what lines no longer say, because they were folded or erased. */
export type ReportRow = Readonly<
  Record<"requests" | "input" | "cached" | "output" | "billed", number> & {
    account: AccountId | null;
    /** The account, where that is a team's; and the person by whose key it was asked for there. */
    team: AccountId | null;
    member: AccountId | null;
    key: string | null;
    model: string | null;
    endpoint: string | null;
    end_user: string | null;
    cost_center: string | null;
    /** All tags of a request are one value, sorted and with commas between, so that each request counts once. */
    tag: string | null;
  }
>;

/** A purchase, or credit that an operator gave; balance tokens. */
export type BoughtCredit = Readonly<{ at: Ms; tokens: number }>;

export type ReportPart = Readonly<{
  /** Those that were billed most first. */
  rows: readonly ReportRow[];
  /** The begin or the end lies within a UTC day of which only the sum is left. */
  cutsFoldedDay: boolean;
}>;
