// What one gateway does for all of them now and then: sums of days that are over, folding of old lines, use of end users that
// limits no longer look at. Slices of milliseconds with rests, on a connection beside the lane's.
import { endUserUseKeepDays, foldFirstMs, foldIntervalMs, foldSliceLines } from "../limits.ts";
import { dayMs } from "../../core/units.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { type Ms, StoreUnavailable } from "../../core/types.ts";
import { statement } from "../questions.ts";
import type { Database } from "./database.ts";
import { fold } from "./folding.ts";
import { takeJob } from "./jobs.ts";
import { sumNextDay } from "./usage-days.ts";

const jobName = "upkeep";
/** Longer than a slice and its rest; who died with the job loses it after so long. */
const jobMs = 60_000;
const restsPerSlice = 5;
const restMinMs = 20;

export type UpkeepParts = Readonly<{
  database: Database;
  /** Of this life of the gateway's process. */
  holder: string;
  /** Lines are kept for this many whole days after their own; null: forever. */
  keepDays: number | null;
  clock: Clock;
  log: Log;
  firstMs?: Ms;
}>;

export class Upkeep {
  readonly #parts: UpkeepParts;
  #keepDays: number | null;
  #timer: Timer;
  #underWay: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: UpkeepParts) {
    this.#parts = parts;
    this.#keepDays = parts.keepDays;
    this.#timer = this.#after(parts.firstMs ?? foldFirstMs);
  }

  /** Another `keepDays` from here on. */
  retain(keepDays: number | null): void {
    this.#keepDays = keepDays;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#underWay;
  }

  #after(delayMs: Ms): Timer {
    const timer = setTimeout(() => {
      this.#underWay = this.#step().then((waitMs) => {
        if (!this.#isClosed) this.#timer = this.#after(waitMs);
      });
    }, delayMs);
    timer.unref();
    return timer;
  }

  /** A slice, where this gateway has the job; gives the wait until the next. Never rejects. */
  async #step(): Promise<Ms> {
    const { database, holder, clock, log } = this.#parts;
    const from = clock.monotonic();
    try {
      if (!(await takeJob(database, jobName, holder, jobMs))) return foldIntervalMs;
      if (await upkeepSlice(database, this.#keepDays)) {
        return Math.max(restMinMs, (clock.monotonic() - from) * restsPerSlice);
      }
      await takeJob(database, jobName, holder, 0);
    } catch (thrown) {
      // That the server is away, the lane says.
      if (!(thrown instanceof StoreUnavailable)) log("error", "old lines cannot be folded", { error: String(thrown) });
    }
    return foldIntervalMs;
  }
}

export async function upkeepSlice(database: Database, keepDays: number | null): Promise<boolean> {
  if (await sumNextDay(database)) return true;
  if (keepDays !== null && (await fold(database, keepDays, foldSliceLines))) return true;
  const removed = await database.change((send) => send(pruneEndUserUse, endUserUseKeepDays, foldSliceLines));
  const over = await database.change((send) => send(pruneEndUserMinutes, foldSliceLines));
  return removed.length === foldSliceLines || over.length === foldSliceLines;
}

/** Those that count no more. Batches lock such rows in the same order. */
const pruneEndUserMinutes = statement(
  "prune end user minutes",
  `DELETE FROM end_user_minutes WHERE (account_id, key_id, name_hash) IN (
     SELECT account_id, key_id, name_hash FROM end_user_minutes
     WHERE latest < floor(extract(epoch FROM clock_timestamp()) * 1000) - 120000
     ORDER BY account_id, key_id, name_hash COLLATE "C" LIMIT $1::text::int FOR UPDATE)
   RETURNING 1 AS removed`,
);

/** Older days than limits look at. */
const pruneEndUserUse = statement(
  "prune end user use",
  `DELETE FROM end_user_use WHERE (account_id, end_user_id, day) IN (
     SELECT account_id, end_user_id, day FROM end_user_use
     WHERE day < floor(extract(epoch FROM clock_timestamp()) / ${dayMs / 1000})::int - $1::text::int
     ORDER BY day LIMIT $2::text::int)
   RETURNING 1 AS removed`,
);
