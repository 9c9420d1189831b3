// Takes away who an account was, wherever it is kept.
import type { ErasedAccount } from "../account/accounts.ts";
import type { InSameCommit } from "../account/journal.ts";
import { CommandError } from "../core/expected-error.ts";
import type { AccountId } from "../core/types.ts";
import type { Work } from "./work.ts";

/** For the audit log. The e-mail must be forgotten, so the entry must not contain it. */
export const erasedDetail = ({ erasedInWords }: Pick<Work, "erasedInWords">): string =>
  `its ${erasedInWords} and stored responses were erased`;

/** Throws AccountError while a request of it is open. */
export async function eraseAccount(
  {
    accounts,
    sessions,
    eraseResponses,
    requestLog,
  }: Pick<Work, "accounts" | "sessions" | "eraseResponses" | "requestLog">,
  email: string,
  inSameCommit: InSameCommit,
): Promise<ErasedAccount> {
  const before = async (account: AccountId): Promise<void> => {
    await sessions.endAll(account, null);
    await eraseResponses(account, false); // the account may still stay, with all that it stores
  };
  const erased = await accounts.erase(email, before, inSameCommit);
  const { id, name } = erased;
  // A request that ended when the first look was taken may have kept its response after it.
  await eraseResponses(id, true).catch(({ message }: Error) => {
    throw new CommandError(`${email} is ${name} now, but may have stored responses; delete ${name}: ${message}`);
  });
  await requestLog.erase(id);
  return erased;
}
