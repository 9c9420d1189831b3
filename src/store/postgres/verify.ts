// Checks the ledger in PostgreSQL: the same checks as on SQLite, some accounts at a time, each check in one statement and so of
// one committed state. What SQLite keeps in memory is columns here: an account's sums of its holds (I4), which are compared
// with the rows of `holds`.
import type { Verification, Violation } from "../../account/people/accounts.ts";
import { coderWindowOf, dayOf } from "../../account/money/quota.ts";
import type { Catalog } from "../../core/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import { answersAtOnceMax } from "../../core/limits.ts";
import { ledgerCheckFirstMs, ledgerCheckIntervalMs } from "../limits.ts";
import { dayMs } from "../../core/units.ts";
import type { Log } from "../../core/log.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { type ChecksOf, ledgerChecks } from "../verify/ledger-checks.ts";
import { type BoundsSince, boundsOf, type QuotaBounds } from "../verify/quota-bounds.ts";
import { type LedgerState, notChecked, report } from "../verify/ledger-report.ts";
import type { OpenWork } from "../verify/verify-watch.ts";
import { statement } from "../questions.ts";
import { call } from "./connection.ts";
import type { Database, Session } from "./database.ts";
import { takeJob } from "./jobs.ts";
import { periodColumns } from "./moved-tables.ts";

const accountsPerSlice = 100;
const restsPerSlice = 20;
const restMaxMs = 2_000;
const jobName = "verify";
const jobMs = 60_000;
/** More are not read. */
const violationsMax = 1_000;

type Broken = Readonly<{ invariant: string; account: AccountId; detail: string }>;

/** `rest`: called after each slice with how long it took; false ends the walk. */
export async function verifyBooks(
  database: Database,
  bounds: QuotaBounds,
  since: BoundsSince = { day: 0, window: 0 },
  rest: (tookMs: Ms) => Promise<boolean> = async () => true,
  clock: Pick<Clock, "monotonic"> = { monotonic: () => 0 },
): Promise<Verification & Readonly<{ isWhole: boolean }>> {
  const violations: Violation[] = [];
  let accounts = 0;
  for (let after = 0; ;) {
    const from = clock.monotonic();
    const ids = await database.ask<{ id: AccountId }>(accountsAfter, after, accountsPerSlice);
    // After the last account there may still be lines of accounts that do not exist.
    const last = ids.at(-1)?.id ?? Number.MAX_SAFE_INTEGER;
    const found = await database.read((session) => violationsIn(session, after, last, bounds, since));
    violations.push(...found.slice(0, violationsMax - violations.length));
    accounts += ids.length;
    if (ids.length === 0) return { accounts, violations, isWhole: true };
    after = last;
    if (!(await rest(clock.monotonic() - from))) return { accounts, violations, isWhole: false };
  }
}

const anyPlan: QuotaBounds = { allowance: Infinity, coder_calls: Infinity, searches: Infinity };

/** What is broken about accounts with after < id <= last, as the transaction sees them. */
export async function violationsIn(
  session: Session,
  after: AccountId,
  last: AccountId,
  bounds: QuotaBounds = anyPlan,
  since: BoundsSince = { day: 0, window: 0 },
): Promise<readonly Violation[]> {
  const { allowance, coder_calls, searches } = bounds;
  const limits = [allowance, coder_calls, searches, since.day, since.window];
  const found = await session.run([
    ...checks.map((each) => call(each, after, last)),
    call(aboveBound, after, last, ...limits.map((bound) => Math.min(bound, Number.MAX_SAFE_INTEGER))),
  ]);
  return found.flat().map((row) => ({ ...(row as unknown as Broken) }));
}

export type PostgresWatchOptions = Readonly<{
  database: Database;
  plans: Catalog["plans"];
  holder: string;
  clock: Clock;
  log: Log;
  intervalMs?: Ms;
  firstMs?: Ms;
}>;

/** As LedgerWatch: checks again and again, on the gateway that has the job; `state` is what this gateway found itself. */
export class PostgresWatch {
  readonly #options: PostgresWatchOptions;
  #state = notChecked;
  #open: (() => OpenWork) | null = null;
  #timer: Timer | null = null;
  #isClosed = false;
  #plansChangedAt: Ms | null = null;

  constructor(options: PostgresWatchOptions) {
    this.#options = options;
  }

  /** What is busy or in line here is compared with what is `open`. */
  begin(open: () => OpenWork): void {
    this.#open = open;
    this.#checkAfter(this.#options.firstMs ?? ledgerCheckFirstMs);
  }

  get state(): LedgerState {
    return this.#state;
  }

  /** The bounds of quotas are those of the plans as they are now, for periods that begin later. */
  plansChanged(): void {
    this.#plansChangedAt = this.#options.clock.wall();
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #checkAfter(delayMs: Ms): void {
    this.#timer = setTimeout(() => {
      void this.#check().then(() => {
        if (!this.#isClosed) this.#checkAfter(this.#options.intervalMs ?? ledgerCheckIntervalMs);
      });
    }, delayMs);
    this.#timer.unref();
  }

  /** Never rejects. */
  async #check(): Promise<void> {
    const { database, plans, holder, clock, log } = this.#options;
    const from = clock.monotonic();
    try {
      if (!(await takeJob(database, jobName, holder, jobMs))) return this.#leaveToOthers();
      const rest = async (tookMs: Ms): Promise<boolean> => {
        await Bun.sleep(Math.min(tookMs * restsPerSlice, restMaxMs));
        return !this.#isClosed && (await takeJob(database, jobName, holder, jobMs));
      };
      const { violations, isWhole } = await verifyBooks(database, boundsOf(plans), this.#since(), rest, clock);
      if (!isWhole) return;
      const all = [...violations, ...this.#checkOpen()];
      report(log, this.#state, all);
      const checkedAt = clock.wall();
      this.#state = { violations: all, checkedAt, durationMs: clock.monotonic() - from, wholePassAt: checkedAt };
      // No other gateway has to look until the next check is due.
      await takeJob(database, jobName, holder, this.#options.intervalMs ?? ledgerCheckIntervalMs);
    } catch (thrown) {
      if (!this.#isClosed) log("error", "the ledger could not be checked", { reason: String(thrown) });
    }
  }

  /** Another gateway checks now, and finds what is wrong with the books: what was found here may be over. */
  #leaveToOthers(): void {
    const violations = this.#checkOpen();
    report(this.#options.log, this.#state, violations);
    this.#state = { ...this.#state, violations };
  }

  /** What began under other plans may end in the next period. */
  #since(): BoundsSince {
    const at = this.#plansChangedAt;
    return at === null ? startOf(this.#options.clock.wall()) : startOf(at + dayMs);
  }

  /** I4: nothing is busy or in line for a request that is not open. */
  #checkOpen(): readonly Violation[] {
    const { requests, nodesBusy, waiting } = this.#open?.() ?? { requests: 0, nodesBusy: 0, waiting: 0 };
    const leaked = (count: number, what: string): Violation[] =>
      count <= requests * answersAtOnceMax // a request for several answers has as many
        ? []
        : [{ invariant: "I4", account: null, detail: `${count} ${what} with ${requests} open requests` }];
    return [...leaked(nodesBusy, "busy places on nodes"), ...leaked(waiting, "places in line")];
  }
}

const startOf = (at: Ms): BoundsSince => ({ day: dayOf(at) + 1, window: coderWindowOf(at) + 1 });

const [after, last] = ["$1::text::bigint", "$2::text::bigint"];
/** The period that an account is in is in its row, whatever is kept of an earlier visit to it. */
const current = periodColumns
  .map(
    ([quota, period, used]) => `
    SELECT id AS account_id, '${quota}' AS quota, ${period} AS period, ${used} AS used FROM accounts
    WHERE id > ${after} AND id <= ${last} AND ${period} >= 0`,
  )
  .join(" UNION ALL ");
const uses = `
  SELECT account_id, quota, period, used FROM quota_use AS kept
  WHERE account_id > ${after} AND account_id <= ${last} AND NOT EXISTS (
    SELECT 1 FROM accounts WHERE id = kept.account_id AND kept.period = CASE kept.quota
      WHEN 'allowance' THEN allowance_day WHEN 'coder_calls' THEN coder_window ELSE searches_day END)
  UNION ALL ${current}`;
const ofPostgres: ChecksOf = {
  after,
  last,
  uses,
  foldedDay: `coalesce((SELECT floor(value / ${dayMs}.0)::int FROM counters WHERE name = 'folded_at'), -1)`,
};

/** An account's columns and the rows that they are the sums of. */
const heldSums = `
  SELECT id AS account, 'holds are ' || a.holds || ' of ' || a.held || ' tokens, their rows say ' || coalesce(h.holds, 0)
    || ' of ' || coalesce(h.held, 0) AS detail
  FROM accounts AS a LEFT JOIN (
    SELECT account_id, sum(1 - searches) AS holds, sum(tokens) AS held,
      sum(CASE WHEN waits THEN tokens ELSE 0 END) AS waiting_held,
      sum(CASE WHEN cost > 0 AND NOT waits THEN 1 ELSE 0 END) AS begun,
      sum(CASE WHEN waits THEN 0 ELSE cost END) AS expected, sum(searches) AS searches
    FROM holds WHERE account_id > ${after} AND account_id <= ${last} GROUP BY account_id) AS h ON h.account_id = a.id
  WHERE a.id > ${after} AND a.id <= ${last} AND (a.holds <> coalesce(h.holds, 0) OR a.held <> coalesce(h.held, 0)
    OR a.waiting_held <> coalesce(h.waiting_held, 0) OR a.begun <> coalesce(h.begun, 0)
    OR a.expected <> coalesce(h.expected, 0) OR a.searches_held <> coalesce(h.searches, 0))`;

const named = (invariant: string, sql: string) =>
  statement(
    `check ${invariant}`,
    `SELECT '${invariant}' AS invariant, account::float8 AS account, detail FROM (${sql}) AS broken LIMIT ${violationsMax}`,
  );
const checks = [...ledgerChecks(ofPostgres), ["I4", heldSums] as const].map(([invariant, sql]) =>
  named(invariant, sql),
);

const aboveBound = named(
  "I2",
  `SELECT account_id AS account, quota || ' of ' || period || ' is ' || used AS detail FROM (${uses}) AS uses
   WHERE used < 0 OR CASE quota
     WHEN 'allowance' THEN used > $3::text::bigint AND period >= $6::text::int
     WHEN 'coder_calls' THEN used > $4::text::bigint AND period >= $7::text::int
     ELSE used > $5::text::bigint AND period >= $6::text::int END`,
);
const accountsAfter = statement(
  "accounts after",
  "SELECT id::float8 AS id FROM accounts WHERE id > $1::text::bigint ORDER BY id LIMIT $2::text::int",
);
