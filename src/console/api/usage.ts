// An account's usage: rows, filters and sums.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, keyEnding, nullable, time, wholeText } from "./shapes.ts";

export const UsageRow = Type.Object({
  time: time(),
  request_id: Type.String(),
  endpoint: Type.String(),
  model: Type.String(),
  /** All input tokens of the model, including cached ones. */
  input: count(),
  cached_input: count(),
  output: count(),
  /** Included in output. */
  reasoning: count(),
  billed_tokens: count(),
  cost_usd: Type.Number(),
  /** True: the node reported no usable usage, so the gateway counted the tokens itself. */
  estimated: Type.Boolean(),
  /** The name of the key; "playground" for a signed-in browser. */
  key: Type.String(),
  /** The end user that the key's program named; null: it named none, may not name any, or the name was erased. */
  end_user: nullable(Type.String()),
});
export type UsageRow = Static<typeof UsageRow>;

export const UsageFilter = Type.Object(
  {
    model: Type.Optional(Type.String({ maxLength: 200 })),
    /** As in the rows of the list. */
    endpoint: Type.Optional(Type.String({ maxLength: 200 })),
    /** The id of a key, as in the summary. */
    key: Type.Optional(Type.String({ pattern: "^[0-9]{0,15}$", description: "the number of a key" })),
    /** The full name of an end user. */
    end_user: Type.Optional(Type.String({ maxLength: 200 })),
    /** At or after. A day such as 2026-03-28 means its first moment in UTC. */
    from: Type.Optional(time()),
    /** Before. */
    to: Type.Optional(time()),
    /** Part of a model's id, or ten or more characters of a request or reply id (no prefix such as chatcmpl-). */
    text: Type.Optional(Type.String({ maxLength: 200 })),
  },
  closed,
);
export type UsageFilter = Static<typeof UsageFilter>;

export const UsageQuery = Type.Object(
  {
    ...UsageFilter.properties,
    /** `next` of the previous page. */
    after: Type.Optional(
      Type.String({ maxLength: 64, pattern: "^[0-9]+-[0-9A-Za-z_]+$", description: "the `next` of a page" }),
    ),
    /** At most 200; 50 if absent. */
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

/** The last 30 days in UTC, including today. `days` leaves out days and models without a reply. */
export const UsageSummary = Type.Object({
  from: time(),
  /** `day` is a name such as 2026-03-28; ascending. */
  days: Type.Array(Type.Intersect([Type.Object({ day: Type.String(), model: Type.String() }), UsageSum])),
  days30: UsageSum,
  all_time: UsageSum,
  /** All models, endpoints and keys that the account ever used, for the filters. */
  models: Type.Array(Type.String()),
  endpoints: Type.Array(Type.String()),
  keys: Type.Array(Type.Object({ id: count(), name: Type.String(), ending: keyEnding() })),
  /** The end users of those days, most expensive first, at most 50. `name` null: erased; empty: none was named. */
  end_users: Type.Array(Type.Intersect([Type.Object({ name: nullable(Type.String()), key: Type.String() }), UsageSum])),
});
export type UsageSummary = Static<typeof UsageSummary>;
