// What the console's live pages show of all gateways together, and what has changed of many accounts, in one read for all who
// look.
import { statement } from "../questions.ts";
import { arrayOf } from "./connection.ts";
import type { Database } from "./database.ts";

/** Open requests and the balance tokens that they hold, over all gateways that are alive. */
export type AllNumbers = Readonly<{ heldTokens: number; openRequests: number; gateways: number }>;

export type Seen = Readonly<{ account: number; session: number }>;

const sums = statement(
  "sums of all gateways",
  `SELECT coalesce(sum(tokens), 0)::float8 AS held_tokens,
     coalesce(sum(CASE WHEN searches = 0 THEN 1 ELSE 0 END), 0)::int AS open_requests,
     (SELECT count(DISTINCT gateway)::int FROM lanes WHERE gone_at IS NULL) AS gateways
   FROM holds`,
);

/** All of an account's row that a page shows, and whether the session is there. */
const marks = statement(
  "marks of accounts",
  `SELECT s.id::float8 AS session, a.id::float8 AS account,
     concat_ws(' ', a.plan, a.credit, a.disabled_at IS NULL, a.held, a.waiting_held, a.begun, a.expected, a.holds,
       a.searches_held, a.allowance_day, a.allowance_used, a.coder_window, a.coder_used, a.searches_day,
       a.searches_used) AS mark
   FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE s.id = ANY($1::text::bigint[])`,
);

export const allGateways = (database: Database) => ({
  async numbers(): Promise<AllNumbers> {
    const [found] =
      await database.ask<Readonly<{ held_tokens: number; open_requests: number; gateways: number }>>(sums);
    const { held_tokens: heldTokens, open_requests: openRequests, gateways } = found!;
    return { heldTokens, openRequests, gateways };
  },

  /** By session: another one as soon as something of its account changed; none where it ended. Rejects with StoreUnavailable. */
  async marks(seen: readonly Seen[]): Promise<ReadonlyMap<number, string>> {
    const ids = arrayOf(seen.map(({ session }) => session));
    const found = await database.ask<Readonly<{ session: number; account: number; mark: string }>>(marks, ids);
    return new Map(found.map(({ session, account, mark }) => [session, `${account} ${mark}`]));
  },
});
