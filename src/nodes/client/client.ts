// The pooled HTTP/1.1 client for one node, on raw sockets. `fetch` is not used here: it runs at most 256 requests at once,
// costs twice the CPU per event, and replays and reuses connections by rules that are not ours.
//
// A connection's life:  dialing -> busy -> idle -> busy -> ... -> closed
// - Bytes, an end or an error on an idle connection close it; what came is given to nobody.
// - Bytes that the system received but the event loop did not show yet would be taken for the reply. So the socket is
//   looked into right before an idle connection is taken. (Not after the write: a quick node's reply may be there then.)
// - A request is written again exactly once, on a new connection, and only if a reused one closed without a byte of reply.
import type { Socket } from "bun";
import { assert } from "../../core/assert.ts";
import type { Clock } from "../../core/clock.ts";
import { atEndOfTurn, limitAtEndOfTurn } from "../../core/end-of-turn.ts";
import {
  nodeBusyLookMs,
  nodeConnectTimeoutMs,
  nodeGoneMs,
  nodeHeardMs,
  nodeIdleSocketMs,
  nodeKeptSocketMs,
  nodeReadRestBytes,
  nodeSocketsIdleMax,
} from "../../core/limits.ts";
import { ResponseParser } from "./framing.ts";
import type { ResponseHandler, ResponseHeaders } from "./framing.ts";
import { canPeek, hasWaiting, isGone, startProbes, stopProbes, wasHeard } from "./system-socket.ts";

/** Why no whole response came. */
export type ExchangeFault = Readonly<{
  kind:
    | "unreachable" // refused, no route, unknown name, not in time, or a certificate that does not fit
    | "no-reply" // closed before a byte of the reply
    | "broken" // closed within the reply
    | "malformed"; // not HTTP as we accept it
  /** For the operator's log; without anything that the node sent. */
  cause: string;
}>;

/** Receives one response. After `end` or `fault` nothing more comes; after `Exchange.abort` nothing at all. */
export interface ExchangeHandler {
  head(status: number, headers: ResponseHeaders): void;
  /** A part of the body: a view into the read's buffer, valid during the call only. */
  body(bytes: Buffer, start: number, end: number): void;
  /** The parts of one read of the socket were given. */
  readEnd(): void;
  end(): void;
  fault(fault: ExchangeFault): void;
  /** Asked before a request is written again; absent: it may be. */
  mayBeSentAgain?(): boolean;
}

/** One request and its response. */
export interface Exchange {
  /** Stops reading from the node until `resume`. */
  pause(): void;
  resume(): void;
  /** Closes the connection at once; the handler hears nothing more. */
  abort(): void;
  /**
   * The caller has what it wanted. If the response's framing ends within `drainMs`, the connection is kept for the
   * next request, else closed. The handler hears nothing more.
   */
  release(drainMs: number): void;
}

export type Origin = Readonly<{ hostname: string; port: number; tls: boolean; hostHeader: string }>;

/** What the client uses of a socket. */
export type NodeSocket = Pick<Socket, "write" | "pause" | "resume" | "terminate"> & {
  /** File descriptor; bun-types 1.4.5 does not name it. */
  readonly fd: number;
};
/** What a socket tells; all calls come from the event loop, never from within `dial`. */
export interface SocketListener {
  /** The host was reached; over TLS, who it is comes later, if at all. */
  reached(socket: NodeSocket): void;
  opened(socket: NodeSocket): void;
  received(bytes: Buffer): void;
  drained(): void;
  /** The other side sent its end in order. `closed` may or may not follow. */
  ended(): void;
  /** The connection is gone, or dialing failed. */
  closed(cause: string): void;
}
export type Dial = (origin: Origin, listener: SocketListener) => void;

export type ClientOptions = Readonly<{
  clock: Clock;
  dial?: Dial;
  connectTimeoutMs?: number;
  idleSocketMs?: number;
  heardMs?: number;
  busyLookMs?: number;
  goneMs?: number;
}>;

/** Parses a node's base address. Throws TypeError on anything but http(s). */
export function originOf(url: URL): Origin {
  const tls = url.protocol === "https:";
  if (!tls && url.protocol !== "http:") throw new TypeError(`a node's address must be http or https: ${url.protocol}`);
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { hostname, port: Number(url.port || (tls ? 443 : 80)), tls, hostHeader: url.host };
}

/** Strings are turned into bytes where they are written. */
export type RequestPart = string | Buffer;

const nothing: readonly Buffer[] = [];

/** Where most requests are put together: they leave in one write, so that no bytes of their own are ever made. */
const scratch = Buffer.allocUnsafeSlow(128 * 1024);

/** Puts a request of strings into `scratch`; its length, or null where it is not one or may not fit. */
function putTogether(request: readonly RequestPart[]): number | null {
  let bytes = 0;
  for (const part of request) {
    if (typeof part !== "string" || bytes + part.length * 3 > scratch.length) return null; // 3: UTF-8 of a UTF-16 unit
    bytes += scratch.write(part, bytes);
  }
  return bytes;
}

/** The connections to one origin. */
export class NodeClient {
  readonly #origin: Origin;
  readonly #options: Required<ClientOptions>;
  readonly #connections = new Set<Connection>();
  /** Least recently used first. */
  readonly #idle: Connection[] = [];
  /** Those of this turn of the event loop. */
  #unsent: PendingExchange[] = [];
  #sweep: ReturnType<typeof setTimeout> | null = null;
  #busyLook: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  constructor(origin: Origin, options: ClientOptions) {
    this.#origin = origin;
    this.#options = {
      dial: dialSocket,
      connectTimeoutMs: nodeConnectTimeoutMs,
      idleSocketMs: nodeIdleSocketMs,
      heardMs: nodeHeardMs,
      busyLookMs: nodeBusyLookMs,
      goneMs: nodeGoneMs,
      ...options,
    };
  }

  /** Connections that carry a request now, and those kept for the next one. */
  get connections(): { busy: number; idle: number } {
    return { busy: this.#connections.size - this.#idle.length, idle: this.#idle.length };
  }

  get origin(): Origin {
    return this.#origin;
  }

  /** Sends a whole HTTP/1.1 request, head and body in one or more parts, and hands its response to `handler`. */
  send(request: readonly RequestPart[], handler: ExchangeHandler): Exchange {
    const exchange = new PendingExchange(request, handler, this);
    if (this.#unsent.push(exchange) === 1) atEndOfTurn(this.#sendAll);
    return exchange;
  }

  /** From now on no connection is kept: idle ones close now, busy ones when their responses end. */
  close(): void {
    this.#closed = true;
    for (const connection of [...this.#idle]) connection.destroy();
    this.#stopSweep();
  }

  /** Replays on a new connection. */
  startAgain(exchange: PendingExchange): void {
    this.#start(exchange, null);
  }

  readonly #sendAll = (): void => {
    const exchanges = this.#unsent;
    this.#unsent = [];
    for (const exchange of exchanges) {
      if (exchange.handler === null) continue;
      try {
        this.#start(exchange, this.#takeIdle());
      } catch (thrown) {
        exchange.failed({ kind: "unreachable", cause: codeOf(thrown as Error) });
      }
    }
  };

  #start(exchange: PendingExchange, idle: Connection | null): void {
    if (idle !== null) return idle.reuse(exchange);
    const connection = new Connection(this, exchange, this.#options.connectTimeoutMs);
    this.#connections.add(connection);
    this.#busyLook ??= this.#startBusyLook();
    this.#options.dial(this.#origin, connection);
  }

  #takeIdle(): Connection | null {
    const now = this.#options.clock.monotonic();
    for (;;) {
      const connection = this.#idle.pop(); // the most recently used: it is the most likely to be alive
      if (connection === undefined) return null;
      if (connection.isUsable(now, this.#options.heardMs)) return connection;
      connection.destroy();
    }
  }

  /** The response ended and the connection may carry another request. */
  keep(connection: Connection, lifeMs: number): void {
    if (this.#closed || !canPeek || this.#idle.length >= nodeSocketsIdleMax) return connection.destroy();
    connection.rest(this.#options.clock.monotonic(), Math.min(this.#options.idleSocketMs, lifeMs));
    this.#idle.push(connection);
    this.#sweep ??= this.#startSweep();
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    if (this.#idle.length === 0) this.#stopSweep();
    if (this.#connections.size === 0) this.#stopBusyLook();
  }

  /** In intervals in which no connection grows too old to be used unasked. */
  #watchIdle(): void {
    const now = this.#options.clock.monotonic();
    for (const connection of [...this.#idle]) connection.watch(now);
  }

  #startSweep(): ReturnType<typeof setTimeout> {
    const sweep = setTimeout(() => {
      this.#sweep = null;
      this.#watchIdle();
      if (this.#idle.length > 0) this.#sweep = this.#startSweep();
    }, this.#options.idleSocketMs);
    sweep.unref();
    return sweep;
  }

  #stopSweep(): void {
    if (this.#sweep !== null) clearTimeout(this.#sweep);
    this.#sweep = null;
  }

  #startBusyLook(): ReturnType<typeof setTimeout> {
    const { busyLookMs, goneMs } = this.#options;
    const look = limitAtEndOfTurn(busyLookMs, () => {
      this.#busyLook = null;
      for (const connection of [...this.#connections]) connection.look(busyLookMs, goneMs);
      if (this.#connections.size > 0) this.#busyLook ??= this.#startBusyLook();
    });
    look.unref();
    return look;
  }

  #stopBusyLook(): void {
    if (this.#busyLook !== null) clearTimeout(this.#busyLook);
    this.#busyLook = null;
  }
}

/** An exchange over the one or two connections that it may need. */
class PendingExchange implements Exchange {
  readonly request: readonly RequestPart[];
  readonly #client: NodeClient;
  /** Null once nobody listens. */
  handler: ExchangeHandler | null;
  connection: Connection | null = null;
  #paused = false;

  constructor(request: readonly RequestPart[], handler: ExchangeHandler, client: NodeClient) {
    this.request = request;
    this.handler = handler;
    this.#client = client;
  }

  get paused(): boolean {
    return this.#paused;
  }

  pause(): void {
    this.#paused = true;
    this.connection?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.connection?.resume();
  }

  abort(): void {
    this.handler = null;
    this.connection?.destroy();
  }

  release(drainMs: number): void {
    this.handler = null;
    if (this.#paused) this.resume();
    this.connection?.drainFor(drainMs);
  }

  /** The connection is gone before the response's end. */
  lost(fault: ExchangeFault, wasReused: boolean): void {
    this.connection = null;
    if (this.handler === null) return;
    // The second try has a new connection, so that there is no third.
    const isStale = fault.kind === "no-reply" && wasReused;
    if (isStale && this.handler.mayBeSentAgain?.() !== false) return this.#client.startAgain(this);
    this.failed(fault);
  }

  failed(fault: ExchangeFault): void {
    const handler = this.handler;
    this.connection?.destroy();
    this.handler = null;
    handler?.fault(fault);
  }
}

/** One connection and the exchange that it carries now. */
class Connection implements SocketListener, ResponseHandler {
  readonly #client: NodeClient;
  readonly #parser = new ResponseParser(this);
  #socket: NodeSocket | null = null;
  /** While its TLS is agreed on. */
  #agreeing: NodeSocket | null = null;
  #exchange: PendingExchange | null;
  #connectTimer: ReturnType<typeof setTimeout> | null;
  #drainTimer: ReturnType<typeof setTimeout> | null = null;
  /** The response is no longer wanted, and has this long to end once the read that is being parsed is over. */
  #drainMs: number | null = null;
  #feeding = false;
  #closed = false;
  #reused = false;
  #replied = false;
  /** What of the request the socket did not take yet, and bytes of the first part that it did. */
  #unsent: readonly Buffer[] = nothing;
  #written = 0;
  /** What came in this turn of the event loop. */
  #unread: Buffer[] = [];
  /** So much of it came that no more is to come in this turn. */
  #resting = false;
  #served = 0;
  #requestsMax = Number.POSITIVE_INFINITY;
  #lifeMs = Number.POSITIVE_INFINITY;
  /** Monotonic time until which it may be used again without asking whether the node is there, and is kept at all. */
  #freshUntil = 0;
  #keptUntil = 0;
  /** How often the system asks the node whether it is there; 0: not at all. */
  #probedEveryMs = 0;

  constructor(client: NodeClient, exchange: PendingExchange, connectTimeoutMs: number) {
    this.#client = client;
    this.#exchange = exchange;
    exchange.connection = this;
    this.#connectTimer = setTimeout(
      () => this.#lose({ kind: "unreachable", cause: "not connected in time" }),
      connectTimeoutMs,
    );
  }

  /** It is idle from now on. Whoever says how long it keeps an idle connection may keep a thread for it (llama-server). */
  rest(now: number, freshMs: number): void {
    this.#freshUntil = now + freshMs;
    this.#keptUntil = now + (this.#lifeMs === Number.POSITIVE_INFINITY ? nodeKeptSocketMs : freshMs);
  }

  /** Whether nothing came that the event loop did not show yet, not even an end, and it is not half open. */
  isUsable(now: number, heardMs: number): boolean {
    if (now >= this.#keptUntil) return false;
    const { fd } = this.#socket!;
    return (now < this.#freshUntil || wasHeard(fd, heardMs)) && !hasWaiting(fd);
  }

  /** An idle one is closed when it is too old, or probed from now on. */
  watch(now: number): void {
    if (now >= this.#keptUntil) return this.destroy();
    this.#probe(nodeIdleSocketMs);
  }

  /** A node that says nothing while it works is given all its time, but not one whose system says nothing. */
  look(intervalMs: number, goneMs: number): void {
    if (this.#exchange === null || this.#socket === null) return;
    this.#probe(intervalMs);
    if (isGone(this.#socket.fd, goneMs)) this.closed("the node's system does not answer");
  }

  #probe(everyMs: number): void {
    if (this.#probedEveryMs === everyMs) return;
    this.#probedEveryMs = everyMs;
    startProbes(this.#socket!.fd, everyMs);
  }

  /** Takes another exchange. */
  reuse(exchange: PendingExchange): void {
    assert(this.#exchange === null && this.#socket !== null, "only an idle connection is used again");
    this.#exchange = exchange;
    exchange.connection = this;
    this.#reused = true;
    this.#replied = false;
    this.#parser.reset();
    if (this.#probedEveryMs === nodeIdleSocketMs) this.#stopProbes();
    this.#writeRequest();
  }

  /** Of an idle one: at so many, the system would soon end it by itself. */
  #stopProbes(): void {
    this.#probedEveryMs = 0;
    stopProbes(this.#socket!.fd);
  }

  #writeRequest(): void {
    const { request, paused } = this.#exchange!;
    if (paused) this.#socket!.pause();
    this.#written = 0;
    const bytes = putTogether(request);
    if (bytes === null) {
      this.#unsent = request.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
      return this.drained();
    }
    const wrote = Math.max(0, this.#socket!.write(scratch, 0, bytes));
    this.#unsent = wrote === bytes ? nothing : [Buffer.from(scratch.subarray(wrote, bytes))];
  }

  reached(socket: NodeSocket): void {
    if (this.#closed) socket.terminate();
    else this.#agreeing = socket;
  }

  opened(socket: NodeSocket): void {
    if (this.#closed) {
      socket.terminate();
      return;
    }
    this.#clearConnectTimer();
    this.#agreeing = null;
    this.#socket = socket;
    this.#writeRequest();
  }

  drained(): void {
    if (this.#exchange === null || this.#socket === null) return;
    for (let part = this.#unsent[0]; part !== undefined; part = this.#unsent[0]) {
      const wrote = this.#socket.write(part, this.#written, part.length - this.#written);
      if (wrote > 0) this.#written += wrote;
      if (this.#written < part.length) return; // the rest when it has room again
      this.#unsent = this.#unsent.slice(1);
      this.#written = 0;
    }
  }

  received(bytes: Buffer): void {
    if (this.#exchange === null) return this.#unaskedFor(); // at once: the connection might be taken before the turn's end
    if (this.#unread.push(bytes) === 1) atEndOfTurn(this.#readAll);
    if (bytes.length < nodeReadRestBytes) return;
    this.#resting = true;
    this.#socket?.pause();
  }

  /** Whatever they are, nobody gets them. */
  #unaskedFor(): void {
    this.#lose({ kind: "no-reply", cause: "unasked-for bytes on an idle connection" });
  }

  readonly #readAll = (): void => {
    const reads = this.#unread;
    if (reads.length === 0) return;
    this.#unread = [];
    if (this.#resting) {
      this.#resting = false;
      if (this.#exchange?.paused !== true) this.#socket?.resume();
    }
    try {
      for (const bytes of reads) {
        if (!this.#closed) this.#read(bytes);
      }
    } catch (thrown) {
      // As the runtime does where a socket's listener throws: this exchange has failed, nobody else's.
      this.closed(codeOf(thrown as Error));
    }
  };

  #read(bytes: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === null) return this.#unaskedFor();
    this.#replied = true;
    this.#feeding = true;
    this.#parser.feed(bytes);
    this.#feeding = false;
    if (this.#drainMs !== null) this.#startDraining(); // the response did not end with this read
    exchange.handler?.readEnd();
  }

  ended(): void {
    this.#readAll();
    // an end in order completes a body without a length; any other response it cuts
    if (this.#replied && this.#exchange !== null) this.#parser.closed();
    this.closed("closed by the node");
  }

  closed(cause: string): void {
    this.#readAll();
    if (this.#closed) return;
    if (this.#socket === null) return this.#lose({ kind: "unreachable", cause });
    this.#lose({ kind: this.#replied ? "broken" : "no-reply", cause });
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  drainFor(drainMs: number): void {
    if (this.#closed || this.#exchange === null) return;
    if (this.#socket === null || !this.#replied) return this.destroy();
    this.#drainMs ??= drainMs;
    if (!this.#feeding) this.#startDraining();
  }

  #startDraining(): void {
    this.#drainTimer ??= setTimeout(() => this.destroy(), this.#drainMs!);
    this.#drainMs = null;
  }

  /** Closes at once and tells nobody. */
  destroy(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#clearConnectTimer();
    this.#clearDrainTimer();
    (this.#socket ?? this.#agreeing)?.terminate();
    if (this.#exchange !== null) this.#exchange.connection = null;
    this.#exchange = null;
    this.#client.forget(this);
  }

  head(status: number, headers: ResponseHeaders): void {
    // Proxies end idle connections with a 408 that nobody asked for; RFC 9110, 15.5.9 lets the request be sent again.
    if (status === 408 && this.#reused) return this.#lose({ kind: "no-reply", cause: "408 on an idle connection" });
    this.#lifeMs = Number.POSITIVE_INFINITY;
    const keepAlive = headers.get("keep-alive");
    if (keepAlive !== undefined) this.#takeKeepAlive(keepAlive);
    this.#exchange?.handler?.head(status, headers);
  }

  #takeKeepAlive(keepAlive: string): void {
    const seconds = /\btimeout=(\d+)/i.exec(keepAlive)?.[1];
    // a fifth less than the node says, for the way that its close takes to reach us
    if (seconds !== undefined) this.#lifeMs = Number(seconds) * 800;
    const max = /\bmax=(\d+)/i.exec(keepAlive)?.[1];
    if (max !== undefined) this.#requestsMax = Math.min(this.#requestsMax, Number(max));
  }

  body(bytes: Buffer, start: number, end: number): void {
    this.#exchange?.handler?.body(bytes, start, end);
  }

  end(): void {
    const exchange = this.#exchange;
    if (exchange === null) return; // aborted while this read was parsed
    this.#served++;
    const reusable =
      this.#parser.reusable && this.#unsent.length === 0 && this.#served < this.#requestsMax && this.#lifeMs > 0;
    const handler = exchange.handler;
    exchange.handler = null;
    exchange.connection = null;
    this.#exchange = null;
    this.#clearDrainTimer();
    if (reusable) this.#client.keep(this, this.#lifeMs);
    else this.destroy();
    handler?.end();
  }

  malformed(reason: string): void {
    this.#lose({ kind: "malformed", cause: reason });
  }

  #lose(fault: ExchangeFault): void {
    const exchange = this.#exchange;
    const wasReused = this.#reused;
    this.destroy();
    exchange?.lost(fault, wasReused);
  }

  #clearConnectTimer(): void {
    if (this.#connectTimer !== null) clearTimeout(this.#connectTimer);
    this.#connectTimer = null;
  }

  #clearDrainTimer(): void {
    this.#drainMs = null;
    if (this.#drainTimer !== null) clearTimeout(this.#drainTimer);
    this.#drainTimer = null;
  }
}

/** `socket.data` is the listener; one handler object for all sockets. */
const socketHandlers = {
  open(socket: Socket<SocketListener>) {
    socket.setNoDelay(true);
    socket.data.opened(socket as Socket<SocketListener> & NodeSocket);
  },
  data(socket: Socket<SocketListener>, bytes: Buffer) {
    socket.data.received(bytes);
  },
  drain(socket: Socket<SocketListener>) {
    socket.data.drained();
  },
  end(socket: Socket<SocketListener>) {
    socket.data.ended();
  },
  close(socket: Socket<SocketListener>, error?: Error) {
    socket.data.closed(error === undefined ? "closed" : codeOf(error));
  },
  error(socket: Socket<SocketListener>, error: Error) {
    socket.data.closed(codeOf(error));
  },
  connectError(socket: Socket<SocketListener>, error: Error) {
    socket.data.closed(codeOf(error));
  },
};

/** TLS counts as open after the handshake, and only with a certificate for the node's name. */
const tlsSocketHandlers = {
  ...socketHandlers,
  open(socket: Socket<SocketListener>) {
    socket.setNoDelay(true);
    socket.data.reached(socket as Socket<SocketListener> & NodeSocket);
  },
  handshake(socket: Socket<SocketListener>, authorized: boolean, error: Error | null) {
    if (authorized && error === null) return socket.data.opened(socket as Socket<SocketListener> & NodeSocket);
    socket.data.closed(`TLS failed: ${error === null ? "the certificate is not trusted" : codeOf(error)}`);
  },
};

export const dialSocket: Dial = ({ hostname, port, tls }, listener) => {
  Bun.connect<SocketListener>({
    hostname,
    port,
    data: listener,
    ...(tls
      ? { tls: { serverName: hostname, rejectUnauthorized: true }, socket: tlsSocketHandlers }
      : { socket: socketHandlers }),
  }).catch((error: Error) => listener.closed(codeOf(error)));
};

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.name;
}
