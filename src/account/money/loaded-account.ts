// An account in memory: its plan, its money, what it holds and what it has used in the current periods.
import type { AccountId, KeyId, Ms, Plan } from "../../core/types.ts";
import type { BalancePlace } from "./balance-line.ts";
import type { LoadedKey } from "./loaded-key.ts";
import type { MinuteWindow } from "./minute-window.ts";
import type { Period, PeriodUse } from "./quota.ts";
import type { SpendLimit } from "./spend-limit.ts";

const nothing: Readonly<Record<"allowance" | "coder_calls" | "searches", PeriodUse>> = {
  // No period has the number -1, so the first look loads the use from disk. Shared by all accounts and never written.
  allowance: Object.freeze({ quota: "allowance", period: -1, used: 0 }),
  coder_calls: Object.freeze({ quota: "coder_calls", period: -1, used: 0 }),
  searches: Object.freeze({ quota: "searches", period: -1, used: 0 }),
};

export type SearchCalls = { readonly day: Period; calls: number };

export class LoadedAccount {
  held = 0;
  /** Open requests that were admitted; those that are coder calls hold no tokens. */
  holds = 0;
  /** Requests that have begun and cost something, and the balance tokens that they are expected to cost. */
  begun = 0;
  expected = 0;
  /** Requests that have begun, also those that cost nothing. */
  running = 0;
  /** Null until a limit of a minute is looked at. */
  minute: MinuteWindow | null = null;
  /** Requests that wait for others to settle, first in first out, and what they hold of `held`. Nearly always null. */
  waiting: BalancePlace[] | null = null;
  waitingHeld = 0;
  /** Searches that run now; each counts for its day if it finds something. */
  searchesHeld = 0;
  /** Journal lines appended and neither committed nor lost. While there are any, the disk is behind this object. */
  uncommitted = 0;
  allowance: PeriodUse = nothing.allowance;
  coder_calls: PeriodUse = nothing.coder_calls;
  searches: PeriodUse = nothing.searches;
  /** Null until the first search. */
  searchCalls: SearchCalls | null = null;
  /** Its named keys that are not void; null until one is used or asked for. */
  keys: Map<KeyId, LoadedKey> | null = null;
  /** Of a team: what members may spend whose keys are in memory; null where there are none. */
  members: Map<AccountId, SpendLimit> | null = null;
  /** Names of end users that came new on a day; null until one is looked for. */
  newEndUsers: { readonly day: Period; count: number } | null = null;
  /** When its first key was last used; the disk follows in batches. */
  usedAt: Ms | null = null;
  /** Whom lines are booked to whose keys have no cost center of their own. */
  costCenter: string | null = null;
  isUseUnwritten = false;
  /** Periods that were left while lines were uncommitted: the disk may not know their use yet. Nearly always null. */
  left: PeriodUse[] | null = null;
  /** The most credit in memory since the last notice of a low balance. */
  mostCredit: number;

  constructor(
    readonly id: AccountId,
    public plan: Plan,
    /** Balance tokens bought and not spent; below 0 after a charge above the balance. */
    public credit: number,
    public keyHash: string,
    /** Its key and its sessions are refused; what runs may end. */
    public disabled = false,
  ) {
    this.mostCredit = credit;
  }

  /** It has as many requests under way as its plan allows. */
  get isFull(): boolean {
    const { parallel } = this.plan;
    return parallel !== undefined && this.running >= parallel;
  }
}
