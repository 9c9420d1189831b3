// What operators ask of the list of accounts, and what it says of each.
import type { AccountSort, AccountState } from "../core/account-columns.ts";
import type { Ms, PlanId } from "../core/types.ts";
import type { AccountSummary } from "./people/accounts.ts";

/** Null: any. */
export type AccountsAsked = Readonly<{
  /** Part of the e-mail, in any case of ASCII letters. */
  text: string;
  plan: PlanId | null;
  state: AccountState | null;
  /** A team's name: its members. */
  team: string | null;
  /** At least this many thousandths of the day's allowance are used. */
  usedLeast: number | null;
  /** The day's allowance of each plan that has one. */
  allowances: readonly (readonly [PlanId, number])[];
  /** UTC days. */
  today: number;
  monthStart: number;
  sort: AccountSort;
  isDown: boolean;
  /** From 1 on. One behind the last is the last. */
  page: number;
  pageRows: number;
}>;

export type AccountLine = AccountSummary &
  Readonly<{
    costCenter: string | null;
    /** Of which teams it is a member. */
    teams: string | null;
    /** When a key or a browser of it was last used, or a little earlier. */
    activeAt: Ms | null;
    /** Balance tokens and tokens of models, in the UTC day and month. */
    today: number;
    todayTokens: number;
    month: number;
    monthTokens: number;
    /** Thousandths of the day's allowance; null where there is none. */
    limit: number | null;
  }>;

export type AccountsFound = Readonly<{ rows: readonly AccountLine[]; total: number; page: number }>;
