// What operators see and do. Every change is written to the audit log in the same commit.
import { distinctModels } from "../../core/catalog.ts";
import { isErased } from "../../account/accounts.ts";
import type { AuditAction } from "../../account/audit.ts";
import { costUsd } from "../../account/price.ts";
import { dayOf } from "../../account/quota.ts";
import type { PurchaseRequest as StoredRequest } from "../../account/purchases.ts";
import { emailsOf } from "../../account/account-names.ts";
import type { AccountRecord } from "../../account/records.ts";
import { everyAccount } from "../../account/usage-queries.ts";
import type { AccountId } from "../../core/types.ts";
import { exportReply } from "../account-data.ts";
import { done } from "./account-routes.ts";
import type { AccountRow, OperatorAccount } from "../api/accounts.ts";
import { Decision, type PurchaseRequest } from "../api/plan.ts";
import { pageMax } from "../api/shapes.ts";
import { activityRoute } from "./activity-route.ts";
import { auditEntry, type OperatorCall } from "../audit-entry.ts";
import type { Live } from "../live.ts";
import { numbersOf, timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { nodeRoutes } from "./node-routes.ts";
import { requestOf, requestsOf } from "./plan-routes.ts";
import { serverCareRoutes } from "./server-care-routes.ts";
import { type Call, fail, type Failure, isFailure, type Route, route } from "./route.ts";
import { invitationRoutes } from "./invitation-routes.ts";
import { withoutPasswords } from "./entering.ts";
import { usagePage } from "./usage-routes.ts";

const pageDefault = 50;
const newest = Number.MAX_SAFE_INTEGER;
const noAccount = fail("not_found", "There is no such account.");
const noRequest = fail("not_found", "There is no such request.");

export function operatorRoutes(parts: ConsoleParts, live: Live): Route[] {
  return [
    ...accountRoutesOf(parts, live),
    ...invitationRoutes(parts),
    ...serverRoutes(parts, live),
    ...serverCareRoutes(parts),
    ...nodeRoutes(parts),
    ...requestRoutes(parts),
    activityRoute(parts),
  ];
}

// ---------------------------------------------------------------- accounts

function accountRoutesOf(parts: ConsoleParts, live: Live): Route[] {
  const { accounts, sessions, accountData, auditLog, clock } = parts;
  const audit = auditOf(parts);
  const show = async (id: AccountId): Promise<OperatorAccount | Failure> => {
    const record = await accounts.record(id);
    return record === null ? noAccount : operatorAccount(parts, live, record);
  };

  return [
    route("GET /operator/accounts", async ({ query }) => {
      const limit = limitOf(query.limit);
      const found = await accounts.search(query.search ?? "", Number(query.after ?? 0), limit + 1);
      const shown = found.slice(0, limit);
      return { accounts: shown, next: found.length > limit ? String(shown.at(-1)!.id) : null };
    }),

    route("POST /operator/accounts", async (call) => {
      const { plan = accounts.planOfNew, credit = 0, operator = false } = call.body;
      const detail = `plan ${plan}, credit ${credit}${operator ? ", an operator" : ""}`;
      return accounts.create(call.body, (id) => audit(call, "account.create", id, detail));
    }),

    route("GET /operator/accounts/:id", ({ id }) => show(id)),

    route("POST /operator/accounts/:id/plan", async (call) => {
      const record = await accounts.record(call.id);
      if (record === null) return noAccount;
      const { plan } = call.body;
      const detail = `from ${record.plan} to ${plan}`;
      await accounts.changePlanById(call.id, plan, () => audit(call, "account.plan", call.id, detail));
      return show(call.id);
    }),

    route("POST /operator/accounts/:id/credit", async (call) => {
      if ((await accounts.record(call.id)) === null) return noAccount;
      await accounts.checkNotErased(call.id);
      const { tokens, reason, reference = crypto.randomUUID() } = call.body;
      // The reference counts for this account alone: nobody else's grant may use it up.
      await accounts.addCreditById(call.id, tokens, `grant:${call.id}:${reference}`, () =>
        audit(call, "account.credit", call.id, `${tokens} balance tokens: ${reason}`),
      );
      return show(call.id);
    }),

    route("POST /operator/accounts/:id/state", async (call) => {
      const { disabled } = call.body;
      if ((await accounts.record(call.id)) === null) return noAccount;
      if (disabled && call.id === call.visitor.account.id) {
        return fail("conflict", "Operators cannot disable their own account.");
      }
      if (disabled) {
        const isAnother = accounts.checkNotLastOperator(call.id);
        if (isAnother instanceof Promise) await isAnother;
        await sessions.endAllWith(call.id, null, (endSessions) =>
          accounts.setDisabled(call.id, true, () => {
            audit(call, "account.disable", call.id, "");
            endSessions();
          }),
        );
      } else await accounts.setDisabled(call.id, false, () => audit(call, "account.enable", call.id, ""));
      return show(call.id);
    }),

    route("POST /operator/accounts/:id/password", async (call) => {
      if (!parts.passwordSignIn) return withoutPasswords;
      if ((await accounts.record(call.id)) === null) return noAccount;
      const { account, session } = call.visitor;
      await sessions.endAllWith(call.id, call.id === account.id ? session.id : null, (endSessions) =>
        accounts.changePasswordById(call.id, call.body.password, () => {
          audit(call, "account.password", call.id, "");
          endSessions();
        }),
      );
      return done;
    }),

    // In the audit log before the first byte leaves.
    route("POST /operator/accounts/:id/export", async (call) => {
      const record = await accounts.record(call.id);
      if (record === null) return noAccount;
      const reply = await exportReply(accountData, record, call.visitor.account.id, clock.wall());
      if (isFailure(reply)) return reply;
      try {
        await auditLog.note(auditEntry(clock, call, "account.export", call.id, ""));
      } catch (thrown) {
        await reply.body?.cancel(); // it is not sent
        throw thrown;
      }
      return reply;
    }),

    route("POST /operator/accounts/:id/delete", async (call) => {
      const record = await accounts.record(call.id);
      if (record === null) return noAccount;
      const { email } = record;
      if (call.id === call.visitor.account.id) return fail("conflict", "Operators cannot delete their own account.");
      if (isErased(record)) return fail("conflict", "This account is deleted already.");
      if (call.body.confirm !== email) return fail("invalid_request", `Type ${email} to delete this account.`);
      const { openReservations: open } = await accounts.numbers(call.id);
      if (open > 0) {
        const requests = open === 1 ? "a request that is" : `${open} requests that are`;
        return fail("conflict", `${email} has ${requests} open. Disable it, and delete it when they have ended.`);
      }
      await accountData.erase(record, (detail) => audit(call, "account.delete", call.id, detail));
      return show(call.id);
    }),

    route("GET /operator/accounts/:id/usage", async ({ id, query }) =>
      (await accounts.record(id)) === null ? noAccount : usagePage(parts, id, query),
    ),
  ];
}

async function operatorAccount(parts: ConsoleParts, live: Live, record: AccountRecord): Promise<OperatorAccount> {
  const { id, email, plan, credit, operator, disabledAt, createdAt, keyCreatedAt, passwordHash } = record;
  const row: AccountRow = {
    id,
    email,
    plan,
    credit,
    operator,
    disabled: disabledAt !== null,
    created_at: timeOf(createdAt),
  };
  return {
    ...row,
    key_created_at: timeOf(keyCreatedAt),
    has_password: passwordHash !== null,
    providers: (await parts.identities.of(id)).map(({ issuer }) => issuer),
    numbers: await numbersOf(parts, id, live.requests.openRequestsOf(id)),
  };
}

// ---------------------------------------------------------------- nodes, totals and the log

function serverRoutes(parts: ConsoleParts, live: Live): Route[] {
  const { accounts, nodes, usage, catalog, purchaseRecords, auditLog, clock } = parts;

  return [
    route("GET /operator/totals", async () => {
      const { days } = await usage.summary(everyAccount, dayOf(clock.wall()));
      const sum = (of: (day: (typeof days)[number]) => number) => days.reduce((total, day) => total + of(day), 0);
      const billed = sum(({ billedTokens }) => billedTokens);
      const { requests_in_flight, reserved_tokens } = await live.operatorNumbers();
      const had = nodes.had();
      return {
        accounts: await accounts.count,
        requests_in_flight,
        reserved_tokens,
        today: {
          requests: sum(({ requests }) => requests),
          input: sum(({ input }) => input),
          output: sum(({ output }) => output),
          billed_tokens: billed,
          billed_usd: costUsd(billed),
        },
        pending_purchase_requests: await purchaseRecords.pendingRequests(null),
        models: distinctModels(catalog).map((each) => {
          const { id: model } = each;
          const day = days.find((one) => one.model === model);
          return {
            model,
            requests: day?.requests ?? 0,
            billed_tokens: day?.billedTokens ?? 0,
            served: had(each),
          };
        }),
      };
    }),

    route("GET /operator/audit", async ({ query }) => {
      const limit = limitOf(query.limit);
      const found = await auditLog.list(Number(query.after ?? newest), limit + 1);
      const shown = found.slice(0, limit);
      const emails = await emailsOf(
        accounts,
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
        next: found.length > limit ? String(shown.at(-1)!.id) : null,
      };
    }),
  ];
}

// ---------------------------------------------------------------- requests for credit and plans

function requestRoutes(parts: ConsoleParts): Route[] {
  const { purchases, purchaseRecords } = parts;
  const audit = auditOf(parts);

  return [
    route("GET /operator/requests", async ({ query }) => {
      const limit = limitOf(query.limit);
      const { state = null, after = newest, kind = null } = query;
      const found = await purchaseRecords.requestsIn(state, Number(after), limit + 1, kind);
      const shown = found.slice(0, limit);
      return {
        requests: await requestsOf(parts, shown),
        next: found.length > limit ? String(shown.at(-1)!.id) : null,
      };
    }),

    route("POST /operator/requests/:id/approve", (call) =>
      decide(call, "request.approve", (request, note, inSameCommit) => purchases.approve(request, note, inSameCommit)),
    ),

    route("POST /operator/requests/:id/decline", (call) =>
      decide(call, "request.decline", (request, note, inSameCommit) => purchases.decline(request, note, inSameCommit)),
    ),
  ];

  async function decide(
    call: Call<"operator", Decision, null>,
    action: AuditAction,
    carryOut: (request: StoredRequest, note: string, inSameCommit: () => void) => Promise<StoredRequest>,
  ): Promise<PurchaseRequest | Failure> {
    const request = await purchaseRecords.request(call.id);
    if (request === null) return noRequest;
    const { note = "" } = call.body;
    const { kind, plan, tokens } = request;
    const wanted = kind === "deletion" ? kind : kind === "plan" ? `plan ${plan}` : `${tokens} balance tokens`;
    const detail = `request ${request.id}: ${wanted}${note === "" ? "" : `: ${note}`}`;
    const decided = await carryOut(request, note, () => audit(call, action, request.account, detail));
    return requestOf(parts, decided);
  }
}

/** Writes an operator's action down, in one commit with what is appended in the same turn. */
function auditOf({ auditLog, clock }: Pick<ConsoleParts, "auditLog" | "clock">) {
  return (call: OperatorCall, action: AuditAction, subject: AccountId, detail: string): void =>
    auditLog.append(auditEntry(clock, call, action, subject, detail));
}

const limitOf = (limit: string | undefined): number => Math.min(pageMax, Math.max(1, Number(limit ?? pageDefault)));
