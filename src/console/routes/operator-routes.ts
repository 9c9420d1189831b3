// The routes for operators, with the totals and the audit log.
import { emailsOf } from "../../account/people/account-names.ts";
import type { AccountId } from "../../core/types.ts";
import type { Live } from "../live.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { invitationRoutes } from "./invitation-routes.ts";
import { batchRoutes } from "./batch-routes.ts";
import { nodeRoutes } from "./node-routes.ts";
import { operatorAccountRoutes } from "./operator-account-routes.ts";
import { limitOf, pageOf } from "./paging.ts";
import { purchaseRoutes } from "./purchase-routes.ts";
import { type Route, route } from "./route.ts";
import { serverCareRoutes } from "./server-care-routes.ts";

const newest = Number.MAX_SAFE_INTEGER;

export function operatorRoutes(parts: ConsoleParts, live: Live): Route[] {
  return [
    ...operatorAccountRoutes(parts, live),
    ...invitationRoutes(parts),
    ...serverRoutes(parts, live),
    ...serverCareRoutes(parts),
    ...nodeRoutes(parts),
    ...batchRoutes(parts),
    ...purchaseRoutes(parts),
  ];
}

function serverRoutes(parts: ConsoleParts, live: Live): Route[] {
  const { office, alerts } = parts;

  return [
    route("GET /operator/totals", async () => {
      const { requests_in_flight, reserved_tokens } = await live.operatorNumbers();
      const counts = await office.read(async ({ accounts, purchases: { records } }) => ({
        accounts: await accounts.count(),
        pending_purchase_requests: await records.pendingRequests(null),
      }));
      return {
        ...counts,
        alerts: [...(await alerts.list())],
        requests_in_flight,
        reserved_tokens,
      };
    }),

    route("GET /operator/audit", async ({ query }) => {
      const limit = limitOf(query.limit);
      const before = Number(query.after ?? newest);
      const found = await office.read(({ auditLog }) => auditLog.list(before, limit + 1));
      const { shown, next } = pageOf(found, limit);
      const emails = await emailsOf(
        office,
        shown.flatMap(({ operator, subject }) => [operator, subject]),
      );
      const emailOf = (id: AccountId) => emails.get(id) ?? "";
      return {
        entries: shown.map(({ id, at, operator, address, action, subject, detail }) => ({
          id,
          time: timeOf(at),
          operator: emailOf(operator),
          address,
          action,
          subject: emailOf(subject),
          detail,
        })),
        next,
      };
    }),
  ];
}
