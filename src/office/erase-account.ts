// Takes away who an account was, wherever it is kept.
import type { ErasedAccount } from "../account/accounts.ts";
import type { Unit } from "../account/office.ts";
import { CommandError } from "../core/expected-error.ts";
import type { AccountId } from "../core/types.ts";
import type { Work } from "./work.ts";

/** For the audit log. The e-mail must be forgotten, so the entry must not contain it. */
export const erasedDetail = ({ erasedInWords }: Pick<Work, "erasedInWords">): string =>
  `its ${erasedInWords} and stored responses were erased`;

type Erases = Pick<Work, "office" | "eraseResponses"> & Readonly<{ requestLog: Pick<Work["requestLog"], "erase"> }>;

/** In the units of an erasure: `allowed` throws where it must not begin, and `noted` writes its last step down. */
type Steps = Readonly<{ allowed(unit: Unit): Promise<void>; noted(unit: Unit): void }>;

/**
 * The account is disabled first, and what is kept elsewhere is erased while the e-mail still names it: an erasure that failed
 * can be asked for again. Throws AccountError while a request of it is open.
 */
export async function eraseAccount(
  { office, eraseResponses, requestLog }: Erases,
  id: AccountId,
  { allowed, noted }: Steps,
): Promise<ErasedAccount> {
  const { email } = await office.change(async (unit) => {
    await allowed(unit);
    await unit.accounts.setDisabled(id, true);
    await unit.sessions.endAll(id, null);
    return (await unit.accounts.record(id))!;
  });
  await office.read(({ accounts }) => accounts.checkNothingOpen(id));
  await eraseResponses(id, false); // the account may still stay, with all that it stores
  const erased = await office.change(async (unit) => {
    const done = await unit.accounts.erase(id);
    noted(unit);
    return done;
  });
  const { name } = erased;
  // A request that ended when the first look was taken may have kept its response after it.
  await eraseResponses(id, true).catch(({ message }: Error) => {
    throw new CommandError(`${email} is ${name} now, but may have stored responses; delete ${name}: ${message}`);
  });
  await requestLog.erase(id);
  return erased;
}
