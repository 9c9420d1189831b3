// Sessions of signed-in browsers, in a unit of the office: opened, listed and ended. A session's token is 256 random bits that
// only its browser has; the session is found by the token's hash.
import { sessionMaxMs } from "../../core/limits.ts";
import type { Soon } from "../../core/soon.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { dayMs } from "../../core/units.ts";
import type { Accounts } from "../people/accounts.ts";
import type { Draft } from "../draft.ts";
import type { SessionRecord, SessionRecords } from "../records.ts";

export const sessionIdleMs = 7 * dayMs;
/** A session's last use is written at most this often. */
export const sessionUseIntervalMs = 5 * 60_000;
/** Sessions of an account; the least recently used one goes first. */
export const sessionsMax = 20;

/** Who a browser is, asked with each of its calls and beside its streams; in memory that is known at once. */
export interface SessionLookup {
  /** The session of a browser's token, or null. Any string is safe. Throws StoreUnavailable. */
  find(token: string, now: Ms): Soon<SessionRecord | null>;
  /** Whether a session that was found earlier may still be used. Throws StoreUnavailable. */
  isOpen(session: SessionRecord, now: Ms): Soon<boolean>;
}

type Parts = Readonly<{ records: SessionRecords; accounts: Pick<Accounts, "record">; draft: Draft; now: Ms }>;

export class Sessions {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A new session and its token. Beyond sessionsMax, and after its time, one ends. */
  async open(account: AccountId, from: Pick<SessionRecord, "address" | "browser">): Promise<OpenedSession> {
    const { records, draft, now } = this.#parts;
    const others = (await records.sessionsOf(account)).toSorted((one, other) => other.usedAt - one.usedAt);
    const id = await records.next("sessions");
    const token = crypto
      .getRandomValues(new Uint8Array(tokenBytes))
      .toBase64({ alphabet: "base64url", omitPadding: true });
    const session = { id, tokenHash: hashToken(token), account, createdAt: now, usedAt: now, ...from };
    for (const [index, other] of others.entries()) {
      if (index >= sessionsMax - 1 || isOver(other, now)) draft.changes.push({ change: "end_session", id: other.id });
    }
    draft.changes.push({ change: "open_session", session });
    return { session, token };
  }

  /** The account's sessions, the last used first. */
  async list(account: AccountId): Promise<SessionRecord[]> {
    const { records, now } = this.#parts;
    const open = (await records.sessionsOf(account)).filter((session) => !isOver(session, now));
    return open.sort((one, other) => other.usedAt - one.usedAt);
  }

  /** Whether a session that was found earlier may still be used. */
  async isOpen({ tokenHash, account }: SessionRecord): Promise<boolean> {
    const owner = await this.#parts.accounts.record(account);
    if (owner === null || owner.disabledAt !== null) return false;
    return (await this.list(account)).some((session) => session.tokenHash === tokenHash);
  }

  /** Ends one of the account's sessions; says whether there was one. */
  async end(account: AccountId, id: number): Promise<boolean> {
    const { records, draft } = this.#parts;
    const session = (await records.sessionsOf(account)).find((each) => each.id === id);
    if (session === undefined) return false;
    draft.takenBack.push({ change: "open_session", session });
    draft.changes.push({ change: "end_session", id });
    return true;
  }

  async endAll(account: AccountId, except: number | null): Promise<void> {
    const { accounts, draft } = this.#parts;
    await accounts.record(account); // no session is opened meanwhile
    const ended = (await this.list(account)).filter(({ id }) => id !== except);
    draft.takenBack.push(...ended.map((session) => ({ change: "open_session", session }) as const));
    draft.changes.push({ change: "end_sessions", account, except });
  }

  /** One that was ended goes on under another number: its own may be another's by now. */
  async reopen(ended: readonly SessionRecord[]): Promise<void> {
    const { records, draft } = this.#parts;
    const next = await records.next("sessions");
    for (const [at, session] of ended.entries())
      draft.changes.push({ change: "open_session", session: { ...session, id: next + at } });
  }
}

export type OpenedSession = Readonly<{
  session: SessionRecord;
  /** For the browser alone: only its hash is kept. */
  token: string;
}>;

const tokenBytes = 32;
/** base64url of 32 bytes. */
const tokenShape = /^[A-Za-z0-9_-]{43}$/;

/** Under which the session of a token is found; null for what is not shaped like one. */
export const tokenHashOf = (token: string): string | null => (tokenShape.test(token) ? hashToken(token) : null);

export const isOver = ({ createdAt, usedAt }: SessionRecord, now: Ms): boolean =>
  now - usedAt >= sessionIdleMs || now - createdAt >= sessionMaxMs;

const hashToken = (token: string): string => new Bun.CryptoHasher("sha256").update(token).digest("base64");
