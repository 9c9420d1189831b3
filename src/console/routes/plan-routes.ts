// The plan page: plans, credit packs, and requests and payments for them.
import type { Unit } from "../../account/office.ts";
import { costUsd } from "../../account/money/price.ts";
import type { Wanted } from "../../account/money/purchases.ts";
import type { AccountRecord } from "../../account/records.ts";
import type { AccountId } from "../../core/types.ts";
import { eachCount } from "../../core/count-limits.ts";
import { amountMax, creditPurchaseMaxTokens, creditPurchaseMinTokens } from "../../core/limits.ts";
import { isPlan, limitOf } from "../../core/plans.ts";
import { priorities, priorityOf } from "../../core/priority.ts";
import { purchaseView } from "../../office/verbs/purchases.ts";
import type { PlanPage } from "../api/plan.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { centsOf } from "../payment-provider.ts";
import { fail, type Route, route } from "./route.ts";

const shownRequests = 20;
const newest = Number.MAX_SAFE_INTEGER;

export function planRoutes(parts: ConsoleParts): Route[] {
  const { office, catalog, payment, baseUrl, log } = parts;

  return [
    route("GET /plan", ({ visitor }) => planPage(parts, visitor.account)),

    route("POST /plan/requests", async ({ visitor: { account }, body }) => {
      const { note = "", ...wanted } = body;
      if (wanted.kind === "plan" && !isPlan(catalog.plans, wanted.plan)) {
        const ids = Object.keys(catalog.plans).map((id) => JSON.stringify(id));
        return fail("invalid_request", `The body must be {"kind":"plan","plan":P} with P one of ${ids.join(", ")}.`);
      }
      if (wanted.kind === "plan" && wanted.plan === account.plan) {
        return fail("invalid_request", `The account already has the plan ${wanted.plan}.`);
      }
      const asked: Wanted = wanted;
      return office.change(async (unit) => purchaseView(unit, await unit.purchases.ask(account.id, asked, note)));
    }),

    route("POST /plan/requests/:id/withdraw", async ({ visitor: { account }, id }) => {
      const withdrawn = await office.change(async (unit) => {
        const request = await unit.purchases.records.request(id);
        if (request?.account !== account.id) return null;
        return purchaseView(unit, (await unit.purchases.withdraw(id)).request);
      });
      return withdrawn ?? fail("not_found", "There is no such request.");
    }),

    route("POST /plan/checkout", async ({ visitor: { account }, body: { tokens } }) => {
      if (payment === null) return fail("not_found", "There is no payment provider here. Request credit instead.");
      const { id, email } = account;
      const order = { account: id, email, tokens, cents: centsOf(tokens) };
      try {
        const { url } = await payment.checkout({
          ...order,
          paidUrl: `${baseUrl}/plan?paid=1`,
          cancelledUrl: `${baseUrl}/plan`,
        });
        return { url };
      } catch (error) {
        log("error", "the payment provider returned no payment page", { error: String(error) });
        return fail("unavailable", "The payment provider is not available right now. Nothing was paid.");
      }
    }),
  ];
}

async function planPage({ office, catalog, payment }: ConsoleParts, account: AccountRecord): Promise<PlanPage> {
  const { requests, payments, credit } = await office.read((unit) => boughtBy(unit, account.id));
  return {
    plan: account.plan,
    plans: Object.values(catalog.plans).map((plan) => ({
      id: plan.id,
      name: plan.name,
      unlimited: plan.unlimited,
      tokens_per_day: plan.unlimited ? 0 : plan.tokensPerDay,
      worth_usd: plan.unlimited ? 0 : costUsd(plan.tokensPerDay),
      coder_calls_per_window: limitOf(plan.coderCallsPerWindow),
      searches_per_day: limitOf(plan.searchesPerDay),
      ...eachCount((_, field) => limitOf(plan[field] ?? amountMax)),
      batch_discount: plan.batchDiscount ?? 0,
      priority: priorityOf(plan),
      priority_max: priorityOf(plan, priorities[0]),
    })),
    packs: catalog.creditPacksTokens.map((tokens) => ({ tokens, price_usd: costUsd(tokens) })),
    custom: {
      min_tokens: creditPurchaseMinTokens,
      max_tokens: creditPurchaseMaxTokens,
      usd_per_million: costUsd(1_000_000),
    },
    credit,
    payment: payment?.name ?? null,
    requests,
    payments: payments.map(({ id, tokens, paidAt }) => ({ id, tokens, paid_at: timeOf(paidAt) })),
  };
}

async function boughtBy(unit: Unit, account: AccountId) {
  const {
    accounts,
    purchases: { records },
  } = unit;
  const requests = await records.requestsOf(account, newest, shownRequests);
  return {
    requests: await Promise.all(
      requests.filter(({ kind }) => kind !== "deletion").map((request) => purchaseView(unit, request)), // the account page shows it
    ),
    payments: await records.paymentsOf(account, shownRequests),
    credit: (await accounts.numbers(account)).credit,
  };
}
