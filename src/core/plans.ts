// Plans by id, in the order in which they are offered: new accounts get the first, the first operator the last. An
// account's plan may no longer be configured: it then keeps its name and works like the first.
import { amountMax } from "./limits.ts";
import { nearest } from "./nearest.ts";
import type { Model, Plan, PlanId } from "./types.ts";

export type Plans = Readonly<Record<PlanId, Plan>>;

export const plansById = (plans: Iterable<Plan>): Plans =>
  Object.fromEntries([...plans].map((plan) => [plan.id, plan]));

export const isPlan = (plans: Plans, id: PlanId): boolean => Object.hasOwn(plans, id);

export const firstPlan = (plans: Plans): Plan => Object.values(plans)[0]!;
export const lastPlan = (plans: Plans): Plan => Object.values(plans).at(-1)!;

/** A plan's amount as shown to others; null: unlimited. */
export const limitOf = (amount: number): number | null => (amount === amountMax ? null : amount);

/** Stand-ins for missing plans, by the configured plans: each once, because accounts in memory hold them. */
const standIns = new WeakMap<Plans, Map<PlanId, Plan>>();

/** The plan of an account, configured or not. */
export function planOf(plans: Plans, id: PlanId): Plan {
  if (isPlan(plans, id)) return plans[id]!;
  const ofPlans = standInsOf(plans);
  const known = ofPlans.get(id);
  if (known !== undefined) return known;
  const plan = standInFor(plans, id);
  ofPlans.set(id, plan);
  return plan;
}

function standInsOf(plans: Plans): Map<PlanId, Plan> {
  let ofPlans = standIns.get(plans);
  if (ofPlans === undefined) standIns.set(plans, (ofPlans = new Map<PlanId, Plan>()));
  return ofPlans;
}

const standInFor = (plans: Plans, id: PlanId): Plan => ({ ...firstPlan(plans), id, name: id });

/** Makes `live` equal to `next` in place, because accounts in memory hold the objects, whatever becomes of their plans. */
export function replacePlans(live: Record<PlanId, Plan>, next: Plans): void {
  const ofPlans = standInsOf(live);
  const known = new Map<PlanId, Plan>([...ofPlans, ...Object.entries(live)]);
  for (const id of Object.keys(live)) delete live[id];
  ofPlans.clear();
  for (const plan of Object.values(next)) {
    live[plan.id] = become(known.get(plan.id) ?? { ...plan }, plan);
    known.delete(plan.id);
  }
  for (const [id, plan] of known) ofPlans.set(id, become(plan, standInFor(live, id)));
}

/** Limits that the next one leaves out do not stay. */
function become(plan: Plan, next: Plan): Plan {
  for (const key of Object.keys(plan)) if (!Object.hasOwn(next, key)) Reflect.deleteProperty(plan, key);
  return Object.assign(plan, next);
}

/** Whether accounts of the plan may use the model. */
export const allows = (
  { as, models: allowed }: Plan,
  { id, plans, aliases }: Pick<Model, "id" | "plans" | "aliases">,
) =>
  (plans === null || plans.includes(as)) &&
  (allowed === null || allowed.includes(id) || aliases.some((alias) => allowed.includes(alias)));

/** Names of models in plans that no request can use, in words; `served`: those that one can. */
export const unknownModels = (
  plans: Iterable<Pick<Plan, "id" | "models">>,
  served: Pick<ReadonlySet<string>, "has" | "keys">,
): readonly Readonly<{ plan: PlanId; problem: string }>[] =>
  [...plans].flatMap(({ id, models }) =>
    (models ?? [])
      .filter((name) => !served.has(name))
      .map((name) => {
        const meant = nearest(name, served.keys());
        const hint = meant === null ? "" : `: did you mean ${JSON.stringify(meant)}?`;
        return { plan: id, problem: `names the model ${JSON.stringify(name)}, which is not served${hint}` };
      }),
  );

/** Accounts by plans that are not configured, in words; empty where there are none. */
export function unconfiguredPlans(
  plans: Plans,
  accounts: readonly Readonly<{ plan: PlanId; accounts: number }>[],
): readonly string[] {
  return accounts
    .filter(({ plan }) => !isPlan(plans, plan))
    .map(({ plan, accounts: count }) => {
      const are = count === 1 ? "1 account is" : `${count} accounts are`;
      const first = firstPlan(plans).id;
      return `${are} on the plan "${plan}", which is not configured: what "${first}" has holds; add it to [[plans]], or tollgate accounts plan EMAIL ${first}`;
    });
}
