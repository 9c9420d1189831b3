// tollgate accounts list: asks page by page, so that a million accounts do not block a running server.
import type { AccountSummary } from "../account/people/accounts.ts";
import { list } from "../office/verbs/accounts.ts";
import type { Invocation } from "./command.ts";
import { perform } from "./perform.ts";
import { inputOf, tell } from "./verb-input.ts";

const portion = 1_000;

export default async function listAccounts(invocation: Invocation): Promise<number> {
  const { after: first = 0, limit = Number.MAX_SAFE_INTEGER } = inputOf(list, invocation);
  const accounts: AccountSummary[] = [];
  for (let after = first; accounts.length < limit; after = accounts.at(-1)!.id) {
    const asked = Math.min(portion, limit - accounts.length);
    const next = await perform(invocation, list, { after, limit: asked });
    accounts.push(...next);
    if (next.length < asked) break;
  }
  return tell(invocation, list, {}, accounts);
}
