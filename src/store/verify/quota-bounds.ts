// What may have been used of quotas, by the plans of now.
import type { Quota } from "../../account/money/quota.ts";
import type { Catalog } from "../../core/catalog.ts";

/** Most that any plan grants of each quota in a period. */
export type QuotaBounds = Readonly<Record<Quota, number>>;

export function boundsOf(plans: Catalog["plans"]): QuotaBounds {
  const all = Object.values(plans);
  return {
    allowance: Math.max(...all.map((plan) => plan.tokensPerDay)),
    coder_calls: Math.max(...all.map((plan) => plan.coderCallsPerWindow)),
    searches: Math.max(...all.map((plan) => plan.searchesPerDay)),
  };
}

/** Bounds hold for periods from here on: an older one may have been used under a catalog with larger plans. */
export type BoundsSince = Readonly<{ day: number; window: number }>;
