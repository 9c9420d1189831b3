// The request log: all of it for operators, refused and failed requests for their own account.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, nullable, time, wholeText } from "./shapes.ts";

const filterText = () => Type.Optional(Type.String({ maxLength: 300 }));
const logPlace = () => Type.Optional(Type.String({ pattern: "^[0-9]{1,16}-[0-9]{1,16}$", description: "a place" }));

/** A row must match all of it. All values are text, as in any address. */
export const LogFilter = Type.Object(
  {
    /** An e-mail address, or "nobody" for requests without a known key. */
    account: filterText(),
    /** The name of one of the account's keys. */
    key: filterText(),
    model: filterText(),
    node: filterText(),
    endpoint: filterText(),
    /** "429", "4xx". */
    status: filterText(),
    /** A reason, "served" (none), "failed" (any), "refused" (of a 4xx), "broken" (of a 5xx), or "charged": what reports count. */
    reason: filterText(),
    /** The client's. */
    address: filterText(),
    /** By name; of what was charged alone. */
    end_user: filterText(),
    priority: filterText(),
    from: filterText(),
    to: filterText(),
    wait_min_ms: filterText(),
    first_token_min_ms: filterText(),
    duration_min_ms: filterText(),
    tokens_min: filterText(),
    billed_min: filterText(),
    /** The beginning of a request id. */
    request_id: filterText(),
  },
  closed,
);
export type LogFilter = Static<typeof LogFilter>;

export const LogQuery = Type.Object(
  {
    ...LogFilter.properties,
    after: logPlace(),
    /** At most 100; 50 if absent. */
    limit: Type.Optional(wholeText()),
  },
  closed,
);

const measured = () => nullable(count());

export const RequestRow = Type.Object({
  time: time(),
  request_id: Type.String(),
  /** E-mail address; null: the key was unknown. */
  account: nullable(Type.String()),
  account_id: nullable(count()),
  key: nullable(Type.String()),
  endpoint: Type.String(),
  /** Empty: the body was not read. */
  model: Type.String(),
  /** The one that was asked for, if the model stood in for it. */
  asked_model: nullable(Type.String()),
  /** Sorted, with commas between; null: it has none. */
  tags: nullable(Type.String()),
  cost_center: nullable(Type.String()),
  node: nullable(Type.String()),
  /** The client's; null: unknown, or not kept anymore. */
  address: nullable(Type.String()),
  /** Its class in line. */
  priority: Type.String(),
  /** The status that was sent: a reply that failed midway has 200 and a reason. */
  status: count(),
  /** Null: it was served. `why` is the same in plain words. */
  reason: nullable(Type.String()),
  why: nullable(Type.String()),
  /** What its node reported, if the node failed. */
  cause: nullable(Type.String()),
  /** For nodes, over all rounds. Null, here and below: not measured. */
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
  /** How the charge was computed, at the prices of that time; null: nothing was charged. */
  sum: nullable(Type.String()),
  /** Similar requests of the same minute that have no row of their own. */
  more: count(),
});
export type RequestRow = Static<typeof RequestRow>;

/** Newest first. Even a page that is not full may have a next one, because a search stops after a while. */
export const LogPage = Type.Object({
  rows: Type.Array(RequestRow),
  next: nullable(Type.String()),
  /** How far back the search went before it stopped; null: it did not stop early. */
  searched_to: nullable(time()),
  /** Refused and failed requests that were too many to keep. */
  gone: count(),
  /** The choices of the filters. */
  models: Type.Array(Type.String()),
  nodes: Type.Array(Type.String()),
  reasons: Type.Array(Type.String()),
});
export type LogPage = Static<typeof LogPage>;

export const RefusalsQuery = Type.Object({ after: logPlace(), limit: Type.Optional(wholeText()) }, closed);

/** The account's own requests that were refused or failed recently, newest first. */
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
      why: Type.String(),
      more: count(),
    }),
  ),
  next: nullable(Type.String()),
});
export type RefusalsPage = Static<typeof RefusalsPage>;
