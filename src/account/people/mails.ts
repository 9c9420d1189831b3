// Mail in a unit of the office: what is to be sent, by whom it may be caused and how often, and what its receivers want. It is
// a row in the commit of what it tells of, which `server/mailer.ts` sends; a row's `once` makes that there is one, whatever
// is asked again, by whichever gateway and after whatever crash.
import { createHmac, timingSafeEqual } from "node:crypto";
import {
  addressLinkMs,
  type MailKind,
  mailedPasswordLinkMs,
  type OptionalMailKind,
  usualMailKinds,
} from "../../core/mail.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { dayMs } from "../../core/units.ts";
import type { Draft } from "../draft.ts";
import { dayName, dayOf } from "../money/quota.ts";
import type { AccountRecord, Mail, OfficeRecords, NewAccessLink } from "../records.ts";
import type { AccessLinks, MadeLink } from "../sign-in/access-links.ts";
import { AccountError, type Accounts, checkEmail } from "./accounts.ts";

/** Beyond it nothing is added: a mail server that is away must not fill the disk. */
const mailsWaitingMax = 10_000;
/** What strangers may have sent to one address in a day, and how soon again. */
const strangersMailsMax = 3;
const strangersMailsGapMs = 2 * 60_000;
/** Invitations that a team's admin may have mailed in a day. */
const adminsInvitationsMax = 20;

export type MailDetails = Readonly<Record<string, string | number | null>>;
export type MailParts = Readonly<{ records: OfficeRecords; accounts: Accounts; draft: Draft; now: Ms }>;

type NewMail = Pick<Mail, "once" | "account"> &
  Readonly<{ kind: MailKind; address?: string | null; details: MailDetails; keptUntil: Ms; isTold?: boolean }>;

export class Mails {
  readonly #parts: MailParts;

  constructor(parts: MailParts) {
    this.#parts = parts;
  }

  /** False: there is such a mail, or too many wait. `isTold`: nobody is to get it, but it is known from here on. */
  async add({ account, kind, address = null, details, isTold = false, ...mail }: NewMail): Promise<boolean> {
    const { records, draft, now: createdAt } = this.#parts;
    const isNew = !draft.changes.some((change) => change.change === "mail" && change.mail.once === mail.once);
    if (!isNew || (await records.mail(mail.once)) !== null) return false;
    if (!isTold && (await records.mailCounts(createdAt)).waiting >= mailsWaitingMax) return false;
    const state = { createdAt, dueAt: isTold ? null : createdAt, tries: 0, sentAt: null, problem: null };
    const added: Mail = { ...mail, kind, account, address, details: JSON.stringify(details), ...state };
    draft.changes.push({ change: "mail", mail: added });
    return true;
  }

  /** To an account, or to the admins of a team: those who want it. */
  async tell(kind: OptionalMailKind, once: string, of: AccountId, details: MailDetails, keptUntil: Ms): Promise<void> {
    const { accounts } = this.#parts;
    const record = await accounts.record(of);
    if (record === null) return;
    const admins = record.team ? (await accounts.members(of)).filter(({ role }) => role === "admin") : [];
    const found = record.team ? await Promise.all(admins.map(({ account }) => accounts.record(account))) : [record];
    const receivers = found.filter((each) => each !== null && wants(each, kind));
    if (receivers.length === 0) await this.add({ once, kind, account: of, details, keptUntil, isTold: true });
    for (const [at, receiver] of receivers.entries()) {
      const each = at === 0 ? once : `${once} for ${receiver!.id}`;
      await this.add({ once: each, kind, account: receiver!.id, details, keptUntil });
    }
  }

  /** A link by mail, which its receiver alone has. `mailed` false: this address got enough of them today. */
  async invite(
    links: AccessLinks,
    link: NewAccessLink & Readonly<{ email: string }>,
    details: MailDetails,
    secret: Uint8Array,
    isTrusted: boolean,
  ): Promise<MadeLink & Readonly<{ mailed: boolean }>> {
    const { email: address } = link;
    const kind = link.team === null ? "invitation" : "team_invitation";
    const gapMs = isTrusted ? 0 : strangersMailsGapMs;
    const once = await this.#turn(`invitation ${address.toLowerCase()}`, strangersMailsMax, gapMs);
    const byAdmin = isTrusted ? null : await this.#turn(`invitations of ${details["by"]}`, adminsInvitationsMax, 0);
    const mail = { kind, account: null, address, details: { ...details, until: link.expiresAt } } as const;
    const until = { keptUntil: link.expiresAt + dayMs };
    const mailed = once !== null && (isTrusted || byAdmin !== null) && (await this.add({ ...mail, ...until, once }));
    if (mailed && byAdmin !== null) await this.add({ ...mail, ...until, once: byAdmin, isTold: true });
    return { ...(await links.make(link, mailed ? this.#token(secret, once) : undefined)), mailed };
  }

  /** Nothing where the account has no address or no password of its own to forget. */
  async forgotten(links: AccessLinks, account: AccountRecord, secret: Uint8Array): Promise<void> {
    const { accounts, now } = this.#parts;
    if (account.disabledAt !== null || account.team || account.mailAddress === null) return;
    const once = await this.#turn(`password ${account.id}`);
    const until = now + mailedPasswordLinkMs;
    const mail = { kind: "password", account: account.id, details: { until } } as const;
    if (once === null || !(await this.add({ ...mail, once, keptUntil: now + 2 * dayMs }))) return;
    await links.make(await accounts.passwordLink(account.id, until), this.#token(secret, once));
  }

  /** Asks whether an address is the account's. False: it got enough of such mails today. Throws AccountError. */
  async ask(account: AccountId, address: string): Promise<boolean> {
    checkEmail(address);
    const { now } = this.#parts;
    const once = await this.#turn(`address ${address.toLowerCase()}`);
    const byAccount = await this.#turn(`address of ${account}`, 2 * strangersMailsMax, 0);
    if (once === null || byAccount === null) return false;
    const mail = {
      kind: "address",
      account,
      details: { until: now + addressLinkMs },
      keptUntil: now + 2 * dayMs,
    } as const;
    return (await this.add({ ...mail, once: byAccount, isTold: true })) && this.add({ ...mail, once, address });
  }

  /** Null: its mail goes nowhere. Throws AccountError for what is no address. */
  setAddress(account: AccountId, address: string | null): void {
    if (address !== null) checkEmail(address);
    this.#parts.draft.changes.push({ change: "mail_address", account, address });
  }

  setKinds(account: AccountId, kinds: readonly string[]): void {
    this.#parts.draft.changes.push({ change: "mail_kinds", account, kinds });
  }

  setLanguage(account: AccountId, language: string): void {
    this.#parts.draft.changes.push({ change: "language", account, language });
  }

  /** Those that are due; nobody else takes them within `leaseMs`. */
  async take(limit: number, leaseMs: Ms): Promise<readonly Mail[]> {
    const { records, now } = this.#parts;
    const due = await records.dueMails(now, limit);
    for (const mail of due) this.note({ ...mail, dueAt: now + leaseMs });
    return due;
  }

  note({ once, details, dueAt, tries, sentAt, problem }: Mail): void {
    this.#parts.draft.changes.push({ change: "mail_state", mail: { once, details, dueAt, tries, sentAt, problem } });
  }

  forget(once: string): void {
    this.#parts.draft.changes.push({ change: "forget_mail", once });
  }

  forgetOld(): void {
    this.#parts.draft.changes.push({ change: "forget_mails", before: this.#parts.now });
  }

  /** The next of today's `once` for something that strangers cause; null: not now. */
  async #turn(place: string, max = strangersMailsMax, gapMs = strangersMailsGapMs): Promise<string | null> {
    const { records, now } = this.#parts;
    for (let turn = 1; turn <= max; turn += 1) {
      const once = `${place} ${dayName(dayOf(now))} ${turn}`;
      const before = await records.mail(once);
      if (before === null) return once;
      if (now - before.createdAt < gapMs) return null;
    }
    return null;
  }

  #token(secret: Uint8Array, once: string): string {
    return mailedToken(secret, { once, createdAt: this.#parts.now });
  }
}

export const wants = (account: AccountRecord, kind: MailKind): boolean =>
  account.mailAddress !== null &&
  account.disabledAt === null &&
  (account.mailKinds ?? usualMailKinds).includes(kind) &&
  (kind !== "alerts" || account.operator);

/** The token of the link in a mail. It is made again for each try, so that nobody reads it in the ledger. */
export const mailedToken = (secret: Uint8Array, { once, createdAt }: Pick<Mail, "once" | "createdAt">): string =>
  createHmac("sha256", secret).update(`link ${once} ${createdAt}`).digest("base64url");

// ---------------------------------------------------------------- what links say

/** Says that who has it got a mail: about the account, and what the mail was for. */
export type MailClaim = Readonly<{ account: AccountId; what: string; until: Ms }>;

/** `bound`: what must still be so; it is not in the text. */
export function sealClaim(secret: Uint8Array, { account, what, until }: MailClaim, bound = ""): string {
  const text = `${account}.${until}.${Buffer.from(what).toString("base64url")}`;
  return `${text}.${createHmac("sha256", secret).update(`claim ${text} ${bound}`).digest("base64url")}`;
}

/** Null: it is none of ours. Any text is safe. */
export function readClaim(
  secret: Uint8Array,
  token: string,
  bound: (account: AccountId) => string = () => "",
): MailClaim | null {
  const [account, until, what] = /^(\d{1,15})\.(\d{1,15})\.([\w-]{0,400})\.[\w-]{43}$/.exec(token)?.slice(1) ?? [];
  if (account === undefined || until === undefined || what === undefined) return null;
  const claim = { account: Number(account), until: Number(until), what: Buffer.from(what, "base64url").toString() };
  const [is, ours] = [token, sealClaim(secret, claim, bound(claim.account))].map((text) => Buffer.from(text));
  return is!.length === ours!.length && timingSafeEqual(is!, ours!) ? claim : null;
}

export class NoMoreMails extends AccountError {
  constructor() {
    super("this address got enough mails today; try again tomorrow");
  }
}
