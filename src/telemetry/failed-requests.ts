// Keeps refused and failed requests, and from which addresses all came, until that is written (`take`), once a second. A
// refusal costs two map lookups and a push, even in a flood: a request without a row of its own counts on the last similar one.
import type { FailedBatch, FailedRow, RequestAddress } from "../core/request-log.ts";
import { minuteMs } from "../core/activity.ts";
import type { AccountId, Ms } from "../core/types.ts";
import type { RequestRecord } from "./request-record.ts";

/** Rows of a minute, of all accounts on a thread; beyond it, requests count on similar rows. */
export const failedMinuteMax = 1_000;
/** The same for one account. */
export const failedAccountMinuteMax = 60;
/** Pairs of account, reason and model in a minute that get at least one row each. */
export const failedKindsMax = 1_000;

/** Beyond it, requests of a second have no address. */
const addressesMax = 50_000;

/** A copy goes out: rows that were taken are counted on by their ids. */
type Kept = { -readonly [Name in keyof FailedRow]: FailedRow[Name] };
type Like = { readonly row: Kept; taken: boolean };

export class FailedRequests {
  #rows: Kept[] = [];
  #addresses: RequestAddress[] = [];
  /** The last row of an account, reason and model, on which similar requests count. */
  readonly #like = new Map<string, Like>();
  /** For rows that were already taken. */
  #more = new Map<string, number>();
  #minute = -1;
  #inMinute = 0;
  readonly #ofAccount = new Map<AccountId, number>();
  #lost = 0;

  /** A request ended in a refusal or failure. False where it has no row of its own. */
  add(record: RequestRecord): boolean {
    const { arrivedWall, arrivedAt, requestId, endpoint, usage, status } = record;
    const endedAt = record.endedAt ?? arrivedAt;
    const at = arrivedWall + Math.round(endedAt - arrivedAt);
    const account = record.account ?? 0;
    const reason = record.refusal ?? "left";
    const model = record.model?.id ?? "";
    const kind = `${account} ${reason} ${model}`;
    this.#beginMinute(endedAt);
    const like = this.#like.get(kind);
    // The first of its kind in a minute always has a row, on which the others count.
    if (!this.#hasRoom(account) && (like !== undefined || this.#like.size >= failedKindsMax)) {
      if (like === undefined) this.#lost += 1;
      else this.#countOn(like);
      return false;
    }
    const row: Kept = {
      requestId,
      at,
      account,
      key: record.key ?? 1,
      endpoint,
      model,
      status: status ?? 0,
      reason,
      cause: record.cause,
      course: record.course(endedAt),
      input: usage === null ? 0 : usage.inputFresh + usage.inputCached,
      output: usage?.output ?? 0,
      more: 0,
    };
    this.#rows.push(row);
    this.served(record);
    this.#like.set(kind, { row, taken: false });
    return true;
  }

  /** A request came that has a row of its own, here or in the journal. */
  served({ requestId, account, key, address }: RequestRecord): void {
    if (address === null || this.#addresses.length === addressesMax) return;
    this.#addresses.push([requestId, account ?? 0, key ?? 1, address]);
  }

  take(): FailedBatch {
    const addresses = this.#addresses.length === 0 ? {} : { addresses: this.#addresses };
    const batch = { rows: this.#rows, more: [...this.#more], lost: this.#lost, ...addresses };
    if (this.#addresses.length > 0) this.#addresses = [];
    this.#lost = 0;
    if (batch.rows.length > 0) this.#rows = [];
    if (batch.more.length > 0) this.#more = new Map();
    if (batch.rows.length > 0) for (const like of this.#like.values()) like.taken = true;
    return batch;
  }

  #countOn({ row, taken }: Like): void {
    if (taken) this.#more.set(row.requestId, (this.#more.get(row.requestId) ?? 0) + 1);
    else row.more += 1;
  }

  #beginMinute(now: Ms): void {
    const minute = Math.floor(now / minuteMs);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.#inMinute = 0;
    this.#ofAccount.clear();
    this.#like.clear();
  }

  #hasRoom(account: AccountId): boolean {
    const ofAccount = this.#ofAccount.get(account) ?? 0;
    if (ofAccount >= failedAccountMinuteMax || this.#inMinute >= failedMinuteMax) return false;
    this.#inMinute += 1;
    this.#ofAccount.set(account, ofAccount + 1);
    return true;
  }
}
