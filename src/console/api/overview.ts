// The overview page and the models that an account may use.
import { type Static, Type } from "@sinclair/typebox";
import { AccountNumbers } from "./live.ts";
import { cents, count, nullable, oneOf, planId } from "./shapes.ts";
import { UsageRow } from "./usage.ts";

export const Overview = Type.Object({
  plan: Type.Object({ id: planId(), name: Type.String() }),
  numbers: AccountNumbers,
  /** The last ten, newest first. */
  last_requests: Type.Array(UsageRow),
  /** What the API cost today (UTC) and in the last 30 days, today included. */
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
      context_tokens: count(),
      reads_images: Type.Boolean(),
      structured_output: oneOf(["json_schema", "json_object", "none"]),
      /** US cents per 1,000,000 model tokens, maybe with parts of one; a flat price has three equal ones. */
      price: Type.Object({ input_cents: cents(), cached_input_cents: cents(), output_cents: cents() }),
      flat_price: Type.Boolean(),
      /** What a request may write that names no budget; null: what the balance and the context allow. */
      output_tokens: nullable(count()),
      /** Counted in calls on chat-completions and messages. */
      coder: Type.Boolean(),
      /** Whether the account may ask it for answers: its plan has it, and it is for that. */
      usable: Type.Boolean(),
      /** Whether some node has it, or would if it were not down, and whether one of those can take requests now. */
      served: Type.Boolean(),
      available: Type.Boolean(),
    }),
  ),
  /** For samples, also where lists leave it out; null: there is none. */
  sample: nullable(Type.Object({ id: Type.String(), context_tokens: count() })),
});
export type ConsoleModels = Static<typeof ConsoleModels>;
