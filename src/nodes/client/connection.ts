// One connection to a node, and the exchange that it carries. Its owner, the client, decides which connection is reused.
import { assert } from "../../core/assert.ts";
import { atEndOfTurn } from "../../core/end-of-turn.ts";
import { nodeIdleSocketMs } from "../limits.ts";
import { codeOf, type NodeSocket, type SocketListener } from "./dial.ts";
import type { Exchange, ExchangeFault, ExchangeHandler, FilePart, RequestPart } from "./exchange.ts";
import { ResponseParser } from "./framing.ts";
import type { ResponseHandler, ResponseHeaders } from "./framing.ts";
import { hasWaiting, isGone, startProbes, stopProbes, wasHeard } from "./system-socket.ts";

/** Longest time that an idle connection is kept, as in nginx. Engines that announce no time close after 5 s. */
const nodeKeptSocketMs = 60_000;
/** A read this large is the last one from a node in a turn: from a fast node the runtime would read 6 MB more at once. */
const nodeReadRestBytes = 256 * 1024;

export interface ConnectionOwner {
  /** The response ended and the connection can carry another request. */
  keep(connection: Connection, lifeMs: number): void;
  forget(connection: Connection): void;
  /** Replays on a new connection. */
  startAgain(exchange: PendingExchange): void;
}

const nothing: readonly Buffer[] = [];
/** What of a file is in memory while it goes out. */
const fileReadBytes = 256 * 1024;

/** Most requests are assembled here and leave in one write, which saves a buffer for each. */
const scratch = Buffer.allocUnsafeSlow(128 * 1024);

function putTogether(request: readonly RequestPart[]): number | null {
  let bytes = 0;
  for (const part of request) {
    if (typeof part !== "string" || bytes + part.length * 3 > scratch.length) return null; // 3: UTF-8 of a UTF-16 unit
    bytes += scratch.write(part, bytes);
  }
  return bytes;
}

/** An exchange over the one or two connections that it may need. */
export class PendingExchange implements Exchange {
  readonly request: readonly RequestPart[];
  readonly #client: ConnectionOwner;
  /** Null once the caller no longer listens. */
  handler: ExchangeHandler | null;
  connection: Connection | null = null;
  #paused = false;

  constructor(request: readonly RequestPart[], handler: ExchangeHandler, client: ConnectionOwner) {
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

  /** The connection was lost before the response ended. */
  lost(fault: ExchangeFault, wasReused: boolean): void {
    this.connection = null;
    if (this.handler === null) return;
    // The second attempt has a new connection, so there is no third.
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

export class Connection implements SocketListener, ResponseHandler {
  readonly #client: ConnectionOwner;
  readonly #parser = new ResponseParser(this);
  #socket: NodeSocket | null = null;
  /** During its TLS handshake. */
  #agreeing: NodeSocket | null = null;
  #exchange: PendingExchange | null;
  #connectTimer: ReturnType<typeof setTimeout> | null;
  #drainTimer: ReturnType<typeof setTimeout> | null = null;
  /** The response is no longer wanted. It has this long to end once the current read is parsed. */
  #drainMs: number | null = null;
  #feeding = false;
  #closed = false;
  #reused = false;
  #replied = false;
  /** The rest of the request that the socket did not take yet, and how many bytes of the first part it took. */
  #unsent: readonly (Buffer | FilePart)[] = nothing;
  #written = 0;
  /** The part that a read of the disk is under way for. */
  #readsFile: FilePart | null = null;
  /** What came in this turn of the event loop. */
  #unread: Buffer[] = [];
  /** Reading is paused for the rest of this turn, because enough arrived. */
  #resting = false;
  #served = 0;
  #requestsMax = Number.POSITIVE_INFINITY;
  #lifeMs = Number.POSITIVE_INFINITY;
  /** Monotonic times until which it may be reused unprobed, and until which it is kept at all. */
  #freshUntil = 0;
  #keptUntil = 0;
  /** The interval of the system's keep-alive probes; 0: none. */
  #probedEveryMs = 0;

  constructor(client: ConnectionOwner, exchange: PendingExchange, connectTimeoutMs: number) {
    this.#client = client;
    this.#exchange = exchange;
    exchange.connection = this;
    this.#connectTimer = setTimeout(
      () => this.#lose({ kind: "unreachable", cause: "not connected in time" }),
      connectTimeoutMs,
    );
  }

  /** It is idle from now on. A node that announces an idle timeout may keep a thread for the connection (llama-server). */
  rest(now: number, freshMs: number): void {
    this.#freshUntil = now + freshMs;
    this.#keptUntil = now + (this.#lifeMs === Number.POSITIVE_INFINITY ? nodeKeptSocketMs : freshMs);
  }

  /** Whether no bytes and no end wait undelivered, and it is not half open. */
  isUsable(now: number, heardMs: number): boolean {
    if (now >= this.#keptUntil) return false;
    const { fd } = this.#socket!;
    return (now < this.#freshUntil || wasHeard(fd, heardMs)) && !hasWaiting(fd);
  }

  /** Closes an idle connection that is too old; probes it from now on otherwise. */
  watch(now: number): void {
    if (now >= this.#keptUntil) return this.destroy();
    this.#probe(nodeIdleSocketMs);
  }

  /** A node may be silent while it works for as long as it likes, but its system must answer probes. */
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

  /** For an idle connection: after several unanswered probes the system would close it by itself. */
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
      if (!Buffer.isBuffer(part)) return this.#readOn(part, this.#exchange);
      const wrote = this.#socket.write(part, this.#written, part.length - this.#written);
      if (wrote > 0) this.#written += wrote;
      if (this.#written < part.length) return; // the rest when it has room again
      this.#unsent = this.#unsent.slice(1);
      this.#written = 0;
    }
  }

  /** Comes back to `drained` with the next bytes of the file. */
  #readOn(part: FilePart, exchange: PendingExchange): void {
    if (this.#readsFile === part) return;
    this.#readsFile = part;
    const isWanted = (): boolean => this.#readsFile === part && this.#exchange === exchange;
    part.file.read(part.at, fileReadBytes).then(
      (bytes) => {
        if (!isWanted()) return;
        if (bytes.length === 0) return this.#lose({ kind: "broken", cause: "the upload: it ended early" });
        const at = part.at + bytes.length;
        const rest = this.#unsent.slice(1);
        this.#unsent = [bytes, ...(at < part.file.bytes ? [{ ...part, at }] : []), ...rest];
        this.drained();
      },
      (thrown: Error) => {
        if (isWanted()) this.#lose({ kind: "broken", cause: `the upload: ${codeOf(thrown)}` });
      },
    );
  }

  received(bytes: Buffer): void {
    if (this.#exchange === null) return this.#unaskedFor(); // at once: the connection might be reused before the turn ends
    if (this.#unread.push(bytes) === 1) atEndOfTurn(this.#readAll);
    if (bytes.length < nodeReadRestBytes) return;
    this.#resting = true;
    this.#socket?.pause();
  }

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
      // As the runtime does where a socket's listener throws: only this exchange has failed.
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
    // A proper end completes a body without a length and cuts off any other response.
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

  /** Closes at once, without a word to the handler. */
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
    // Proxies end idle connections with an unrequested 408. RFC 9110, 15.5.9 allows the request to be sent again.
    if (status === 408 && this.#reused) return this.#lose({ kind: "no-reply", cause: "408 on an idle connection" });
    this.#lifeMs = Number.POSITIVE_INFINITY;
    const keepAlive = headers.get("keep-alive");
    if (keepAlive !== undefined) this.#takeKeepAlive(keepAlive);
    this.#exchange?.handler?.head(status, headers);
  }

  #takeKeepAlive(keepAlive: string): void {
    const seconds = /\btimeout=(\d+)/i.exec(keepAlive)?.[1];
    // A fifth less than the node says, for the time that its close takes to reach us.
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
