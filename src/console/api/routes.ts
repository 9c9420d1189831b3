// The contract of the console: every route of /console/api, who may call it, what it takes and what it replies. The server
// mounts exactly these routes and checks requests against them; the browser only takes its types from here.
//
//   every change (POST) carries a JSON body, or none, and the browser's own Origin header
//   a failure is an ApiError with its HTTP status; operator routes answer 403 to everybody else
//   where people sign in without passwords, /sign-in, /sign-up, /password and the operator's password route answer 403
//   times are ISO 8601 in UTC, amounts are balance tokens
//
// The playground has no route of its own. A signed-in browser may call /v1 of the same origin without a key: with its
// cookie, the header `x-tollgate-console: 1` and the Origin header that browsers send with every POST. Everything else
// about those calls, prices included, is as with a key. GET /v1/* still needs a key: the models are at /models here.
import type { Static, TSchema } from "@sinclair/typebox";
import { BrowserSessions, DeletionState, OwnDeletion, PasswordChange } from "./account.ts";
import {
  AccountDeletion,
  AccountsPage,
  AccountsQuery,
  CreditGrant,
  Invitations,
  NewConsoleAccount,
  NewInvitation,
  NewLink,
  OperatorAccount,
  PasswordReset,
  PlanChange,
  StateChange,
} from "./accounts.ts";
import { ActivityPage, ActivityQuery } from "./activity.ts";
import {
  AccountKey,
  AccountKeys,
  CreatedAccountKey,
  KeyLimits,
  KeyName,
  KeyRegeneration,
  KeyState,
  NewAccountKey,
  NewKey,
} from "./keys.ts";
import { OperatorLine } from "./line.ts";
import { NamedNode, NodeTest, OperatorModels, OperatorNodes } from "./nodes.ts";
import { ConsoleModels, Overview } from "./overview.ts";
import {
  Checkout,
  CheckoutPage,
  Decision,
  NewPurchaseRequest,
  PlanPage,
  PurchaseRequest,
  PurchaseRequestsPage,
  PurchaseRequestsQuery,
} from "./plan.ts";
import { LogPage, LogQuery, RefusalsPage, RefusalsQuery } from "./request-log.ts";
import { AuditPage, AuditQuery, NamedWebhook, OperatorServer, OperatorTotals, WebhookTest } from "./server.ts";
import { Done } from "./shapes.ts";
import {
  CreatedAccount,
  Entered,
  LinkShown,
  LinkToken,
  LinkUse,
  ProviderAnswer,
  ProviderPage,
  ProviderStart,
  Session,
  SignIn,
  SignUp,
} from "./sign-in.ts";
import { UsageFilter, UsagePage, UsageQuery, UsageSummary } from "./usage.ts";

/** `operator` is also signed in; the server refuses everybody else before a handler sees the call. */
export type Access = "public" | "account" | "operator";

/** `reply` is JSON; null where the reply is a file or a stream. */
export type RouteShape = Readonly<{ access: Access; query?: TSchema; body?: TSchema; reply: TSchema | null }>;

/** Of paths below /console/api, where `:id` stands for a whole number. */
export const routes = {
  "GET /session": { access: "public", reply: Session },
  // 401 wrong, 429 too many attempts, 503 busy
  "POST /sign-in": { access: "public", body: SignIn, reply: Session },
  // 403 where it is off, 409 known e-mail
  "POST /sign-up": { access: "public", body: SignUp, reply: CreatedAccount },
  "POST /sign-out": { access: "public", reply: Session },
  // 404 where there is no identity provider, 503 while it is away
  "POST /provider/start": { access: "public", body: ProviderStart, reply: ProviderPage },
  // 401 it does not fit, 403 turned away, 409, 503
  "POST /provider/finish": { access: "public", body: ProviderAnswer, reply: Entered },
  // 400 used, expired or unknown
  "POST /link": { access: "public", body: LinkToken, reply: LinkShown },
  // works once; 400 as above
  "POST /link/use": { access: "public", body: LinkUse, reply: Entered },

  // ends the other sessions; 401 wrong old password
  "POST /password": { access: "account", body: PasswordChange, reply: Done },
  "GET /sessions": { access: "account", reply: BrowserSessions },
  "POST /sessions/end-others": { access: "account", reply: Done },
  "POST /sessions/:id/end": { access: "account", reply: Done },
  // everything that is kept of the account, as `tollgate accounts export` gives it
  "POST /export": { access: "account", reply: null },
  "GET /deletion": { access: "account", reply: DeletionState },
  // deleted and signed out, or requested; 403 where it is off
  "POST /deletion": { access: "account", body: OwnDeletion, reply: Session },

  "GET /overview": { access: "account", reply: Overview },
  // text/event-stream of LiveEvent
  "GET /events": { access: "account", reply: null },
  "GET /models": { access: "account", reply: ConsoleModels },

  "GET /key": { access: "account", reply: KeyState },
  // shows the key this once
  "POST /key/regenerate": { access: "account", body: KeyRegeneration, reply: NewKey },
  "GET /keys": { access: "account", reply: AccountKeys },
  // shows the key this once; 409 for a taken name
  "POST /keys": { access: "account", body: NewAccountKey, reply: CreatedAccountKey },
  "POST /keys/:id/name": { access: "account", body: KeyName, reply: AccountKey },
  "POST /keys/:id/limits": { access: "account", body: KeyLimits, reply: AccountKey },
  // void at once
  "POST /keys/:id/revoke": { access: "account", reply: Done },

  "GET /usage": { access: "account", query: UsageQuery, reply: UsagePage },
  "GET /usage/summary": { access: "account", reply: UsageSummary },
  // text/csv, streamed
  "GET /usage.csv": { access: "account", query: UsageFilter, reply: null },
  "GET /refusals": { access: "account", query: RefusalsQuery, reply: RefusalsPage },

  "GET /plan": { access: "account", reply: PlanPage },
  "POST /plan/requests": { access: "account", body: NewPurchaseRequest, reply: PurchaseRequest },
  "POST /plan/requests/:id/withdraw": { access: "account", reply: PurchaseRequest },
  // 404 where no payment provider is configured
  "POST /plan/checkout": { access: "account", body: Checkout, reply: CheckoutPage },

  "GET /operator/accounts": { access: "operator", query: AccountsQuery, reply: AccountsPage },
  "POST /operator/accounts": { access: "operator", body: NewConsoleAccount, reply: CreatedAccount },
  "GET /operator/accounts/:id": { access: "operator", reply: OperatorAccount },
  "POST /operator/accounts/:id/plan": { access: "operator", body: PlanChange, reply: OperatorAccount },
  "POST /operator/accounts/:id/credit": { access: "operator", body: CreditGrant, reply: OperatorAccount },
  "POST /operator/accounts/:id/state": { access: "operator", body: StateChange, reply: OperatorAccount },
  "POST /operator/accounts/:id/password": { access: "operator", body: PasswordReset, reply: Done },
  "POST /operator/accounts/:id/export": { access: "operator", reply: null },
  // 409 while requests are open
  "POST /operator/accounts/:id/delete": { access: "operator", body: AccountDeletion, reply: OperatorAccount },
  // shows the link this once, like the one of an invitation
  "POST /operator/accounts/:id/password-link": { access: "operator", reply: NewLink },
  "GET /operator/accounts/:id/usage": { access: "operator", query: UsageQuery, reply: UsagePage },
  "GET /operator/invitations": { access: "operator", reply: Invitations },
  "POST /operator/invitations": { access: "operator", body: NewInvitation, reply: NewLink },
  "POST /operator/invitations/:id/withdraw": { access: "operator", reply: Invitations },
  "GET /operator/requests": { access: "operator", query: PurchaseRequestsQuery, reply: PurchaseRequestsPage },
  // 409 where it was decided otherwise
  "POST /operator/requests/:id/approve": { access: "operator", body: Decision, reply: PurchaseRequest },
  "POST /operator/requests/:id/decline": { access: "operator", body: Decision, reply: PurchaseRequest },

  "GET /operator/line": { access: "operator", reply: OperatorLine },
  "GET /operator/nodes": { access: "operator", reply: OperatorNodes },
  // it gets no new requests; 404 where there is no such node
  "POST /operator/nodes/drain": { access: "operator", body: NamedNode, reply: OperatorNodes },
  "POST /operator/nodes/resume": { access: "operator", body: NamedNode, reply: OperatorNodes },
  // asks it for one token, free of charge
  "POST /operator/nodes/test": { access: "operator", body: NamedNode, reply: NodeTest },
  "GET /operator/models": { access: "operator", reply: OperatorModels },
  "GET /operator/totals": { access: "operator", reply: OperatorTotals },
  "GET /operator/activity": { access: "operator", query: ActivityQuery, reply: ActivityPage },
  "GET /operator/log": { access: "operator", query: LogQuery, reply: LogPage },
  "GET /operator/audit": { access: "operator", query: AuditQuery, reply: AuditPage },
  "GET /operator/server": { access: "operator", reply: OperatorServer },
  // `reload` of the reply says how it went
  "POST /operator/server/reload": { access: "operator", reply: OperatorServer },
  // 409 while another one runs
  "POST /operator/server/backup": { access: "operator", reply: OperatorServer },
  // posts a notice to it
  "POST /operator/webhooks/test": { access: "operator", body: NamedWebhook, reply: WebhookTest },
} as const satisfies Readonly<Record<`GET /${string}` | `POST /${string}`, RouteShape>>;

type Routes = typeof routes;
/** A method and a path. */
export type RouteName = keyof Routes;

export type AccessOf<Name extends RouteName> = Routes[Name]["access"];
/** Null where the route takes none. */
export type BodyOf<Name extends RouteName> = Part<Routes[Name], "body">;
/** Null where the route takes none. */
export type QueryOf<Name extends RouteName> = Part<Routes[Name], "query">;
/** Null where the reply is no JSON. */
export type ReplyOf<Name extends RouteName> = Part<Routes[Name], "reply">;

type Part<Of, Key extends string> =
  Of extends Readonly<Record<Key, infer Schema extends TSchema>> ? Static<Schema> : null;
