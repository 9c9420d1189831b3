// The log of all requests, as its readers query it. Served requests are lines of the journal; refused and failed ones
// have a file of their own.
import type { Priority } from "./priority.ts";
import type { RefusalName } from "./refusals.ts";
import type { BoughtCredit } from "./report.ts";
import type { AccountId, Course, KeyId, Ms, PlanId } from "./types.ts";

/** `left`: its client left before a byte of the reply. */
export type FailedReason = RefusalName | "left";

export type FailedRow = Readonly<{
  requestId: string;
  /** When it ended. */
  at: Ms;
  /** 0: none, because no key was known. */
  account: AccountId;
  key: KeyId;
  endpoint: string;
  /** Empty where the body was not read. */
  model: string;
  /** From the reply's headers: 200 where it failed in the middle. */
  status: number;
  reason: FailedReason;
  /** Why its node failed, in the node's words, only for operators. */
  cause: string | null;
  course: Course;
  /** Tokens delivered before the failure. */
  input: number;
  output: number;
  /** Later ones of the same account, model and reason without a row of their own. */
  more: number;
}>;

/** Whence a request came; 0: no account. */
export type RequestAddress = readonly [requestId: string, account: AccountId, key: KeyId, address: string];

export type FailedBatch = Readonly<{
  rows: readonly FailedRow[];
  /** Counts for rows that are already written, by request id. */
  more: readonly (readonly [requestId: string, count: number])[];
  /** Requests without a row, because too many kinds came at once. */
  lost: number;
  /** Of served ones, too. Absent: none is known. */
  addresses?: readonly RequestAddress[];
}>;

/** All of it must match; null: anything. */
export type LogFilter = Readonly<{
  /** 0: requests without an account. */
  account: AccountId | null;
  key: KeyId | null;
  model: string | null;
  node: string | null;
  endpoint: string | null;
  status: readonly [from: number, to: number] | null;
  /**
   * "served" and "failed": without and with any reason. "refused" and "broken": with one of a 4xx, and of a 5xx. "charged": those
   * that sums of use count, also where they failed after a part of the reply.
   */
  reason: string | null;
  /** The client's. */
  address: string | null;
  /** By its name; of what was charged alone. */
  endUser: string | null;
  priority: Priority | null;
  /** At or after, and before. */
  from: Ms | null;
  to: Ms | null;
  waitMinMs: Ms | null;
  firstTokenMinMs: Ms | null;
  durationMinMs: Ms | null;
  /** Input and output together. */
  tokensMin: number | null;
  billedMin: number | null;
  /** The beginning of a request id, or of its reply's id. */
  requestId: string | null;
}>;

export const anyRequest: LogFilter = {
  account: null,
  key: null,
  model: null,
  node: null,
  endpoint: null,
  status: null,
  reason: null,
  address: null,
  endUser: null,
  priority: null,
  from: null,
  to: null,
  waitMinMs: null,
  firstTokenMinMs: null,
  durationMinMs: null,
  tokensMin: null,
  billedMin: null,
  requestId: null,
};

export type LogRow = Readonly<{
  requestId: string;
  at: Ms;
  account: AccountId;
  key: KeyId;
  /** Null for the first key and for signed-in browsers. */
  keyName: string | null;
  endpoint: string;
  model: string;
  /** The one that was asked for, where the model stood in for it. */
  askedModel: string | null;
  tags: string | null;
  /** Null for what was not served, too. */
  costCenter: string | null;
  /** The client's; null where it is unknown or too old. */
  address: string | null;
  /** Null: standard. */
  priority: string | null;
  status: number;
  /** Null where it was served. */
  reason: string | null;
  cause: string | null;
  input: number;
  cachedInput: number;
  output: number;
  reasoning: number;
  billedTokens: number;
  /** For a charge: cents per 1,000,000 tokens of input, cached input and output, and their ten-thousandths; otherwise null. */
  inputCents: number | null;
  cachedInputCents: number | null;
  outputCents: number | null;
  inputParts: number | null;
  cachedInputParts: number | null;
  outputParts: number | null;
  more: number;
}> &
  /** A duration that was not measured is null. */
  Readonly<{
    node: string | null;
    waitMs: Ms | null;
    sentMs: Ms | null;
    firstTokenMs: Ms | null;
    durationMs: Ms | null;
  }>;

/**
 * Positions in the journal and among the failed: rows before them come next. `served` is a line's number, or its time
 * and billing key ("1790000000000.req_...") where lines have no numbers.
 */
export type LogPlace = Readonly<{ served: number | string; failed: number }>;

export type LogPage = Readonly<{
  /** Newest first. */
  rows: readonly LogRow[];
  /** Null after the last one. There may be more even where a page is not full, because a search gives up after a while. */
  next: LogPlace | null;
  /** How far back it searched, where it gave up. */
  searchedTo: Ms | null;
  /** Refused and failed requests that are not kept (any more), because there were too many. */
  gone: number;
}>;

export interface RequestLogQueries {
  /** Includes everything that ended before the call. Rejects with StoreUnavailable. */
  page(filter: LogFilter, before: LogPlace | null, limit: number): Promise<LogPage>;
  /** An account's, in the order of their times, at most `limit`. Rejects with StoreUnavailable. */
  credits(account: AccountId, from: Ms, until: Ms, limit: number): Promise<readonly BoughtCredit[]>;
  /** Of keys of an account, whence each was used last, as far as that is kept. Rejects with StoreUnavailable. */
  lastAddresses(account: AccountId, keys: readonly KeyId[]): Promise<ReadonlyMap<KeyId, string>>;
  /** Accounts without credit that have used at least their plan's tokens on that day. Rejects with StoreUnavailable. */
  nearLimit(day: number, limits: readonly (readonly [PlanId, number])[], limit: number): Promise<readonly NearLimit[]>;
}

/** What mail is to tell. */
export interface MailQueries {
  /** What has been used to 80 or 95 %, and no mail was made for. `month`: its first day. Rejects with StoreUnavailable. */
  toTell(day: number, month: number, limits: readonly (readonly [PlanId, number])[]): Promise<readonly UsedPart[]>;
  /** Accounts that get mail, and teams, from before a time, of which no mail is called `before` + id + `after`. */
  untold(before: string, after: string, createdBefore: Ms): Promise<readonly AccountId[]>;
}

/** How much of a limit has been used. */
export type UsedPart = Readonly<{
  /** Of the mail that tells it. */
  once: string;
  what: "allowance" | "credit" | "key" | "member" | "end_user";
  period: "day" | "month" | "purchase";
  account: AccountId;
  /** Whose it is within a team. */
  member: AccountId | null;
  /** Of the key or the end user. */
  name: string;
  percent: number;
  used: number;
  most: number;
}>;

export type NearLimit = Readonly<{ account: AccountId; plan: PlanId; used: number }>;

/** The beginning of a request id in a text: replies' ids have it after their dialect's prefix. Null: none. */
export function requestIdBeginning(text: string): string | null {
  const stem = /^(?:[a-z]+[_-])?([0-9A-Za-z]{6,24})$/.exec(text.trim())?.[1];
  return stem === undefined ? null : `req_${stem}`;
}
