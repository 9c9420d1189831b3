// What the commands do to a data folder, once for both ways there: through the socket of a running server, or on the
// folder itself while no server runs. Arguments and results are JSON.
import {
  AccountError,
  type AccountView,
  type CreatedAccount,
  type ErasedAccount,
  type NewAccount,
} from "../account/accounts.ts";
import { type AuditAction, type AuditEntry, theServer } from "../account/audit.ts";
import type { Alongside } from "../account/journal.ts";
import type { UsageRow } from "../account/records.ts";
import type { Accounting } from "../accounting.ts";
import { systemClock } from "../clock.ts";
import type { AccountId } from "../types.ts";

/** Tells how far a long operation is, as one line of words. */
export type Progress = (line: string) => void;

export type Work = Pick<Accounting, "accounts" | "auditLog" | "backup" | "sessions"> &
  Readonly<{
    /** Removes the stored responses of an account, wherever they are. */
    /** `forEver`: none of that account are kept any more. */
    eraseResponses(account: AccountId, forEver: boolean): Promise<void>;
  }>;

export type CreditedView = AccountView & Readonly<{ credited: boolean }>;
export type RotatedKey = Readonly<{ email: string; api_key: string }>;

export const operations = {
  "accounts create": ({ accounts }: Work, account: NewAccount): Promise<CreatedAccount> => accounts.create(account),

  "accounts list": ({ accounts }: Work, { after, limit }: { after: number; limit: number }) =>
    accounts.list({ after, limit }),

  "accounts show": ({ accounts }: Work, { email }: { email: string }): Promise<AccountView> => accounts.show(email),

  async "accounts plan"({ accounts }: Work, { email, plan }: { email: string; plan: string }): Promise<AccountView> {
    await accounts.changePlan(email, plan);
    return accounts.show(email);
  },

  async "accounts credit"(
    { accounts }: Work,
    { email, tokens, reference }: { email: string; tokens: number; reference?: string },
  ): Promise<CreditedView> {
    const { credited } = await accounts.addCredit(email, tokens, reference);
    const account = await accounts.show(email);
    const owner = credited || reference === undefined ? null : accounts.creditedTo(reference);
    if (owner !== null && owner.id !== account.id) {
      throw new AccountError(`nothing was added: the reference ${reference} was credited to ${owner.email}`);
    }
    return { ...account, credited };
  },

  /** Writes down that its data is being given out, which the command itself does. */
  async "accounts export"({ accounts, auditLog }: Work, { email }: { email: string }): Promise<null> {
    const { id } = await accounts.show(email);
    await auditLog.note(byCommand("account.export", id, ""));
    return null;
  },

  async "accounts delete"(work: Work, { email }: { email: string }): Promise<ErasedAccount> {
    const { id } = await work.accounts.show(email);
    // The e-mail is to be forgotten, so that the entry must not have it.
    const detail = "its e-mail, key, password, sessions, notes and stored responses were erased";
    return eraseAccount(work, email, () => work.auditLog.append(byCommand("account.delete", id, detail)));
  },

  async "keys rotate"({ accounts }: Work, { email }: { email: string }): Promise<RotatedKey> {
    return { email, ...(await accounts.rotateKey(email)) };
  },

  usage: ({ accounts }: Work, { email, limit }: { email: string; limit: number }): Promise<readonly UsageRow[]> =>
    accounts.usage(email, limit),

  /** `file` is absolute: the server's working folder may be another. */
  backup: ({ backup }: Work, { file }: { file: string }, progress: Progress) => backup(file, progress),
} as const;

const byCommand = (action: AuditAction, subject: AccountId, detail: string): Omit<AuditEntry, "id"> => ({
  at: systemClock.wall(),
  operator: theServer,
  address: "command line",
  action,
  subject,
  detail,
});

/** Takes away who the account was, wherever it is kept. Throws AccountError while a request of it is open. */
export async function eraseAccount(
  { accounts, sessions, eraseResponses }: Pick<Work, "accounts" | "sessions" | "eraseResponses">,
  email: string,
  alongside?: Alongside,
): Promise<ErasedAccount> {
  const before = async (account: AccountId): Promise<void> => {
    await sessions.endAll(account, null);
    await eraseResponses(account, false); // the account may still stay, with all that it stores
  };
  const erased = await accounts.erase(email, before, alongside);
  // A request that ended when the first look was taken may have kept its response after it.
  await eraseResponses(erased.id, true).catch((error: Error) => {
    const { name } = erased;
    throw new AccountError(`${email} is ${name} now, but may have stored responses; delete ${name}: ${error.message}`);
  });
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
  work: Work,
  given: OperationArguments<Name>,
  progress: Progress,
): Promise<OperationResult<Name>> {
  const operation = operations[name] as (work: Work, given: unknown, progress: Progress) => Promise<unknown>;
  return (await operation(work, given, progress)) as OperationResult<Name>;
}
