// The routes that models answer, and how a request of a dialect becomes a reply. Every thread that serves clients has
// these routes and passes on what it cannot serve itself.
import { assert } from "../core/assert.ts";
import type { Clock } from "../core/clock.ts";
import type { Dialect, Keep, ReplyIdentity, RequestHead } from "../dialects/dialect.ts";
import type { Dialects } from "../dialects/registry.ts";
import type { Files } from "../files/files.ts";
import {
  type Admitted,
  admit,
  type ForOthers,
  type Incoming,
  isRefused,
  type GatewayParts,
  type Refused,
  serve,
} from "../gateway.ts";
import { ByteBudget, type ByteBudgetLimits } from "../core/byte-budget.ts";
import { inputsRepliesAccountBytesMax } from "../core/limits.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import { ActiveSet } from "../core/active-set.ts";
import type { RequestRecord } from "../telemetry/request-record.ts";
import type { TokenCounts } from "../tokens/node-count.ts";
import type { AccountId, Ask } from "../core/types.ts";
import { addressesOf, type ApiRoutes } from "./api-routes.ts";
import type { Backgrounds } from "./backgrounds.ts";
import { CollectOutlet, type ReplyParts } from "./outlets/collect-outlet.ts";
import { InputsOutlet, inputsReplyStepBytes } from "./outlets/inputs-outlet.ts";
import { Heartbeat } from "./outlets/heartbeat.ts";
import { unreadBodies } from "./arriving-bodies.ts";
import { clientAddress } from "./client-address.ts";
import type { Connection } from "./peer-address.ts";
import { ArrivedHead, incomingOf, type RawBody } from "./incoming.ts";
import type { KeyHeaders } from "./key-headers.ts";
import { setRateHeaders } from "./rate-headers.ts";
import { refusalReply } from "./reply.ts";
import { requestAddress } from "./request-address.ts";
import type { RequestWatch } from "./metrics/request-watch.ts";
import type { Soon } from "../core/soon.ts";
import type { LiveRequests, Site } from "./site.ts";
import { type EventSink, StreamOutlet } from "./outlets/stream-outlet.ts";
import type { ClientSockets } from "./sockets/client-sockets.ts";

/** Bytes that replies may take on each thread while they are built or sent. */
const inputsRepliesBytesMax = 512 * 1024 * 1024;

/** Bun counts seconds of silence on a connection; a client that waits for its answer is exempt (`answer`). */
export const idleTimeoutSeconds = 120;
/** A message's bytes are held until its last frame has come, so one is smaller than a body may be. */
export const socketOptions = {
  maxPayloadLength: 16 * 1024 * 1024,
  /** Pings go out in time before. */
  idleTimeout: idleTimeoutSeconds,
  /** None: whoever sends waits until the client has read. */
  backpressureLimit: 0,
} as const;
/** Replies that a stop cuts have this long to tell their clients. */
export const cutMs = 2_000;
/** How often a stop checks whether replies have reached their clients. */
const sentLookMs = 20;
/** A stop waits this long for requests that have arrived, since a database may be slow to identify them; but for no body. */
const arrivedMs = 5_000;

/** In steps, so that there are as many places as bytes allow. */
const inputsRepliesLimits: ByteBudgetLimits = {
  places: inputsRepliesBytesMax / inputsReplyStepBytes,
  bytes: inputsRepliesBytesMax,
  accountPlaces: inputsRepliesAccountBytesMax / inputsReplyStepBytes,
  accountBytes: inputsRepliesAccountBytesMax,
};

export type InferenceOptions = Readonly<{
  dialects: Dialects;
  keyHeaders: KeyHeaders;
  counts: Pick<TokenCounts, "estimateOfAsk">;
  watch: RequestWatch;
  /** Where requests may go on without their clients; loaded with the first one. */
  backgrounds?: (() => Promise<Backgrounds>) | null;
  /** The header in which a proxy names its client's address; null: none. */
  addressHeader: string | null;
  /** Passes on requests of `GatewayParts.isForOthers` and of signed-in browsers. `body`: as it came; null: unread. */
  passOn?: (request: Request, connection: Connection | null, body: RawBody | null) => Promise<Response>;
}>;

/** `files`: take what comes in forms. Null or absent: nothing comes in forms. */
type InferenceParts = GatewayParts & Readonly<{ files?: Pick<Files, "upload"> | null }>;

type RoutesTaken = { add(...route: Parameters<ApiRoutes["add"]>): unknown };

export class Inference implements LiveRequests {
  readonly #parts: InferenceParts;
  readonly #options: InferenceOptions;
  readonly #heartbeat = new Heartbeat();
  readonly #open = new ActiveSet<{
    outlet: Pick<CollectOutlet, "cut">;
    served: Promise<void> | null;
  }>();
  readonly #openOf = new Map<AccountId, number>();
  /** Requests that are neither admitted nor refused yet: their bodies arrive, or a database identifies them. */
  #arrived = 0;
  #noneArrived: (() => void) | null = null;
  readonly #inputsReplies = new ByteBudget(inputsRepliesLimits);
  /** Loaded with the first one. */
  #sockets: Promise<ClientSockets> | null = null;
  /** Signed-in browsers may send requests without a key. */
  site: Site | null = null;

  constructor(parts: InferenceParts, options: InferenceOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  addRoutesTo(api: RoutesTaken): void {
    for (const dialect of this.#options.dialects.all) {
      if (dialect.hasSockets) {
        api.add("GET", dialect.endpoint, (request, connection) => this.#connect(request, connection, dialect));
      }
      for (const { path, counted } of dialect.routes) {
        if (counted !== undefined || (takesForms(dialect) && this.#options.passOn !== undefined)) continue;
        api.add("POST", path, (request, connection, id) =>
          this.#answer(request, connection, dialect, new ArrivedHead(request, path, id)),
        );
      }
    }
  }

  get openRequests(): number {
    return this.#open.size;
  }

  openRequestsOf(account: AccountId): number {
    return this.#openOf.get(account) ?? 0;
  }

  /** Resolves when the system has taken all replies, or after `limitMs`. */
  async sent(server: Pick<Bun.Server<unknown>, "pendingRequests">, limitMs: number): Promise<void> {
    const { clock } = this.#parts;
    const until = clock.monotonic() + limitMs;
    while (server.pendingRequests > unreadBodies.count && clock.monotonic() < until) await Bun.sleep(sentLookMs);
  }

  /** The dialect of a request's errors: the one at its address, or elsewhere the client's. */
  dialectOf(request: Request): Dialect {
    const { pathname } = requestAddress(request);
    const isAt = (address: string): boolean => pathname === address || pathname.startsWith(`${address}/`);
    const { dialects } = this.#options;
    const asked = dialects.all.find(({ endpoint }) => addressesOf(endpoint).some(isAt));
    return asked ?? dialects.ofClient(request.headers);
  }

  /** Resolves when the open requests have ended, or were cut after `graceMs`. */
  async finish(graceMs: number): Promise<void> {
    const { clock } = this.#parts;
    const until = clock.monotonic() + graceMs;
    const disconnected = this.#sockets?.then((sockets) => sockets.stop());
    if (this.#arrived > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#noneArrived = resolve;
      await settledWithin(Math.min(graceMs, arrivedMs), [promise]);
    }
    await noneLeftWithin(Math.max(0, until - clock.monotonic()), () => this.#allServed(), clock);
    for (const { outlet } of this.#open.members()) outlet.cut(refuse("stopping"));
    await settledWithin(cutMs, this.#allServed());
    if (disconnected !== undefined) await settledWithin(cutMs, [disconnected]);
    this.#heartbeat.close();
  }

  /** Upgrades a GET request to a WebSocket. */
  async #connect(request: Request, connection: Connection | null, dialect: Dialect): Promise<Response> {
    this.#sockets ??= import("./sockets/client-sockets.ts").then(
      ({ ClientSockets }) =>
        new ClientSockets((...asked) => this.#answer(...asked), { ...this.#options, ...this.#parts }),
    );
    return (await this.#sockets).connect(request, connection, dialect);
  }

  /** `sink`: where the events of a stream go, if not into the reply's body. */
  async #answer(
    request: Request,
    connection: Connection | null,
    dialect: Dialect,
    head: RequestHead,
    sink: EventSink | null = null,
  ): Promise<Response> {
    const { keyHeaders, watch, passOn, addressHeader } = this.#options;
    if (passOn !== undefined && keyHeaders.mayBeSignedIn(request.headers)) return passOn(request, connection, null);
    const address = clientAddress(request, connection, addressHeader);
    const record = watch.arrived(dialect.endpoint, request.headers, address);
    let raw: RawBody = "";
    const keep = passOn === undefined ? undefined : (body: RawBody) => void (raw = body);
    const keepsLarge = this.#parts.largeBodies !== undefined || passOn !== undefined;
    const received = incomingOf(request, head, record.requestId, keyHeaders, this.site, keepsLarge, address, keep);
    const incoming = takesForms(dialect) ? { ...received, body: this.#formOf(request) } : received;
    this.#arrived += 1;
    let admitted: Admitted | Refused | ForOthers;
    try {
      admitted = await admit(incoming, dialect, this.#parts);
    } finally {
      this.#arrived -= 1;
      if (this.#arrived === 0) this.#noneArrived?.();
    }
    if (admitted === "for others") {
      assert(passOn !== undefined, "what is for others is passed on to them");
      return passOn(request, connection, raw); // the server that handles it counts it
    }
    const goesOn = !isRefused(admitted) && admitted.ask.background === true;
    const backgrounds = goesOn ? await this.#options.backgrounds!() : null;
    const response = await this.#reply(request, connection, dialect, record, admitted, sink, backgrounds);
    watch.replied(record, response.status);
    return response;
  }

  #formOf(request: Request): Incoming["body"] {
    return async (account) => {
      const { readAudioForm } = await import("./audio-form.ts");
      return readAudioForm(request, account, this.#parts.files ?? null);
    };
  }

  #reply(
    request: Request,
    connection: Connection | null,
    dialect: Dialect,
    record: RequestRecord,
    admitted: Admitted | Refused,
    sink: EventSink | null,
    backgrounds: Backgrounds | null,
  ): Soon<Response> {
    const parts = this.#parts;
    const { watch } = this.#options;
    const { requestId } = record;
    if (isRefused(admitted)) {
      watch.refused(record, admitted);
      return refusalReply(dialect, admitted.refused, requestId, admitted.ask);
    }
    const createdSeconds = Math.floor(record.arrivedWall / 1000);
    const { principal, ask, writer, hold, endUser } = admitted;
    // Sent where the client asked for one, or where it differs from the default.
    const priority = ask.priority === undefined && hold.priority === "standard" ? undefined : hold.priority;
    const { account } = principal;
    const watched = watch.admitted(record, principal, ask, endUser);
    const identity = { requestId, createdSeconds, priority };
    const encoderOf = (keep: Keep) => writer.encoder(identity, "events", keep);
    const background = backgrounds?.begin(account, encoderOf, { dialect, requestId, ask }) ?? null;
    const outlet = background?.outlet ?? this.#outletOf(request, dialect, admitted, identity, sink);
    if (outlet instanceof StreamOutlet && outlet.showsInput) this.#countInput(ask, account, outlet);
    // A non-streaming reply is silent until it is complete. The exemption sticks to the connection, so it is undone.
    const isSilent = (!ask.stream || ask.voice !== undefined) && background === null;
    if (isSilent) connection?.timeout(request, 0);
    this.#openOf.set(account, (this.#openOf.get(account) ?? 0) + 1);
    const opened = this.#open.join({ outlet, served: null });
    const ended = (): void => {
      this.#open.leave(opened);
      watch.ended(record, watched);
      this.#closeOf(account);
      if (outlet instanceof InputsOutlet) outlet.close();
      if (isSilent) connection?.timeout(request, idleTimeoutSeconds);
    };
    const serving = serve(admitted, outlet, parts, record);
    const served = background === null ? serving : serving.then(background.served);
    opened.member!.served = served.then(ended, (thrown: unknown) => {
      ended();
      throw thrown;
    });
    const { standsFor } = admitted.ask.model;
    const rates = hold.rates ?? null;
    if (priority === undefined && standsFor === undefined && rates === null) return outlet.response;
    return outlet.response.then((response) => {
      if (priority !== undefined) response.headers.set("x-priority", priority);
      if (standsFor !== undefined) response.headers.set("x-fallback-from", encodeURI(standsFor));
      if (rates !== null) setRateHeaders(response.headers, rates, dialect);
      return response;
    });
  }

  #outletOf(
    { signal }: Request,
    dialect: Dialect,
    { principal: { account }, ask, writer }: Admitted,
    identity: ReplyIdentity,
    sink: EventSink | null,
  ): StreamOutlet | CollectOutlet {
    const { storedResponses } = this.#parts;
    const keeps = dialect.storesResponses && storedResponses !== null;
    let keeping: void | Promise<void>;
    const keep: Keep | null = keeps ? (response) => void (keeping = storedResponses.keep(account, response)) : null;
    const reply: ReplyParts = {
      ...(keeps ? { keeping: () => keeping } : {}),
      ask,
      dialect,
      requestId: identity.requestId,
      encoder: writer.encoder(identity, ask.stream ? "events" : "whole", keep),
    };
    if (ask.stream) return new StreamOutlet(reply, signal, this.#heartbeat, sink);
    return ask.inputs === undefined
      ? new CollectOutlet(reply, signal)
      : new InputsOutlet(reply, signal, this.#inputsReplies, account);
  }

  #allServed(): Promise<void>[] {
    return this.#open.members().flatMap(({ served }) => served ?? []);
  }

  /** Runs beside the node's work on the first token, which does not wait for it. */
  #countInput(ask: Ask, account: AccountId, outlet: StreamOutlet): void {
    const { counts } = this.#options;
    void counts.estimateOfAsk(ask, ask.model.encoding, account, outlet.cancelSignal).then((count) => {
      if (!isRefusal(count)) outlet.inputCounted(count.tokens);
    });
  }

  #closeOf(account: AccountId): void {
    const left = this.#openOf.get(account)! - 1;
    if (left === 0) this.#openOf.delete(account);
    else this.#openOf.set(account, left);
  }
}

/** Its bodies are uploads to the disk, which the main thread alone writes to. */
const takesForms = ({ modelKind }: Dialect): boolean => modelKind === "transcription";

/** Resolves when none is left, or after `limitMs`. */
export async function noneLeftWithin(
  limitMs: number,
  open: () => readonly Promise<void>[],
  clock: Clock,
): Promise<void> {
  const until = clock.monotonic() + limitMs;
  // Again, because some may have come in the meantime.
  for (let leftMs = limitMs; leftMs > 0 && open().length > 0; leftMs = until - clock.monotonic()) {
    await settledWithin(leftMs, open());
  }
}

/** Resolves when all have settled, or after `limitMs`. */
async function settledWithin(limitMs: number, promises: Iterable<Promise<void>>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limitMs);
  await Promise.race([Promise.allSettled(promises), late]);
  clearTimeout(timer);
}
