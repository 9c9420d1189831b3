// The operations of commands on a data folder, written once for both ways there: through the socket of a running
// server, or directly on the folder when no server runs. Arguments and results are JSON.
import type { AuditAction } from "../account/records.ts";
import { namesOf } from "../account/account-names.ts";
import { type CreatedKey, type KeyView, limitsDetail, type NewKey, type NewLimits } from "../account/account-keys.ts";
import { AccountError, type AccountView, type CreatedAccount, type ErasedAccount } from "../account/accounts.ts";
import { byCommandOf, serverEntry, theServer } from "../account/audit.ts";
import { invitationInWords, type MadeLink, pathOf } from "../account/access-links.ts";
import type { Unit } from "../account/office.ts";
import type { Passwords } from "../account/passwords.ts";
import { logPlaceOf, requestRowsOf, type RequestRows } from "../account/request-row.ts";
import type { UsageRow } from "../account/usage-row.ts";
import type { Accounting } from "../accounting.ts";
import { erasedInWords } from "../store/changes/erasure.ts";
import type { LogFilter } from "../core/request-log.ts";
import type { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import type { Backup } from "../store/backup/backup.ts";
import { keyNameMaxLength } from "../core/limits.ts";
import type { AccountId, KeyId, Ms } from "../core/types.ts";

/** Tells how far a long operation is, as one line of words. */
export type Progress = (line: string) => void;

export type Work = Pick<Accounting, "office" | "backup"> &
  Readonly<{
    passwords: Pick<Passwords, "hashNew">;
    /** Where browsers find the console, without a slash at the end. */
    consoleUrl: string;
    requestLog: Pick<KeptRequestLog, "page" | "erase">;
    /** Removes the stored responses of an account, wherever they are; `forEver`: none of that account are kept anymore. */
    eraseResponses(account: AccountId, forEver: boolean): Promise<void>;
  }>;

/** What is done, and the user of the system who does it. */
export type CommandWork = Work & Readonly<{ user: string }>;

export type CreditedView = AccountView & Readonly<{ credited: boolean }>;
export type RotatedKey = Readonly<{ email: string; api_key: string }>;

export type NewOperatorsAccount = Readonly<{
  email: string;
  plan?: string;
  credit?: number;
  password?: string;
  operator?: boolean;
}>;

/** Whatever changes something leaves an entry in the audit log, in one commit with what it changed. */
export const operations = {
  async "accounts create"(work: CommandWork, { password, ...account }: NewOperatorsAccount): Promise<CreatedAccount> {
    const hashed = password === undefined ? {} : { passwordHash: await work.passwords.hashNew(password) };
    return work.office.change(async (unit) => {
      const { plan = unit.accounts.planOfNew, credit = 0, operator = false } = account;
      const created = await unit.accounts.create({ ...account, ...hashed });
      const detail = `plan ${plan}, credit ${credit}${operator ? ", an operator" : ""}`;
      note(work, unit, "account.create", created.id, detail);
      return created;
    });
  },

  "accounts list": ({ office }: Work, { after, limit }: { after: number; limit: number }) =>
    office.read(({ accounts }) => accounts.list({ after, limit })),

  "accounts show": ({ office }: Work, { email }: { email: string }): Promise<AccountView> =>
    office.read(async ({ accounts }) => accounts.show((await accounts.ofEmail(email)).id)),

  "accounts plan": (work: CommandWork, { email, plan }: { email: string; plan: string }): Promise<AccountView> =>
    work.office.change(async (unit) => {
      const { id, plan: before } = await unit.accounts.ofEmail(email);
      await unit.accounts.changePlan(id, plan);
      note(work, unit, "account.plan", id, `from ${before} to ${plan}`);
      return unit.accounts.show(id);
    }),

  async "accounts password"(
    work: CommandWork,
    { email, password }: { email: string; password: string },
  ): Promise<Readonly<{ id: AccountId; email: string }>> {
    await work.office.read(({ accounts }) => accounts.ofEmail(email));
    const passwordHash = await work.passwords.hashNew(password);
    return work.office.change(async (unit) => {
      const account = await unit.accounts.ofEmail(email);
      await unit.accounts.setPassword(account.id, passwordHash);
      unit.sessions.endAll(account.id, null);
      note(work, unit, "account.password", account.id, "");
      return { id: account.id, email: account.email };
    });
  },

  "accounts password link": (
    work: CommandWork,
    { email, expiresAt }: { email: string; expiresAt: Ms },
  ): Promise<Readonly<{ id: AccountId; email: string }> & ShownLink> =>
    work.office.change(async (unit) => {
      const account = await unit.accounts.ofEmail(email);
      const made = await unit.links.make(await unit.accounts.passwordLink(account.id, expiresAt));
      note(work, unit, "account.password_link", account.id, `link ${made.link.id}`);
      return { id: account.id, email: account.email, ...shownLink(work, made) };
    }),

  "accounts invite": (
    work: CommandWork,
    wanted: { email: string | null; plan?: string; credit: number; expiresAt: Ms },
  ): Promise<Readonly<{ id: number; email: string | null; plan: string; credit: number }> & ShownLink> =>
    work.office.change(async (unit) => {
      const made = await unit.links.make(await unit.accounts.invitation(wanted));
      const { id, email, plan, credit } = made.link;
      note(work, unit, "invitation.create", theServer, invitationInWords(made.link));
      return { id, email, plan, credit, ...shownLink(work, made) };
    }),

  "accounts disable": (work: CommandWork, { email }: { email: string }): Promise<AccountView> =>
    work.office.change(async (unit) => {
      const { id } = await unit.accounts.ofEmail(email);
      await unit.accounts.checkNotLastOperator(id);
      await unit.accounts.setDisabled(id, true);
      unit.sessions.endAll(id, null);
      note(work, unit, "account.disable", id, "");
      return unit.accounts.show(id);
    }),

  "accounts enable": (work: CommandWork, { email }: { email: string }): Promise<AccountView> =>
    work.office.change(async (unit) => {
      const { id } = await unit.accounts.ofEmail(email);
      await unit.accounts.setDisabled(id, false);
      note(work, unit, "account.enable", id, "");
      return unit.accounts.show(id);
    }),

  "accounts credit": (
    work: CommandWork,
    { email, tokens, reference }: { email: string; tokens: number; reference?: string },
  ): Promise<CreditedView> =>
    work.office.change(async (unit) => {
      const { accounts } = unit;
      const { id } = await accounts.ofEmail(email);
      const { credited } = await accounts.addCredit(id, tokens, reference);
      const owner = credited || reference === undefined ? null : await accounts.creditedTo(reference);
      if (owner !== null && owner.id !== id) {
        throw new AccountError(`nothing was added: the reference ${reference} was credited to ${owner.email}`);
      }
      const detail = `${tokens} balance tokens${reference === undefined ? "" : `: reference ${reference}`}`;
      if (credited) note(work, unit, "account.credit", id, detail);
      return { ...(await accounts.show(id)), credited };
    }),

  /** Writes down that its data is being given out, which the command itself does. */
  "accounts export": (work: CommandWork, { email }: { email: string }): Promise<null> =>
    work.office.change(async (unit) => {
      note(work, unit, "account.export", (await unit.accounts.ofEmail(email)).id, "");
      return null;
    }),

  "accounts delete": async (work: CommandWork, { email }: { email: string }): Promise<ErasedAccount> => {
    const { id } = await work.office.read(({ accounts }) => accounts.ofEmail(email));
    return eraseAccount(work, id, { noted: (unit, detail) => note(work, unit, "account.delete", id, detail) });
  },

  "keys create": (work: CommandWork, { email, key }: { email: string; key: NewKey }): Promise<CreatedKey> =>
    work.office.change(async (unit) => {
      const { id } = await unit.accounts.ofEmail(email);
      const created = await unit.accountKeys.create(id, key);
      note(work, unit, "key.create", id, JSON.stringify(key.name.slice(0, keyNameMaxLength)));
      return created;
    }),

  "keys list": ({ office }: Work, { email }: { email: string }): Promise<readonly KeyView[]> =>
    office.read(async ({ accounts, accountKeys }) => accountKeys.list((await accounts.ofEmail(email)).id)),

  "keys limits": (
    work: CommandWork,
    { email, key, limits }: { email: string; key: KeyId; limits: NewLimits },
  ): Promise<KeyView> =>
    work.office.change(async (unit) => {
      const { id } = await unit.accounts.ofEmail(email);
      const limited = await unit.accountKeys.limit(id, key, limits);
      note(work, unit, "key.limits", id, limitsDetail(key, limits));
      return limited;
    }),

  "keys revoke": (work: CommandWork, { email, key }: { email: string; key: KeyId }) =>
    work.office.change(async (unit) => {
      const { id } = await unit.accounts.ofEmail(email);
      const revoked = await unit.accountKeys.revoke(id, key);
      note(work, unit, "key.revoke", id, `key ${key}`);
      return revoked;
    }),

  "keys rotate": (work: CommandWork, { email }: { email: string }): Promise<RotatedKey> =>
    work.office.change(async (unit) => {
      const { id } = await unit.accounts.ofEmail(email);
      const rotated = await unit.accounts.rotateKey(id);
      note(work, unit, "key.rotate", id, "");
      return { email, ...rotated };
    }),

  /** Whose they are: the command reads them by itself. */
  "end-users list": ({ office }: Work, { email }: { email: string }): Promise<Readonly<{ id: AccountId }>> =>
    office.read(async ({ accounts }) => ({ id: (await accounts.ofEmail(email)).id })),

  /** Writes down that it is given out; without the name, which can be erased. */
  "end-users export": (
    work: CommandWork,
    given: { email: string; name: string },
  ): Promise<Readonly<{ id: AccountId; name: string }>> =>
    work.office.change(async (unit) => {
      const { id } = await unit.accounts.ofEmail(given.email);
      const { name, keys } = await unit.accountKeys.endUser(id, given.name);
      note(work, unit, "end_user.export", id, `an end user of ${keys.join(", ")}`);
      return { id, name };
    }),

  "end-users erase": (work: CommandWork, { email, name }: { email: string; name: string }) =>
    work.office.change(async (unit) => {
      const { id } = await unit.accounts.ofEmail(email);
      const erased = await unit.accountKeys.eraseEndUser(id, name);
      note(work, unit, "end_user.erase", id, `an end user of ${erased.keys.join(", ")}`);
      return erased;
    }),

  usage: ({ office }: Work, { email, limit }: { email: string; limit: number }): Promise<readonly UsageRow[]> =>
    office.read(async ({ accounts }) => accounts.usage((await accounts.ofEmail(email)).id, limit)),

  /** `email`: of one account. */
  async requests(
    { office, requestLog }: Work,
    given: { email: string | null; filter: LogFilter; after: string | undefined; limit: number },
  ): Promise<RequestRows> {
    const { email, filter, after, limit } = given;
    const account = email === null ? null : (await office.read(({ accounts }) => accounts.ofEmail(email))).id;
    const page = await requestLog.page({ ...filter, account }, logPlaceOf(after), limit);
    const named = page.rows.map((row) => row.account);
    return requestRowsOf(page, await namesOf(office, named));
  },

  /** `file` is absolute: the server's working folder may be another. */
  async backup(work: CommandWork, { file }: { file: string }, progress: Progress): Promise<Backup> {
    const made = await work.backup(file, progress);
    try {
      await work.office.change(async (unit) => note(work, unit, "server.backup", theServer, backupDetail(made)));
    } catch (error) {
      progress(notNoted(error as Error));
    }
    return made;
  },
} as const;

/** `link` is shown this once. */
type ShownLink = Readonly<{ link: string; expires_at: string }>;

const shownLink = ({ consoleUrl }: Pick<Work, "consoleUrl">, made: MadeLink): ShownLink => ({
  link: consoleUrl + pathOf(made),
  expires_at: new Date(made.link.expiresAt).toISOString(),
});

/** The backup is there all the same. */
export const notNoted = ({ message }: Error): string => `the backup is not in the audit log: ${message}`;

export const backupDetail = ({ file, bytes }: Pick<Backup, "file" | "bytes">): string =>
  `${file}: ${bytes} bytes, checked`;

const note = (
  { user }: Pick<CommandWork, "user">,
  { auditLog, now }: Unit,
  action: AuditAction,
  subject: AccountId,
  detail: string,
): void => auditLog.append(serverEntry(now, byCommandOf(user), action, subject, detail));

/** For the audit log. The e-mail must be forgotten, so the entry must not contain it. */
const erasedDetail = `its ${erasedInWords} and stored responses were erased`;

/** Units of an erasure: `allowed` throws where it must not begin, `noted` writes it down. */
export type Erasure = Readonly<{ allowed?(unit: Unit): Promise<void>; noted(unit: Unit, detail: string): void }>;

/**
 * Takes away who the account was, wherever it is kept. It is disabled first, and what is kept elsewhere is erased while the
 * e-mail still names it: an erasure that failed can be asked for again. Throws AccountError while a request of it is open.
 */
export async function eraseAccount(
  {
    office,
    eraseResponses,
    requestLog,
  }: Pick<Work, "office" | "eraseResponses"> & Readonly<{ requestLog: Pick<Work["requestLog"], "erase"> }>,
  id: AccountId,
  { allowed, noted }: Erasure,
): Promise<ErasedAccount> {
  const { email } = await office.change(async (unit) => {
    await allowed?.(unit);
    await unit.accounts.setDisabled(id, true);
    unit.sessions.endAll(id, null);
    return (await unit.accounts.record(id))!;
  });
  await office.read(({ accounts }) => accounts.checkNothingOpen(id));
  await eraseResponses(id, false); // the account may still stay, with all that it stores
  const erased = await office.change(async (unit) => {
    const done = await unit.accounts.erase(id);
    noted(unit, erasedDetail);
    return done;
  });
  // A request that ended when the first look was taken may have kept its response after it.
  await eraseResponses(id, true).catch((error: Error) => {
    const { name } = erased;
    throw new AccountError(`${email} is ${name} now, but may have stored responses; delete ${name}: ${error.message}`);
  });
  await requestLog.erase(id);
  return erased;
}

export type OperationName = keyof typeof operations;
export type OperationArguments<Name extends OperationName> = Parameters<(typeof operations)[Name]>[1];
export type OperationResult<Name extends OperationName> = Awaited<ReturnType<(typeof operations)[Name]>>;

export function isOperationName(name: string): name is OperationName {
  return Object.hasOwn(operations, name);
}

/** Runs one by name. */
export async function runOperation<Name extends OperationName>(
  name: Name,
  work: CommandWork,
  given: OperationArguments<Name>,
  progress: Progress,
): Promise<OperationResult<Name>> {
  const operation = operations[name] as (work: CommandWork, given: unknown, progress: Progress) => Promise<unknown>;
  return (await operation(work, given, progress)) as OperationResult<Name>;
}
