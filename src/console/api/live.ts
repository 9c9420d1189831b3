// Live numbers and the event stream that carries them.
import { type Static, Type } from "@sinclair/typebox";
import { OperatorNode } from "./nodes.ts";
import { count, nullable, time, tokens } from "./shapes.ts";

/** The live numbers of the account. */
export const AccountNumbers = Type.Object({
  /** Remaining allowance + credit - reserved; may be negative. Null here and below: no limit. */
  spendable: nullable(tokens()),
  allowance: Type.Object({ granted: nullable(tokens()), left: nullable(tokens()), renews_at: time() }),
  credit: tokens(),
  reserved: Type.Object({ tokens: tokens(), requests: count() }),
  /** Requests whose reply has not ended, including coder calls. */
  requests_in_flight: count(),
  coder_calls: Type.Object({ left: nullable(count()), limit: nullable(count()), renews_at: time() }),
  searches: Type.Object({ left: nullable(count()), limit: nullable(count()), renews_at: time() }),
});
export type AccountNumbers = Static<typeof AccountNumbers>;

/** Numbers that change from moment to moment; pages fetch `today` of OperatorTotals separately. */
export const OperatorNumbers = Type.Object({
  nodes: Type.Array(OperatorNode),
  waiting: count(),
  requests_in_flight: count(),
  reserved_tokens: count(),
  /** What an operator should look at, as OperatorTotals names it. */
  alerts: count(),
  /** How many gateways the two sums above cover; absent if there is only one. */
  gateways: Type.Optional(count()),
});
export type OperatorNumbers = Static<typeof OperatorNumbers>;

/**
 * The event stream: `event:` is the name, `data:` the JSON. The numbers are sent right after connecting and then when
 * they change, at most twice a second. `ended` says that the session was ended elsewhere: the server closes the stream,
 * and the page must close its EventSource. A comment line every 10 s keeps the connection alive.
 */
export type LiveEvent =
  | Readonly<{ event: "account"; data: AccountNumbers }>
  /** For operators only. */
  | Readonly<{ event: "operator"; data: OperatorNumbers }>
  | Readonly<{ event: "ended"; data: Record<string, never> }>;
