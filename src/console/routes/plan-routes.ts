// The plan page: which plans and credit packs exist, and how to get them.
import { emailsOf } from "../../account/account-names.ts";
import { costUsd } from "../../account/price.ts";
import type { PurchaseRequest as StoredRequest, Wanted } from "../../account/purchases.ts";
import { creditPurchaseMaxTokens, creditPurchaseMinTokens } from "../../core/limits.ts";
import { isPlan, limitOf } from "../../core/plans.ts";
import { priorities, priorityOf } from "../../core/priority.ts";
import type { PurchaseRequest } from "../api/plan.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { centsOf } from "../payment-provider.ts";
import { fail, type Route, route } from "./route.ts";

const shownRequests = 20;
const newest = Number.MAX_SAFE_INTEGER;

export function planRoutes(parts: ConsoleParts): Route[] {
  const { accounts, purchases, purchaseRecords, catalog, payment, baseUrl, log } = parts;

  return [
    route("GET /plan", async ({ visitor: { account } }) => {
      const requests = await purchaseRecords.requestsOf(account.id, newest, shownRequests);
      const payments = await purchaseRecords.paymentsOf(account.id, shownRequests);
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
          requests_per_minute: limitOf(plan.requestsPerMinute),
          weight: plan.weight ?? 1,
          priority: priorityOf(plan),
          priority_max: priorityOf(plan, priorities[0]),
        })),
        packs: catalog.creditPacksTokens.map((tokens) => ({ tokens, price_usd: costUsd(tokens) })),
        custom: {
          min_tokens: creditPurchaseMinTokens,
          max_tokens: creditPurchaseMaxTokens,
          usd_per_million: costUsd(1_000_000),
        },
        credit: (await accounts.numbers(account.id)).credit,
        payment: payment?.name ?? null,
        requests: await requestsOf(
          parts,
          requests.filter(({ kind }) => kind !== "deletion"), // the account page shows it
        ),
        payments: payments.map(({ id, tokens, paidAt }) => ({ id, tokens, paid_at: timeOf(paidAt) })),
      };
    }),

    route("POST /plan/requests", async ({ visitor: { account }, body }) => {
      const { note = "", ...wanted } = body;
      if (wanted.kind === "plan" && !isPlan(catalog.plans, wanted.plan)) {
        const ids = Object.keys(catalog.plans).map((id) => JSON.stringify(id));
        return fail("invalid_request", `The body must be {"kind":"plan","plan":P} with P one of ${ids.join(", ")}.`);
      }
      if (wanted.kind === "plan" && wanted.plan === account.plan) {
        return fail("invalid_request", `The account already has the plan ${wanted.plan}.`);
      }
      return requestOf(parts, await purchases.ask(account.id, wanted satisfies Wanted, note));
    }),

    route("POST /plan/requests/:id/withdraw", async ({ visitor: { account }, id }) => {
      const request = await purchaseRecords.request(id);
      if (request?.account !== account.id) return fail("not_found", "There is no such request.");
      return requestOf(parts, await purchases.withdraw(request));
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
        return fail("unavailable", "The payment provider does not answer right now. Nothing was paid.");
      }
    }),
  ];
}

/** A request in the words of the API. */
export async function requestOf(
  parts: Pick<ConsoleParts, "accounts">,
  request: StoredRequest,
): Promise<PurchaseRequest> {
  const [shown] = await requestsOf(parts, [request]);
  return shown!;
}

export async function requestsOf(
  { accounts }: Pick<ConsoleParts, "accounts">,
  requests: readonly StoredRequest[],
): Promise<PurchaseRequest[]> {
  const emails = await emailsOf(
    accounts,
    requests.map(({ account }) => account),
  );
  return requests.map((request) => shownRequest(request, emails.get(request.account) ?? ""));
}

function shownRequest(request: StoredRequest, email: string): PurchaseRequest {
  const { id, account, kind, tokens, plan, note, state, createdAt, decidedAt, decisionNote } = request;
  return {
    id,
    account: { id: account, email },
    kind,
    tokens,
    plan,
    note,
    state,
    created_at: timeOf(createdAt),
    decided_at: decidedAt === null ? null : timeOf(decidedAt),
    decision_note: decisionNote,
  };
}
