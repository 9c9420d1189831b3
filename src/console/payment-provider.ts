// The interface of a payment provider.
import type { Payment } from "../account/records.ts";
import { centsPerMillionBalanceTokens } from "../core/limits.ts";
import type { AccountId } from "../core/types.ts";

/** The price of balance tokens in whole US cents, rounded down. */
export const centsOf = (tokens: number): number => Math.floor((tokens * centsPerMillionBalanceTokens) / 1_000_000);

export type Order = Readonly<{
  account: AccountId;
  email: string;
  /** Balance tokens, for `cents` in total. */
  tokens: number;
  cents: number;
  /** Where the browser continues, paid or not. */
  paidUrl: string;
  cancelledUrl: string;
}>;

export type PaymentNotice =
  | Readonly<{ kind: "paid"; payment: Payment }>
  | Readonly<{ kind: "other" }>
  /** Not from the provider: the signature is missing, wrong or too old. */
  | Readonly<{ kind: "forged" }>
  /** Signed, but not what was ordered; an operator must look. */
  | Readonly<{ kind: "unusable"; reason: string }>;

export interface PaymentProvider {
  /** Part of its webhook's path, and the prefix of its payments' ids. */
  readonly name: string;
  checkout(order: Order): Promise<{ url: string }>;
  /** Reads a call of the webhook; `body` is as it was sent. */
  notice(body: string, headers: Headers): Promise<PaymentNotice>;
}
