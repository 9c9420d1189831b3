// Exports all data of an account for the console, exactly as the command `accounts export` does.
import type { AccountRecord } from "../account/records.ts";
import { dayName, dayOf } from "../account/money/quota.ts";
import type { AccountId, Ms } from "../core/types.ts";
import { privateHeaders } from "./reply.ts";
import { fail, type Failure } from "./routes/route.ts";

/** No export now: others are running, the last one was not read to its end, or there were too many. */
export type NoExport = Readonly<{ noExport: "busy" | "too_many"; retrySeconds: number }>;

export interface AccountData {
  /** JSON of everything that is kept about the account, for the account `asking`. Rejects with StoreUnavailable. */
  export(account: AccountRecord, asking: AccountId): Promise<ReadableStream<Uint8Array> | NoExport>;
}

export async function exportReply(
  data: AccountData,
  account: AccountRecord,
  asking: AccountId,
  now: Ms,
): Promise<Response | Failure> {
  const body = await data.export(account, asking);
  if (!(body instanceof ReadableStream)) {
    const { noExport, retrySeconds } = body;
    return noExport === "busy"
      ? fail("busy", "An export is already running. Try again when it is done.", retrySeconds)
      : fail("too_many_attempts", "This account's data was exported too often. Try again later.", retrySeconds);
  }
  return new Response(body, {
    headers: {
      ...privateHeaders,
      "content-type": "application/json; charset=utf-8",
      "content-disposition": `attachment; filename="tollgate-account-${account.id}-${dayName(dayOf(now))}.json"`,
    },
  });
}
