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
import * as account from "./account.ts";
import * as accounts from "./accounts.ts";
import * as batches from "./batches.ts";
import * as conversations from "./conversations.ts";
import * as keys from "./keys.ts";
import * as mail from "./mail.ts";
import * as line from "./line.ts";
import * as nodes from "./nodes.ts";
import * as overTime from "./over-time.ts";
import * as overview from "./overview.ts";
import * as plan from "./plan.ts";
import * as reports from "./reports.ts";
import * as requestLog from "./request-log.ts";
import * as server from "./server.ts";
import * as shapes from "./shapes.ts";
import * as signIn from "./sign-in.ts";
import * as teams from "./teams.ts";
import * as usage from "./usage.ts";

/** `operator` is also signed in; the server refuses everybody else before a handler sees the call. */
export type Access = "public" | "account" | "operator";

/** `reply` is JSON; null where the reply is a file or a stream. */
export type RouteShape = Readonly<{
  access: Access;
  query?: TSchema;
  body?: TSchema;
  /** Absent: it is small. */
  bodyMaxBytes?: number;
  reply: TSchema | null;
}>;

/** Of paths below /console/api, where `:id` stands for a whole number. */
export const routes = {
  "GET /session": { access: "public", reply: signIn.Session },
  // 401 wrong, 429 too many attempts, 503 busy
  "POST /sign-in": { access: "public", body: signIn.SignIn, reply: signIn.Session },
  // 403 where it is off, 409 known e-mail
  "POST /sign-up": { access: "public", body: signIn.SignUp, reply: signIn.CreatedAccount },
  "POST /sign-out": { access: "public", reply: signIn.Session },
  // 404 where there is no identity provider, 503 while it is away
  "POST /provider/start": { access: "public", body: signIn.ProviderStart, reply: signIn.ProviderPage },
  // 401 it does not fit, 403 turned away, 409, 503
  "POST /provider/finish": { access: "public", body: signIn.ProviderAnswer, reply: signIn.Entered },
  // 400 used, expired or unknown
  "POST /link": { access: "public", body: signIn.LinkToken, reply: signIn.LinkShown },
  // works once; 400 as above
  "POST /link/use": { access: "public", body: signIn.LinkUse, reply: signIn.Entered },
  // whether there is such an account, or not; 404 where no mail is sent, 429
  "POST /forgotten": { access: "public", body: mail.Forgotten, reply: shapes.Done },
  // the token of a mail is enough; 400 it is none of ours
  "POST /mail/unsubscribe": { access: "public", body: mail.MailToken, reply: mail.Unsubscribed },

  "GET /mail": { access: "account", reply: mail.MailState },
  // a mail asks whether the address is the account's; 401 wrong proof, 404 where no mail is sent
  "POST /mail/address": { access: "account", body: mail.MailAddress, reply: shapes.Done },
  // 400 expired, replaced, or another account's
  "POST /mail/confirm": { access: "account", body: mail.MailToken, reply: mail.Confirmed },
  "POST /mail/kinds": { access: "account", body: mail.MailKinds, reply: shapes.Done },
  // of mail; browsers keep their own
  "POST /language": { access: "account", body: mail.ChosenLanguage, reply: shapes.Done },

  // ends the other sessions; 401 wrong old password
  "POST /password": { access: "account", body: account.PasswordChange, reply: shapes.Done },
  "GET /sessions": { access: "account", reply: account.BrowserSessions },
  // what the account's own change took away comes back; 404 after a minute, 400 where it does not fit anymore
  "POST /undo": { access: "account", body: account.Undo, reply: shapes.Done },
  "POST /sessions/end-others": { access: "account", reply: shapes.Done },
  "POST /sessions/:id/end": { access: "account", reply: shapes.Done },
  // everything that is kept of the account, as `tollgate accounts export` gives it
  "POST /export": { access: "account", reply: null },
  "GET /deletion": { access: "account", reply: account.DeletionState },
  // deleted and signed out, or requested; 403 where it is off
  "POST /deletion": { access: "account", body: account.OwnDeletion, reply: signIn.Session },

  "GET /overview": { access: "account", reply: overview.Overview },
  // text/event-stream of LiveEvent
  "GET /events": { access: "account", reply: null },
  "GET /models": { access: "account", reply: overview.ConsoleModels },

  "GET /key": { access: "account", reply: keys.KeyState },
  // shows the key this once
  "POST /key/regenerate": { access: "account", body: keys.KeyRegeneration, reply: keys.NewKey },
  "GET /keys": { access: "account", reply: keys.AccountKeys },
  // shows the key this once; 409 for a taken name
  "POST /keys": { access: "account", body: keys.NewAccountKey, reply: keys.CreatedAccountKey },
  "POST /keys/:id/name": { access: "account", body: keys.KeyName, reply: keys.AccountKey },
  "POST /keys/:id/limits": { access: "account", body: keys.KeyLimits, reply: keys.AccountKey },
  // void at once
  "POST /keys/:id/revoke": { access: "account", reply: shapes.Done },

  "GET /teams": { access: "account", reply: teams.Teams },
  // 400 used, expired or unknown, or a member already
  "POST /teams/join": { access: "account", body: signIn.LinkToken, reply: shapes.Done },
  // 404 for who is neither in it nor an operator
  "GET /teams/:id": { access: "account", reply: teams.Team },
  // of those below, some are for admins alone: 409
  "POST /teams/:id/invite": { access: "account", body: teams.NewMember, reply: teams.MemberLink },
  "POST /teams/:id/withdraw": { access: "account", body: teams.NamedInvitation, reply: shapes.Done },
  "POST /teams/:id/change": { access: "account", body: teams.MemberChange, reply: shapes.Done },
  "POST /teams/:id/remove": { access: "account", body: teams.NamedMember, reply: shapes.Done },
  // shows the key this once
  "POST /teams/:id/keys": { access: "account", body: teams.NewTeamKey, reply: keys.CreatedAccountKey },
  "POST /teams/:id/revoke": { access: "account", body: teams.NamedTeamKey, reply: shapes.Done },

  // what waits with a code; 404 none does, 429
  "POST /device": { access: "account", body: signIn.UserCode, reply: signIn.WaitingDevice },
  // 404 as above, 409 too many keys
  "POST /device/approve": { access: "account", body: signIn.DeviceApproval, reply: signIn.ApprovedDevice },
  "POST /device/deny": { access: "account", body: signIn.UserCode, reply: shapes.Done },

  "GET /usage": { access: "account", query: usage.UsageQuery, reply: usage.UsagePage },
  "GET /usage/summary": { access: "account", reply: usage.UsageSummary },
  // of the own account; of any or all for operators, and of a team for its admins
  "GET /over-time": { access: "account", query: overTime.OverTimeQuery, reply: overTime.OverTime },
  // text/csv, streamed
  "GET /usage.csv": { access: "account", query: usage.UsageFilter, reply: null },
  "GET /refusals": { access: "account", query: requestLog.RefusalsQuery, reply: requestLog.RefusalsPage },

  // of all accounts for operators, of the own one or a team of theirs for everybody else; 400 too many rows
  "GET /reports": { access: "account", query: reports.ReportQuery, reply: reports.ReportRows },
  // text/csv
  "GET /reports.csv": { access: "account", query: reports.ReportQuery, reply: null },
  // a page to print, or text/csv
  "GET /statement": { access: "account", query: reports.StatementQuery, reply: null },

  // of the playground, where the account keeps them on the server; not_found where the server keeps none
  "GET /conversations": {
    access: "account",
    query: conversations.ConversationsQuery,
    reply: conversations.Conversations,
  },
  // 409 where somebody wrote meanwhile
  "POST /conversations/choice": { access: "account", body: conversations.ConversationsChoice, reply: shapes.Done },
  "GET /conversations/records": {
    access: "account",
    query: conversations.ConversationQuery,
    reply: conversations.ConversationRecords,
  },
  "GET /conversations/search": {
    access: "account",
    query: conversations.ConversationSearch,
    reply: conversations.ConversationsFound,
  },
  "POST /conversations/write": {
    access: "account",
    body: conversations.ConversationWrite,
    bodyMaxBytes: conversations.conversationBodyMaxBytes,
    reply: conversations.ConversationWritten,
  },
  "POST /conversations/remove": { access: "account", body: conversations.NamedConversations, reply: shapes.Done },

  "GET /plan": { access: "account", reply: plan.PlanPage },
  "POST /plan/requests": { access: "account", body: plan.NewPurchaseRequest, reply: plan.PurchaseRequest },
  "POST /plan/requests/:id/withdraw": { access: "account", reply: plan.PurchaseRequest },
  // 404 where no payment provider is configured
  "POST /plan/checkout": { access: "account", body: plan.Checkout, reply: plan.CheckoutPage },

  "GET /operator/accounts": { access: "operator", query: accounts.AccountsQuery, reply: accounts.AccountsPage },
  // text/csv, streamed
  "GET /operator/accounts.csv": { access: "operator", query: accounts.AccountsFilter, reply: null },
  "POST /operator/accounts": { access: "operator", body: accounts.NewConsoleAccount, reply: signIn.CreatedAccount },
  "GET /operator/account": { access: "operator", query: accounts.NamedAccount, reply: accounts.OperatorAccount },
  "GET /operator/accounts/:id": { access: "operator", reply: accounts.OperatorAccount },
  "POST /operator/accounts/:id/plan": {
    access: "operator",
    body: accounts.PlanChange,
    reply: accounts.OperatorAccount,
  },
  "POST /operator/accounts/:id/address": {
    access: "operator",
    body: mail.OperatorMailAddress,
    reply: accounts.OperatorAccount,
  },
  "POST /operator/accounts/:id/credit": {
    access: "operator",
    body: accounts.CreditGrant,
    reply: accounts.OperatorAccount,
  },
  "POST /operator/accounts/:id/state": {
    access: "operator",
    body: accounts.StateChange,
    reply: accounts.OperatorAccount,
  },
  "POST /operator/accounts/:id/password": { access: "operator", body: accounts.PasswordReset, reply: shapes.Done },
  "POST /operator/accounts/:id/export": { access: "operator", reply: null },
  // 409 while requests are open
  "POST /operator/accounts/:id/delete": {
    access: "operator",
    body: accounts.AccountDeletion,
    reply: accounts.OperatorAccount,
  },
  // shows the link this once, like the one of an invitation
  "POST /operator/accounts/:id/password-link": { access: "operator", reply: accounts.NewLink },
  "GET /operator/accounts/:id/use": { access: "operator", reply: accounts.AccountUse },
  "GET /operator/accounts/:id/keys": { access: "operator", reply: keys.AccountKeys },
  // these two show the key this once
  "POST /operator/accounts/:id/keys": { access: "operator", body: keys.NewAccountKey, reply: keys.CreatedAccountKey },
  "POST /operator/accounts/:id/keys/rotate": { access: "operator", reply: keys.NewKey },
  "POST /operator/accounts/:id/keys/name": { access: "operator", body: accounts.RenamedKey, reply: keys.AccountKey },
  "POST /operator/accounts/:id/keys/limits": { access: "operator", body: accounts.LimitedKey, reply: keys.AccountKey },
  "POST /operator/accounts/:id/keys/revoke": { access: "operator", body: accounts.NamedKey, reply: shapes.Done },
  "POST /operator/accounts/:id/cost-center": {
    access: "operator",
    body: accounts.CostCenter,
    reply: accounts.OperatorAccount,
  },
  "GET /operator/accounts/:id/sessions": { access: "operator", reply: account.BrowserSessions },
  "POST /operator/accounts/:id/sessions/end": { access: "operator", body: accounts.SignedOut, reply: shapes.Done },
  "GET /operator/invitations": { access: "operator", reply: accounts.Invitations },
  "POST /operator/invitations": { access: "operator", body: accounts.NewInvitation, reply: accounts.NewLink },
  "POST /operator/invitations/:id/withdraw": { access: "operator", reply: accounts.Invitations },
  "GET /operator/requests": { access: "operator", query: plan.PurchaseRequestsQuery, reply: plan.PurchaseRequestsPage },
  // 409 where it was decided otherwise
  "POST /operator/requests/:id/approve": { access: "operator", body: plan.Decision, reply: plan.PurchaseRequest },
  "POST /operator/requests/:id/decline": { access: "operator", body: plan.Decision, reply: plan.PurchaseRequest },

  "GET /operator/line": { access: "operator", reply: line.OperatorLine },
  "GET /operator/nodes": { access: "operator", reply: nodes.OperatorNodes },
  // it gets no new requests; 404 where there is no such node
  "POST /operator/nodes/drain": { access: "operator", body: nodes.NamedNode, reply: nodes.OperatorNodes },
  "POST /operator/nodes/resume": { access: "operator", body: nodes.NamedNode, reply: nodes.OperatorNodes },
  // asks it for one token, free of charge
  "POST /operator/nodes/test": { access: "operator", body: nodes.NamedNode, reply: nodes.NodeTest },
  "GET /operator/batches": { access: "operator", reply: batches.OperatorBatches },
  // its lines end; 404 where there is no such batch
  "POST /operator/batches/cancel": { access: "operator", body: batches.NamedBatch, reply: batches.OperatorBatches },
  "GET /operator/models": { access: "operator", reply: nodes.OperatorModels },
  "GET /operator/totals": { access: "operator", reply: server.OperatorTotals },
  "GET /operator/log": { access: "operator", query: requestLog.LogQuery, reply: requestLog.LogPage },
  // all that match, streamed
  "GET /operator/log.csv": { access: "operator", query: requestLog.LogFilter, reply: null },
  "GET /operator/log.json": { access: "operator", query: requestLog.LogFilter, reply: null },
  "GET /operator/audit": { access: "operator", query: server.AuditQuery, reply: server.AuditPage },
  "GET /operator/server": { access: "operator", reply: server.OperatorServer },
  // `reload` of the reply says how it went
  "POST /operator/server/reload": { access: "operator", reply: server.OperatorServer },
  // 409 while another one runs
  "POST /operator/server/backup": { access: "operator", reply: server.OperatorServer },
  "GET /operator/config": { access: "operator", reply: server.ConfigShown },
  // 409 where the file is another one than its `hash` says
  "POST /operator/config": { access: "operator", body: server.ConfigEdit, reply: server.ConfigEdited },
  "POST /operator/config/undo": { access: "operator", body: server.ConfigUndo, reply: server.ConfigEdited },
  // posts a notice to it
  "POST /operator/webhooks/test": { access: "operator", body: server.NamedWebhook, reply: server.WebhookTest },
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
