// Folds old lines of the journal into sums by day, so that it does not grow forever. Lines are folded in order and
// never come back; the sums are exact to the token. Two kinds of lines stay: purchases, whose references must be
// recognized if one comes again, and the newest line, because the next one's number follows it.
import type { Database } from "bun:sqlite";
import { dayMs } from "../../core/units.ts";
import type { Ms } from "../../core/types.ts";
import type { RowOf } from "./schema.ts";

type Line = Pick<RowOf<"journal">, "sequence" | "at" | "billing_key">;

const sums = "lines, used, credit_delta, input_fresh, input_cached, output, reasoning, billed_tokens";
const costCenterSums = "lines, input_fresh, input_cached, output, billed_tokens";
const added = (sums: string): string =>
  sums
    .split(", ")
    .map((column) => `${column} = ${column} + excluded.${column}`)
    .join(", ");

export class Folding {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Database) {
    this.#statements = prepare(database);
  }

  /** Whether the oldest line that is not folded is from before that moment, or a name from before it is left. */
  hasWork(before: Ms): boolean {
    return this.#oldest(before, 1).length > 0 || this.#statements.oldEndUser.get(Math.floor(before / dayMs)) !== null;
  }

  /** Within a transaction. Says whether there may be more. */
  fold(before: Ms, linesMax: number): boolean {
    const { add, addCostCenters, remove, setFolded, folded } = this.#statements;
    const old = this.#oldest(before, linesMax);
    const last = old.at(-1);
    if (last === undefined) return this.#forgetEndUsers(before, linesMax);
    const after = folded.get()!.sequence;
    add.run(after, last.sequence);
    addCostCenters.run(after, last.sequence);
    remove.run(after, last.sequence);
    setFolded.run(last.sequence, last.billing_key, last.at);
    return old.length === linesMax || this.#forgetEndUsers(before, linesMax);
  }

  /** Sums do not say for whom: names go with their last lines. An account's last number stays taken. */
  #forgetEndUsers(before: Ms, namesMax: number): boolean {
    const { removeEndUsers, eraseLastEndUsers } = this.#statements;
    const day = Math.floor(before / dayMs);
    if (removeEndUsers.run(day, namesMax).changes === namesMax) return true;
    eraseLastEndUsers.run(day);
    return false;
  }

  /** The oldest lines in order, up to the first that is too young. Purchases are among them. */
  #oldest(before: Ms, linesMax: number): Line[] {
    const { folded, lines } = this.#statements;
    const next = lines.all(folded.get()!.sequence, linesMax + 1);
    const young = next.findIndex(({ at }) => at >= before);
    // The last of those that were read is left: it is too many, or the newest of all.
    return next.slice(0, young === -1 ? next.length - 1 : Math.min(young, linesMax));
  }
}

function prepare(database: Database) {
  const range = "sequence > ?1 AND sequence <= ?2 AND kind <> 'credit'";
  return {
    folded: database.prepare<{ sequence: number }, []>("SELECT sequence FROM journal_folded"),
    lines: database.prepare<Line, [after: number, limit: number]>(
      "SELECT sequence, at, billing_key FROM journal WHERE sequence > ? ORDER BY sequence LIMIT ?",
    ),
    add: database.prepare<unknown, [after: number, last: number]>(`
      INSERT INTO journal_folds (account_id, day, kind, period, model, endpoint, key_id, ${sums})
      SELECT account_id, at / ${dayMs}, kind, period, coalesce(model, ''), coalesce(endpoint, ''), key_id, count(*), sum(used),
        sum(credit_delta), coalesce(sum(input_fresh), 0), coalesce(sum(input_cached), 0),
        coalesce(sum(output), 0), coalesce(sum(reasoning), 0), coalesce(sum(billed_tokens), 0)
      FROM journal WHERE ${range} GROUP BY 1, 2, 3, 4, 5, 6, 7
      ON CONFLICT DO UPDATE SET ${added(sums)}`),
    addCostCenters: database.prepare<unknown, [after: number, last: number]>(`
      INSERT INTO cost_center_folds (account_id, day, model, endpoint, key_id, cost_center, ${costCenterSums})
      SELECT account_id, at / ${dayMs}, model, endpoint, key_id, cost_center, count(*), sum(input_fresh),
        sum(input_cached), sum(output), sum(billed_tokens)
      FROM journal WHERE ${range} AND cost_center IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6
      ON CONFLICT DO UPDATE SET ${added(costCenterSums)}`),
    remove: database.prepare<unknown, [after: number, last: number]>(`DELETE FROM journal WHERE ${range}`),
    oldEndUser: database.prepare<{ id: number }, [day: number]>(
      "SELECT id FROM end_users WHERE last_day < ? AND name IS NOT NULL LIMIT 1",
    ),
    removeEndUsers: database.prepare<unknown, [day: number, limit: number]>(`
      DELETE FROM end_users WHERE (account_id, id) IN (
        SELECT account_id, id FROM end_users AS old WHERE last_day < ?
          AND id < (SELECT max(id) FROM end_users WHERE account_id = old.account_id) LIMIT ?)`),
    eraseLastEndUsers: database.prepare<unknown, [day: number]>(
      "UPDATE end_users SET name = NULL WHERE last_day < ? AND name IS NOT NULL",
    ),
    setFolded: database.prepare<unknown, [sequence: number, billingKey: string, at: Ms]>(
      "UPDATE journal_folded SET sequence = ?, billing_key = ?, at = ?",
    ),
  };
}
