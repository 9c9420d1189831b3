// The line for the nodes as operators see it: who waits, who runs, and who had how much of the last hour.
import { type Static, Type } from "@sinclair/typebox";
import { priorities } from "../../core/priority.ts";
import { count, nullable, oneOf, time } from "./shapes.ts";

const byPriority = <Of extends ReturnType<typeof count | typeof Type.Number>>(of: Of) =>
  Type.Object({ interactive: of, standard: of, bulk: of });
const account = () => Type.Object({ id: count(), email: Type.String() });

/** A share of the work of the last hour. */
export const WorkShare = Type.Object({
  /** An e-mail, a model, a node or a class. */
  name: Type.String(),
  /** In input tokens, of which an output token takes several. */
  work: byPriority(Type.Number()),
  requests: count(),
  /** The mean time that these requests waited for a node. */
  wait_ms: count(),
  /** Of an account. */
  weight: nullable(Type.Number()),
  /** Its part of all, by weight for an account and by slots for a node, from 0 to 1; null: there is none. */
  fair: nullable(Type.Number()),
});
export type WorkShare = Static<typeof WorkShare>;

export const OperatorLine = Type.Object({
  /** The gateway that reports this, where several share the nodes; null: there is only one. */
  gateway: nullable(Type.String()),
  /** Requests that wait, by class. */
  waiting: byPriority(count()),
  /** Those who are next first; an end user or key of an account in each. */
  next: Type.Array(
    Type.Object({
      account: account(),
      /** In words: `end user ada`, or the name of a key. */
      user: Type.String(),
      priority: oneOf(priorities),
      models: Type.Array(Type.String()),
      requests: count(),
      /** Of the first of them, as are the next two. */
      since: time(),
      /** 1: it is next. Null: too many wait to count for each. */
      position: nullable(count()),
      expected_first_token_ms: nullable(count()),
    }),
  ),
  nodes: Type.Array(
    Type.Object({
      name: Type.String(),
      health: oneOf(["well", "cooling", "down", "starting"]),
      drained: Type.Boolean(),
      slots: count(),
      /** For the short prompt of an account with nothing in line; null: the node takes nothing now. */
      expected_first_token_ms: nullable(count()),
      /** What runs there, by class, and of that what has no first token yet. */
      running: byPriority(count()),
      reading: byPriority(count()),
      /** Input tokens of the last hour; null: its engine reported none as cached. */
      cache: nullable(Type.Object({ input: count(), expected: count(), reported: count() })),
    }),
  ),
  /** What runs; the accounts with most first, within each class. */
  running: Type.Array(
    Type.Object({
      account: account(),
      priority: oneOf(priorities),
      model: Type.String(),
      node: Type.String(),
      requests: count(),
      /** Without a first token yet. */
      reading: count(),
      /** Of the oldest. */
      since: time(),
    }),
  ),
  /** Of the last hour, those with most first. */
  served: Type.Object({
    account: Type.Array(WorkShare),
    class: Type.Array(WorkShare),
    model: Type.Array(WorkShare),
    node: Type.Array(WorkShare),
  }),
});
export type OperatorLine = Static<typeof OperatorLine>;
