// The catalogue: models, plans and credit packs of data/catalog.json, checked at start.
import type { Model, Plan, PlanId } from "./types.ts";

export type Catalog = Readonly<{
  models: ReadonlyMap<string, Model>;
  plans: Readonly<Record<PlanId, Plan>>;
  creditPacksTokens: readonly number[];
}>;
