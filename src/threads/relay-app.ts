// The HTTP side of a relay: it serves model requests itself and passes everything else on to the complete server on the
// main thread. All relays listen on the same port, and the system distributes the connections.
import { Elysia } from "elysia";
import { compileBodySchemas } from "../dialects/request/field.ts";
import { Dialects } from "../dialects/registry.ts";
import type { Soon } from "../core/soon.ts";
import type { GatewayParts } from "../gateway.ts";
import { refuse } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import { ActiveSet } from "../core/active-set.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import type { TokenCounts } from "../tokens/node-count.ts";
import { ApiRoutes, type DirectRoutes } from "../http/api-routes.ts";
import { headersTimeoutSeconds, type RunningServer, serverBodyMaxBytes } from "../http/app.ts";
import { CrossOrigin } from "../http/cross-origin.ts";
import type { RawBody } from "../http/incoming.ts";
import { cutMs, idleTimeoutSeconds, Inference, noneLeftWithin, socketOptions } from "../http/inference.ts";
import type { Connection } from "../http/peer-address.ts";
import { KeyHeaders } from "../http/key-headers.ts";
import { LoopDelay } from "../http/metrics/loop-delay.ts";
import type { Metrics } from "../http/metrics/metrics.ts";
import { passOn } from "./pass-on.ts";
import { refusalReply, unknownAddressReply } from "../http/reply.ts";
import { RequestWatch } from "../http/metrics/request-watch.ts";

export type RelayServerOptions = Readonly<{
  host: string;
  port: number;
  /** The complete server's socket. */
  unix: string;
  /** The header in which a proxy names its client's address; null: none. */
  addressHeader: string | null;
  sealingKey: Uint8Array;
  counts: TokenCounts;
  metrics: Metrics;
  /** Its tracer may change, like the next. */
  tracing: Readonly<{ tracer: Tracer | null }>;
  logsRequests: () => boolean;
  /** Origins of pages that may read the API's replies. */
  corsOrigins: () => readonly string[];
  /** Resolves when no request waits for its admission. */
  decided(): Promise<void>;
}>;

/** Starts to listen beside the other relays. Throws if another program uses the address. */
export function startRelayServer(parts: GatewayParts, options: RelayServerOptions): Omit<RunningServer, "url"> {
  const { host, port, unix, addressHeader, sealingKey, counts, metrics, corsOrigins, decided } = options;
  const { clock, log } = parts;
  const watch = watchOf(parts, options);
  const loopDelay = new LoopDelay(clock, (delayMs) => metrics.countLoopDelay(delayMs));
  const dialects = new Dialects({ sealingKey, clock, storesResponses: parts.storedResponses !== null });
  const keyHeaders = new KeyHeaders(dialects.keyHeaders);
  const inference = new Inference(parts, { dialects, keyHeaders, counts, watch, addressHeader, passOn: toMain });
  const passed = new PassedRequests(unix);
  let stopping = false;

  const direct: DirectRoutes = {};
  const app = new Elysia({ normalize: false, aot: true, serve: { routes: direct } })
    .onRequest(({ request, server }) => server?.timeout(request, idleTimeoutSeconds))
    .onError(({ error, request }) => failed(request, error));
  const crossOrigin = new CrossOrigin(corsOrigins, keyHeaders);
  const arrived = (request: Request, connection: Connection) => connection.timeout(request, idleTimeoutSeconds);
  const otherwise = (request: Request, connection: Connection | null) => toMain(request, connection, null);
  inference.addRoutesTo(new ApiRoutes(app, direct, { crossOrigin, unknown: otherwise, arrived, failed }));
  app.all("/", ({ request, server }) => toMain(request, server, null), { parse: "none" });
  app.all("/*", ({ request, server }) => toMain(request, server, null), { parse: "none" });
  app.listen({
    hostname: host,
    port,
    reusePort: true,
    idleTimeout: headersTimeoutSeconds,
    maxRequestBodySize: serverBodyMaxBytes,
    development: false,
    websocket: socketOptions,
  });
  compileBodySchemas();
  const server = app.server!;

  return {
    get openRequests() {
      return inference.openRequests;
    },
    openRequestsOf: (account) => inference.openRequestsOf(account),
    async stop(graceMs) {
      stopping = true;
      const until = clock.monotonic() + graceMs;
      const stopped = server.stop();
      await decided();
      // The complete server sends its own last words on what it cuts.
      await Promise.all([inference.finish(graceMs), noneLeftWithin(graceMs + cutMs, () => passed.members(), clock)]);
      await inference.sent(server, until - clock.monotonic());
      await Promise.race([stopped, server.stop(true)]);
      loopDelay.close();
    },
  };

  async function toMain(request: Request, connection: Connection | null, body: RawBody | null): Promise<Response> {
    // It asks for a tunnel, and `node:http` would mistake the reply for one.
    if (request.method === "CONNECT") {
      return unknownAddressReply(inference.dialectOf(request), request, mintRequestId(clock.wall()));
    }
    try {
      return await passed.pass(request, connection, body);
    } catch (error) {
      return failed(request, error);
    }
  }

  function failed(request: Request, error: unknown): Soon<Response> {
    if (!stopping) log("error", "handler failed", { error: String(error) });
    const refusal = refuse(stopping ? "stopping" : "internal");
    const reply = refusalReply(inference.dialectOf(request), refusal, mintRequestId(clock.wall()));
    return crossOrigin.opened(request, reply);
  }
}

/** Reads anew what a reload may change. */
const watchOf = ({ clock, log }: GatewayParts, { metrics, logsRequests, tracing }: RelayServerOptions): RequestWatch =>
  new RequestWatch({
    metrics,
    clock,
    log,
    get logsRequests() {
      return logsRequests();
    },
    get tracer() {
      return tracing.tracer;
    },
  });

/** The requests that the complete server answers. */
class PassedRequests {
  readonly #unix: string;
  readonly #open = new ActiveSet<Promise<void>>();

  constructor(unix: string) {
    this.#unix = unix;
  }

  /** Settles as each of them ends. */
  members(): ReturnType<ActiveSet<Promise<void>>["members"]> {
    return this.#open.members();
  }

  /** The reply; 499 where the client has left. Rejects where the complete server gave none. */
  async pass(request: Request, connection: Connection | null, body: RawBody | null): Promise<Response> {
    // Its client left while its key was looked up, which no later event reports.
    if (request.signal.aborted) return left();
    const peer = connection?.requestIP(request)?.address ?? null;
    // The complete server decides how long a client may be silent.
    connection?.timeout(request, 0);
    const { promise, resolve } = Promise.withResolvers<void>();
    const seat = this.#open.join(promise);
    const ended = (): void => {
      connection?.timeout(request, idleTimeoutSeconds);
      // In the next turn, once the end is in the client's socket; otherwise a stop would cut it.
      setImmediate(() => {
        this.#open.leave(seat);
        resolve();
      });
    };
    try {
      return await passOn(request, { unix: this.#unix, peer, body, isRead: connection?.readsReplies === true, ended });
    } catch (error) {
      ended();
      if (request.signal.aborted) return left();
      throw error;
    }
  }
}

const left = (): Response => new Response(null, { status: 499 });
