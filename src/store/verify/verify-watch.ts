// The running process checks its own ledger: the disk in a Worker; memory against disk, and open requests against
// holds, here, a few accounts per turn. A violation is reported and kept in `state`; requests are still served, because
// one account's wrong balance must not become an outage for all (/readyz tells load balancers).
import type { Database } from "bun:sqlite";
import type { Violation } from "../../account/people/accounts.ts";
import type { Ledger } from "../../account/money/ledger.ts";
import type { LoadedAccount } from "../../account/money/loaded-account.ts";
import { coderWindowOf, dayOf } from "../../account/money/quota.ts";
import type { Catalog } from "../../core/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import { answersAtOnceMax } from "../../core/limits.ts";
import { ledgerCheckFirstMs, ledgerCheckIntervalMs } from "../limits.ts";
import type { Log } from "../../core/log.ts";
import type { Ms } from "../../core/types.ts";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import { messageOf } from "../folder/folder-faults.ts";
import { type LedgerState, notChecked, report } from "./ledger-report.ts";
import { boundsOf } from "./quota-bounds.ts";
import { MemoryVerifier } from "./verify-memory.ts";
import type { DiskReport, VerifyCall } from "./verify-worker.ts";

/** Loaded accounts compared in one turn of the event loop (0.2 ms), and in one check; the next goes on behind them. */
const accountsPerTurn = 25;
const accountsPerCheck = 5_000;
/** A stop does not wait longer for the Worker, which lets go of the file between two parts of its work. */
const closeMaxMs = 2_000;
/** Requests that are open, and what nodes and queue have of them. */
export type OpenWork = Readonly<{ requests: number; nodesBusy: number; waiting: number }>;

export type WatchOptions = Readonly<{
  databaseFile: string;
  /** The main thread's reading connection. */
  reader: Database;
  ledger: Ledger;
  plans: Catalog["plans"];
  clock: Clock;
  log: Log;
  intervalMs?: Ms;
  firstMs?: Ms;
}>;

export class LedgerWatch {
  readonly #options: WatchOptions;
  readonly #memory: MemoryVerifier;
  #state = notChecked;
  readonly #worker: WorkerClient<VerifyCall>;
  #timer: Timer | null = null;
  #loaded: Iterator<LoadedAccount> | null = null;
  readonly #brokenInMemory = new Map<LoadedAccount, readonly Violation[]>();
  #closed = false;
  /** Null before it began. */
  #open: (() => OpenWork) | null = null;
  /** The plans have changed since the Worker got their bounds. */
  #boundsAreOld = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#memory = new MemoryVerifier(options.reader);
    this.#worker = new WorkerClient<VerifyCall>({
      start: () => {
        const started = startWorker("store/verify/verify-worker.ts");
        started.unref(); // a server that stops does not wait for a check
        return started;
      },
      open: () => this.#opening(),
      close: { order: "close" },
    });
  }

  /**
   * The first check is made a moment after this, each later one an interval after the end of the one before. What is held
   * is compared with what is `open`.
   */
  begin(open: () => OpenWork): void {
    this.#open = open;
    this.#checkAfter(this.#options.firstMs ?? ledgerCheckFirstMs);
  }

  get state(): LedgerState {
    return this.#state;
  }

  /** From the next check on, the bounds of quotas are those of the plans as they are now, for periods that begin later. */
  plansChanged(): void {
    this.#boundsAreOld = true;
  }

  /** When it resolves, nothing is being read: what a reader needs stays in the ledger's log when that is closed. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await Promise.race([this.#worker.end().catch(() => {}), Bun.sleep(closeMaxMs)]);
  }

  #checkAfter(delayMs: Ms): void {
    this.#timer = setTimeout(() => void this.#check(), delayMs);
    this.#timer.unref();
  }

  async #check(): Promise<void> {
    const { clock, log, intervalMs = ledgerCheckIntervalMs } = this.#options;
    const from = clock.monotonic();
    try {
      const disk = await this.#checkDisk();
      if (this.#closed) return;
      const violations = [...disk.violations, ...(await this.#checkMemory()), ...this.#checkOpen()];
      report(log, this.#state, violations);
      const checkedAt = clock.wall();
      this.#state = {
        violations,
        checkedAt,
        durationMs: clock.monotonic() - from,
        wholePassAt: disk.wholePass ? checkedAt : this.#state.wholePassAt,
      };
    } catch (thrown) {
      // What was found before stays; that nothing new is looked at shows in the time of the latest check.
      if (!this.#closed) log("error", "the ledger could not be checked", { reason: messageOf(thrown) });
    }
    if (!this.#closed) this.#checkAfter(intervalMs);
  }

  async #checkDisk(): Promise<DiskReport> {
    if (this.#boundsAreOld) await this.#worker.end();
    await this.#worker.start();
    return this.#worker.call<DiskReport>({ order: "check" });
  }

  /** A Worker's first message: bounds for periods that begin from now on. */
  #opening(): VerifyCall {
    const { databaseFile: file, plans, clock } = this.#options;
    // What began under other plans may end in the next period.
    const later = this.#boundsAreOld ? 2 : 1;
    this.#boundsAreOld = false;
    const now = clock.wall();
    const since = { day: dayOf(now) + later, window: coderWindowOf(now) + later };
    return { order: "open", file, bounds: boundsOf(plans), since };
  }

  /** The next loaded accounts, and again those that were broken before. */
  async #checkMemory(): Promise<readonly Violation[]> {
    for (const account of [...this.#brokenInMemory.keys()]) this.#compare(account);
    for (let seen = 0; seen < accountsPerCheck && !this.#closed; seen += 1) {
      this.#loaded ??= this.#options.ledger.loaded();
      const { done, value } = this.#loaded.next();
      if (done === true) {
        this.#loaded = null; // the next check begins anew
        break;
      }
      this.#compare(value);
      if (seen % accountsPerTurn === accountsPerTurn - 1) await Bun.sleep(0);
    }
    return [...[...this.#brokenInMemory.values()].flat(), ...(await this.#checkEndUsers())];
  }

  /** As many again; those of more keys are had by turns, since who is used goes to the end. */
  async #checkEndUsers(): Promise<Violation[]> {
    const { ledger, clock } = this.#options;
    const found: Violation[] = [];
    let seen = 0;
    for (const endUser of [...ledger.endUsers.loaded()].slice(0, accountsPerCheck)) {
      if (this.#closed) return [];
      found.push(...this.#memory.violationsOfEndUser(endUser, dayOf(clock.wall())));
      if ((seen += 1) % accountsPerTurn === 0) await Bun.sleep(0);
    }
    return found;
  }

  #compare(account: LoadedAccount): void {
    const violations = this.#closed ? [] : this.#memory.violationsOf(account);
    if (violations.length === 0) this.#brokenInMemory.delete(account);
    else this.#brokenInMemory.set(account, violations);
  }

  /** I4: nothing is held, busy or in line for a request that is not open. In one moment. */
  #checkOpen(): readonly Violation[] {
    if (this.#open === null) return [];
    const { requests, nodesBusy, waiting } = this.#open();
    const { holds, heldTokens, expectedTokens } = this.#options.ledger.totals();
    const violations: Violation[] = [];
    const leaked = (what: string) =>
      violations.push({ invariant: "I4", account: null, detail: `${what} with ${requests} open requests` });
    if (holds > requests) leaked(`${holds} reservations`);
    if (holds === 0 && heldTokens !== 0) leaked(`${heldTokens} tokens reserved without a hold`);
    if (holds === 0 && expectedTokens !== 0) leaked(`${expectedTokens} tokens expected without a hold`);
    const places = requests * answersAtOnceMax; // a request for several answers has as many
    if (nodesBusy > places) leaked(`${nodesBusy} busy places on nodes`);
    if (waiting > places) leaked(`${waiting} places in line`);
    return violations;
  }
}
