// Browsers that are signed in. A session's token is 256 random bits that only its browser has; the session is found by
// the token's hash. An ended session is void at once, even while it is still on disk.
import { sessionMaxMs } from "../core/limits.ts";
import { dayMs } from "../core/units.ts";
import type { AccountId, Ms } from "../core/types.ts";
import type { InSameCommit, Journal } from "./journal.ts";
import type { Ledger } from "./ledger.ts";

export const sessionIdleMs = 7 * dayMs;
/** A session's last use is written at most this often. */
export const sessionUseIntervalMs = 5 * 60_000;
/** Sessions of an account; the least recently used one goes first. */
export const sessionsMax = 20;
/** Sessions in memory; others are read from disk when they are used. */
const sessionsCachedMax = 10_000;

export type SessionRecord = Readonly<{
  id: number;
  /** SHA-256 of the token, base64. */
  tokenHash: string;
  account: AccountId;
  createdAt: Ms;
  /** To within sessionUseIntervalMs. */
  usedAt: Ms;
  address: string;
  browser: string;
}>;

/** Every call gives the committed state and throws StoreUnavailable when the disk cannot be read. */
export interface SessionRecords {
  session(tokenHash: string): SessionRecord | null;
  sessionsOf(account: AccountId): readonly SessionRecord[];
  lastSessionId(): number;
}

const tokenBytes = 32;
/** base64url of 32 bytes. */
const tokenShape = /^[A-Za-z0-9_-]{43}$/;

export class Sessions {
  readonly #records: SessionRecords;
  readonly #journal: Journal;
  readonly #ledger: Ledger;
  /** By token hash, in the order of their last use. Those on their way to disk are in `#opening` as well. */
  readonly #known = new Map<string, SessionRecord>();
  readonly #opening = new Map<number, SessionRecord>();
  /** Ids whose end is on its way to disk. */
  readonly #ended = new Set<number>();
  /** Null until one is opened. */
  #lastId: number | null = null;

  constructor(records: SessionRecords, journal: Journal, ledger: Ledger) {
    this.#records = records;
    this.#journal = journal;
    this.#ledger = ledger;
  }

  /** A new session and its token; rejects with StoreUnavailable. Beyond sessionsMax, and after its time, one ends. */
  async open(account: AccountId, from: Pick<SessionRecord, "address" | "browser">, now: Ms): Promise<OpenedSession> {
    const token = crypto
      .getRandomValues(new Uint8Array(tokenBytes))
      .toBase64({ alphabet: "base64url", omitPadding: true });
    const id = (this.#lastId ??= this.#records.lastSessionId()) + 1;
    this.#lastId = id;
    const session = { id, tokenHash: hashToken(token), account, createdAt: now, usedAt: now, ...from };
    const others = this.#all(account).sort((one, other) => other.usedAt - one.usedAt);
    const outlived = others.filter((other, index) => index >= sessionsMax - 1 || isOver(other, now));
    for (const other of outlived) this.#end(other);
    this.#opening.set(id, session);
    try {
      await this.#journal.durable(this.#journal.change({ change: "open_session", session }));
      for (const { id: ended } of outlived) this.#ended.delete(ended);
    } finally {
      this.#opening.delete(id);
    }
    return { session, token };
  }

  /** The session of a browser's token, or null. Any string is safe. Throws StoreUnavailable. */
  find(token: string, now: Ms): SessionRecord | null {
    if (!tokenShape.test(token)) return null;
    const tokenHash = hashToken(token);
    const session = this.#known.get(tokenHash) ?? this.#records.session(tokenHash);
    if (session === null || !this.isOpen(session, now)) return null;
    return this.#used(session, now);
  }

  /** Whether a session that was found earlier may still be used. Throws StoreUnavailable. */
  isOpen(session: SessionRecord, now: Ms): boolean {
    if (this.#ended.has(session.id) || this.#ledger.account(session.account).disabled) return false;
    const latest = this.#known.get(session.tokenHash) ?? this.#records.session(session.tokenHash);
    return latest !== null && !isOver(latest, now);
  }

  /** The account's sessions, the last used first. */
  list(account: AccountId, now: Ms): SessionRecord[] {
    return this.#all(account)
      .filter((session) => !isOver(session, now))
      .sort((one, other) => other.usedAt - one.usedAt);
  }

  /** Ends one of the account's sessions; says whether there was one. Rejects with StoreUnavailable. */
  async end(account: AccountId, id: number): Promise<boolean> {
    const session = this.#all(account).find((each) => each.id === id);
    if (session === undefined) return false;
    await this.#journal.durable(this.#end(session));
    this.#ended.delete(id);
    return true;
  }

  /**
   * Ends all sessions of the account but one; also those that are being opened. They are void when this returns, and
   * on disk with whatever is appended in the same turn when it resolves.
   */
  async endAll(account: AccountId, except: number | null): Promise<void> {
    await this.#endAll(account, except);
  }

  /**
   * The same in one commit with a change of the account, so that a crash leaves neither without the other; and then for
   * what was opened on the account as it was before, while the change went to disk. `change` gets what it has to do
   * alongside.
   */
  async endAllWith(
    account: AccountId,
    except: number | null,
    change: (inSameCommit: InSameCommit) => Promise<void>,
  ): Promise<void> {
    // Whoever waits for the change waits for this commit.
    await change(() => void this.#endAll(account, except).catch(() => {}));
    await this.endAll(account, except);
  }

  /** Throws, and changes nothing, where the disk cannot be read. */
  #endAll(account: AccountId, except: number | null): Promise<void> {
    const ended = this.#all(account).filter(({ id }) => id !== except);
    for (const session of ended) this.#forget(session);
    const durable = this.#journal.durable(this.#journal.change({ change: "end_sessions", account, except }));
    return durable.then(() => {
      for (const { id } of ended) this.#ended.delete(id);
    });
  }

  /** What the disk knows, as memory knows it better. */
  #all(account: AccountId): SessionRecord[] {
    const onDisk = this.#records.sessionsOf(account).map((session) => this.#known.get(session.tokenHash) ?? session);
    const opening = [...this.#opening.values()].filter(
      (session) => session.account === account && !onDisk.some(({ id }) => id === session.id),
    );
    return [...onDisk, ...opening].filter(({ id }) => !this.#ended.has(id));
  }

  #end(session: SessionRecord): number {
    this.#forget(session);
    return this.#journal.change({ change: "end_session", id: session.id });
  }

  #forget({ id, tokenHash }: SessionRecord): void {
    this.#known.delete(tokenHash);
    this.#ended.add(id);
  }

  /** Nobody waits for the line: a last use that is lost ends a session a little earlier. */
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

export type OpenedSession = Readonly<{
  session: SessionRecord;
  /** For the browser alone: only its hash is kept. */
  token: string;
}>;

const isOver = ({ createdAt, usedAt }: SessionRecord, now: Ms): boolean =>
  now - usedAt >= sessionIdleMs || now - createdAt >= sessionMaxMs;

const hashToken = (token: string): string => new Bun.CryptoHasher("sha256").update(token).digest("base64");
