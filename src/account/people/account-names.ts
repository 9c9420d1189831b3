// E-mails of accounts for lists that name many, each looked up once.
import type { AccountId } from "../../core/types.ts";
import type { Office } from "../office.ts";

/** Without those that there are not. */
export async function emailsOf(
  office: Pick<Office, "read">,
  ids: Iterable<AccountId>,
): Promise<ReadonlyMap<AccountId, string>> {
  const distinct = [...new Set(ids)];
  if (distinct.length === 0) return new Map();
  const records = await office.read(({ accounts }) => Promise.all(distinct.map((id) => accounts.record(id))));
  return new Map(records.flatMap((record, at) => (record === null ? [] : [[distinct[at]!, record.email]])));
}

/** What to call the accounts that a list names. */
export async function namesOf(
  office: Pick<Office, "read">,
  ids: Iterable<AccountId>,
): Promise<(account: AccountId) => string> {
  const emails = await emailsOf(office, ids);
  return (account) => emails.get(account) ?? `account ${account}`;
}
