// A named key of an account in memory. The account's first key, "default", is part of the account itself.
import { isExpired } from "../../core/key-limits.ts";
import type { KeyId, KeyLimits, Model, Ms } from "../../core/types.ts";
import type { MinuteWindow } from "./minute-window.ts";
import { noSpendLimits, type SpendLimit } from "./spend-limit.ts";

export class LoadedKey {
  /**
   * What its requests hold their budgets against. A key without a limit has one, too: it may get a limit while they run, and
   * what they come to counts for that. Only where PostgreSQL's rows are decided on has such a key none.
   */
  readonly spendLimit: SpendLimit | null;
  /** That one, and a team's member's whose key it is. */
  readonly spendLimits: readonly SpendLimit[];
  /** When it was last used; the disk follows in batches. */
  usedAt: Ms | null = null;
  isUseUnwritten = false;
  /** Requests that have begun, also those that cost nothing; and those that wait for others to end. */
  running = 0;
  waiting = 0;
  /** Null until a limit of a minute is looked at. */
  minute: MinuteWindow | null = null;

  constructor(
    readonly id: KeyId,
    public name: string,
    public keyHash: string,
    public limits: KeyLimits | null,
    spendLimit: SpendLimit | null,
    ofMember: SpendLimit | null = null,
    public isVoid = false,
  ) {
    this.spendLimit = spendLimit;
    const all = [spendLimit, ofMember].filter((limit) => limit !== null);
    this.spendLimits = all.length === 0 ? noSpendLimits : all;
  }

  /** It has as many requests under way as it may. */
  get isFull(): boolean {
    const parallel = this.limits?.parallel ?? null;
    return parallel !== null && this.running >= parallel;
  }

  isVoidAt(now: Ms): boolean {
    return this.isVoid || (this.limits !== null && isExpired(this.limits, now));
  }

  mayUse({ id, aliases }: Pick<Model, "id" | "aliases">): boolean {
    const models = this.limits?.models ?? null;
    return models === null || models.includes(id) || aliases.some((alias) => models.includes(alias));
  }

  get held(): number {
    return this.spendLimit?.held ?? 0;
  }

  rename(name: string): void {
    this.name = name;
    if (this.spendLimit !== null) this.spendLimit.name = name;
  }

  limit(limits: KeyLimits | null): void {
    this.limits = limits;
    this.spendLimit?.limit(limits?.tokensPerDay ?? null, limits?.tokensPerMonth ?? null);
  }
}
