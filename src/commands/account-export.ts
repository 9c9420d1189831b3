// tollgate accounts export. The audit line comes first.
import { CommandError } from "../core/expected-error.ts";
import { exportAccount } from "../office/verbs/accounts.ts";
import type { Invocation } from "./command.ts";
import { readLedger } from "./database-file.ts";
import { perform } from "./perform.ts";
import { inputOf } from "./verb-input.ts";
import { writePieces } from "./written-pieces.ts";

export default function printAccount(invocation: Invocation): Promise<number> {
  const wanted = inputOf(exportAccount, invocation);
  return readLedger(invocation, async (ledger) => {
    await perform(invocation, exportAccount, wanted);
    const pieces = await ledger.account(wanted.email);
    if (pieces === null) throw new CommandError(`no account has the e-mail ${wanted.email}`); // it was deleted meanwhile
    return writePieces(pieces);
  });
}
