// tollgate end-users export. The audit line comes first.
import { endUsersExport } from "../office/verbs/people.ts";
import type { Invocation } from "./command.ts";
import { readLedger } from "./database-file.ts";
import { perform } from "./perform.ts";
import { inputOf } from "./verb-input.ts";
import { writePieces } from "./written-pieces.ts";

export default function printEndUser(invocation: Invocation): Promise<number> {
  return readLedger(invocation, async (ledger) => {
    const { id, name } = await perform(invocation, endUsersExport, inputOf(endUsersExport, invocation));
    return writePieces(ledger.endUser(id, name));
  });
}
