// The routes for operators, with the totals and the audit log.
import { emailsOf } from "../../account/people/account-names.ts";
import { theServer } from "../../account/audit.ts";
import type { AuditFilter } from "../../account/records.ts";
import type { AccountId } from "../../core/types.ts";
import type { AuditQuery } from "../api/server.ts";
import type { Live } from "../live.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { invitationRoutes } from "./invitation-routes.ts";
import { batchRoutes } from "./batch-routes.ts";
import { nodeRoutes } from "./node-routes.ts";
import { operatorAccountRoutes } from "./operator-account-routes.ts";
import { limitOf } from "./paging.ts";
import { purchaseRoutes } from "./purchase-routes.ts";
import { fail, type Failure, isFailure, type Route, route } from "./route.ts";
import { serverCareRoutes } from "./server-care-routes.ts";

type Mutable<Of> = { -readonly [Name in keyof Of]: Of[Name] };

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

    route("GET /operator/audit", async ({ query: { page = "1", limit, sort, ...words } }) => {
      const rows = limitOf(limit);
      const filter = await auditFilterOf(words);
      if (isFailure(filter)) return filter;
      const oldestFirst = sort === "time";
      const [shown, total, at] = await office.read(async ({ auditLog }) => {
        const total = await auditLog.count(filter);
        const at = Math.min(Math.max(1, Number(page)), Math.max(1, Math.ceil(total / rows)));
        return [await auditLog.list(rows, { ...filter, oldestFirst }, (at - 1) * rows), total, at] as const;
      });
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
        total,
        page: at,
      };
    }),
  ];

  async function auditFilterOf({ operator, account, action, from, to }: AuditQuery): Promise<AuditFilter | Failure> {
    const filter: Mutable<AuditFilter> = action === undefined ? {} : { action };
    for (const [name, email] of Object.entries({ operator, subject: account })) {
      if (email === undefined || email.trim() === "") continue;
      const found = await office.read(({ accounts }) => accounts.recordOf(email.trim()));
      if (found === null && email !== "server") return fail("not_found", `There is no account ${email}.`);
      filter[name as "operator" | "subject"] = found?.id ?? theServer;
    }
    for (const [name, time] of Object.entries({ from, to })) {
      if (time === undefined || time === "") continue;
      const at = Date.parse(time);
      if (Number.isNaN(at)) return fail("invalid_request", `${name} must be a time such as 2026-03-28T12:00:00Z.`);
      filter[name as "from" | "to"] = at;
    }
    return filter;
  }
}
