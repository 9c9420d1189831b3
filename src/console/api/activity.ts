// Activity over time, for operators.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, nullable, oneOf, time } from "./shapes.ts";

export const ActivityQuery = Type.Object(
  {
    range: oneOf(["1h", "6h", "24h", "7d", "30d", "90d"]),
    /** A series each. */
    by: oneOf(["model", "node", "account", "key"]),
  },
  closed,
);
export type ActivityQuery = Static<typeof ActivityQuery>;

/** In whole milliseconds, within 9 %; null where nothing was measured. */
const durations = () => Type.Array(nullable(count()));

/** One number for each step of time, the oldest first; in `total` one for all of them. */
const ActivityFigures = Type.Object({
  requests: Type.Array(count()),
  answered: Type.Array(count()),
  /** With a 4xx. */
  refused: Type.Array(count()),
  /** With a 5xx, or without an end. */
  failed: Type.Array(count()),
  /** Their clients left before the end. */
  left: Type.Array(count()),
  /** Input tokens, cached ones included. */
  input: Type.Array(count()),
  cached_input: Type.Array(count()),
  output: Type.Array(count()),
  /** For a place on a node. */
  wait_p50_ms: durations(),
  wait_p95_ms: durations(),
  /** From the arrival of the request to the first piece of its answer. */
  first_token_p50_ms: durations(),
  first_token_p95_ms: durations(),
});
export type ActivityFigures = Static<typeof ActivityFigures>;

const ActivitySeries = Type.Object({ label: Type.String(), steps: ActivityFigures, total: ActivityFigures });

/** What went on over time. Days are those of UTC. */
export const ActivityPage = Type.Object({
  /** When the first step begins. */
  from: time(),
  step_ms: count(),
  all: ActivitySeries,
  /** At most six, those with most requests first; of more the last is the rest. */
  series: Type.Array(ActivitySeries),
  /** Since midnight in UTC. */
  refusals_today: Type.Array(Type.Object({ reason: Type.String(), status: count(), requests: count() })),
  /** False while the index of usage is being made: then top accounts, and what was there before the counts, follow. */
  is_complete: Type.Boolean(),
  /** At most ten, whose replies since `from`, of whole days, cost most. */
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
