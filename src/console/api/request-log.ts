// The request log: all of it for operators, refused and failed requests for their own account.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, nullable, time, wholeText } from "./shapes.ts";

const filterText = () => Type.Optional(Type.String({ maxLength: 300 }));
const logPlace = () => Type.Optional(Type.String({ pattern: "^[0-9]{1,16}-[0-9]{1,16}$", description: "a place" }));

/** All of it must fit; in an address everything is text. */
export const LogQuery = Type.Object(
  {
    /** An e-mail address, or "nobody" for requests without a known key. */
    account: filterText(),
    /** The name of one of its keys. */
    key: filterText(),
    model: filterText(),
    node: filterText(),
    endpoint: filterText(),
    /** "429", "4xx". */
    status: filterText(),
    /** One of the reasons, or "served" or "failed": without one, or with any. */
    reason: filterText(),
    from: filterText(),
    to: filterText(),
    wait_min_ms: filterText(),
    first_token_min_ms: filterText(),
    duration_min_ms: filterText(),
    tokens_min: filterText(),
    billed_min: filterText(),
    /** The beginning of a request id. */
    request_id: filterText(),
    after: logPlace(),
    /** At most 100; 50 where it is absent. */
    limit: Type.Optional(wholeText()),
  },
  closed,
);

const measured = () => nullable(count());

export const RequestRow = Type.Object({
  /** When it ended. */
  time: time(),
  request_id: Type.String(),
  /** E-mail; null where no key was known. */
  account: nullable(Type.String()),
  account_id: nullable(count()),
  key: nullable(Type.String()),
  endpoint: Type.String(),
  /** Empty where the body was not read. */
  model: Type.String(),
  node: nullable(Type.String()),
  /** Of the reply's headers: one that failed in the middle has 200 and a reason. */
  status: count(),
  /** Null where it was served; `why` says it in plain words. */
  reason: nullable(Type.String()),
  why: nullable(Type.String()),
  /** What its node said of it, where that failed. */
  cause: nullable(Type.String()),
  /** For nodes, all passes together. Null, here and below: that was not measured. */
  wait_ms: measured(),
  /** From its arrival to the first node, to the first token and to its end. */
  sent_ms: measured(),
  first_token_ms: measured(),
  duration_ms: measured(),
  input: count(),
  cached_input: count(),
  output: count(),
  reasoning: count(),
  billed_tokens: count(),
  cost_usd: Type.Number(),
  /** How the balance tokens came about, at the prices of then; null where nothing was charged. */
  sum: nullable(Type.String()),
  /** Others like it, of the same minute, that have no line of their own. */
  more: count(),
});
export type RequestRow = Static<typeof RequestRow>;

/** Newest first. A page that is not full may have a next one: a search gives up after a while. */
export const LogPage = Type.Object({
  rows: Type.Array(RequestRow),
  next: nullable(Type.String()),
  /** How far back was looked, where the search gave up. */
  searched_to: nullable(time()),
  /** Refused and failed ones that are not kept, because there were too many. */
  gone: count(),
  /** What filters may choose from. */
  models: Type.Array(Type.String()),
  nodes: Type.Array(Type.String()),
  reasons: Type.Array(Type.String()),
});
export type LogPage = Static<typeof LogPage>;

export const RefusalsQuery = Type.Object({ after: logPlace(), limit: Type.Optional(wholeText()) }, closed);

/** The account's own requests that were refused or failed in the last days, newest first. */
export const RefusalsPage = Type.Object({
  rows: Type.Array(
    Type.Object({
      time: time(),
      request_id: Type.String(),
      endpoint: Type.String(),
      model: Type.String(),
      key: Type.String(),
      status: count(),
      reason: Type.String(),
      /** The reason in plain words. */
      why: Type.String(),
      more: count(),
    }),
  ),
  next: nullable(Type.String()),
});
export type RefusalsPage = Static<typeof RefusalsPage>;
