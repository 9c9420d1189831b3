// Nodes and models as operators see them.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, nullable, oneOf, time } from "./shapes.ts";

export const OperatorNode = Type.Object({
  name: Type.String(),
  /** Its base address. */
  url: Type.String(),
  /** well: takes requests; cooling: said that it is busy; down: unreachable; starting: its managed program loads. */
  health: oneOf(["well", "cooling", "down", "starting"]),
  since: time(),
  /** Its present problem, in words; null: none is known. */
  problem: nullable(Type.String()),
  last_error: nullable(Type.Object({ at: time(), message: Type.String() })),
  engine: Type.String(),
  version: nullable(Type.String()),
  /** In tokens, the smallest of its models; null: the engine reports none. */
  context_tokens: nullable(count()),
  /** What the engine reports about each model; `words` may be empty. */
  abilities: Type.Array(Type.Object({ name: Type.String(), context_tokens: nullable(count()), words: Type.String() })),
  /** Which promises of the catalog the node does not keep, in words. */
  below: Type.Array(Type.String()),
  /** Since when it gets no new requests because an operator drained it; null: it is not drained. */
  drained_since: nullable(time()),
  /** Its queue. A request that several nodes can serve is in the queue of each. */
  line: Type.Object({
    waiting: count(),
    accounts: count(),
    /** Arrival of the request that has waited longest; null: none waits. */
    since: nullable(time()),
    /** The accounts with most waiting requests first. */
    most: Type.Array(Type.Object({ id: count(), email: Type.String(), waiting: count() })),
  }),
  /** Running requests, and how many may run at once. */
  busy: count(),
  slots: count(),
  /** Whether the slots follow the engine's load. */
  slots_auto: Type.Boolean(),
  /** The engine's latest load, in words; null: unknown, or the slots do not follow it. */
  load: nullable(Type.String()),
  /** Of replies that ended in the last ten minutes; null: none did. */
  first_token_p50_ms: nullable(count()),
  first_token_p99_ms: nullable(count()),
  /** Over the last minute. */
  tokens_per_second: Type.Number(),
  /** Public model id or "*" -> the name on the node. */
  models: Type.Record(Type.String(), Type.String()),
});
export type OperatorNode = Static<typeof OperatorNode>;

export const OperatorNodes = Type.Object({
  nodes: Type.Array(OperatorNode),
  /** Requests that wait for any of them. */
  waiting: count(),
  /** The gateway that reports this, where several share the nodes; null: there is only one. */
  gateway: nullable(Type.String()),
});
export type OperatorNodes = Static<typeof OperatorNodes>;

export const NamedNode = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: 64, description: "the name of a node" }) },
  closed,
);

export const NodeTest = Type.Object({
  name: Type.String(),
  /** The tested model; null: the node was asked for none. */
  model: nullable(Type.String()),
  /** Null: no token came. */
  first_token_ms: nullable(count()),
  took_ms: count(),
  /** What went wrong, in words; null: nothing. */
  problem: nullable(Type.String()),
});
export type NodeTest = Static<typeof NodeTest>;

/** Every model that requests may name, including hidden ones. */
export const OperatorModels = Type.Object({
  models: Type.Array(
    Type.Object({
      id: Type.String(),
      aliases: Type.Array(Type.String()),
      /** Where the model comes from: the catalog, the configuration, or nodes that list it. */
      by: Type.String(),
      kind: Type.String(),
      hidden: Type.Boolean(),
      /** The nodes that have it, and why none has; null: at least one has it. */
      nodes: Type.Array(Type.String()),
      missing: nullable(Type.String()),
      /** Whether one of them takes requests now. */
      up: Type.Boolean(),
      /** US dollars per 1,000,000 tokens, or of input alone per something else; null: no price is set. */
      price: nullable(
        Type.Object({
          input: Type.Number(),
          cached: Type.Number(),
          output: Type.Number(),
          per: Type.Optional(Type.String()),
        }),
      ),
      context_tokens: count(),
      /** Names of the plans that may use it; null: all. */
      plans: nullable(Type.Array(Type.String())),
      /** Which promises of the model its nodes do not keep, in words: one line for each node. */
      below: Type.Array(Type.String()),
      /** This hour and the 23 before it; the least used of more than 100 models in an hour are not counted. */
      day: Type.Object({
        requests: count(),
        failed: count(),
        input: count(),
        output: count(),
        first_token_p50_ms: nullable(count()),
      }),
    }),
  ),
});
export type OperatorModels = Static<typeof OperatorModels>;
