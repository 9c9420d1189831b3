// The sessions of signed-in browsers as memory knows them: those in use are found without a look at the disk, and one that is
// being ended is void at once, also while the disk still has it.
import type { SessionRecord, SessionRecords } from "../records.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import type { AccountChange, Journal } from "../journal.ts";
import type { Ledger } from "../money/ledger.ts";
import { isOver, type SessionLookup, sessionUseIntervalMs, tokenHashOf } from "./sessions.ts";

/** Sessions in memory; others are read from disk when they are used. */
const sessionsCachedMax = 10_000;

export type SessionsOnDisk = Readonly<{
  session(tokenHash: string): SessionRecord | null;
  sessionsOf(account: AccountId): readonly SessionRecord[];
  next(table: "sessions"): number;
}>;

export class KnownSessions implements SessionLookup, SessionRecords {
  readonly #disk: SessionsOnDisk;
  readonly #journal: Pick<Journal, "change">;
  readonly #ledger: Ledger;
  /** By token hash, in the order of their last use. */
  readonly #known = new Map<string, SessionRecord>();
  /** What is on its way to disk. */
  #decided: readonly AccountChange[] = [];

  constructor(disk: SessionsOnDisk, journal: Pick<Journal, "change">, ledger: Ledger) {
    this.#disk = disk;
    this.#journal = journal;
    this.#ledger = ledger;
  }

  find(token: string, now: Ms): SessionRecord | null {
    const tokenHash = tokenHashOf(token);
    const session = tokenHash === null ? null : this.session(tokenHash);
    if (session === null || !this.isOpen(session, now)) return null;
    return this.#used(session, now);
  }

  isOpen(session: SessionRecord, now: Ms): boolean {
    if (this.#ledger.account(session.account).disabled || isEnded(session, this.#decided)) return false;
    const latest = this.session(session.tokenHash);
    return latest !== null && !isOver(latest, now);
  }

  session(tokenHash: string): SessionRecord | null {
    return this.#known.get(tokenHash) ?? this.#disk.session(tokenHash);
  }

  /** A use that is on its way to disk counts. */
  sessionsOf(account: AccountId): readonly SessionRecord[] {
    return this.#disk.sessionsOf(account).map((session) => this.#known.get(session.tokenHash) ?? session);
  }

  next(table: "sessions"): number {
    return this.#disk.next(table);
  }

  /** Sessions that end with these are void from now on, until `resolved`. */
  decided(changes: readonly AccountChange[]): void {
    this.#decided = changes;
  }

  /** What was decided is on disk, or nothing of it ever will be. */
  resolved(isCommitted: boolean): void {
    const changes = this.#decided;
    this.#decided = [];
    if (!isCommitted || !changes.some(({ change }) => change === "end_session" || change === "end_sessions")) return;
    for (const [tokenHash, session] of this.#known) if (isEnded(session, changes)) this.#known.delete(tokenHash);
  }

  /** No caller waits for the line: a last use that is lost ends a session a little earlier. */
  #used(session: SessionRecord, now: Ms): SessionRecord {
    const isNews = now - session.usedAt >= sessionUseIntervalMs;
    const used = isNews ? { ...session, usedAt: now } : session;
    if (isNews) this.#journal.change({ change: "use_session", id: session.id, at: now });
    this.#known.delete(session.tokenHash);
    this.#known.set(session.tokenHash, used);
    const [leastRecent] = this.#known.keys();
    if (this.#known.size > sessionsCachedMax && leastRecent !== undefined) this.#known.delete(leastRecent);
    return used;
  }
}

const isEnded = ({ id, account }: SessionRecord, changes: readonly AccountChange[]): boolean =>
  changes.some(
    (change) =>
      (change.change === "end_session" && change.id === id) ||
      (change.change === "end_sessions" && change.account === account && change.except !== id),
  );
