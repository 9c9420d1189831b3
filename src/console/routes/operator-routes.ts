// What operators see, and the verbs that they ask for.
import { distinctModels } from "../../core/catalog.ts";
import { isErased } from "../../account/accounts.ts";
import { costUsd } from "../../account/price.ts";
import { dayOf } from "../../account/quota.ts";
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
import { ask } from "../ask.ts";
import {
  changePassword,
  create,
  credit,
  disable,
  enable,
  erase,
  exportAccount,
  plan,
} from "../../office/verbs/accounts.ts";
import { approve, decline, purchaseView } from "../../office/verbs/purchases.ts";
import type { Verb } from "../../office/verb.ts";
import type { Live } from "../live.ts";
import { numbersOf, timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { nodeRoutes } from "./node-routes.ts";
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
  const { office, accountData, clock } = parts;
  const recordOf = (id: AccountId) => office.read(({ accounts }) => accounts.record(id));
  const show = async (id: AccountId): Promise<OperatorAccount | Failure> => {
    const record = await recordOf(id);
    return record === null ? noAccount : operatorAccount(parts, live, record);
  };
  /** Shows the account as it is after a verb about it. */
  const changed = async <Input>(
    call: OperatorCall,
    verb: Verb<Input & Readonly<{ email: string }>>,
    input: Input,
  ): Promise<OperatorAccount | Failure> => {
    const record = await recordOf(call.id);
    if (record === null) return noAccount;
    await ask(parts, "operator", call, verb, { ...input, email: record.email });
    return show(call.id);
  };

  return [
    route("GET /operator/accounts", async ({ query }) => {
      const limit = limitOf(query.limit);
      const { search = "", after = 0 } = query;
      const found = await office.read(({ accounts }) => accounts.search(search, Number(after), limit + 1));
      const shown = found.slice(0, limit);
      return { accounts: shown, next: found.length > limit ? String(shown.at(-1)!.id) : null };
    }),

    route("POST /operator/accounts", (call) => ask(parts, "operator", call, create, call.body)),

    route("GET /operator/accounts/:id", ({ id }) => show(id)),

    route("POST /operator/accounts/:id/plan", (call) => changed(call, plan, call.body)),

    route("POST /operator/accounts/:id/credit", (call) => changed(call, credit, call.body)),

    route("POST /operator/accounts/:id/state", (call) => {
      const { disabled } = call.body;
      if (disabled && isOwn(call)) return fail("conflict", "Operators cannot disable their own account.");
      return changed(call, disabled ? disable : enable, {});
    }),

    route("POST /operator/accounts/:id/password", async (call) => {
      if (!parts.passwordSignIn) return withoutPasswords;
      const shown = await changed(call, changePassword, call.body);
      return isFailure(shown) ? shown : done;
    }),

    // In the audit log before the first byte leaves.
    route("POST /operator/accounts/:id/export", async (call) => {
      const record = await recordOf(call.id);
      if (record === null) return noAccount;
      const reply = await exportReply(accountData, record, call.visitor.account.id, clock.wall());
      if (isFailure(reply)) return reply;
      try {
        await ask(parts, "operator", call, exportAccount, { email: record.email });
      } catch (thrown) {
        await reply.body?.cancel(); // it is not sent
        throw thrown;
      }
      return reply;
    }),

    route("POST /operator/accounts/:id/delete", async (call) => {
      const record = await recordOf(call.id);
      if (record === null) return noAccount;
      const { email } = record;
      if (isOwn(call)) return fail("conflict", "Operators cannot delete their own account.");
      if (isErased(record)) return fail("conflict", "This account is deleted already.");
      if (call.body.confirm !== email) return fail("invalid_request", `Type ${email} to delete this account.`);
      const { openReservations: open } = await office.read(({ accounts }) => accounts.numbers(call.id));
      if (open > 0) {
        const requests = open === 1 ? "a request that is" : `${open} requests that are`;
        return fail("conflict", `${email} has ${requests} open. Disable it, and delete it when they have ended.`);
      }
      return changed(call, erase, {});
    }),

    route("GET /operator/accounts/:id/usage", async ({ id, query }) =>
      (await recordOf(id)) === null ? noAccount : usagePage(parts, id, query),
    ),
  ];
}

type OperatorCall = Call<"operator", unknown, unknown>;
const isOwn = ({ id, visitor }: OperatorCall): boolean => id === visitor.account.id;

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
    providers: (await parts.office.read(({ identities }) => identities.of(id))).map(({ issuer }) => issuer),
    numbers: await numbersOf(parts, id, live.requests.openRequestsOf(id)),
  };
}

// ---------------------------------------------------------------- nodes, totals and the log

function serverRoutes(parts: ConsoleParts, live: Live): Route[] {
  const { office, nodes, usage, catalog, clock } = parts;

  return [
    route("GET /operator/totals", async () => {
      const { days } = await usage.summary(everyAccount, dayOf(clock.wall()));
      const sum = (of: (day: (typeof days)[number]) => number) => days.reduce((total, day) => total + of(day), 0);
      const billed = sum(({ billedTokens }) => billedTokens);
      const { requests_in_flight, reserved_tokens } = await live.operatorNumbers();
      const had = nodes.had();
      const counts = await office.read(async ({ accounts, purchases: { records } }) => ({
        accounts: await accounts.count(),
        pending_purchase_requests: await records.pendingRequests(null),
      }));
      return {
        ...counts,
        requests_in_flight,
        reserved_tokens,
        today: {
          requests: sum(({ requests }) => requests),
          input: sum(({ input }) => input),
          output: sum(({ output }) => output),
          billed_tokens: billed,
          billed_usd: costUsd(billed),
        },
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
      const before = Number(query.after ?? newest);
      const found = await office.read(({ auditLog }) => auditLog.list(before, limit + 1));
      const shown = found.slice(0, limit);
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
        next: found.length > limit ? String(shown.at(-1)!.id) : null,
      };
    }),
  ];
}

// ---------------------------------------------------------------- requests for credit and plans

function requestRoutes(parts: ConsoleParts): Route[] {
  const { office } = parts;

  return [
    route("GET /operator/requests", async ({ query }) => {
      const limit = limitOf(query.limit);
      const { state = null, after = newest, kind = null } = query;
      return office.read(async (unit) => {
        const found = await unit.purchases.records.requestsIn(state, Number(after), limit + 1, kind);
        const shown = found.slice(0, limit);
        return {
          requests: await Promise.all(shown.map((request) => purchaseView(unit, request))),
          next: found.length > limit ? String(shown.at(-1)!.id) : null,
        };
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

const limitOf = (limit: string | undefined): number => Math.min(pageMax, Math.max(1, Number(limit ?? pageDefault)));
