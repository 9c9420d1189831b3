// Live numbers and the event stream that carries them.
import { type Static, Type } from "@sinclair/typebox";
import { OperatorNode } from "./nodes.ts";
import { count, nullable, time, tokens } from "./shapes.ts";

/** The live numbers of the account. */
export const AccountNumbers = Type.Object({
  /** Allowance left + credit - reserved; below 0 after a charge above its reservation. Null here and below: no limit. */
  spendable: nullable(tokens()),
  allowance: Type.Object({ granted: nullable(tokens()), left: nullable(tokens()), renews_at: time() }),
  credit: tokens(),
  reserved: Type.Object({ tokens: tokens(), requests: count() }),
  /** Requests whose reply has not ended, coder calls included. */
  requests_in_flight: count(),
  coder_calls: Type.Object({ left: nullable(count()), limit: nullable(count()), renews_at: time() }),
  searches: Type.Object({ left: nullable(count()), limit: nullable(count()), renews_at: time() }),
});
export type AccountNumbers = Static<typeof AccountNumbers>;

/** What changes from moment to moment; `today` of OperatorTotals is fetched. */
export const OperatorNumbers = Type.Object({
  nodes: Type.Array(OperatorNode),
  waiting: count(),
  requests_in_flight: count(),
  reserved_tokens: count(),
  /** Where several share the ledger, the two are sums over as many; else absent. */
  gateways: Type.Optional(count()),
});
export type OperatorNumbers = Static<typeof OperatorNumbers>;

/**
 * The event stream: `event:` is the name, `data:` its JSON. Both are sent at once after connecting and then when they
 * changed, at most twice a second. `ended` says that the session was ended elsewhere; the stream closes after it, and
 * an EventSource must be closed by the page. A comment line every 10 s keeps the connection alive.
 */
export type LiveEvent =
  | Readonly<{ event: "account"; data: AccountNumbers }>
  /** To operators alone. */
  | Readonly<{ event: "operator"; data: OperatorNumbers }>
  | Readonly<{ event: "ended"; data: Record<string, never> }>;
