// An account's usage: rows, filters and sums.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, keyEnding, nullable, time, wholeText } from "./shapes.ts";

export const UsageRow = Type.Object({
  time: time(),
  request_id: Type.String(),
  endpoint: Type.String(),
  model: Type.String(),
  /** All input tokens of the model, cached ones included. */
  input: count(),
  cached_input: count(),
  output: count(),
  /** A part of output. */
  reasoning: count(),
  billed_tokens: count(),
  cost_usd: Type.Number(),
  /** True where the node gave no usable usage and the gateway counted by itself. */
  estimated: Type.Boolean(),
  /** The name of the key that it was asked by; "playground" for a signed-in browser. */
  key: Type.String(),
  /** For whom the key's program asked; null where it did not say, may not, or that was erased. */
  end_user: nullable(Type.String()),
});
export type UsageRow = Static<typeof UsageRow>;

export const UsageFilter = Type.Object(
  {
    model: Type.Optional(Type.String({ maxLength: 200 })),
    /** As a row of the list names it. */
    endpoint: Type.Optional(Type.String({ maxLength: 200 })),
    /** The number of a key, as the summary names it. */
    key: Type.Optional(Type.String({ pattern: "^[0-9]{0,15}$", description: "the number of a key" })),
    /** The whole name of an end user. */
    end_user: Type.Optional(Type.String({ maxLength: 200 })),
    /** At or after. A day such as 2026-03-28 means its first moment in UTC. */
    from: Type.Optional(time()),
    /** Before. */
    to: Type.Optional(time()),
    /**
     * A part of a model's id in any case, or the first ten or more characters of a request id or of the id of a reply
     * (behind the prefix of its dialect, as chatcmpl-). Every character stands for itself.
     */
    text: Type.Optional(Type.String({ maxLength: 200 })),
  },
  closed,
);
export type UsageFilter = Static<typeof UsageFilter>;

export const UsageQuery = Type.Object(
  {
    ...UsageFilter.properties,
    /** `next` of the page before. */
    after: Type.Optional(
      Type.String({ maxLength: 64, pattern: "^[0-9]+-[0-9A-Za-z_]+$", description: "the `next` of a page" }),
    ),
    /** At most 200; 50 where it is absent. */
    limit: Type.Optional(wholeText()),
  },
  closed,
);
export type UsageQuery = Static<typeof UsageQuery>;

/** Newest first. `next` is null on the last page. */
export const UsagePage = Type.Object({ rows: Type.Array(UsageRow), next: nullable(Type.String()) });
export type UsagePage = Static<typeof UsagePage>;

export const UsageSum = Type.Object({
  requests: count(),
  input: count(),
  cached_input: count(),
  output: count(),
  reasoning: count(),
  billed_tokens: count(),
  cost_usd: Type.Number(),
});
export type UsageSum = Static<typeof UsageSum>;

/** The last 30 days in UTC, today included. Days and models without a reply are absent from `days`. */
export const UsageSummary = Type.Object({
  from: time(),
  /** Name of a day, 2026-03-28. Ascending. */
  days: Type.Array(Type.Intersect([Type.Object({ day: Type.String(), model: Type.String() }), UsageSum])),
  days30: UsageSum,
  all_time: UsageSum,
  /** Models, endpoints and keys that the account ever used, for the filters. */
  models: Type.Array(Type.String()),
  endpoints: Type.Array(Type.String()),
  keys: Type.Array(Type.Object({ id: count(), name: Type.String(), ending: keyEnding() })),
  /**
   * For whom the account's programs asked in those days: those who cost most first, at most 50. `name` is null where it was
   * erased, and empty where a program that may name people named nobody.
   */
  end_users: Type.Array(Type.Intersect([Type.Object({ name: nullable(Type.String()), key: Type.String() }), UsageSum])),
});
export type UsageSummary = Static<typeof UsageSummary>;
