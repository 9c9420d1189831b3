// The operations of commands on a data folder, written once for both ways there: through the socket of a running
// server, or directly on the folder when no server runs. Arguments and results are JSON.
import { emailsOf, namesIn } from "../account/account-names.ts";
import { type CreatedKey, type KeyView, limitsDetail, type NewKey, type NewLimits } from "../account/account-keys.ts";
import {
  AccountError,
  type AccountView,
  type CreatedAccount,
  type ErasedAccount,
  type NewAccount,
} from "../account/accounts.ts";
import { type AuditAction, type AuditEntry, byCommandOf, serverEntry, theServer } from "../account/audit.ts";
import { invitationInWords, type MadeLink, pathOf } from "../account/access-links.ts";
import { logPlaceOf, requestRowsOf, type RequestRows } from "../account/request-row.ts";
import type { UsageRow } from "../account/usage-row.ts";
import type { Accounting } from "../accounting.ts";
import type { LogFilter } from "../core/request-log.ts";
import type { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import type { Backup } from "../store/backup/backup.ts";
import { erasedInWords } from "../store/changes/erasure.ts";
import { systemClock } from "../core/clock.ts";
import { keyNameMaxLength } from "../core/limits.ts";
import type { AccountId, KeyId, Ms } from "../core/types.ts";

/** Tells how far a long operation is, as one line of words. */
export type Progress = (line: string) => void;

export type Work = Pick<Accounting, "accounts" | "accountKeys" | "auditLog" | "backup" | "links" | "sessions"> &
  Readonly<{
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

/** Whatever changes something leaves an entry in the audit log, in one commit with what it changed. */
export const operations = {
  async "accounts create"(work: CommandWork, account: NewAccount): Promise<CreatedAccount> {
    const { plan = work.accounts.planOfNew, credit = 0, operator = false } = account;
    const detail = `plan ${plan}, credit ${credit}${operator ? ", an operator" : ""}`;
    return work.accounts.create(account, (id) => work.auditLog.append(entryOf(work, "account.create", id, detail)));
  },

  "accounts list": async ({ accounts }: Work, { after, limit }: { after: number; limit: number }) =>
    accounts.list({ after, limit }),

  "accounts show": async ({ accounts }: Work, { email }: { email: string }): Promise<AccountView> =>
    accounts.show(email),

  async "accounts plan"(work: CommandWork, { email, plan }: { email: string; plan: string }): Promise<AccountView> {
    await work.accounts.changePlan(email, plan, (before) =>
      work.auditLog.append(entryOf(work, "account.plan", before.id, `from ${before.plan} to ${plan}`)),
    );
    return work.accounts.show(email);
  },

  async "accounts password"(
    work: CommandWork,
    { email, password }: { email: string; password: string },
  ): Promise<Readonly<{ id: AccountId; email: string }>> {
    const { accounts, sessions, auditLog } = work;
    const account = await accounts.show(email);
    await sessions.endAllWith(account.id, null, (endSessions) =>
      accounts.changePasswordById(account.id, password, () => {
        auditLog.append(entryOf(work, "account.password", account.id, ""));
        endSessions();
      }),
    );
    return { id: account.id, email: account.email };
  },

  async "accounts password link"(
    work: CommandWork,
    { email, expiresAt }: { email: string; expiresAt: Ms },
  ): Promise<Readonly<{ id: AccountId; email: string }> & ShownLink> {
    const account = await work.accounts.show(email);
    const wanted = await work.accounts.passwordLink(account.id, expiresAt, systemClock.wall());
    const made = await work.links.make(wanted, (id) =>
      work.auditLog.append(entryOf(work, "account.password_link", account.id, `link ${id}`)),
    );
    return { id: account.id, email: account.email, ...shownLink(work, made) };
  },

  async "accounts invite"(
    work: CommandWork,
    { email, plan, credit, expiresAt }: { email: string | null; plan?: string; credit: number; expiresAt: Ms },
  ): Promise<Readonly<{ id: number; email: string | null; plan: string; credit: number }> & ShownLink> {
    const wanted = await work.accounts.invitation({ email, plan, credit, expiresAt }, systemClock.wall());
    const made = await work.links.make(wanted, (id) =>
      work.auditLog.append(entryOf(work, "invitation.create", theServer, invitationInWords({ ...wanted, id }))),
    );
    return { id: made.link.id, email, plan: wanted.plan, credit, ...shownLink(work, made) };
  },

  async "accounts disable"(work: CommandWork, { email }: { email: string }): Promise<AccountView> {
    const { accounts, sessions, auditLog } = work;
    const { id } = await accounts.show(email);
    const isAnother = accounts.checkNotLastOperator(id);
    if (isAnother instanceof Promise) await isAnother;
    await sessions.endAllWith(id, null, (endSessions) =>
      accounts.setDisabled(id, true, () => {
        auditLog.append(entryOf(work, "account.disable", id, ""));
        endSessions();
      }),
    );
    return accounts.show(email);
  },

  async "accounts enable"(work: CommandWork, { email }: { email: string }): Promise<AccountView> {
    const { accounts, auditLog } = work;
    const { id } = await accounts.show(email);
    await accounts.setDisabled(id, false, () => auditLog.append(entryOf(work, "account.enable", id, "")));
    return accounts.show(email);
  },

  async "accounts credit"(
    work: CommandWork,
    { email, tokens, reference }: { email: string; tokens: number; reference?: string },
  ): Promise<CreditedView> {
    const { accounts, auditLog } = work;
    const detail = `${tokens} balance tokens${reference === undefined ? "" : `: reference ${reference}`}`;
    const { credited } = await accounts.addCredit(email, tokens, reference, (id) =>
      auditLog.append(entryOf(work, "account.credit", id, detail)),
    );
    const account = await accounts.show(email);
    const owner = credited || reference === undefined ? null : await accounts.creditedTo(reference);
    if (owner !== null && owner.id !== account.id) {
      throw new AccountError(`nothing was added: the reference ${reference} was credited to ${owner.email}`);
    }
    return { ...account, credited };
  },

  /** Writes down that its data is being given out, which the command itself does. */
  async "accounts export"(work: CommandWork, { email }: { email: string }): Promise<null> {
    const { id } = await work.accounts.show(email);
    await work.auditLog.note(entryOf(work, "account.export", id, ""));
    return null;
  },

  async "accounts delete"(work: CommandWork, { email }: { email: string }): Promise<ErasedAccount> {
    const { id } = await work.accounts.show(email);
    return eraseAccount(work, email, (detail) => work.auditLog.append(entryOf(work, "account.delete", id, detail)));
  },

  async "keys create"(work: CommandWork, { email, key }: { email: string; key: NewKey }): Promise<CreatedKey> {
    const { id } = await work.accountKeys.accountOf(email);
    return work.accountKeys.create(id, key, () =>
      work.auditLog.append(entryOf(work, "key.create", id, JSON.stringify(key.name.slice(0, keyNameMaxLength)))),
    );
  },

  "keys list": async ({ accountKeys }: Work, { email }: { email: string }): Promise<readonly KeyView[]> =>
    accountKeys.list((await accountKeys.accountOf(email)).id),

  async "keys limits"(
    work: CommandWork,
    { email, key, limits }: { email: string; key: KeyId; limits: NewLimits },
  ): Promise<KeyView> {
    const { id } = await work.accountKeys.accountOf(email);
    return work.accountKeys.limit(id, key, limits, () =>
      work.auditLog.append(entryOf(work, "key.limits", id, limitsDetail(key, limits))),
    );
  },

  async "keys revoke"(work: CommandWork, { email, key }: { email: string; key: KeyId }) {
    const { id } = await work.accountKeys.accountOf(email);
    return work.accountKeys.revoke(id, key, () => work.auditLog.append(entryOf(work, "key.revoke", id, `key ${key}`)));
  },

  async "keys rotate"(work: CommandWork, { email }: { email: string }): Promise<RotatedKey> {
    const rotated = await work.accounts.rotateKey(email, (id) =>
      work.auditLog.append(entryOf(work, "key.rotate", id, "")),
    );
    return { email, ...rotated };
  },

  /** Whose they are: the command reads them by itself. */
  "end-users list": async (
    { accountKeys }: Work,
    { email }: { email: string },
  ): Promise<Readonly<{ id: AccountId }>> => ({
    id: (await accountKeys.accountOf(email)).id,
  }),

  /** Writes down that it is given out; without the name, which can be erased. */
  async "end-users export"(
    work: CommandWork,
    given: { email: string; name: string },
  ): Promise<Readonly<{ id: AccountId; name: string }>> {
    const { id } = await work.accountKeys.accountOf(given.email);
    const { name, keys } = await work.accountKeys.endUser(id, given.name);
    await work.auditLog.note(entryOf(work, "end_user.export", id, `an end user of ${keys.join(", ")}`));
    return { id, name };
  },

  async "end-users erase"(work: CommandWork, { email, name }: { email: string; name: string }) {
    const { id } = await work.accountKeys.accountOf(email);
    const { keys } = await work.accountKeys.endUser(id, name);
    return work.accountKeys.eraseEndUser(id, name, () =>
      work.auditLog.append(entryOf(work, "end_user.erase", id, `an end user of ${keys.join(", ")}`)),
    );
  },

  usage: async ({ accounts }: Work, { email, limit }: { email: string; limit: number }): Promise<readonly UsageRow[]> =>
    accounts.usage(email, limit),

  /** `email`: of one account. */
  async requests(
    { accounts, accountKeys, requestLog }: Work,
    given: { email: string | null; filter: LogFilter; after: string | undefined; limit: number },
  ): Promise<RequestRows> {
    const { email, filter, after, limit } = given;
    const account = email === null ? null : (await accountKeys.accountOf(email)).id;
    const page = await requestLog.page({ ...filter, account }, logPlaceOf(after), limit);
    const named = page.rows.map((row) => row.account);
    return requestRowsOf(page, namesIn(await emailsOf(accounts, named)));
  },

  /** `file` is absolute: the server's working folder may be another. */
  async backup(work: CommandWork, { file }: { file: string }, progress: Progress): Promise<Backup> {
    const made = await work.backup(file, progress);
    try {
      await work.auditLog.note(entryOf(work, "server.backup", theServer, backupDetail(made)));
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

const entryOf = (
  { user }: Pick<CommandWork, "user">,
  action: AuditAction,
  subject: AccountId,
  detail: string,
): Omit<AuditEntry, "id"> => serverEntry(systemClock.wall(), byCommandOf(user), action, subject, detail);

/** For the audit log. The e-mail must be forgotten, so the entry must not contain it. */
const erasedDetail = `its ${erasedInWords} and stored responses were erased`;

/**
 * Takes away who the account was, wherever it is kept; `inSameCommit` is given the words for the audit log. Throws
 * AccountError while a request of it is open.
 */
export async function eraseAccount(
  {
    accounts,
    sessions,
    eraseResponses,
    requestLog,
  }: Pick<Work, "accounts" | "sessions" | "eraseResponses" | "requestLog">,
  email: string,
  inSameCommit: (detail: string) => void,
): Promise<ErasedAccount> {
  const before = async (account: AccountId): Promise<void> => {
    await sessions.endAll(account, null);
    await eraseResponses(account, false); // the account may still stay, with all that it stores
  };
  const erased = await accounts.erase(email, before, () => inSameCommit(erasedDetail));
  // A request that ended when the first look was taken may have kept its response after it.
  await eraseResponses(erased.id, true).catch((error: Error) => {
    const { name } = erased;
    throw new AccountError(`${email} is ${name} now, but may have stored responses; delete ${name}: ${error.message}`);
  });
  await requestLog.erase(erased.id);
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
