// Work that one gateway does for all: who gets a job's row has it until a time by the server's clock, and gives it up by taking
// it again for no time.
import type { Ms } from "../../core/types.ts";
import { statement } from "../questions.ts";
import type { Database } from "./database.ts";

const now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const take = statement(
  "take job",
  `INSERT INTO jobs (name, holder, until) VALUES ($1::text, $2::text, ${now} + $3::text::bigint)
   ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
   WHERE jobs.until <= ${now} OR jobs.holder = excluded.holder RETURNING 1 AS taken`,
);

/** `holder`: of one life of a gateway's process. Rejects with StoreUnavailable. */
export const takeJob = (database: Database, name: string, holder: string, forMs: Ms): Promise<boolean> =>
  database.change(async (send) => (await send(take, name, holder, forMs)).length > 0);

/** Takes or keeps what one gateway does for all, for so long. */
export type Lease = (name: string, forMs: Ms) => Promise<boolean>;
export const leaseOn =
  (database: Database, holder: string): Lease =>
  (name, forMs) =>
    takeJob(database, name, holder, forMs);
