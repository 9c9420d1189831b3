// Plans, credit, payment, and the requests that operators decide on.
import { type Static, Type } from "@sinclair/typebox";
import { creditPurchaseMaxTokens, creditPurchaseMinTokens } from "../../core/limits.ts";
import { eachCount } from "../../core/count-limits.ts";
import { priorities } from "../../core/priority.ts";
import { closed, count, nullable, oneOf, planId, reason, time, tokens, wholeText } from "./shapes.ts";

export const PurchaseRequest = Type.Object({
  id: count(),
  account: Type.Object({ id: count(), email: Type.String() }),
  /** A request for deletion is approved by deleting the account. */
  kind: oneOf(["credit", "plan", "deletion"]),
  /** For credit. */
  tokens: nullable(tokens()),
  /** For a plan. */
  plan: nullable(planId()),
  note: Type.String(),
  state: oneOf(["pending", "approved", "declined", "withdrawn"]),
  created_at: time(),
  decided_at: nullable(time()),
  /** The operator's answer. */
  decision_note: Type.String(),
});
export type PurchaseRequest = Static<typeof PurchaseRequest>;

export const PlanPage = Type.Object({
  plan: planId(),
  plans: Type.Array(
    Type.Object({
      id: planId(),
      name: Type.String(),
      /** There is no balance; `tokens_per_day` is 0. */
      unlimited: Type.Boolean(),
      tokens_per_day: count(),
      worth_usd: Type.Number(),
      /** Null: no limit. */
      coder_calls_per_window: nullable(count()),
      searches_per_day: nullable(count()),
      /** Its share of the nodes where accounts compete for them is `weight`. */
      ...eachCount(() => nullable(count())),
      /** The part of prices that lines of batches do not cost. */
      batch_discount: Type.Number(),
      /** The priority of requests that name none, and the most urgent one that they may name. */
      priority: oneOf(priorities),
      priority_max: oneOf(priorities),
    }),
  ),
  packs: Type.Array(Type.Object({ tokens: count(), price_usd: Type.Number() })),
  custom: Type.Object({ min_tokens: count(), max_tokens: count(), usd_per_million: Type.Number() }),
  credit: tokens(),
  /** Name of the payment provider; null: people request credit, and an operator approves it. */
  payment: nullable(Type.String()),
  /** The account's last 20, newest first. */
  requests: Type.Array(PurchaseRequest),
  /** The account's last 20 payments, newest first. */
  payments: Type.Array(Type.Object({ id: Type.String(), tokens: count(), paid_at: time() })),
});
export type PlanPage = Static<typeof PlanPage>;

const purchaseTokens = () =>
  Type.Integer({
    minimum: creditPurchaseMinTokens,
    maximum: creditPurchaseMaxTokens,
    description: `a whole number of tokens from ${creditPurchaseMinTokens} to ${creditPurchaseMaxTokens}`,
  });

/** At most five may be pending. */
export const NewPurchaseRequest = Type.Union(
  [
    Type.Object({ kind: Type.Literal("credit"), tokens: purchaseTokens(), note: Type.Optional(reason()) }, closed),
    Type.Object({ kind: Type.Literal("plan"), plan: planId(), note: Type.Optional(reason()) }, closed),
  ],
  {
    description:
      `{"kind":"credit","tokens":N} with N from ${creditPurchaseMinTokens} to ${creditPurchaseMaxTokens}, ` +
      `or {"kind":"plan","plan":P} with P ${planId().description}`,
  },
);

export const Checkout = Type.Object({ tokens: purchaseTokens() }, closed);

export const CheckoutPage = Type.Object({ url: Type.String() });

export const PurchaseRequestsQuery = Type.Object(
  {
    state: Type.Optional(oneOf(["pending", "approved", "declined", "withdrawn"])),
    kind: Type.Optional(oneOf(["credit", "plan", "deletion"])),
    after: Type.Optional(wholeText()),
    limit: Type.Optional(wholeText()),
  },
  closed,
);

/** Newest first. */
export const PurchaseRequestsPage = Type.Object({
  requests: Type.Array(PurchaseRequest),
  next: nullable(Type.String()),
});
export type PurchaseRequestsPage = Static<typeof PurchaseRequestsPage>;

export const Decision = Type.Object({ note: Type.Optional(reason()) }, closed);
export type Decision = Static<typeof Decision>;
