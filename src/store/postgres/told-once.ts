// Notices that one gateway sends for all: the first to claim an occurrence reports it.
import type { Ms } from "../../core/types.ts";
import { statement } from "../questions.ts";
import type { Database } from "./database.ts";

const now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const forget = statement(
  "forget told",
  `DELETE FROM jobs WHERE (name LIKE 'told %' OR name LIKE 'batch %') AND until < ${now}`,
);
const take = statement(
  "take told",
  `INSERT INTO jobs (name, holder, until) VALUES ('told ' || $1::text, $2::text, ${now} + $3::text::bigint)
   ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
   WHERE jobs.holder <> excluded.holder RETURNING 1 AS taken`,
);

/**
 * Whether this gateway is the first to report this `occurrence` of `name`, within `forMs` after another one. Rejects with
 * StoreUnavailable.
 */
export type TellOnce = (name: string, occurrence: string, forMs: Ms) => Promise<boolean>;

export const tellOnceOn =
  (database: Database): TellOnce =>
  (name, occurrence, forMs) =>
    database.change(async (send) => {
      await send(forget);
      return (await send(take, name, occurrence, forMs)).length > 0;
    });
