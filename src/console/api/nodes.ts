// Nodes and models as operators see them.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, nullable, time } from "./shapes.ts";

export const OperatorNode = Type.Object({
  name: Type.String(),
  /** Its base address. */
  url: Type.String(),
  /** well: takes requests; cooling: it said it was busy; down: it cannot be reached; starting: our program loads. */
  health: Type.String(),
  since: time(),
  /** What is wrong with it now, in words; null where nothing is known to be. */
  problem: nullable(Type.String()),
  last_error: nullable(Type.Object({ at: time(), message: Type.String() })),
  engine: Type.String(),
  version: nullable(Type.String()),
  /** In tokens, the least of the models that it is asked for; null where the engine names none. */
  context_tokens: nullable(count()),
  /** What the engine says of each of those models; `words` may be empty. */
  abilities: Type.Array(Type.Object({ name: Type.String(), context_tokens: nullable(count()), words: Type.String() })),
  /** What of the catalog's promises that does not keep, in words. */
  below: Type.Array(Type.String()),
  /** Since when an operator wants it to get no new requests; null where nobody does. */
  drained_since: nullable(time()),
  /** Who waits for it. Requests that others serve as well stand in the line of each. */
  line: Type.Object({
    waiting: count(),
    accounts: count(),
    /** Of the request that has waited longest; null where none waits. */
    since: nullable(time()),
    /** Those with most in line first. */
    most: Type.Array(Type.Object({ id: count(), email: Type.String(), waiting: count() })),
  }),
  /** Requests it runs, of those it may run at once. */
  busy: count(),
  slots: count(),
  /** Whether these follow what its engine has to do. */
  slots_auto: Type.Boolean(),
  /** That in words, as it was said last; null where the slots do not follow it, or it is not known. */
  load: nullable(Type.String()),
  /** Of the replies that ended in the last ten minutes; null where none did. */
  first_token_p50_ms: nullable(count()),
  first_token_p99_ms: nullable(count()),
  /** Of the last minute. */
  tokens_per_second: Type.Number(),
  /** Public model id or "*" -> the name on the node. */
  models: Type.Record(Type.String(), Type.String()),
});
export type OperatorNode = Static<typeof OperatorNode>;

export const OperatorNodes = Type.Object({
  nodes: Type.Array(OperatorNode),
  /** Requests in line for any of them. */
  waiting: count(),
  /** Of several gateways the one whose sight it is; null: there is one. */
  gateway: nullable(Type.String()),
});
export type OperatorNodes = Static<typeof OperatorNodes>;

export const NamedNode = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: 64, description: "the name of a node" }) },
  closed,
);

export const NodeTest = Type.Object({
  name: Type.String(),
  /** That it was asked for; null where it is asked for none. */
  model: nullable(Type.String()),
  /** Null where there was no token. */
  first_token_ms: nullable(count()),
  took_ms: count(),
  /** What went wrong, in words; null where nothing did. */
  problem: nullable(Type.String()),
});
export type NodeTest = Static<typeof NodeTest>;

/** All that may be asked for, hidden ones too. */
export const OperatorModels = Type.Object({
  models: Type.Array(
    Type.Object({
      id: Type.String(),
      aliases: Type.Array(Type.String()),
      /** Who says that it is served: the catalog, the configuration, or nodes that list it. */
      by: Type.String(),
      kind: Type.String(),
      hidden: Type.Boolean(),
      /** The names of the nodes that have it, and why none has; null where one has. */
      nodes: Type.Array(Type.String()),
      missing: nullable(Type.String()),
      /** Whether one of them takes requests now. */
      up: Type.Boolean(),
      /** US dollars per 1,000,000 tokens; null: no price is set. */
      price: nullable(Type.Object({ input: Type.Number(), cached: Type.Number(), output: Type.Number() })),
      context_tokens: count(),
      /** Names of the plans that may use it; null: all. */
      plans: nullable(Type.Array(Type.String())),
      /** What nodes lack of what it promises, in words: a line for each node. */
      below: Type.Array(Type.String()),
      /** Of this hour and the 23 before it. Of more than 100 models in an hour, those used least are not counted apart. */
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
