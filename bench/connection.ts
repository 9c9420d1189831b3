// One keep-alive HTTP/1.1 client connection on a raw socket: one request at a time.
import type { Socket } from "bun";
import type { ReplyReceiver } from "./reply-reader.ts";
import { ReplyReader } from "./reply-reader.ts";

export type Receiver = ReplyReceiver & {
  /** The connection ended, or sent what is not HTTP, before the reply was complete. */
  failed(reason: string): void;
};

export class Connection {
  readonly #reader = new ReplyReader();
  #socket: Socket<undefined> | null = null;
  #receiver: Receiver | null = null;
  #unsent: Buffer | null = null;

  /** Rejects when nobody listens on the port, or when the certificate of a TLS server is not the host's. */
  static async open(port: number, hostname = "127.0.0.1", tls = false): Promise<Connection> {
    const connection = new Connection();
    const secured = Promise.withResolvers<void>();
    if (!tls) secured.resolve();
    const connected = Bun.connect<undefined>({
      hostname,
      port,
      tls: tls ? { serverName: hostname } : undefined,
      socket: {
        open: (socket) => {
          socket.setNoDelay(true);
        },
        handshake: (socket, _success, thrown) => {
          if (thrown === null) return secured.resolve();
          secured.reject(thrown);
          socket.end();
        },
        data: (_socket, bytes) => connection.#read(bytes),
        drain: () => connection.#flush(),
        close: () => {
          secured.reject(new Error("the connection was closed before it was secured"));
          connection.#fail("the connection was closed");
        },
        error: (_socket, thrown) => connection.#fail(String(thrown)),
      },
    });
    [connection.#socket] = await Promise.all([connected, secured.promise]);
    return connection;
  }

  /** True until the other side has closed. */
  get open(): boolean {
    return this.#socket !== null;
  }

  /** Sends the request; the receiver hears of the reply. The last reply must have ended. */
  ask(request: Buffer, receiver: Receiver): void {
    if (this.#socket === null) return receiver.failed("the connection was closed");
    this.#receiver = receiver;
    this.#reader.expect(receiver);
    this.#unsent = request;
    this.#flush();
  }

  close(): void {
    this.#receiver = null;
    this.#socket?.end();
    this.#socket = null;
  }

  #flush(): void {
    if (this.#unsent === null || this.#socket === null) return;
    const sent = Math.max(0, this.#socket.write(this.#unsent));
    this.#unsent = sent < this.#unsent.length ? this.#unsent.subarray(sent) : null;
  }

  #read(bytes: Buffer): void {
    try {
      this.#reader.feed(bytes.toString("latin1"));
    } catch (thrown) {
      this.#fail(String(thrown));
    }
  }

  #fail(reason: string): void {
    const receiver = this.#reader.idle ? null : this.#receiver;
    this.close();
    receiver?.failed(reason);
  }
}
