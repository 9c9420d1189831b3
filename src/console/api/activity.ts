// Activity over time, for operators.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, nullable, oneOf, time } from "./shapes.ts";

export const ActivityQuery = Type.Object(
  {
    range: oneOf(["1h", "6h", "24h", "7d", "30d", "90d"]),
    /** Each gets a series of its own. */
    by: oneOf(["model", "node", "account", "key"]),
  },
  closed,
);
export type ActivityQuery = Static<typeof ActivityQuery>;

/** In whole milliseconds, accurate to 9 %; null where nothing was measured. */
const durations = () => Type.Array(nullable(count()));

/** One number for each time step, oldest first; in `total`, one for all of them. */
const ActivityFigures = Type.Object({
  requests: Type.Array(count()),
  answered: Type.Array(count()),
  /** With a 4xx status. */
  refused: Type.Array(count()),
  /** With a 5xx status, or cut off. */
  failed: Type.Array(count()),
  /** Their clients disconnected before the end. */
  left: Type.Array(count()),
  /** Input tokens, cached ones included. */
  input: Type.Array(count()),
  cached_input: Type.Array(count()),
  output: Type.Array(count()),
  /** Waits for a slot on a node. */
  wait_p50_ms: durations(),
  wait_p95_ms: durations(),
  /** From the arrival of the request to the first piece of its answer. */
  first_token_p50_ms: durations(),
  first_token_p95_ms: durations(),
});
export type ActivityFigures = Static<typeof ActivityFigures>;

const ActivitySeries = Type.Object({ label: Type.String(), steps: ActivityFigures, total: ActivityFigures });

/** Activity over time. Days are in UTC. */
export const ActivityPage = Type.Object({
  /** When the first step begins. */
  from: time(),
  step_ms: count(),
  all: ActivitySeries,
  /** At most six, those with most requests first; if there are more, the last one sums up the rest. */
  series: Type.Array(ActivitySeries),
  /** Since midnight in UTC. */
  refusals_today: Type.Array(Type.Object({ reason: Type.String(), status: count(), requests: count() })),
  /** False while the usage index is being built: top accounts and older figures are missing until then. */
  is_complete: Type.Boolean(),
  /** At most ten, by what their replies cost on the whole days since `from`. */
  top_accounts: Type.Array(
    Type.Object({
      id: count(),
      email: Type.String(),
      requests: count(),
      input: count(),
      output: count(),
      billed_tokens: count(),
      cost_usd: Type.Number(),
    }),
  ),
});
export type ActivityPage = Static<typeof ActivityPage>;
