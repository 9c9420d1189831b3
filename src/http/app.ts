// The HTTP side: the list of routes. Elysia is used only here, in `threads/` and in the console.
import { rmSync } from "node:fs";
import { type AnyElysia, Elysia } from "elysia";
import type { Dialect } from "../dialects/dialect.ts";
import { compileBodySchemas } from "../dialects/request/field.ts";
import { Dialects, type OpenDialect } from "../dialects/registry.ts";
import type { Files } from "../files/files.ts";
import type { StoredResponses } from "../dialects/stored-responses.ts";
import type { Soon } from "../core/soon.ts";
import type { GatewayParts } from "../gateway.ts";
import { listedModels, sampleModelOf, usualSampleModel } from "../core/catalog.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import type { Endpoint, Model, Principal, Refusal } from "../core/types.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import type { TokenCounts } from "../tokens/node-count.ts";
import { ApiRoutes, type DirectRoutes } from "./api-routes.ts";
import type { Backgrounds } from "./backgrounds.ts";
import { clientAddress } from "./client-address.ts";
import { CrossOrigin } from "./cross-origin.ts";
import type { OpenApiDocument } from "../docs/openapi-document.ts";
import type { Documentation, DocumentationOptions } from "./documentation.ts";
import { askerOf, readBody } from "./incoming.ts";
import { KeyHeaders } from "./key-headers.ts";
import type { AnswerKept, Inside } from "./kept-routes.ts";
import { idleTimeoutSeconds, Inference, socketOptions } from "./inference.ts";
import type { Connection } from "./peer-address.ts";
import { addMachineRoutes, type ManagedSettingsOf } from "./machine-routes.ts";
import { LoopDelay } from "./metrics/loop-delay.ts";
import type { Gauge } from "./metrics/metric.ts";
import { Metrics } from "./metrics/metrics.ts";
import { modelBody, modelsBody, type ModelsView } from "./models.ts";
import { jsonReply, refusalReply, unknownAddressReply } from "./reply.ts";
import { requestAddress } from "./request-address.ts";
import { RequestWatch } from "./metrics/request-watch.ts";
import { type OtherThreads, together } from "./other-threads.ts";
import type { LiveRequests, Site } from "./site.ts";
import type { Quotes } from "./quote.ts";
import { TokenRoutes } from "./token-routes.ts";

/** Most servers are up for a while before they are first scraped. */
const metricsRoute = () => import("./metrics/metrics-route.ts");

/** For a server with every route: it knows keys and stored responses itself. */
export type ServerParts = GatewayParts &
  Readonly<{
    /** Why the caller may not use a model; null: they may. */
    admission: { refuseModel(principal: Principal, model: Model): Soon<Refusal | null> };
    storedResponses: StoredResponses | null;
    /** Absent or null: no files are taken. */
    files?: Files | null;
  }>;

export type ServerOptions = Readonly<{
  host: string;
  port: number;
  /** A unix socket to listen on instead, readable only by this user; `host` and `port` are where its relays listen. */
  unix?: string | null;
  /** Called when everything is ready to listen on `port`. */
  beforeListening?: () => void;
  /** Seals what clients carry for us; the same after every restart. */
  sealingKey: Uint8Array;
  /** Whether a request is open at another gateway; absent or null: there is none. */
  isOpenElsewhere?: ((requestId: string) => Promise<boolean>) | null;
  /** Absent: all dialects. */
  dialects?: readonly OpenDialect[];
  counts: TokenCounts;
  /** Absent: nothing is quoted. */
  quotes?: Quotes;
  /** What Claude Code does on an account's machines; null: as its person likes. */
  managedSettings?: ManagedSettingsOf;
  /** Absent: there is no API for operators. */
  operators?: Operators;
  /** Answers requests about batches. Absent: there are none. */
  openBatches?: (inside: Inside) => AnswerKept;
  /** Pages and routes that another part adds, and the browsers that are signed in to them. */
  openSite?: (requests: LiveRequests) => Site;
  /** {base_url}; null: the address where it listens. */
  baseUrl?: string | null;
  /** The fonts and icon of the reference page; null: none. */
  siteFiles?: DocumentationOptions["siteFiles"];
  /** Why requests should go to another gateway if there is one, in one line; null where all is well. */
  unready?: () => string | null;
  /** What keeps some requests waiting although all else is well, one sentence each. */
  hindrances?: () => readonly string[];
  /** The model in samples; absent: one from the catalog. */
  sampleModel?: () => string;
  /** The context in tokens that a model's nodes report; null where they report none. */
  nodesContext?: (modelId: string) => number | null;
  /** Other parts' values for Prometheus, read at each scrape. */
  gauges?: () => Promise<Iterable<Gauge>>;
  /** Shared metrics; absent: the server's own. */
  metrics?: Metrics;
  /** The token that a scraper must send; null: it must be on this machine. It may change, like the next ones. */
  metricsToken?: string | null;
  /** Whether clients come through a proxy, by configuration. */
  behindProxy?: boolean;
  /** The header in which a proxy names its client's address; absent or null: none. */
  addressHeader?: string | null;
  /** Origins of pages that may read the API's replies; ["*"]: all; absent: none. */
  corsOrigins?: readonly string[];
  /** Null: tracing is off. */
  tracer?: Tracer | null;
  /** True: each request is a line of the log at debug level. */
  logsRequests?: boolean;
  /** Other threads that serve clients; null if there are none. */
  others?: OtherThreads | null;
}>;

export interface RunningServer extends LiveRequests {
  readonly url: string;
  /** Takes no new work; resolves when the open requests have ended, or were cut after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** A connection's first request has this long for its headers, however slowly they arrive: Bun does not restart it. */
export const headersTimeoutSeconds = 12;
/**
 * Bun answers larger bodies itself with a bare 413; ours has the dialect's form. A file may be as large as the configuration
 * says. What no handler reads is not taken from the socket.
 */
export const serverBodyMaxBytes = 2 ** 41;

/** Requests about stored things; the first one loads the code. */
const stored = [
  {
    at: "/v1/responses",
    load: () => import("./stored-responses.ts"),
    routes: ["GET /:id", "DELETE /:id", "POST /:id/cancel", "GET /:id/input_items"],
  },
  {
    at: "/v1/conversations",
    load: () => import("./conversations.ts"),
    routes: [
      ...["POST ", "GET /:id", "POST /:id", "DELETE /:id", "GET /:id/items", "POST /:id/items"],
      ...["GET /:id/items/:item", "DELETE /:id/items/:item"],
    ],
  },
  {
    at: "/v1/files",
    load: () => import("./files.ts"),
    routes: ["POST ", "GET ", "GET /:id", "DELETE /:id", "GET /:id/content"],
  },
] as const;

/** Loaded with the first request that goes on without its client, or that asks for one. */
function backgroundsOf(
  { storedResponses: responses, clock }: ServerParts,
  { isOpenElsewhere = null }: ServerOptions,
): (() => Promise<Backgrounds>) | null {
  if (responses === null) return null;
  let loaded: Promise<Backgrounds> | null = null;
  const load = async () => new (await import("./backgrounds.ts")).Backgrounds({ responses, isOpenElsewhere, clock });
  return () => (loaded ??= load());
}

/** What routes about kept things have of the server. */
type Parties = Readonly<{
  api: ApiRoutes;
  parts: ServerParts;
  inference: Inference;
  backgrounds: (() => Promise<Backgrounds>) | null;
  keyHeaders: KeyHeaders;
  addressHeader: string | null;
  whoseIs(request: Request, connection: Connection | null): Promise<Principal | Refusal>;
  /** A reply for whom a key or a session stands for; `answer` gives it whole, or its JSON text. */
  answered(
    dialect: Dialect,
    request: Request,
    connection: Connection | null,
    answer: (asker: Principal, requestId: string) => Promise<string | Response | Refusal>,
  ): Promise<Response>;
}>;

const batchRoutes = {
  "/v1/batches": ["POST ", "GET ", "GET /:id", "POST /:id/cancel"],
  "/v1/messages/batches": ["POST ", "GET ", "GET /:id", "POST /:id/cancel", "GET /:id/results", "DELETE /:id"],
} as const;

/** `storing`: the dialect that stores. */
function addStored(storing: Dialect, { api, parts, inference, backgrounds, whoseIs, answered }: Parties): void {
  for (const { at, load, routes } of stored) {
    for (const route of routes) {
      const [method, below] = route.split(" ") as ["GET" | "POST" | "DELETE", string];
      api.add(method, `${at}${below}`, (request, connection, id) => {
        const dialect = at === "/v1/files" ? inference.dialectOf(request) : storing;
        return answered(dialect, request, connection, async ({ account }, requestId) => {
          const { actions } = await load();
          return actions[route]!({
            request,
            connection,
            id,
            account,
            dialect,
            responses: parts.storedResponses,
            backgrounds: (await backgrounds?.()) ?? null,
            files: parts.files ?? null,
            now: () => parts.clock.wall(),
            async isStillAllowed() {
              const again = await whoseIs(request, connection);
              return isRefusal(again) ? again : null;
            },
            stem: requestId.slice("req_".length),
          });
        });
      });
    }
  }
}

function addBatches(answer: AnswerKept, { api, inference, keyHeaders, addressHeader, answered }: Parties): void {
  for (const [at, routes] of Object.entries(batchRoutes)) {
    for (const route of routes) {
      const [method, below] = route.split(" ") as ["GET" | "POST" | "DELETE", string];
      api.add(method, `${at}${below}` as Endpoint, (request, connection, id) =>
        answered(inference.dialectOf(request), request, connection, (asker) => {
          const address = () => clientAddress(request, connection, addressHeader);
          const body = () => readBody(request, asker.account, true);
          const key = keyHeaders.keyOf(request.headers);
          return answer(`${method} ${at}${below}`, { asker, key, id, request, address, body });
        }),
      );
    }
  }
}

/** Starts to listen. Throws if the address is in use. */
export function startServer(parts: ServerParts, options: ServerOptions): RunningServer {
  const {
    host,
    port,
    sealingKey,
    counts,
    openSite,
    unready = () => null,
    hindrances = () => [],
    gauges = async () => [],
  } = options;
  const { nodesContext = () => null, addressHeader = null } = options;
  const { metrics = new Metrics(), unix = null, others = null } = options;
  const watch = new RequestWatch({
    metrics,
    clock: parts.clock,
    log: parts.log,
    get logsRequests() {
      return options.logsRequests ?? false;
    },
    get tracer() {
      return options.tracer ?? null;
    },
  });
  const context = { sealingKey, clock: parts.clock, storesResponses: parts.storedResponses !== null };
  const dialects = new Dialects(context, options.dialects);
  const keyHeaders = new KeyHeaders(dialects.keyHeaders);
  const backgrounds = backgroundsOf(parts, options);
  const inference = new Inference(parts, { dialects, keyHeaders, counts, watch, addressHeader, backgrounds });
  const live = others === null ? inference : together(inference, others);
  const site = (inference.site = openSite?.(live) ?? null);
  const tokens = new TokenRoutes({ ...parts, dialects, keyHeaders }, counts, site, addressHeader, options.quotes);
  let documented: Promise<Documentation> | null = null;
  const documentation = () =>
    (documented ??= import("./documentation.ts").then(({ Documentation }) => new Documentation(documents)));
  const documents: DocumentationOptions = {
    facts: () => ({
      catalog: parts.catalog,
      baseUrl: options.baseUrl ?? listening,
      sampleModel: options.sampleModel?.() ?? sampleModelOf(parts.catalog)?.id ?? usualSampleModel,
    }),
    hasBaseUrl: (options.baseUrl ?? null) !== null,
    siteFiles: options.siteFiles ?? null,
  };
  const scraped = {
    metrics,
    others,
    watch,
    gauges,
    requests: live,
    access: () => ({ token: options.metricsToken ?? null, behindProxy: options.behindProxy ?? false }),
  };
  let stopping = false;
  const direct: DirectRoutes = {};
  // The limit is for a unix socket, for which Bun's types allow none below; Elysia's own is shorter.
  const serve = { idleTimeout: idleTimeoutSeconds, routes: direct };
  const app = new Elysia({ normalize: false, aot: true, serve })
    .onRequest(({ request, server }) => server?.timeout(request, idleTimeoutSeconds))
    .onError(({ error, request }) => failed(request, error))
    .get("/healthz", () => new Response("ok\n"))
    .get("/readyz", () => {
      const reason = stopping ? "stopping" : unready();
      const waits = hindrances();
      const body = { ready: reason === null, reason: reason ?? undefined, waits: waits.length > 0 ? waits : undefined };
      return Response.json(body, { status: reason === null ? 200 : 503 });
    })
    .get("/metrics", async ({ request, server }) => (await metricsRoute()).metricsReply(request, server, scraped))
    .head("/", () => new Response(null))
    .head("/api/hello", () => new Response(null))
    .get("/openapi.json", async ({ request }) => (await documentation()).description(request))
    .get("/docs", async ({ request }) => (await documentation()).reference(request))
    .get("/docs/guide", () => new Response(null, { status: 302, headers: { location: "/docs/guide/start" } }))
    .get(
      "/docs/guide/:chapter",
      async ({ request, params }) =>
        (await (await documentation()).guide(request, params.chapter)) ?? unknownPath(request),
    );
  const crossOrigin = new CrossOrigin(() => options.corsOrigins ?? [], keyHeaders);
  const arrived = (request: Request, connection: Connection) => connection.timeout(request, idleTimeoutSeconds);
  const api = new ApiRoutes(app, direct, { crossOrigin, unknown: unknownPath, arrived, failed })
    .add("GET", "/v1/models", (request, connection) => listModels(request, connection))
    // An id may contain slashes, which not every client encodes.
    .add("GET", "/v1/models/*", (request, connection, id) => showModel(request, connection, id));
  addMachineRoutes(app, { whoseIs, dialects, clock: parts.clock, settingsOf: options.managedSettings });
  tokens.addRoutesTo(api);
  inference.addRoutesTo(api);
  const parties: Parties = { api, parts, inference, backgrounds, keyHeaders, addressHeader, whoseIs, answered };
  for (const dialect of dialects.all) if (dialect.storesResponses) addStored(dialect, parties);
  const batches = options.openBatches?.({ parts, dialects, watch });
  if (batches !== undefined) addBatches(batches, parties);
  if (site !== null) app.use(site.routes);
  if (options.operators !== undefined) addOperators(app, options.operators, documentation, addressHeader);
  app.all("/*", ({ request }) => unknownPath(request), { parse: "none" });
  const always = { maxRequestBodySize: serverBodyMaxBytes, development: false } as const;
  if (unix === null) {
    options.beforeListening?.();
    const idleTimeout = headersTimeoutSeconds;
    app.listen({ ...always, hostname: host, port, reusePort: false, idleTimeout, websocket: socketOptions });
  } else listenPrivately(unix, () => app.listen({ ...always, unix }));
  compileBodySchemas();
  const loopDelay = new LoopDelay(parts.clock, (delayMs) => metrics.countLoopDelay(delayMs));
  const server = app.server!;
  const listening = `http://${host.includes(":") ? `[${host}]` : host}:${server.port ?? port}`;

  return {
    url: listening,
    get openRequests() {
      return inference.openRequests;
    },
    openRequestsOf: (account) => inference.openRequestsOf(account),
    async stop(graceMs) {
      stopping = true;
      const until = parts.clock.monotonic() + graceMs;
      site?.close();
      const stopped = server.stop();
      await inference.finish(graceMs);
      await inference.sent(server, until - parts.clock.monotonic());
      await Promise.race([stopped, server.stop(true)]);
      loopDelay.close();
    },
  };

  function whoseIs(request: Request, connection: Connection | null): Promise<Principal | Refusal> {
    const address = () => clientAddress(request, connection, addressHeader);
    const { keys, clock } = parts;
    // A revoked key reads nothing that is stored, wherever it was revoked.
    const principal = (key: string) => (keys.principalNow ?? keys.principal).call(keys, key);
    return askerOf(request, keyHeaders, { keys: { principal }, clock }, site, address);
  }

  /** A header may show which library the list is for. */
  function viewOf(request: Request): ModelsView {
    return { nodesContext, ownCapabilities: dialects.speaking(request.headers)?.capabilities ?? null };
  }

  async function answered(
    ...[dialect, request, connection, answer]: Parameters<Parties["answered"]>
  ): Promise<Response> {
    const requestId = mintRequestId(parts.clock.wall());
    const asker = await whoseIs(request, connection);
    const reply = isRefusal(asker) ? asker : await answer(asker, requestId);
    if (reply instanceof Response) return reply;
    return isRefusal(reply) ? refusalReply(dialect, reply, requestId) : jsonReply(reply, requestId);
  }

  /** The models that the caller may use, because clients pick from the list. */
  function listModels(request: Request, connection: Connection | null): Promise<Response> {
    return answered(inference.dialectOf(request), request, connection, async (asker) => {
      const usable: Model[] = [];
      for (const model of listedModels(parts.catalog)) {
        const refused = await parts.admission.refuseModel(asker, model);
        if (refused === null) usable.push(model);
        else if (refused.refusal === "quota_unverified") return refused;
      }
      return JSON.stringify(modelsBody(usable, requestAddress(request).searchParams, viewOf(request)));
    });
  }

  function showModel(request: Request, connection: Connection | null, id: string): Promise<Response> {
    return answered(inference.dialectOf(request), request, connection, async (asker) => {
      const model = parts.catalog.models.get(id);
      if (model === undefined) return refuse("not_found", { reason: `The model \`${id}\` does not exist` });
      return (await parts.admission.refuseModel(asker, model)) ?? JSON.stringify(modelBody(model, viewOf(request)));
    });
  }

  function failed(request: Request, error: unknown): Soon<Response> {
    parts.log("error", "handler failed", { error: String(error) });
    const reply = refusalReply(inference.dialectOf(request), refuse("internal"), mintRequestId(parts.clock.wall()));
    return openedIfApi(request, reply);
  }

  function unknownPath(request: Request): Soon<Response> {
    const reply = unknownAddressReply(inference.dialectOf(request), request, mintRequestId(parts.clock.wall()));
    return openedIfApi(request, reply);
  }

  /** An API address where nothing else answers. */
  function openedIfApi(request: Request, reply: Response): Soon<Response> {
    if (!api.isAt(requestAddress(request).pathname)) return reply;
    return crossOrigin.preflight(request) ?? crossOrigin.opened(request, reply);
  }
}

/** What programs of operators ask; it knows its own keys. */
export type Operators = Readonly<{
  answer(request: Request, path: string, address: string | null): Promise<Response>;
  description(): Promise<OpenApiDocument>;
}>;

function addOperators(
  app: AnyElysia,
  operators: Operators,
  documentation: () => Promise<Documentation>,
  addressHeader: string | null,
): void {
  const base = "/api/v1";
  app.all(
    `${base}/*`,
    ({ request, server }) => {
      const path = requestAddress(request).pathname.slice(base.length);
      return operators.answer(request, path, clientAddress(request, server, addressHeader));
    },
    { parse: "none" },
  );
  app.get("/docs/operators", async ({ request }) => (await documentation()).operators(request, operators.description));
}

/** The socket is never open to others, not even before its mode could be changed. */
function listenPrivately(unix: string, listen: () => void): void {
  rmSync(unix, { force: true }); // a dead server's: the caller holds the data folder
  const before = process.umask(0o177);
  try {
    listen();
  } finally {
    process.umask(before);
  }
}
