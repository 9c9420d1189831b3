// The console on the server: its API by the table of routes, its pages and files, and the webhook of a payment provider.
// Each call of the API is checked in this order:
//   (1) a change must come from a page of this site, as JSON                      403 foreign_origin
//   (2) without a session, only public routes answer                              401 not_signed_in
//   (3) without being an operator, no operator route answers, whatever it names   403 forbidden
//   (4) body and query must fit their schemas                                     400 invalid_request
// If there is a body, (2) and (3) are checked again when it has arrived.
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";
import { AccountError, EmailTaken } from "../account/people/accounts.ts";
import { PasswordsBusy } from "../account/sign-in/passwords.ts";
import { DecidedOtherwise } from "../account/money/purchases.ts";
import type { peerAddress } from "../http/peer-address.ts";
import { isSameOrigin } from "../http/same-origin.ts";
import type { LiveRequests, Site } from "../http/site.ts";
import { mailLanguageOf } from "../core/mail.ts";
import { busyRetrySeconds } from "../core/limits.ts";
import { formatPath, misfitsOf } from "../core/schema-errors.ts";
import { CommandError } from "../core/expected-error.ts";
import { StoreUnavailable } from "../core/types.ts";
import { accountRoutes } from "./routes/account-routes.ts";
import { undoHeader } from "./api/console-header.ts";
import { readBody } from "./body.ts";
import { pagePaths, webhookPath } from "./lazy-console.ts";
import { addDeviceFlow } from "./device-flow.ts";
import { conversationRoutes } from "./routes/conversation-routes.ts";
import { deviceRoutes } from "./routes/device-routes.ts";
import { keyRoutes } from "./routes/key-routes.ts";
import { Live } from "./live.ts";
import { linkRoutes } from "./routes/link-routes.ts";
import { addUnsubscription } from "./routes/mail-routes.ts";
import { logRoutes } from "./routes/log-routes.ts";
import { reportRoutes } from "./routes/report-routes.ts";
import { operatorRoutes } from "./routes/operator-routes.ts";
import { overTimeRoute } from "./routes/over-time-route.ts";
import { overviewRoutes } from "./routes/overview-routes.ts";
import { Pages } from "./pages.ts";
import type { ConsoleParts } from "./parts.ts";
import { planRoutes } from "./routes/plan-routes.ts";
import { providerRoutes } from "./routes/provider-routes.ts";
import type { Access } from "./api/routes.ts";
import { failureReply, jsonReply, readReply } from "./reply.ts";
import { fail, type Failure, isFailure, type Route, sentence, type Visitor, WithCookies } from "./routes/route.ts";
import { SignedIn } from "./signed-in.ts";
import { sessionRoutes } from "./routes/session-routes.ts";
import { teamRoutes } from "./routes/team-routes.ts";
import { Undo } from "./undo.ts";
import { usageRoutes } from "./routes/usage-routes.ts";
import { webhookReply } from "./routes/webhook.ts";
import { parseOutsideJson } from "../core/outside-json.ts";

type Connection = Parameters<typeof peerAddress>[1] & {};

/** `params` is absent if the path has none. */
type Context = Readonly<{ request: Request; server: Connection | null; params: Readonly<{ id?: string }> | undefined }>;

type Incoming = Readonly<{ route: Route; connection: Connection | null }> & Pick<Context, "request" | "params">;

const browserMaxLength = 200;

export function consoleRoutes(parts: ConsoleParts, live: Live, undo = new Undo(parts.clock)): readonly Route[] {
  return [
    undo.route(parts.office),
    ...sessionRoutes(parts),
    ...providerRoutes(parts),
    ...linkRoutes(parts),
    ...overviewRoutes(parts, live),
    ...keyRoutes(parts),
    ...teamRoutes(parts),
    ...deviceRoutes(parts),
    ...accountRoutes(parts),
    ...usageRoutes(parts),
    overTimeRoute(parts),
    ...conversationRoutes(parts),
    ...logRoutes(parts),
    ...reportRoutes(parts),
    ...planRoutes(parts),
    ...operatorRoutes(parts, live),
  ];
}

/** The console for an HTTP server; `requests` are the ones that the server handles at the moment. */
export function openConsole(parts: ConsoleParts, requests: LiveRequests): Site {
  const live = new Live(parts, requests);
  const undo = new Undo(parts.clock);
  const signedIn = new SignedIn(parts);
  const pages = new Pages(parts.log, parts.assets);
  const isSignedIn = async (headers: Headers): Promise<boolean> =>
    (await signedIn.visitor(headers).catch(() => null)) !== null;
  const app = new Elysia({ normalize: false, aot: true });
  for (const route of consoleRoutes(parts, live, undo)) {
    const path = `/console/api${route.path}`;
    const handle = ({ request, server, params }: Context): Promise<Response> =>
      answer({ route, request, connection: server, params });
    if (route.method === "GET") app.get(path, handle);
    else app.post(path, handle, { parse: "none" });
  }
  app.all("/console/api/*", () => failureReply(fail("not_found", "There is nothing at this address.")), {
    parse: "none",
  });
  addDeviceFlow(app, parts);
  addUnsubscription(app, parts);
  const { payment } = parts;
  if (payment !== null) {
    app.post(webhookPath(payment.name), ({ request }) => webhookReply(parts, payment, request), { parse: "none" });
  }
  for (const path of pagePaths)
    app.get(path, async ({ request }) => pages.page(request, await isSignedIn(request.headers)));
  app.get("/assets/*", ({ request }) => pages.file(request));
  return {
    routes: app,
    accountOf: (request) => signedIn.account(request),
    close: () => live.close(),
  };

  async function answer(incoming: Incoming): Promise<Response> {
    try {
      return replyOf(await decide(parts, signedIn, undo, incoming), incoming.request);
    } catch (thrown) {
      const failure = failureOf(thrown);
      if (failure.failure === "internal") {
        parts.log("error", "a console route failed", { route: incoming.route.path, error: String(thrown) });
      }
      return failureReply(failure);
    }
  }
}

/** The answer of a handler, or why it is not called. */
async function decide(
  { baseUrl, addresses }: ConsoleParts,
  signedIn: SignedIn,
  undo: Undo,
  { route, request, connection, params }: Incoming,
): Promise<object> {
  // (1)
  if (route.method !== "GET" && !isOwnChange(request, baseUrl)) {
    return fail("foreign_origin", "This change does not come from a page of this console.");
  }
  // (2)
  let visitor = await signedIn.visitor(request.headers);
  let denied = refuseAccess(route.access, visitor);
  if (denied !== null) return denied;
  // (4)
  const body = route.body === null ? null : await readJson(request, route.body, route.bodyMaxBytes);
  if (route.body !== null) {
    // It may take minutes to arrive; the session may have ended meanwhile, or the account may be no operator anymore.
    visitor = await signedIn.visitor(request.headers);
    denied = refuseAccess(route.access, visitor);
    if (denied !== null) return denied;
  }
  if (isFailure(body)) return body;
  const query = route.query === null ? null : readQuery(request, route.query);
  if (isFailure(query)) return query;
  const name = request.headers.get(undoHeader);
  const id = params?.id ?? "0";
  if (!/^[0-9]{1,15}$/.test(id)) return fail("not_found", "There is nothing at this address.");
  return route.handle({
    visitor: visitor as Visitor,
    body,
    query,
    id: Number(id),
    request,
    ...addresses.of(request, connection),
    browser: (request.headers.get("user-agent") ?? "").slice(0, browserMaxLength),
    language: mailLanguageOf(request.headers.get("accept-language")),
    undoable: (office) => (visitor === null || name === null ? office : undo.keeping(office, visitor, name)),
  });
}

function replyOf(answer: object, { method, headers }: Request): Response {
  if (answer instanceof Response) return answer;
  if (isFailure(answer)) return failureReply(answer);
  if (answer instanceof WithCookies) return jsonReply(answer.reply, answer.cookies);
  return method === "GET" ? readReply(answer, headers.get("accept-encoding")) : jsonReply(answer);
}

/** A form of another site can send neither our Origin nor JSON; both are required. */
function isOwnChange({ headers }: Request, baseUrl: string): boolean {
  const type = headers.get("content-type");
  const isJson = type === null || /^application\/json(?:$|[;\s])/i.test(type);
  return isJson && isSameOrigin(headers, baseUrl);
}

function refuseAccess(access: Access, visitor: Visitor | null): Failure | null {
  switch (access) {
    case "public":
      return null;
    case "account":
    case "operator": {
      if (visitor === null) return fail("not_signed_in", "Sign in first.");
      // (3)
      const isAllowed = access === "account" || visitor.account.operator;
      return isAllowed ? null : fail("forbidden", "Only operators may do this.");
    }
    default:
      return access satisfies never;
  }
}

async function readJson(request: Request, schema: TSchema, maxBytes: number): Promise<unknown> {
  const text = await readBody(request, maxBytes);
  if (text === null) return fail("invalid_request", `The request is larger than ${maxBytes} bytes.`);
  try {
    return checked(parseOutsideJson(text), schema, "The request");
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return fail("invalid_request", "The request is not valid JSON.");
  }
}

const readQuery = ({ url }: Request, schema: TSchema): unknown =>
  checked(Object.fromEntries(new URL(url).searchParams), schema, "The address");

function checked(value: unknown, schema: TSchema, what: string): unknown {
  if (Value.Check(schema, value)) return value;
  const [misfit] = misfitsOf(schema, value);
  const where = misfit === undefined || misfit.path.length === 0 ? what : formatPath(misfit.path);
  return fail("invalid_request", `${where} ${misfit?.problem ?? "is not understood"}.`);
}

function failureOf(thrown: unknown): Failure {
  if (thrown instanceof PasswordsBusy)
    return fail("busy", "Too many people are signing in. Try again.", busyRetrySeconds);
  if (thrown instanceof StoreUnavailable) return fail("unavailable", "The data cannot be read or written right now.");
  if (thrown instanceof EmailTaken || thrown instanceof DecidedOtherwise) return fail("conflict", sentence(thrown));
  if (thrown instanceof AccountError || thrown instanceof CommandError)
    return fail("invalid_request", sentence(thrown));
  return fail("internal", "Something went wrong on the server.");
}
