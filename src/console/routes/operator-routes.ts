// What operators see and do. Every change is written to the audit log in the same commit.
import { distinctModels } from "../../core/catalog.ts";
import { isErased } from "../../account/accounts.ts";
import type { Unit } from "../../account/office.ts";
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
import { audit } from "../audit-entry.ts";
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
const notOneself = fail("conflict", "Operators cannot disable their own account.");
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
  const { office, passwords, accountData, clock } = parts;
  const recordOf = (id: AccountId) => office.read(({ accounts }) => accounts.record(id));
  const show = (id: AccountId) => shownAccount(parts, live, id);
  const changed = (id: AccountId, work: AccountWork) => changedAccount(parts, live, id, work);

  return [
    route("GET /operator/accounts", async ({ query }) => {
      const limit = limitOf(query.limit);
      const { search = "", after = 0 } = query;
      const found = await office.read(({ accounts }) => accounts.search(search, Number(after), limit + 1));
      const shown = found.slice(0, limit);
      return { accounts: shown, next: found.length > limit ? String(shown.at(-1)!.id) : null };
    }),

    route("POST /operator/accounts", async (call) => {
      const { password, ...account } = call.body;
      const hashed = password === undefined ? {} : { passwordHash: await passwords.hashNew(password) };
      return office.change(async (unit) => {
        const { plan = unit.accounts.planOfNew, credit = 0, operator = false } = account;
        const created = await unit.accounts.create({ ...account, ...hashed });
        const detail = `plan ${plan}, credit ${credit}${operator ? ", an operator" : ""}`;
        audit(unit, call, "account.create", created.id, detail);
        return created;
      });
    }),

    route("GET /operator/accounts/:id", ({ id }) => show(id)),

    route("POST /operator/accounts/:id/plan", (call) =>
      changed(call.id, async (unit, before) => {
        const { plan } = call.body;
        await unit.accounts.changePlan(call.id, plan);
        audit(unit, call, "account.plan", call.id, `from ${before.plan} to ${plan}`);
      }),
    ),

    route("POST /operator/accounts/:id/credit", (call) =>
      changed(call.id, async (unit) => {
        await unit.accounts.checkNotErased(call.id);
        const { tokens, reason, reference = crypto.randomUUID() } = call.body;
        // The reference counts for this account alone: nobody else's grant may use it up.
        const { credited } = await unit.accounts.credit(call.id, tokens, `grant:${call.id}:${reference}`);
        if (credited) audit(unit, call, "account.credit", call.id, `${tokens} balance tokens: ${reason}`);
      }),
    ),

    route("POST /operator/accounts/:id/state", (call) =>
      changed(call.id, async (unit) => {
        const { disabled } = call.body;
        if (disabled && call.id === call.visitor.account.id) return notOneself;
        if (disabled) await unit.accounts.checkNotLastOperator(call.id);
        await unit.accounts.setDisabled(call.id, disabled);
        if (disabled) await unit.sessions.endAll(call.id, null);
        audit(unit, call, disabled ? "account.disable" : "account.enable", call.id, "");
        return null;
      }),
    ),

    route("POST /operator/accounts/:id/password", async (call) => {
      if (!parts.passwordSignIn) return withoutPasswords;
      if ((await recordOf(call.id)) === null) return noAccount;
      const passwordHash = await passwords.hashNew(call.body.password);
      const { account, session } = call.visitor;
      await office.change(async (unit) => {
        await unit.accounts.setPassword(call.id, passwordHash);
        await unit.sessions.endAll(call.id, call.id === account.id ? session.id : null);
        audit(unit, call, "account.password", call.id, "");
      });
      return done;
    }),

    // Written down before the first byte leaves.
    route("POST /operator/accounts/:id/export", async (call) => {
      const record = await recordOf(call.id);
      if (record === null) return noAccount;
      const reply = await exportReply(accountData, record, call.visitor.account.id, clock.wall());
      if (isFailure(reply)) return reply;
      try {
        await office.change(async (unit) => audit(unit, call, "account.export", call.id, ""));
      } catch (thrown) {
        await reply.body?.cancel(); // nobody gets it
        throw thrown;
      }
      return reply;
    }),

    route("POST /operator/accounts/:id/delete", async (call) => {
      const record = await recordOf(call.id);
      if (record === null) return noAccount;
      const { openReservations: open } = await office.read(({ accounts }) => accounts.numbers(call.id));
      const { email } = record;
      if (call.id === call.visitor.account.id) return fail("conflict", "Operators cannot delete their own account.");
      if (isErased(record)) return fail("conflict", "This account is deleted already.");
      if (call.body.confirm !== email) return fail("invalid_request", `Type ${email} to delete this account.`);
      if (open > 0) {
        const requests = open === 1 ? "a request that is" : `${open} requests that are`;
        return fail("conflict", `${email} has ${requests} open. Disable it, and delete it when they have ended.`);
      }
      await accountData.erase(call.id, {
        allowed: ({ accounts }) => accounts.checkNotLastOperator(call.id),
        noted: (unit, detail) => audit(unit, call, "account.delete", call.id, detail),
      });
      return show(call.id);
    }),

    route("GET /operator/accounts/:id/usage", async ({ id, query }) =>
      (await recordOf(id)) === null ? noAccount : usagePage(parts, id, query),
    ),
  ];
}

async function shownAccount(parts: ConsoleParts, live: Live, id: AccountId): Promise<OperatorAccount | Failure> {
  const record = await parts.office.read(({ accounts }) => accounts.record(id));
  return record === null ? noAccount : operatorAccount(parts, live, record);
}

type AccountWork = (unit: Unit, before: AccountRecord) => Promise<Failure | null | void>;

/** Shows the account as it is after a change of it. */
async function changedAccount(
  parts: ConsoleParts,
  live: Live,
  id: AccountId,
  work: AccountWork,
): Promise<OperatorAccount | Failure> {
  const failure = await parts.office.change(async (unit) => {
    const before = await unit.accounts.record(id);
    return before === null ? noAccount : work(unit, before);
  });
  return failure ?? shownAccount(parts, live, id);
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
      const found = await office.read(async ({ purchases: { records } }) =>
        records.requestsIn(state, Number(after), limit + 1, kind),
      );
      const shown = found.slice(0, limit);
      return {
        requests: await requestsOf(parts, shown),
        next: found.length > limit ? String(shown.at(-1)!.id) : null,
      };
    }),

    route("POST /operator/requests/:id/approve", (call) => decide(call, "approve")),

    route("POST /operator/requests/:id/decline", (call) => decide(call, "decline")),
  ];

  async function decide(
    call: Call<"operator", Decision, null>,
    how: "approve" | "decline",
  ): Promise<PurchaseRequest | Failure> {
    const { note = "" } = call.body;
    const decided = await office.change(async (unit) => {
      if ((await unit.purchases.records.request(call.id)) === null) return null;
      const { request, isNew } = await unit.purchases[how](call.id, note);
      const { kind, plan, tokens, account } = request;
      const wanted = kind === "deletion" ? kind : kind === "plan" ? `plan ${plan}` : `${tokens} balance tokens`;
      const detail = `request ${call.id}: ${wanted}${note === "" ? "" : `: ${note}`}`;
      if (isNew) audit(unit, call, `request.${how}`, account, detail);
      return request;
    });
    return decided === null ? noRequest : requestOf(parts, decided);
  }
}

const limitOf = (limit: string | undefined): number => Math.min(pageMax, Math.max(1, Number(limit ?? pageDefault)));
