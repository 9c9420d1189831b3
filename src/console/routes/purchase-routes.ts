// Requests for credit, plans and deletions, which operators decide on.
import { approve, decline, purchaseView } from "../../office/verbs/purchases.ts";
import type { Decision, PurchaseRequest } from "../api/plan.ts";
import { ask } from "../ask.ts";
import type { ConsoleParts } from "../parts.ts";
import { limitOf, pageOf } from "./paging.ts";
import { type Call, fail, type Failure, type Route, route } from "./route.ts";

const newest = Number.MAX_SAFE_INTEGER;
const noRequest = fail("not_found", "There is no such request.");

export function purchaseRoutes(parts: ConsoleParts): Route[] {
  const { office } = parts;

  return [
    route("GET /operator/requests", async ({ query }) => {
      const limit = limitOf(query.limit);
      const { state = null, after = newest, kind = null } = query;
      return office.read(async (unit) => {
        const found = await unit.purchases.records.requestsIn(state, Number(after), limit + 1, kind);
        const { shown, next } = pageOf(found, limit);
        return { requests: await Promise.all(shown.map((request) => purchaseView(unit, request))), next };
      });
    }),

    route("POST /operator/requests/:id/approve", (call) => decide(call, approve)),

    route("POST /operator/requests/:id/decline", (call) => decide(call, decline)),
  ];

  async function decide(
    call: Call<"operator", Decision, null>,
    verb: typeof approve,
  ): Promise<PurchaseRequest | Failure> {
    const isThere = await office.read(async ({ purchases }) => (await purchases.records.request(call.id)) !== null);
    if (!isThere) return noRequest;
    return (await ask(parts, "operator", call, verb, { id: call.id, note: call.body.note })).request;
  }
}
