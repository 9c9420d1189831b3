// Accounts whose rows another session keeps locked: an operator's open transaction, a gateway that stands still. What is asked
// of such an account waits here, so that the lane's batches go on without it. A connection of its own waits in the server's
// line for the row, and a second one asks the server who holds it.
import type { Log } from "../../core/log.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { arrayOf, call, type Connection, isFailed, type StatementResult, type Row, type Server } from "./connection.ts";
import { batchLockMs, lockedLookMs, lockedPauseFirstMs, lockedPauseMostMs, lockedToldMax } from "./limits.ts";
import { limited, type Pace } from "./pace.ts";
import * as sql from "./statements.ts";

/** A session of the database; `forMs`: since its transaction began. Null: the server does not say. */
export type Blocker = Readonly<{ pid: number; application: string | null; forMs: Ms | null }>;

/** `by`: empty while that is not known. */
export type LockedAccount = Readonly<{ account: AccountId; forMs: Ms; by: readonly Blocker[] }>;

type Locked<Item> = {
  readonly since: Ms;
  readonly line: Item[];
  by: readonly Blocker[];
  /** What is asked of it is tried just now. */
  isTried: boolean;
  isLogged: boolean;
  /** Its row was free, and yet it could not be done: other rows of it are locked. */
  pauseMs: Ms;
  dueAt: Ms;
};

export class LockedAccounts<Item> {
  readonly #server: Server;
  readonly #pace: Pace;
  readonly #log: Log;
  readonly #free: (account: AccountId) => void;
  readonly #locked = new Map<AccountId, Locked<Item>>();
  #waits: Connection | null = null;
  #asks: Connection | null = null;
  /** The server does not know who blocks whom. */
  #isMute = false;
  #isLooking = false;
  #isClosed = false;

  constructor(server: Server, pace: Pace, log: Log, free: (account: AccountId) => void) {
    this.#server = server;
    this.#pace = pace;
    this.#log = log;
    this.#free = free;
  }

  get size(): number {
    return this.#locked.size;
  }

  /** Those that wait longest first. */
  get states(): readonly LockedAccount[] {
    const now = this.#pace.monotonic();
    const first = [...this.#locked].slice(0, lockedToldMax);
    return first.map(([account, { since, by }]) => ({ account, forMs: now - since, by }));
  }

  /** What waits for it; null: it is not locked. */
  lineOf(account: AccountId): Item[] | null {
    return this.#locked.get(account)?.line ?? null;
  }

  lines(): readonly Item[][] {
    return [...this.#locked.values()].map(({ line }) => line);
  }

  /** For how long; 0: it is not. */
  lockedMs(account: AccountId): Ms {
    const locked = this.#locked.get(account);
    return locked === undefined ? 0 : this.#pace.monotonic() - locked.since;
  }

  /** It was found locked, maybe once more. */
  add(account: AccountId, items: readonly Item[]): void {
    const now = this.#pace.monotonic();
    const known = this.#locked.get(account);
    if (known === undefined) {
      const fresh = { since: now, by: [], isTried: false, isLogged: false, pauseMs: 0, dueAt: now };
      this.#locked.set(account, { ...fresh, line: [...items] });
    } else {
      known.line.unshift(...items);
      known.isTried = false;
      known.pauseMs = Math.min(lockedPauseMostMs, Math.max(lockedPauseFirstMs, 2 * known.pauseMs));
      known.dueAt = now + known.pauseMs;
    }
    if (!this.#isLooking) void this.#lookWhileLocked();
  }

  /** The first of its line, which are tried now. */
  take(account: AccountId, most: number): readonly Item[] {
    return this.#locked.get(account)?.line.splice(0, most) ?? [];
  }

  /** What was tried is over. Gives who waits behind it where it was not locked again. */
  tried(account: AccountId): readonly Item[] {
    const locked = this.#locked.get(account);
    if (locked === undefined || !locked.isTried) return [];
    this.#locked.delete(account);
    if (locked.isLogged) {
      const seconds = Math.round((this.#pace.monotonic() - locked.since) / 1000);
      this.#log("info", "an account is no longer locked in the database", { account, seconds });
    }
    return locked.line;
  }

  close(): void {
    this.#isClosed = true;
    this.#disconnect();
  }

  async #lookWhileLocked(): Promise<void> {
    this.#isLooking = true;
    for (let turn = 0; this.#locked.size > 0 && !this.#isClosed; turn += 1) {
      try {
        await this.#look(turn);
      } catch {
        this.#disconnect();
        // It may have no connection left for who looks: the lane, which has one, finds out.
        for (const [account] of this.#due()) this.#try(account);
      }
      await new Promise<void>((resolve) => void this.#pace.after(lockedLookMs, resolve));
    }
    this.#disconnect();
    this.#isLooking = false;
  }

  #due(): readonly [AccountId, Locked<Item>][] {
    const now = this.#pace.monotonic();
    return [...this.#locked].filter(([, { isTried, dueAt }]) => !isTried && dueAt <= now);
  }

  async #look(turn: number): Promise<void> {
    this.#waits ??= await this.#connect();
    const due = this.#due();
    const outcomes = await this.#send(
      this.#waits,
      due.map(([account]) => call(sql.tryAccount, account)),
    );
    const locked = due.filter((_, index) => isLocked(outcomes[index]!));
    for (const [account] of due.filter((each) => !locked.includes(each))) this.#try(account);
    // Of an account that was tried in vain, something else is locked than its row.
    const resting = [...this.#locked].filter(([, { isTried, dueAt }]) => !isTried && dueAt > this.#pace.monotonic());
    const held = [...locked, ...resting];
    if (held.length === 0) return;
    const [account, state] = held[turn % held.length]!;
    const [, , backend] = await this.#send(this.#waits, [
      call(sql.begin),
      sql.setUpFor(batchLockMs),
      call(sql.backendId),
    ]);
    if (backend === undefined || isFailed(backend)) throw backend ?? new Error("no answer");
    let isWaiting = true;
    const stop = this.#pace.after(lockedLookMs, () => {
      void this.#whoBlocks(backend[0]!["pid"] as number).then((by) => {
        if (isWaiting && by !== null) state.by = by;
      });
    });
    const locks = [call(sql.waitForTables), call(sql.lockAccounts, arrayOf([account])), call(sql.lockKeys, account)];
    const isHeld = (await this.#send(this.#waits, locks)).some(isLocked);
    isWaiting = false;
    stop();
    await this.#send(this.#waits, [call(sql.rollback)]);
    if (!isHeld) this.#try(account);
    else if (!state.isLogged) {
      state.isLogged = true;
      const by = state.by.map(blockerInWords).join(", ");
      this.#log("warn", "an account is locked in the database: its requests wait", { account, by });
    }
  }

  #try(account: AccountId): void {
    const locked = this.#locked.get(account);
    if (locked === undefined || locked.isTried || this.#isClosed) return;
    locked.isTried = true;
    this.#free(account);
  }

  /** Null: unknown. Never rejects. */
  async #whoBlocks(pid: number): Promise<readonly Blocker[] | null> {
    if (this.#isMute) return null;
    try {
      this.#asks ??= await this.#connect();
      const [found] = await this.#send(this.#asks, [call(sql.whoBlocks, pid)]);
      if (found !== undefined && !isFailed(found)) return found as readonly Row[] as readonly Blocker[];
      this.#isMute = found !== undefined && found.state !== null;
    } catch {
      // A broken connection is closed below, and the next look has another.
    }
    this.#asks?.close();
    this.#asks = null;
    return null;
  }

  #connect(): Promise<Connection> {
    return limited(this.#pace, this.#server.connect(), (late) => late.close());
  }

  #send(connection: Connection, calls: Parameters<Connection["send"]>[0]): Promise<readonly StatementResult[]> {
    return limited(this.#pace, connection.send(calls), () => {});
  }

  #disconnect(): void {
    this.#waits?.close();
    this.#asks?.close();
    this.#waits = this.#asks = null;
  }
}

/** Throws where the connection failed. */
export function isLocked(outcome: StatementResult): boolean {
  if (!isFailed(outcome)) return false;
  if (outcome.state === null) throw outcome;
  return outcome.state === "55P03";
}

/** For people. */
export function lockedInWords({ account, forMs, by }: LockedAccount): string {
  const holder = by.length === 0 ? "" : ` by ${by.map(blockerInWords).join(", ")}`;
  return `account ${account} has been locked in the database for ${inSeconds(forMs)}${holder}: its requests wait`;
}

export function blockerInWords({ pid, application, forMs }: Blocker): string {
  const name = application === null || application === "" ? "a session" : application;
  return `${name} (process ${pid}${forMs === null ? "" : `, in a transaction for ${inSeconds(forMs)}`})`;
}

const inSeconds = (ms: Ms): string => `${Math.round(ms / 1000)} s`;
