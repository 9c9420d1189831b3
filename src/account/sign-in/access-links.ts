// Links that let somebody in once: an invitation makes an account, a password link sets the password of one. A link's token
// is 256 random bits that only its address has; the link is found by the token's hash. Of two who use it at once one wins. In a
// unit of the office.
import { dayMs } from "../../core/units.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { AccountError } from "../people/accounts.ts";
import type { Draft } from "../draft.ts";
import type { AccessLink, OfficeRecords, NewAccessLink } from "../records.ts";

/** Bytes of the tokens of sessions and links. */
const accessTokenBytes = 32;
/** Used and expired links are kept for this long, for exports. */
export const linkKeptMs = 90 * dayMs;

/** It was used, is being used, has expired, was withdrawn, or never was. */
export class LinkVoid extends AccountError {
  constructor() {
    super("this link does not work anymore: it was used or has expired; ask for another one");
  }
}

type Parts = Readonly<{ records: OfficeRecords; draft: Draft; now: Ms }>;

export class AccessLinks {
  readonly #parts: Parts;
  /** A unit that makes thousands of links looks for old ones once. */
  #forgot = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A new link and its token, which is shown this once; one for a password takes the place of the account's others. */
  async make(link: NewAccessLink, token = randomToken()): Promise<MadeLink> {
    const { records, draft, now } = this.#parts;
    const id = await records.next("access_links");
    const made: AccessLink = { ...link, id, tokenHash: hashToken(token), createdAt: now, usedAt: null };
    draft.changes.push({ change: "link", link: made, forgetBefore: this.#forgot ? null : now - linkKeptMs });
    this.#forgot = true;
    return { link: made, token };
  }

  /** The link of a token that may be used now. Any string is safe. Throws LinkVoid. */
  async find(token: string): Promise<AccessLink> {
    return this.#usable(isToken(token) ? await this.#parts.records.link(hashToken(token)) : null);
  }

  /** The same, of a link that was found before. */
  async findById(id: number): Promise<AccessLink> {
    return this.#usable(await this.#parts.records.linkById(id));
  }

  /** Uses a link up, for what this unit does with the account. Throws LinkVoid where somebody else was first. */
  async use(id: number, account: AccountId): Promise<void> {
    const { draft, now: at } = this.#parts;
    await this.findById(id);
    draft.changes.push({ change: "use_link", id, account, at });
  }

  /** Invitations that may be used, the newest first; `team`: into that alone. */
  async invitations(limit: number, team?: AccountId): Promise<AccessLink[]> {
    return (await this.#parts.records.openInvitations(limit, team)).filter((link) => this.#isUsable(link));
  }

  async withdraw(id: number): Promise<void> {
    const link = await this.findById(id);
    this.#parts.draft.takenBack.push({ change: "link", link, forgetBefore: null });
    this.#parts.draft.changes.push({ change: "withdraw_link", id });
  }

  #usable(link: AccessLink | null): AccessLink {
    if (link === null || !this.#isUsable(link)) throw new LinkVoid();
    return link;
  }

  #isUsable({ usedAt, expiresAt }: AccessLink): boolean {
    return usedAt === null && this.#parts.now < expiresAt;
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

const randomToken = (): string =>
  crypto.getRandomValues(new Uint8Array(accessTokenBytes)).toBase64({ alphabet: "base64url", omitPadding: true });

/** base64url of 32 bytes. */
const isToken = (token: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(token);

const hashToken = (token: string): string => new Bun.CryptoHasher("sha256").update(token).digest("base64");
