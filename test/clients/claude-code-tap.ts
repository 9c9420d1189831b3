// A TCP relay between a client that is a program of its own and the gateway, which writes down what was asked and with
// which status it was answered. Bytes pass untouched. A request line or status line cannot be mistaken for content,
// because JSON has no raw line ends.
import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";

export type Exchange = { method: string; path: string; status: number | null };

export class WireTap implements AsyncDisposable {
  /** The gateway's address by way of this relay. */
  readonly url: string;
  /** In the order of the requests, across connections. */
  readonly exchanges: Exchange[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(target: string): Promise<WireTap> {
    const { hostname, port } = new URL(target);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const tap = new WireTap(server);
    server.on("connection", (client) => tap.#relay(client, connect(Number(port), hostname)));
    return tap;
  }

  /** Exchanges since the last call. */
  take(): Exchange[] {
    return this.exchanges.splice(0);
  }

  #relay(client: Socket, gateway: Socket): void {
    const waiting: Exchange[] = [];
    const requests = new LineFinder(/([A-Z]+) (\S+) HTTP\/1\.1\r\n/g, ([, method = "", path = ""]) => {
      const exchange: Exchange = { method, path, status: null };
      this.exchanges.push(exchange);
      waiting.push(exchange);
    });
    const replies = new LineFinder(/HTTP\/1\.1 (\d{3})[^\r]*\r\n/g, ([, status]) => {
      if (status !== "100") waiting.shift()!.status = Number(status);
    });
    for (const [from, to, lines] of [
      [client, gateway, requests],
      [gateway, client, replies],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (bytes: Buffer) => {
        lines.feed(bytes);
        if (!to.write(bytes)) from.pause();
      });
      to.on("drain", () => from.resume());
      from.on("end", () => to.end());
      from.on("error", () => to.destroy()); // the other side sees the end; the client's own error is what counts
      from.on("close", () => (this.#sockets.delete(from), to.destroy()));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<unknown>((resolve) => this.#server.close(resolve));
  }
}

/** Finds lines in a stream of bytes, however it was cut. */
class LineFinder {
  #rest = "";
  readonly #line: RegExp;
  readonly #found: (match: RegExpMatchArray) => void;

  constructor(line: RegExp, found: (match: RegExpMatchArray) => void) {
    this.#line = line;
    this.#found = found;
  }

  feed(bytes: Buffer): void {
    const text = this.#rest + bytes.toString("latin1");
    let end = 0;
    for (const match of text.matchAll(this.#line)) {
      this.#found(match);
      end = match.index + match[0].length;
    }
    // the longest line looked for: a path of Claude Code's has 30 characters
    this.#rest = text.slice(Math.max(end, text.length - 256));
  }
}
