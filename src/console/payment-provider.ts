// The interface of a payment provider.
import type { Payment } from "../account/records.ts";
import { centsPerMillionBalanceTokens } from "../core/limits.ts";
import type { AccountId } from "../core/types.ts";

/** What balance tokens cost, in whole US cents: a fraction of a cent is not asked for. */
export const centsOf = (tokens: number): number => Math.floor((tokens * centsPerMillionBalanceTokens) / 1_000_000);

export type Order = Readonly<{
  account: AccountId;
  email: string;
  /** Balance tokens, at `cents` in all. */
  tokens: number;
  cents: number;
  /** Where the browser goes on, paid or not. */
  paidUrl: string;
  cancelledUrl: string;
}>;

/** What a provider told. */
export type PaymentNotice =
  | Readonly<{ kind: "paid"; payment: Payment }>
  /** About something that is none of our business. */
  | Readonly<{ kind: "other" }>
  /** Not from the provider: the signature is missing, wrong or too old. */
  | Readonly<{ kind: "forged" }>
  /** Signed, but not what was ordered; an operator must look. */
  | Readonly<{ kind: "unusable"; reason: string }>;

export interface PaymentProvider {
  /** Also in the path of its webhook, and the beginning of its payments' ids. */
  readonly name: string;
  /** A page of the provider on which the browser pays. Rejects where the provider cannot be reached or refuses. */
  checkout(order: Order): Promise<{ url: string }>;
  /** Reads a call of the webhook; `body` is as it was sent. */
  notice(body: string, headers: Headers): Promise<PaymentNotice>;
}
