// An account's data as a whole: how the console hands it out and has it erased. Both are done as the commands
// `accounts export` and `accounts delete` do them.
import type { Alongside } from "../account/journal.ts";
import type { AccountRecord } from "../account/records.ts";
import { dayName, dayOf } from "../account/quota.ts";
import type { Ms } from "../types.ts";
import { privateHeaders } from "./reply.ts";
import { fail, type Failure } from "./route.ts";

export interface AccountData {
  /**
   * JSON of everything that is kept of the account. Null: too many are being made, or one of this account is not read
   * yet. Rejects with StoreUnavailable.
   */
  export(account: AccountRecord): Promise<ReadableStream<Uint8Array> | null>;
  /** Takes away who it was; resolves with the name that stands there from then on. Throws AccountError. */
  erase(account: AccountRecord, alongside: Alongside): Promise<string>;
}

/** Seconds after which an export that was turned away may be asked for again. */
const exportRetrySeconds = 10;

/** The account's data as a download. */
export async function exportReply(data: AccountData, account: AccountRecord, now: Ms): Promise<Response | Failure> {
  const body = await data.export(account);
  if (body === null) {
    return fail("busy", "Data is being exported already. Try again when that is done.", exportRetrySeconds);
  }
  return new Response(body, {
    headers: {
      ...privateHeaders,
      "content-type": "application/json; charset=utf-8",
      "content-disposition": `attachment; filename="tollgate-account-${account.id}-${dayName(dayOf(now))}.json"`,
    },
  });
}
