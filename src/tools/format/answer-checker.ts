// Who checks what. Every check first gets a few milliseconds, accounts in turn. A slow check is repeated in another process
// behind the streams, and so is everything else from its account for a minute. So a crowd with expensive schemas delays
// others by one short attempt each, and after that only itself.
//
//   quick lane  10 ms, then 50 ms of processor  -- slow -->  thorough lane  500 ms each, 10 s a minute for each account
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import type { Verdict } from "./answer-validator.ts";
import { CheckingLane, type LaneResult } from "./checking-lane.ts";
import type { CheckOrder, TimedVerdict } from "./checking-process.ts";

/** The longest answer that is checked, in UTF-16 units: about four times 65,536 tokens. */
const checkedTextMaxLength = 1024 * 1024;
/**
 * Attempts at checking one schema or answer. An attempt ends when it has taken longer than `wallMs` and has used
 * `processorMs` (usual checks take 20 ms, large schemas 50). Quick ones run where streams must not wait, second ones
 * after all first ones, thorough ones behind the streams.
 */
const quickCheckTries = [
  { processorMs: 10, wallMs: 25 },
  { processorMs: 50, wallMs: 100 },
] as const;
const thoroughCheckTries = [{ processorMs: 500, wallMs: 500 }] as const;
/** Processor time of an account's thorough checks in the window; beyond it, its schemas are too expensive. */
const thoroughChecksAccountMaxMs = 10_000;
const thoroughChecksWindowMs = 60_000;
/** Accounts remembered for slow checks; beyond it the oldest are forgotten. */
const thoroughAccountsMax = 10_000;

/** `slow`: this schema, or the account's schemas of the last minute, are too expensive; `failed`: no process starts. */
export type CheckResult = Verdict | Readonly<{ verdict: "slow" }> | Readonly<{ verdict: "failed" }>;

/** Gives verdicts on schemas and answers (see `CheckOrder`). */
export interface Checker {
  /** Never rejects. */
  check(order: CheckOrder, account: AccountId): Promise<CheckResult>;
}

export type AnswerCheckerOptions = Readonly<{
  log: Log;
  clock?: Pick<Clock, "monotonic">;
  idleMs?: Ms;
  silenceMs?: Ms;
  /** For tests: other processes. */
  command?: readonly string[];
}>;

/** Processor time that an account's checks used since one of them was slow. */
type Use = { readonly since: Ms; usedMs: Ms; isLogged: boolean };

export class AnswerChecker implements Checker {
  readonly #log: Log;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #quick: CheckingLane;
  readonly #thorough: CheckingLane;
  /** Oldest first. */
  readonly #uses = new Map<AccountId, Use>();

  constructor({ log, clock = systemClock, ...options }: AnswerCheckerOptions) {
    this.#log = log;
    this.#clock = clock;
    this.#quick = new CheckingLane({
      pace: "quick",
      tries: quickCheckTries,
      log,
      mayRun: (account) => this.#useOf(account) === null,
      made: (account, result) => this.#count(account, result),
      ...options,
    });
    this.#thorough = new CheckingLane({
      pace: "thorough",
      tries: thoroughCheckTries,
      log,
      mayRun: (account) => !this.#hasUsedUp(account),
      made: (account, result) => this.#count(account, result),
      ...options,
    });
  }

  async check(order: CheckOrder, account: AccountId): Promise<CheckResult> {
    if (order.text !== null && order.text.length > checkedTextMaxLength) return { verdict: "slow" };
    const first = await this.#quick.check(order, account);
    if (first.verdict !== "slow" && first.verdict !== "refused") return resultOf(first);
    const second = await this.#thorough.check(order, account);
    if (second.verdict === "slow") this.#log("warn", "a check of structured output took too long", { account });
    return second.verdict === "refused" ? { verdict: "slow" } : resultOf(second);
  }

  /** Ends the processes; waiting checks get `failed`. Resolves when the processes have ended. */
  async close(): Promise<void> {
    await Promise.all([this.#quick.close(), this.#thorough.close()]);
  }

  #count(account: AccountId, { verdict, usedMs }: TimedVerdict): void {
    const use = this.#useOf(account);
    if (use !== null) use.usedMs += usedMs;
    else if (verdict === "slow") {
      this.#uses.delete(account);
      this.#uses.set(account, { since: this.#clock.monotonic(), usedMs, isLogged: false });
      if (this.#uses.size > thoroughAccountsMax) this.#uses.delete(this.#uses.keys().next().value!);
    }
  }

  #hasUsedUp(account: AccountId): boolean {
    const use = this.#useOf(account);
    if (use === null || use.usedMs < thoroughChecksAccountMaxMs) return false;
    if (!use.isLogged) this.#log("warn", "an account's schemas are too expensive to check for now", { account });
    use.isLogged = true;
    return true;
  }

  /** Null where none of its checks was slow within the last minute. */
  #useOf(account: AccountId): Use | null {
    const use = this.#uses.get(account);
    return use !== undefined && this.#clock.monotonic() - use.since < thoroughChecksWindowMs ? use : null;
  }
}

/** Without its cost. */
function resultOf(made: Exclude<LaneResult, { verdict: "refused" }>): CheckResult {
  if (!("usedMs" in made)) return { verdict: "failed" };
  const { usedMs: _usedMs, ...result } = made;
  return result;
}
