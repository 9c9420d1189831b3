// The HTTP side: the list of routes, and how a request of a dialect becomes a reply. Elysia is used here and in the
// console alone.
import { Elysia } from "elysia";
import { chatCompletions } from "../dialects/chat-completions.ts";
import type { Dialect } from "../dialects/dialect.ts";
import { messages } from "../dialects/messages.ts";
import { compactionDialect, responsesDialect } from "../dialects/responses.ts";
import { admit, isRefused, type Parts, serve } from "../gateway.ts";
import { bodyMaxBytes } from "../limits.ts";
import { isRefusal, refuse } from "../refusals.ts";
import { mintRequestId } from "../request-id.ts";
import type { RequestRecord } from "../telemetry/request-record.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import type { TokenCounts } from "../tokens/node-count.ts";
import type { AccountId, Ask } from "../types.ts";
import { ApiReference, type ApiReferenceOptions } from "./api-reference.ts";
import { CollectOutlet } from "./collect-outlet.ts";
import { Heartbeat } from "./heartbeat.ts";
import { accountOf, incomingOf } from "./incoming.ts";
import { LoopDelay } from "./loop-delay.ts";
import type { Gauge } from "./metric.ts";
import { Metrics } from "./metrics.ts";
import { mayReadMetrics } from "./metrics-access.ts";
import { modelBody, modelsBody } from "./models.ts";
import { jsonReply, refusalReply } from "./reply.ts";
import { RequestWatch } from "./request-watch.ts";
import type { LiveRequests, Site } from "./site.ts";
import {
  cancelResponse,
  deleteResponse,
  listInputItems,
  showResponse,
  type StoredResponseAction,
} from "./stored-responses.ts";
import { StreamOutlet } from "./stream-outlet.ts";
import { TokenRoutes } from "./token-routes.ts";

export type ServerOptions = Readonly<{
  host: string;
  port: number;
  /** Seals what clients of /v1/responses carry for us; the same after every restart. */
  sealingKey: Uint8Array;
  counts: TokenCounts;
  /** Pages and routes that another part adds, and browsers that are signed in to them. */
  openSite?: (requests: LiveRequests) => Site;
  /** {base_url}; null: where it listens. */
  baseUrl?: string | null;
  /** Where the fonts and the icon of the reference page are; null: it does without. */
  siteFiles?: ApiReferenceOptions["siteFiles"];
  /** Why requests should go to another gateway if there is one, in one line; null where all is well. */
  unready?: () => string | null;
  /** What other parts tell Prometheus, asked for at each scrape. */
  gauges?: () => Iterable<Gauge>;
  /** Where others count too; absent: the server's own. */
  metrics?: Metrics;
  /** What a scraper must bring; null: it must ask from this machine. */
  metricsToken?: string | null;
  /** Null: nothing is traced. */
  tracer?: Tracer | null;
  /** True: each request is a line of the log at debug level. */
  logsRequests?: boolean;
}>;

export interface RunningServer {
  readonly url: string;
  /** Requests whose reply is not finished. */
  readonly openRequests: number;
  /** Takes no new work; resolves when the open requests have ended, or were cut after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** A connection's first request has this long for its headers, however they drip: Bun does not count from each byte. */
const headersTimeoutSeconds = 12;
/** Bun counts seconds of silence on a connection; a client that is waiting for its answer is exempt (`answer`). */
const idleTimeoutSeconds = 120;
/** What is cut at a stop has this long to say so to its client. */
const cutMs = 2_000;
/** Bun answers larger bodies itself, with a bare 413; ours is in the dialect's form. */
const serverBodyMaxBytes = 4 * bodyMaxBytes;

/** Starts to listen. Throws if the address is taken. */
export function startServer(parts: Parts, options: ServerOptions): RunningServer {
  const { host, port, sealingKey, counts, openSite, unready = () => null, gauges = () => [] } = options;
  const responsesOptions = { sealingKey, clock: parts.clock, storesResponses: parts.storedResponses !== null };
  const responses = responsesDialect(responsesOptions);
  const dialects: readonly Dialect[] = [chatCompletions, messages, responses];
  const compaction = compactionDialect(responsesOptions);
  const heartbeat = new Heartbeat();
  const { metrics = new Metrics(), metricsToken = null, tracer = null, logsRequests = false } = options;
  const watch = new RequestWatch({ metrics, clock: parts.clock, log: parts.log, logsRequests, tracer });
  const loopDelay = new LoopDelay(parts.clock, (delayMs) => metrics.countLoopDelay(delayMs));
  const open = new Map<StreamOutlet | CollectOutlet, Promise<void>>();
  const openOf = new Map<AccountId, number>();
  const site =
    openSite?.({
      get openRequests() {
        return open.size;
      },
      openRequestsOf: (account) => openOf.get(account) ?? 0,
    }) ?? null;
  const tokens = new TokenRoutes(parts, counts, site);
  const reference = new ApiReference({
    facts: () => ({ catalog: parts.catalog, baseUrl: options.baseUrl ?? listening }),
    siteFiles: options.siteFiles ?? null,
  });
  let stopping = false;

  const app = new Elysia({ normalize: false, aot: true })
    .onRequest(({ request, server }) => server?.timeout(request, idleTimeoutSeconds))
    .onError(({ error, request }) => {
      parts.log("error", "handler failed", { error: String(error) });
      const dialect = dialectOf(new URL(request.url).pathname);
      return refusalReply(dialect, refuse("internal"), mintRequestId(parts.clock.wall()));
    })
    .get("/healthz", () => new Response("ok\n"))
    .get("/readyz", () => {
      const reason = stopping ? "stopping" : unready();
      return new Response(`${reason ?? "ready"}\n`, { status: reason === null ? 200 : 503 });
    })
    .get("/metrics", ({ request, server }) => metricsReply(request, server?.requestIP(request)?.address ?? null))
    .head("/", () => new Response(null))
    .head("/api/hello", () => new Response(null))
    .get("/v1/responses", ({ request }) => upgradeRequired(request))
    .get("/v1/responses/:id", ({ request, params }) => stored(request, params.id, showResponse))
    .delete("/v1/responses/:id", ({ request, params }) => stored(request, params.id, deleteResponse))
    .post("/v1/responses/:id/cancel", ({ request, params }) => stored(request, params.id, cancelResponse), {
      parse: "none",
    })
    .get("/v1/responses/:id/input_items", ({ request, params }) => stored(request, params.id, listInputItems))
    .post("/v1/tokenize", ({ request }) => tokens.tokenize(request, chatCompletions), { parse: "none" })
    .post("/v1/messages/count_tokens", ({ request }) => tokens.countMessages(request, messages), { parse: "none" })
    .post("/v1/responses/input_tokens", ({ request }) => tokens.countResponsesInput(request, responses), {
      parse: "none",
    })
    .get("/openapi.json", ({ request }) => reference.json(request))
    .get("/docs", ({ request }) => reference.page(request))
    .get("/v1/models", ({ request }) => listModels(request))
    .get("/v1/models/:id", ({ request, params }) => showModel(request, params.id));
  for (const dialect of dialects) {
    // A client given {base_url}/v1 or {base_url} where it wants the other asks these paths; both are meant well.
    for (const path of [dialect.endpoint, dialect.endpoint.slice("/v1".length), `/v1${dialect.endpoint}`]) {
      app.post(path, ({ request, server }) => answer(request, server, dialect), { parse: "none" });
    }
  }
  for (const path of ["/v1/responses/compact", "/responses/compact", "/v1/v1/responses/compact"]) {
    app.post(path, ({ request, server }) => answer(request, server, compaction), { parse: "none" });
  }
  if (site !== null) app.use(site.routes);
  app.all("/*", ({ request }) => unknownPath(request), { parse: "none" });
  app.listen({
    hostname: host,
    port,
    reusePort: false,
    idleTimeout: headersTimeoutSeconds,
    maxRequestBodySize: serverBodyMaxBytes,
    development: false,
  });
  const server = app.server!;
  const listening = `http://${host.includes(":") ? `[${host}]` : host}:${server.port}`;

  return {
    url: listening,
    get openRequests() {
      return open.size;
    },
    async stop(graceMs) {
      stopping = true;
      site?.close();
      const stopped = server.stop();
      await settledWithin(graceMs, open.values());
      for (const outlet of open.keys()) outlet.cut(refuse("stopping"));
      await settledWithin(cutMs, open.values());
      await Promise.race([stopped, server.stop(true)]);
      heartbeat.close();
      loopDelay.close();
    },
  };

  /** Whose error shape an address gets: its dialect's, or that of chat-completions. */
  function dialectOf(pathname: string): Dialect {
    return dialects.find(({ endpoint }) => pathname.includes(endpoint.slice("/v1".length))) ?? chatCompletions;
  }

  async function answer(request: Request, connection: Connection | null, dialect: Dialect): Promise<Response> {
    const record = watch.arrived(dialect.endpoint, request.headers);
    const response = await reply(request, connection, dialect, record);
    watch.replied(record, response.status);
    return response;
  }

  async function reply(
    request: Request,
    connection: Connection | null,
    dialect: Dialect,
    record: RequestRecord,
  ): Promise<Response> {
    const { requestId } = record;
    const admitted = await admit(incomingOf(request, requestId, site), dialect, parts);
    if (isRefused(admitted)) {
      watch.refused(record, admitted.refused, admitted.ask);
      return refusalReply(dialect, admitted.refused, requestId, admitted.ask);
    }
    const createdSeconds = Math.floor(record.arrivedWall / 1000);
    const { account, ask } = admitted;
    watch.admitted(record, account, ask);
    const own = dialect.keeping?.(ask, (response) => parts.storedResponses?.keep(account, response)) ?? dialect;
    const outlet = ask.stream
      ? new StreamOutlet(ask, requestId, createdSeconds, own, request.signal, heartbeat)
      : new CollectOutlet(ask, requestId, createdSeconds, own, request.signal);
    if (outlet instanceof StreamOutlet && outlet.showsInput) countInput(ask, account, outlet);
    // A non-streaming reply is silent until it is complete; the exemption sticks to the connection, so it is undone.
    if (!ask.stream) connection?.timeout(request, 0);
    openOf.set(account, (openOf.get(account) ?? 0) + 1);
    const served = serve(admitted, outlet, parts, record).finally(() => {
      open.delete(outlet);
      watch.ended(record);
      closeOf(account);
      if (!ask.stream) connection?.timeout(request, idleTimeoutSeconds);
    });
    open.set(outlet, served);
    return outlet.response;
  }

  /** Beside the node's work on the first token, which does not wait for it. */
  function countInput(ask: Ask, account: AccountId, outlet: StreamOutlet): void {
    void counts.estimateOfAsk(ask, ask.model.encoding, account, outlet.gone).then((count) => {
      if (!isRefusal(count)) outlet.inputCounted(count.tokens);
    });
  }

  function closeOf(account: AccountId): void {
    const left = openOf.get(account)! - 1;
    if (left === 0) openOf.delete(account);
    else openOf.set(account, left);
  }

  function metricsReply({ headers }: Request, address: string | null): Response {
    if (mayReadMetrics(headers, address, metricsToken)) {
      return new Response(metrics.text(allGauges()), { headers: { "content-type": "text/plain; version=0.0.4" } });
    }
    const wanted =
      metricsToken === null
        ? "Metrics are for this machine alone; set token_env in [metrics] to read them from elsewhere"
        : "Metrics need the token of [metrics] as Authorization: Bearer";
    return new Response(`${wanted}\n`, { status: metricsToken === null ? 403 : 401 });
  }

  function* allGauges(): Iterable<Gauge> {
    yield { name: "tollgate_open_requests", help: "Admitted requests that have not ended.", value: open.size };
    yield {
      name: "tollgate_held_ends",
      help: "Answers that wait for their charge to be on disk.",
      value: watch.heldEnds,
    };
    const { user, system } = process.cpuUsage();
    yield {
      name: "tollgate_cpu_seconds_total",
      help: "CPU time of the process.",
      value: (user + system) / 1e6,
      type: "counter",
    };
    yield { name: "tollgate_resident_memory_bytes", help: "Resident memory.", value: process.memoryUsage.rss() };
    yield* gauges();
  }

  /** Both SDK families list models at one address; the version header tells which error shape is understood. */
  function listDialect(request: Request): Dialect {
    return request.headers.has("anthropic-version") ? messages : chatCompletions;
  }

  function listModels(request: Request): Response {
    const requestId = mintRequestId(parts.clock.wall());
    const account = accountOf(request, parts.keys, site);
    if (isRefusal(account)) return refusalReply(listDialect(request), account, requestId);
    return jsonReply(JSON.stringify(modelsBody(parts.catalog, new URL(request.url).searchParams)), requestId);
  }

  function showModel(request: Request, id: string): Response {
    const requestId = mintRequestId(parts.clock.wall());
    const account = accountOf(request, parts.keys, site);
    if (isRefusal(account)) return refusalReply(listDialect(request), account, requestId);
    const model = parts.catalog.models.get(id);
    if (model === undefined) {
      const reason = `The model \`${id}\` does not exist`;
      return refusalReply(listDialect(request), refuse("not_found", { reason }), requestId);
    }
    return jsonReply(JSON.stringify(modelBody(model)), requestId);
  }

  /** A request about one response that the account stored earlier. */
  async function stored(request: Request, id: string, act: StoredResponseAction): Promise<Response> {
    const requestId = mintRequestId(parts.clock.wall());
    const account = accountOf(request, parts.keys, site);
    const found = isRefusal(account)
      ? account
      : await act(parts.storedResponses, account, id, new URL(request.url).searchParams);
    return isRefusal(found) ? refusalReply(responses, found, requestId) : jsonReply(found.body, requestId);
  }

  /** Codex asks for a WebSocket first and falls back to HTTP at once on a 426, but on nothing else. */
  function upgradeRequired(request: Request): Response {
    if (!request.headers.has("upgrade")) return unknownPath(request);
    return refusalReply(responses, refuse("upgrade_required"), mintRequestId(parts.clock.wall()));
  }

  function unknownPath(request: Request): Response {
    const { pathname } = new URL(request.url);
    const reason = `There is no ${request.method} ${pathname} here. The API is under /v1, e.g. POST /v1/chat/completions`;
    return refusalReply(dialectOf(pathname), refuse("not_found", { reason }), mintRequestId(parts.clock.wall()));
  }
}

/** Resolves when all have settled, or after `limitMs`. */
async function settledWithin(limitMs: number, promises: Iterable<Promise<void>>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limitMs);
  await Promise.race([Promise.allSettled(promises), late]);
  clearTimeout(timer);
}

interface Connection {
  timeout(request: Request, seconds: number): void;
}
