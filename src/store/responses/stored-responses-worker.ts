// The Worker that owns the file of stored responses. It works in order, so a call finds whatever was kept before it. It
// is stopped by a message, never terminated.
import { dirname } from "node:path";
import { systemClock } from "../../core/clock.ts";
import type { ConversationAct, ItemPage } from "../../dialects/stored-responses.ts";
import { freeBytesIn, roomInWords } from "../folder/disk-room.ts";
import { diskReserveBytes } from "../../core/limits.ts";
import { storedResponsesExpiryIntervalMs, storedResponsesPauseMs } from "../limits.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { answerCalls, endWorker } from "../../core/workers.ts";
import { messageOf } from "../folder/folder-faults.ts";
import { converse } from "./conversations.ts";
import { unpackKept } from "./kept-text.ts";
import { openStoredResponses } from "./stored-responses-file.ts";
import { type StoredResponseLimits, StoredResponseTable } from "./stored-responses-table.ts";
import { mayRetry } from "../ledger/writer.ts";

/** Expiry works in slices with a pause after each: 480 MiB a minute. */
const storedResponsesExpirySliceBytes = 8 * 1024 * 1024;

/** What the Worker is called for; the result depends on it. Its news is why responses could not expire. */
export type ResponsesCall =
  | Readonly<{ order: "open"; file: string; limits: StoredResponseLimits }>
  /** `packed`: see kept-text.ts. */
  | Readonly<{ order: "keep"; packed: string }>
  | Readonly<{ order: "find"; account: AccountId; previousId: string | null; itemIds: readonly string[] }>
  | Readonly<{ order: "input"; account: AccountId; id: string; page: ItemPage }>
  | Readonly<{ order: "response" | "delete"; account: AccountId; id: string }>
  | Readonly<{ order: "converse"; account: AccountId; id: string; act: ConversationAct }>
  | Readonly<{ order: "limits"; limits: StoredResponseLimits }>
  /** `forEver`: nothing more is kept for it, by whichever gateway. */
  | Readonly<{ order: "erase"; account: AccountId; forEver: boolean }>
  | Readonly<{ order: "close" }>;

declare const self: Worker;

let file: string;
let database: ReturnType<typeof openStoredResponses> | null = null;
let table: StoredResponseTable;
let expiry: Timer | null = null;

const { news } = answerCalls<ResponsesCall>(self, (order) => {
  const now = systemClock.wall();
  switch (order.order) {
    case "open":
      file = order.file;
      database = openStoredResponses(file);
      table = new StoredResponseTable(database, order.limits);
      expireIn(storedResponsesPauseMs);
      return null;
    case "keep":
      leaveReserve();
      return table.keepAll(unpackKept(order.packed), now);
    case "converse":
      if ("body" in order.act) leaveReserve();
      return converse(order, table, now);
    case "find":
      return table.find(order.account, order.previousId, order.itemIds, now);
    case "input":
      return table.input(order.account, order.id, order.page, now);
    case "response":
    case "delete":
      return table[order.order](order.account, order.id, now);
    case "limits":
      table.limits = order.limits;
      return null;
    case "erase":
      return table.erase(order.account);
    case "close":
      // First, because a stop waits for that end, and a full disk lets the checkpoint fail: the log then keeps everything
      // until the next start.
      endWorker(self);
      if (expiry !== null) clearTimeout(expiry);
      try {
        database?.run("PRAGMA wal_checkpoint(TRUNCATE)");
      } finally {
        database?.close();
      }
      return null;
    default:
      return order satisfies never;
  }
});

function leaveReserve(): void {
  const free = freeBytesIn(dirname(file));
  if (free === null || free >= diskReserveBytes) return;
  const kept = diskReserveBytes.toLocaleString("en-US");
  throw new Error(`${roomInWords(free)} in ${dirname(file)}, and ${kept} are kept for the ledger`);
}

/** A slice at a time, so that nothing waits for it; the next soon while there is more. */
function expireIn(ms: Ms): void {
  expiry = setTimeout(() => {
    let more = false;
    try {
      more = table.expire(systemClock.wall(), storedResponsesExpirySliceBytes);
    } catch (thrown) {
      // A file that somebody else holds, or a full disk, is tried again; keeping is what tells about those.
      more = mayRetry(thrown);
      if (!more) news(messageOf(thrown));
    }
    expireIn(more ? storedResponsesPauseMs : storedResponsesExpiryIntervalMs);
  }, ms);
}
