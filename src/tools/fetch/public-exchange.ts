// One GET over one connection to exactly a checked address. The strict parser for nodes refuses encoded bodies.
import { ExchangeFailed } from "./public-fetch.ts";
import type { Socket } from "bun";
import { ResponseParser, type ResponseHeaders } from "../../nodes/client/framing.ts";
import type { Destination } from "./public-destination.ts";

export type ExchangeResult = Readonly<{ status: number; headers: ResponseHeaders; body: Buffer }>;

export type ExchangeLimits = Readonly<{
  accept: string;
  /** A body that is larger, or announces more, fails. */
  bytesMax: number;
  connectTimeoutMs: number;
}>;

/** Headers and chunk sizes beside the body. A server that sends more talks without end. */
const framingBytesMax = 1024 * 1024;

/** Requests one address of the destination, and reads the body of a 200 only. Rejects with ExchangeFailed. */
export function exchange(
  address: string,
  destination: Destination,
  limits: ExchangeLimits,
  cancelSignal: AbortSignal,
): Promise<ExchangeResult> {
  return new Promise((resolve, reject) => {
    const connection = new PublicConnection(destination, limits, cancelSignal, resolve, reject);
    const { port, tlsName } = destination;
    // The certificate must be for the requested name, whatever address is dialed.
    const tls = tlsName === null ? {} : { tls: { serverName: tlsName, rejectUnauthorized: true } };
    Bun.connect<PublicConnection>({
      hostname: address,
      port,
      data: connection,
      socket: tlsName === null ? socketHandlers : tlsSocketHandlers,
      ...tls,
    }).catch((error: Error) => connection.fail(error.message));
  });
}

class PublicConnection {
  readonly #destination: Destination;
  readonly #limits: ExchangeLimits;
  readonly #cancelSignal: AbortSignal;
  readonly #resolve: (result: ExchangeResult) => void;
  readonly #reject: (failure: ExchangeFailed) => void;
  readonly #parser: ResponseParser;
  readonly #connectTimer: ReturnType<typeof setTimeout>;
  readonly #leave = () => this.fail("the client left or time is up");
  #socket: Socket<PublicConnection> | null = null;
  #over = false;
  #unreached = true;
  #receivedBytes = 0;
  #status = 0;
  #headers: ResponseHeaders = new Map();
  #body: Buffer[] = [];
  #bodyBytes = 0;

  constructor(
    destination: Destination,
    limits: ExchangeLimits,
    cancelSignal: AbortSignal,
    resolve: (result: ExchangeResult) => void,
    reject: (failure: ExchangeFailed) => void,
  ) {
    this.#destination = destination;
    this.#limits = limits;
    this.#cancelSignal = cancelSignal;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#parser = new ResponseParser({
      head: (status, headers) => this.#head(status, headers),
      body: (bytes, start, end) => this.#take(bytes, start, end),
      end: () => this.#finish(),
      malformed: (reason) => this.fail(reason),
    });
    this.#connectTimer = setTimeout(() => this.fail("no connection in time"), limits.connectTimeoutMs);
    if (cancelSignal.aborted) this.#leave();
    else cancelSignal.addEventListener("abort", this.#leave);
  }

  /** TCP is connected. Over TLS the name is not proven yet, and nothing may be sent. */
  dialed(socket: Socket<PublicConnection>): void {
    this.#socket = socket;
    if (this.#over) socket.terminate();
  }

  opened(socket: Socket<PublicConnection>): void {
    if (this.#over) return;
    clearTimeout(this.#connectTimer);
    this.#unreached = false;
    const { target, host } = this.#destination;
    socket.write(
      `GET ${target} HTTP/1.1\r\nhost: ${host}\r\naccept: ${this.#limits.accept}\r\naccept-encoding: identity\r\n` +
        "user-agent: Tollgate\r\nconnection: close\r\n\r\n",
    );
  }

  received(bytes: Buffer): void {
    if (this.#over) return;
    this.#receivedBytes += bytes.length;
    // Twice the body: chunks of one byte take six, and no honest server sends those.
    if (this.#receivedBytes > 2 * this.#limits.bytesMax + framingBytesMax) return this.fail("too much framing");
    this.#parser.feed(bytes);
  }

  closed(reason: string): void {
    if (this.#over) return;
    if (!this.#unreached) this.#parser.closed(); // the end of a body without a length
    this.fail(reason);
  }

  fail(reason: string): void {
    if (this.#over) return;
    this.#leaveNothing();
    this.#reject(new ExchangeFailed(reason, this.#unreached));
  }

  #head(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#headers = headers;
    if (status !== 200) return this.#finish();
    if (Number(headers.get("content-length") ?? 0) > this.#limits.bytesMax) this.fail("the body is too large");
  }

  #take(bytes: Buffer, start: number, end: number): void {
    if (this.#over) return;
    this.#bodyBytes += end - start;
    if (this.#bodyBytes > this.#limits.bytesMax) return this.fail("the body is too large");
    this.#body.push(Buffer.copyBytesFrom(bytes, start, end - start));
  }

  #finish(): void {
    if (this.#over) return;
    this.#leaveNothing();
    this.#resolve({ status: this.#status, headers: this.#headers, body: Buffer.concat(this.#body) });
  }

  #leaveNothing(): void {
    this.#over = true;
    clearTimeout(this.#connectTimer);
    this.#cancelSignal.removeEventListener("abort", this.#leave);
    this.#socket?.terminate();
  }
}

const socketHandlers = {
  open(socket: Socket<PublicConnection>) {
    socket.data.dialed(socket);
    socket.data.opened(socket);
  },
  data(socket: Socket<PublicConnection>, bytes: Buffer) {
    socket.data.received(bytes);
  },
  end(socket: Socket<PublicConnection>) {
    socket.data.closed("closed by the server");
  },
  close(socket: Socket<PublicConnection>) {
    socket.data.closed("closed by the server");
  },
  error(socket: Socket<PublicConnection>, error: Error) {
    socket.data.fail(error.message);
  },
  connectError(socket: Socket<PublicConnection>, error: Error) {
    socket.data.fail(error.message);
  },
};

const tlsSocketHandlers = {
  ...socketHandlers,
  open(socket: Socket<PublicConnection>) {
    socket.data.dialed(socket);
  },
  handshake(socket: Socket<PublicConnection>, authorized: boolean, error: Error | null) {
    if (authorized && error === null) socket.data.opened(socket);
    else socket.data.fail("the certificate does not fit");
  },
};
