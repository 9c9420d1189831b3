// tollgate accounts export. The audit line comes first.
import { CommandError } from "../core/expected-error.ts";
import { exportAccount } from "../office/verbs/accounts.ts";
import { exportAccount as exportOfFile } from "../store/backup/account-export.ts";
import { exportAccountOf } from "../store/postgres/account-export.ts";
import type { Invocation } from "./command.ts";
import { readLedger } from "./database-file.ts";
import { perform } from "./perform.ts";
import { inputOf } from "./verb-input.ts";
import { writePieces } from "./written-pieces.ts";

export default async function printAccount(invocation: Invocation): Promise<number> {
  const wanted = inputOf(exportAccount, invocation);
  const { email } = wanted;
  const write = (pieces: Iterable<string> | AsyncIterable<string> | null): Promise<number> => {
    if (pieces === null) throw new CommandError(`no account has the e-mail ${email}`); // it was deleted meanwhile
    return writePieces(pieces);
  };
  return readLedger(
    invocation,
    async (file) => {
      await perform(invocation, exportAccount, wanted);
      return write(exportOfFile(file, email));
    },
    async (database) => {
      await perform(invocation, exportAccount, wanted);
      return write(await exportAccountOf(database, email));
    },
  );
}
