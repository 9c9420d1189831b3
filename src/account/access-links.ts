// Links that let somebody in once: an invitation makes an account, a password link sets the password of one. A link's token
// is 256 random bits that only its address has; the link is found by the token's hash. Of two who use it at once one wins.
import { dayMs } from "../core/units.ts";
import type { Clock } from "../core/clock.ts";
import type { AccountId, Ms, PlanId } from "../core/types.ts";
import { AccountError } from "./accounts.ts";
import type { InSameCommit, Journal } from "./journal.ts";

/** Bytes of the tokens of sessions and links. */
const accessTokenBytes = 32;
/** Used and expired links are kept for this long, for exports. */
export const linkKeptMs = 90 * dayMs;

export type AccessLink = Readonly<{
  id: number;
  /** SHA-256 of the token, base64. */
  tokenHash: string;
  kind: "invitation" | "password";
  /** Whose password; of an invitation, who used it. */
  account: AccountId | null;
  /** The address that an invitation is for; null: whoever opens it chooses one. */
  email: string | null;
  /** Of an invitation, as the next. */
  plan: PlanId;
  credit: number;
  createdAt: Ms;
  expiresAt: Ms;
  /** Null while it may be used. */
  usedAt: Ms | null;
}>;

export type NewAccessLink = Pick<AccessLink, "kind" | "account" | "email" | "plan" | "credit" | "expiresAt">;

/** Every call gives the committed state and throws StoreUnavailable when the disk cannot be read. */
export interface AccessLinkRecords {
  link(tokenHash: string): AccessLink | null;
  linkById(id: number): AccessLink | null;
  lastLinkId(): number;
  /** Invitations that were not used, the newest first; expired ones too. */
  openInvitations(limit: number): readonly AccessLink[];
}

/** It was used, is being used, has expired, was withdrawn, or never was. */
export class LinkVoid extends AccountError {
  constructor() {
    super("this link does not work anymore: it was used or has expired; ask for another one");
  }
}

export class AccessLinks {
  readonly #records: AccessLinkRecords;
  readonly #journal: Journal;
  readonly #clock: Pick<Clock, "wall">;
  /** Ids of those whose end is on its way to disk. */
  readonly #ending = new Set<number>();
  /** Null until one is made. */
  #lastId: number | null = null;

  constructor(records: AccessLinkRecords, journal: Journal, clock: Pick<Clock, "wall">) {
    this.#records = records;
    this.#journal = journal;
    this.#clock = clock;
  }

  /**
   * A new link and its token, which is shown this once; one for a password takes the place of the account's others.
   * `inSameCommit` gets its number. Rejects with StoreUnavailable.
   */
  async make(link: NewAccessLink, inSameCommit: (id: number) => void): Promise<MadeLink> {
    const now = this.#clock.wall();
    const token = crypto
      .getRandomValues(new Uint8Array(accessTokenBytes))
      .toBase64({ alphabet: "base64url", omitPadding: true });
    const id = (this.#lastId ??= this.#records.lastLinkId()) + 1;
    this.#lastId = id;
    const made: AccessLink = {
      ...link,
      id,
      tokenHash: hashToken(token),
      createdAt: now,
      usedAt: null,
    };
    const sequence = this.#journal.change({ change: "link", link: made, forgetBefore: now - linkKeptMs });
    inSameCommit(made.id);
    await this.#journal.durable(sequence);
    return { link: made, token };
  }

  /** The link of a token that may be used now. Any string is safe. Throws LinkVoid or StoreUnavailable. */
  find(token: string): AccessLink {
    return this.#usable(isToken(token) ? this.#records.link(hashToken(token)) : null);
  }

  /** The same, of a link that was found before. */
  findById(id: number): AccessLink {
    return this.#usable(this.#records.linkById(id));
  }

  /**
   * Uses a link up. `work` changes what the link is for, and calls `inSameCommit` with the account in that change's turn:
   * both are on disk or neither is. Throws LinkVoid where somebody else was first; what `work` throws leaves the link.
   */
  async use<Result>(
    { id }: AccessLink,
    work: (inSameCommit: (account: AccountId) => void) => Promise<Result>,
  ): Promise<Result> {
    this.findById(id);
    this.#ending.add(id);
    try {
      return await work((account) => {
        this.#journal.change({ change: "use_link", id, account, at: this.#clock.wall() });
      });
    } finally {
      this.#ending.delete(id);
    }
  }

  /** Invitations that may be used, the newest first. */
  invitations(limit: number): AccessLink[] {
    return this.#records.openInvitations(limit).filter((link) => this.#isUsable(link));
  }

  /** Throws LinkVoid. */
  async withdraw(id: number, inSameCommit: InSameCommit): Promise<void> {
    this.findById(id);
    this.#ending.add(id);
    try {
      const sequence = this.#journal.change({ change: "withdraw_link", id });
      inSameCommit();
      await this.#journal.durable(sequence);
    } finally {
      this.#ending.delete(id);
    }
  }

  #usable(link: AccessLink | null): AccessLink {
    if (link === null || !this.#isUsable(link)) throw new LinkVoid();
    return link;
  }

  #isUsable({ id, usedAt, expiresAt }: AccessLink): boolean {
    return usedAt === null && this.#clock.wall() < expiresAt && !this.#ending.has(id);
  }
}

export type MadeLink = Readonly<{
  link: AccessLink;
  /** For who opens it alone: only its hash is kept. */
  token: string;
}>;

/** For the audit log, which must not hold the address: who was never here could not be forgotten. */
export const invitationInWords = ({ id, email, plan, credit }: Pick<AccessLink, "id" | "email" | "plan" | "credit">) =>
  `invitation ${id}: plan ${plan}, credit ${credit}${email === null ? "" : ", for one address"}`;

/** Where a link leads. What is behind the `#` is not sent to servers, so that it is in no log on the way. */
export const pathOf = ({ link, token }: MadeLink): string =>
  `${link.kind === "invitation" ? "/join" : "/set-password"}#${token}`;

/** base64url of 32 bytes. */
const isToken = (token: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(token);

const hashToken = (token: string): string => new Bun.CryptoHasher("sha256").update(token).digest("base64");
