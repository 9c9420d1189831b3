// What was used over time: people's own, and for operators that of all accounts or of one.
import { type Static, Type } from "@sinclair/typebox";
import { rangeNames, usageSplits } from "../../core/over-time.ts";
import { closed, count, nullable, oneOf, time } from "./shapes.ts";
import { UsageFilter, UsageSum } from "./usage.ts";

const { text: _, ...filter } = UsageFilter.properties;

const range = () => oneOf(rangeNames);

export const OverTimeQuery = Type.Object(
  {
    ...filter,
    /** Up to now. Absent, where `from` and `to` are: 30 days, or fewer where there was nothing before. */
    range: Type.Optional(range()),
    /** Each gets a series of its own. */
    by: Type.Optional(oneOf([...usageSplits, "node"])),
    /** An e-mail address or a team, or "*": all. Absent: the own one, which others than operators and admins always get. */
    account: Type.Optional(Type.String({ maxLength: 500 })),
    /** What was counted of one node, of all accounts. */
    node: Type.Optional(Type.String({ maxLength: 500 })),
  },
  closed,
);
export type OverTimeQuery = Static<typeof OverTimeQuery>;

/** In whole milliseconds, accurate to 9 %; null where nothing was measured. */
const durations = () => Type.Array(nullable(count()));

/** One number for each step, oldest first; in `total`, one for all of them. */
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

/** Null: erased, not named, or what comes after the others; its `name` says which. */
const label = () => nullable(Type.String());

/** Without what was refused or failed: to the token what the journal has. Days are in UTC. */
export const OverTime = Type.Object({
  /** When the first step begins. */
  from: time(),
  until: time(),
  /** Null: it is the time from `from` to `to`. */
  range: nullable(range()),
  step_ms: count(),
  total: UsageSum,
  /** The same time before. */
  before: UsageSum,
  /** At most 51, those with most first; if there are more, the last one sums up the rest, and its name is null. */
  parts: Type.Array(Type.Intersect([Type.Object({ name: nullable(Type.String()), label: label() }), UsageSum])),
  /** Of the first parts; the last one sums up the others, if there are more. */
  series: Type.Array(
    Type.Object({
      name: nullable(Type.String()),
      label: label(),
      requests: Type.Array(count()),
      input: Type.Array(count()),
      output: Type.Array(count()),
      billed_tokens: Type.Array(count()),
    }),
  ),
  /** Waits, and what was refused or failed, as counted for at most 91 days. Null: not known of what was asked for. */
  course: nullable(
    Type.Object({
      steps: ActivityFigures,
      total: ActivityFigures,
      /** Of an operator's split. */
      series: Type.Array(Type.Object({ label: label(), steps: ActivityFigures })),
    }),
  ),
  /** Of all accounts: why requests were refused or failed. */
  reasons: Type.Array(Type.Object({ reason: Type.String(), status: count(), requests: count() })),
});
export type OverTime = Static<typeof OverTime>;
