// The log of everything that was asked: what its readers ask for and are given. Served requests are lines of the journal;
// those that were refused or failed have a file of their own.
import type { RefusalName } from "./refusals.ts";
import type { AccountId, Course, KeyId, Ms } from "./types.ts";

/** `left`: its client was gone before a byte of the reply. */
export type FailedReason = RefusalName | "left";

/** A request that was refused or failed. */
export type FailedRow = Readonly<{
  requestId: string;
  /** When it ended. */
  at: Ms;
  /** 0: nobody's, since no key was known. */
  account: AccountId;
  key: KeyId;
  endpoint: string;
  /** Empty where the body was not read. */
  model: string;
  /** Of the reply's headers: 200 where it failed in the middle. */
  status: number;
  reason: FailedReason;
  /** Why its node failed, in the node's words, for operators alone. */
  cause: string | null;
  course: Course;
  /** Of what was delivered before the failure. */
  input: number;
  output: number;
  /** Others of the same account, model and reason that came after it and have no row. */
  more: number;
}>;

export type FailedBatch = Readonly<{
  rows: readonly FailedRow[];
  /** What was counted on to rows that are written already, by request id. */
  more: readonly (readonly [requestId: string, count: number])[];
  /** Those that are in no row, because too many kinds of them came at once. */
  lost: number;
}>;

/** All of it must fit; null: anything. */
export type LogFilter = Readonly<{
  /** 0: requests without an account. */
  account: AccountId | null;
  key: KeyId | null;
  model: string | null;
  node: string | null;
  endpoint: string | null;
  /** From and to, of the status. */
  status: readonly [from: number, to: number] | null;
  /** "served" and "failed": with or without a reason at all. */
  reason: string | null;
  /** At or after, and before. */
  from: Ms | null;
  to: Ms | null;
  waitMinMs: Ms | null;
  firstTokenMinMs: Ms | null;
  durationMinMs: Ms | null;
  /** Input and output together. */
  tokensMin: number | null;
  billedMin: number | null;
  /** The beginning of a request id, or of the id of its reply. */
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
  status: number;
  /** Null where it was served. */
  reason: string | null;
  cause: string | null;
  input: number;
  cachedInput: number;
  output: number;
  reasoning: number;
  billedTokens: number;
  /** Of a charge: cents for 1,000,000 tokens of input, cached input and output, and their ten-thousandths; else null. */
  inputCents: number | null;
  cachedInputCents: number | null;
  outputCents: number | null;
  inputParts: number | null;
  cachedInputParts: number | null;
  outputParts: number | null;
  more: number;
}> &
  /** A duration that nobody measured is null. */
  Readonly<{
    node: string | null;
    waitMs: Ms | null;
    sentMs: Ms | null;
    firstTokenMs: Ms | null;
    durationMs: Ms | null;
  }>;

/**
 * Places in the journal and among the failed: what is before them comes next. `served` is a line's number, or its time and
 * billing key ("1790000000000.req_...") where lines have none.
 */
export type LogPlace = Readonly<{ served: number | string; failed: number }>;

export type LogPage = Readonly<{
  /** The newest first. */
  rows: readonly LogRow[];
  /** Null after the last one. There may be more where a page is not full: a search gives up after a while. */
  next: LogPlace | null;
  /** How far back it looked, where it gave up. */
  searchedTo: Ms | null;
  /** Refused and failed ones that are not kept (any more), because there were too many. */
  gone: number;
}>;

export interface RequestLogQueries {
  /** Everything that ended before it is asked counts. Rejects with StoreUnavailable. */
  page(filter: LogFilter, before: LogPlace | null, limit: number): Promise<LogPage>;
}

/** The request id that a text begins: ids of replies hold it behind a prefix of their dialect. Null: it begins none. */
export function requestIdBeginning(text: string): string | null {
  const stem = /^(?:[a-z]+[_-])?([0-9A-Za-z]{6,24})$/.exec(text.trim())?.[1];
  return stem === undefined ? null : `req_${stem}`;
}
