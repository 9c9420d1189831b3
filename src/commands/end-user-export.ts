// tollgate end-users export. The audit line comes first.
import { endUsersExport } from "../office/verbs/people.ts";
import { exportEndUser } from "../store/backup/end-users.ts";
import { exportEndUserOf } from "../store/postgres/account-export.ts";
import type { Invocation } from "./command.ts";
import { readLedger } from "./database-file.ts";
import { perform } from "./perform.ts";
import { inputOf } from "./verb-input.ts";
import { writePieces } from "./written-pieces.ts";

export default async function printEndUser(invocation: Invocation): Promise<number> {
  const note = () => perform(invocation, endUsersExport, inputOf(endUsersExport, invocation));
  return readLedger(
    invocation,
    async (file) => {
      const found = await note();
      return writePieces(exportEndUser(file, found.id, found.name));
    },
    async (database) => {
      const found = await note();
      return writePieces(exportEndUserOf(database, found.id, found.name));
    },
  );
}
