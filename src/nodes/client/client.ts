// The pooled HTTP/1.1 client for one node, on raw sockets. `fetch` is not used here: it runs at most 256 requests at once,
// costs twice the CPU per event, and replays and reuses connections by its own rules.
//
// A connection's life:  dialing -> busy -> idle -> busy -> ... -> closed
// - Bytes, an end or an error on an idle connection close it, and the bytes are dropped.
// - Bytes that the system has received but the event loop has not delivered would be taken for the reply. So the socket is
//   checked right before an idle connection is taken. (Not after the write: a quick node's reply may be there then.)
// - A request is written again exactly once, on a new connection, and only if a reused one closed without a byte of reply.
import type { Clock } from "../../core/clock.ts";
import { atEndOfTurn, limitAtEndOfTurn } from "../../core/end-of-turn.ts";
import { nodeConnectTimeoutMs } from "../../core/limits.ts";
import { nodeIdleSocketMs } from "../limits.ts";
import { Connection, type ConnectionOwner, PendingExchange } from "./connection.ts";
import { codeOf, type Dial, dialSocket, type Origin } from "./dial.ts";
import type { Exchange, ExchangeHandler, RequestPart } from "./exchange.ts";
import { canPeek } from "./system-socket.ts";

/** A connection idle for longer is reused if its node's system answered a probe within this time; probes are a second apart. */
const nodeHeardMs = 1_500;
/** How often connections with a request are checked, and their nodes' systems probed. */
const nodeBusyLookMs = 10_000;
/** A node whose system has answered nothing for this long has lost power or network; a program may be silent for longer. */
const nodeGoneMs = 30_000;
const nodeSocketsIdleMax = 256;

export type ClientOptions = Readonly<{
  clock: Clock;
  dial?: Dial;
  connectTimeoutMs?: number;
  idleSocketMs?: number;
  heardMs?: number;
  busyLookMs?: number;
  goneMs?: number;
}>;

export class NodeClient implements ConnectionOwner {
  readonly #origin: Origin;
  readonly #options: Required<ClientOptions>;
  readonly #connections = new Set<Connection>();
  /** Least recently used first. */
  readonly #idle: Connection[] = [];
  /** Sent at the end of this turn of the event loop. */
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

  get connections(): { busy: number; idle: number } {
    return { busy: this.#connections.size - this.#idle.length, idle: this.#idle.length };
  }

  get origin(): Origin {
    return this.#origin;
  }

  send(request: readonly RequestPart[], handler: ExchangeHandler): Exchange {
    const exchange = new PendingExchange(request, handler, this);
    if (this.#unsent.push(exchange) === 1) atEndOfTurn(this.#sendAll);
    return exchange;
  }

  /** Keeps no connection from now on: idle ones close now, busy ones when their responses end. */
  close(): void {
    this.#closed = true;
    for (const connection of [...this.#idle]) connection.destroy();
    this.#stopSweep();
  }

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
      const connection = this.#idle.pop(); // the most recently used is the most likely to be alive
      if (connection === undefined) return null;
      if (connection.isUsable(now, this.#options.heardMs)) return connection;
      connection.destroy();
    }
  }

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

  /** Runs at intervals short enough that no connection grows too old to be used unprobed. */
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
