// Batches of all accounts, for operators.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, nullable, time } from "./shapes.ts";

/** The newest 100. */
export const OperatorBatches = Type.Object({
  batches: Type.Array(
    Type.Object({
      id: Type.String(),
      /** Null: it was erased. */
      account: nullable(Type.String()),
      state: Type.String(),
      endpoint: Type.String(),
      model: nullable(Type.String()),
      lines: count(),
      completed: count(),
      failed: count(),
      billed_tokens: count(),
      created_at: time(),
      ended_at: nullable(time()),
      waits: nullable(Type.String()),
    }),
  ),
});
export type OperatorBatches = Static<typeof OperatorBatches>;

export const NamedBatch = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64, description: "the id of a batch" }) },
  closed,
);
