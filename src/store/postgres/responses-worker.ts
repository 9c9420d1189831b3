// The Worker that reads and writes stored responses in PostgreSQL. Conversations of many megabytes come and go here, beside
// the main thread. What is asked of them is found out as with SQLite: by the same code, on what was read, in memory.
import { systemClock } from "../../core/clock.ts";
import { storedResponsesExpiryIntervalMs, storedResponsesPauseMs } from "../limits.ts";
import { answerCalls, endWorker } from "../../core/workers.ts";
import { converse } from "../responses/conversations.ts";
import { unpackKept } from "../responses/kept-text.ts";
import type { StoredResponseLimits } from "../responses/stored-responses-table.ts";
import type { ResponsesCall } from "../responses/stored-responses-worker.ts";
import { PostgresServer } from "./connection.ts";
import { Database } from "./database.ts";
import { responsesConnectionsMax } from "./limits.ts";
import { ResponseTables } from "./response-tables.ts";

declare const self: Worker;

let database: Database | null = null;
let tables: ResponseTables;
let expiry: Timer | null = null;
/** Keeps that are under way, but for accounts that others have locked: what is asked after them finds what they kept. */
let keeping: Promise<unknown> = Promise.resolve();

const { news } = answerCalls<ResponsesCall>(self, (order, progress) => {
  const now = systemClock.wall();
  switch (order.order) {
    case "open":
      open(order.file, order.limits);
      return null;
    case "keep": {
      const others = Promise.withResolvers<void>();
      const kept = tables.keepAll(unpackKept(order.packed), now, () => {
        progress(null);
        others.resolve();
      });
      keeping = Promise.allSettled([keeping, Promise.race([kept, others.promise])]);
      return kept;
    }
    case "converse":
      return keeping.then(() => converse(order, tables, now));
    case "find":
      return keeping.then(() => tables.find(order.account, order.previousId, order.itemIds, now));
    case "input":
      return keeping.then(() => tables.input(order.account, order.id, order.page, now));
    case "response":
      return keeping.then(() => tables.response(order.account, order.id, now));
    case "delete":
      return keeping.then(() => tables.delete(order.account, order.id, now));
    case "limits":
      tables.limits = order.limits;
      return null;
    case "erase":
      return keeping.then(() => tables.erase(order.account, order.forEver));
    case "close":
      endWorker(self);
      if (expiry !== null) clearTimeout(expiry);
      expiry = null;
      return keeping.then(() => database?.close());
    default:
      return order satisfies never;
  }
});

function open(url: string, limits: StoredResponseLimits): void {
  database = new Database(new PostgresServer(url), undefined, responsesConnectionsMax);
  tables = new ResponseTables(database, limits);
  expireIn(storedResponsesPauseMs);
}

/** A slice at a time; the next soon while there is more. All gateways do it: what one removed, the next does not find. */
function expireIn(ms: number): void {
  expiry = setTimeout(() => {
    void tables
      .expire(systemClock.wall())
      .catch((thrown: unknown) => {
        news(thrown instanceof Error ? thrown.message : String(thrown));
        return false;
      })
      .then((more) => {
        if (expiry !== null) expireIn(more ? storedResponsesPauseMs : storedResponsesExpiryIntervalMs);
      });
  }, ms);
}
