// The overview page and the models that an account may use.
import { type Static, Type } from "@sinclair/typebox";
import { modelKinds } from "../../core/model-kinds.ts";
import { AccountNumbers } from "./live.ts";
import { cents, count, nullable, oneOf, planId } from "./shapes.ts";
import { UsageRow } from "./usage.ts";

export const Overview = Type.Object({
  plan: Type.Object({ id: planId(), name: Type.String() }),
  numbers: AccountNumbers,
  /** The last ten, newest first. */
  last_requests: Type.Array(UsageRow),
  /** API spend of today (UTC) and of the last 30 days, including today. */
  spend: Type.Object({
    today_tokens: count(),
    today_usd: Type.Number(),
    days30_tokens: count(),
    days30_usd: Type.Number(),
  }),
});
export type Overview = Static<typeof Overview>;

export const ConsoleModels = Type.Object({
  models: Type.Array(
    Type.Object({
      id: Type.String(),
      kind: oneOf(modelKinds),
      context_tokens: count(),
      reads_images: Type.Boolean(),
      reads_audio: Type.Boolean(),
      structured_output: oneOf(["json_schema", "json_object", "none"]),
      /** US cents per 1,000,000 model tokens, possibly fractions; a flat price has three equal ones. */
      price: Type.Object({ input_cents: cents(), cached_input_cents: cents(), output_cents: cents() }),
      flat_price: Type.Boolean(),
      /** The output budget of a request that names none; null: as much as the balance and the context allow. */
      output_tokens: nullable(count()),
      /** Billed by the call on chat-completions and messages. */
      coder: Type.Boolean(),
      /** Whether the account may chat with it: a chat model that its plan includes. */
      usable: Type.Boolean(),
      /** `served`: a node has it, even if that node is down; `available`: such a node takes requests now. */
      served: Type.Boolean(),
      available: Type.Boolean(),
    }),
  ),
  /** The model for code samples, even where lists leave it out; null: there is none. */
  sample: nullable(Type.Object({ id: Type.String(), context_tokens: count() })),
});
export type ConsoleModels = Static<typeof ConsoleModels>;
