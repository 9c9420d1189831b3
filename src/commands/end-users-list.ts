// tollgate end-users list: reads the database directly, beside a running server.
import { endUserInWords } from "../core/end-user.ts";
import { rowsMaxUsual } from "../office/fields.ts";
import { formatTable } from "../office/table.ts";
import { endUsersList } from "../office/verbs/people.ts";
import type { Invocation } from "./command.ts";
import { readLedger } from "./database-file.ts";
import { perform } from "./perform.ts";
import { inputOf } from "./verb-input.ts";

export default async function listEndUsers(invocation: Invocation): Promise<number> {
  const wanted = inputOf(endUsersList, invocation);
  const { limit = rowsMaxUsual } = wanted;
  const found = await readLedger(invocation, async (ledger) =>
    ledger.endUsers((await perform(invocation, endUsersList, wanted)).id, limit),
  );
  if (invocation.flags["json"] === true) console.log(JSON.stringify(found));
  else {
    console.log(
      formatTable(
        ["end user", "key", "first day", "last day", "tokens that day"],
        found.map(({ name, key, first_day, last_day, used_last_day }) => [
          endUserInWords(name),
          key,
          first_day,
          last_day,
          used_last_day,
        ]),
      ),
    );
  }
  return 0;
}
