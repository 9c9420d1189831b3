// What all ways to sign in share: the session with its cookie, its description for pages, and limits on attempts.
import { mailLanguages } from "../../core/mail.ts";
import type { AuditAction } from "../../core/audit-actions.ts";
import type { Unit } from "../../account/office.ts";
import { isFreeOfCharge, ratesOf } from "../../account/money/price.ts";
import { RecentTries } from "../../account/sign-in/recent-tries.ts";
import type { AccountRecord } from "../../account/records.ts";
import { Mails } from "../../account/people/mails.ts";
import { networkOf } from "../../account/sign-in/sign-in-tries.ts";
import { distinctModels } from "../../core/catalog.ts";
import { signInAddressTriesMax, signInWindowMs } from "../../core/limits.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import type { Entered, Session } from "../api/sign-in.ts";
import type { ConsoleParts } from "../parts.ts";
import { signInCookie } from "../signed-in.ts";
import { type Call, fail, type Failure, type Visitor, WithCookies } from "./route.ts";

export type PublicCall = Pick<
  Call<"public", unknown, unknown>,
  "visitor" | "address" | "isShared" | "browser" | "language"
>;

export const withoutPasswords = fail("forbidden", "Passwords are turned off on this server.");

export const tooManyTries = (seconds: number): Failure =>
  fail("too_many_attempts", `Too many attempts. Try again in ${Math.ceil(seconds / 60)} min.`, seconds);

/** Opens a session for a browser and returns its `set-cookie`. It always replaces the browser's previous session. */
export async function enter(
  unit: Unit,
  { baseUrl }: Pick<ConsoleParts, "baseUrl">,
  { visitor, address, browser, language }: PublicCall,
  account: AccountId,
): Promise<string> {
  const known = await unit.accounts.record(account);
  // For mails, until the person chooses one.
  if (language !== null && known?.language === null)
    new Mails(unit.mails).setLanguage(account, `${language}-x-browser`);
  const { token } = await unit.sessions.open(account, { address, browser });
  if (visitor !== null) await leave(unit, visitor);
  return signInCookie(token, baseUrl);
}

export const leave = ({ sessions }: Unit, { account, session }: Visitor): Promise<boolean> =>
  sessions.end(account.id, session.id);

/** The account that enters: `apiKey` if it was just created, `cookie` if a session was opened. */
export type Entering = Readonly<{ account: AccountRecord; apiKey: string | null; cookie: string | null }>;

export async function admitted(
  unit: Unit,
  parts: ConsoleParts,
  call: PublicCall,
  account: AccountId,
  apiKey: string | null,
): Promise<Entering> {
  const cookie = await enter(unit, parts, call, account);
  return { account: (await unit.accounts.record(account))!, apiKey, cookie };
}

export async function enteredReply(
  parts: ConsoleParts,
  { account, apiKey, cookie }: Entering,
  next = "/",
): Promise<WithCookies<Entered>> {
  const reply = { session: await sessionOf(parts, account), api_key: apiKey, next };
  return new WithCookies(reply, ...(cookie === null ? [] : [cookie]));
}

export async function sessionOf(
  { office, work, signUp, passwordSignIn, oidc, version, samplesUrl, demo, catalog }: ConsoleParts,
  account: Pick<Visitor["account"], "id" | "email" | "plan" | "operator" | "passwordHash" | "language"> | null,
): Promise<Session> {
  const isKnown = account !== null && oidc !== null;
  const isInTeam =
    account !== null && (await office.read(async ({ teams }) => (await teams.records.teamsOf(account.id)).length > 0));
  const known = isKnown ? await office.read(({ identities }) => identities.of(account.id)) : [];
  return {
    account:
      account === null
        ? null
        : {
            id: account.id,
            email: account.email,
            plan: account.plan,
            operator: account.operator,
            password: account.passwordHash !== null,
            connected: known.some(({ issuer }) => oidc!.provider.isOf(issuer)),
            team: isInTeam,
            language: mailLanguages.find((language) => language === account.language) ?? null,
          },
    sign_up: signUp && passwordSignIn,
    passwords: passwordSignIn,
    mail: work.mail !== null,
    provider: oidc?.name ?? null,
    version,
    base_url: samplesUrl,
    demo,
    sells: distinctModels(catalog).some(({ price }) => !isFreeOfCharge(ratesOf(price))),
    plans: Object.values(catalog.plans).map(({ id, name }) => ({ id, name })),
  };
}

/** Limits attempts by address, where requests carry no account name. */
export class AddressTries {
  readonly #tries = new RecentTries(signInAddressTriesMax, signInWindowMs);

  /** Counts an attempt, or returns a failure after too many. Shared addresses are never refused. */
  begin({ address, isShared }: PublicCall, now: Ms): Failure | null {
    if (isShared) return null;
    const place = networkOf(address);
    const waitMs = this.#tries.waitMs(place, now);
    if (waitMs > 0) return tooManyTries(Math.ceil(waitMs / 1000));
    this.#tries.add(place, now);
    return null;
  }

  /** Takes the last attempt back, because many people may share an address. */
  succeeded({ address, isShared }: PublicCall): void {
    if (!isShared) this.#tries.takeBack(networkOf(address));
  }
}

export const isDisabled = fail("forbidden", "This account is disabled. Ask an operator of this server.");

export const noteOwn = (
  { auditLog, now }: Unit,
  { address }: Pick<PublicCall, "address">,
  action: AuditAction,
  account: AccountId,
  detail: string,
): void => auditLog.append({ at: now, operator: account, address, action, subject: account, detail });
