// How a connection to a node is opened: addresses, TLS and the events of a socket.
import type { Socket } from "bun";

export type Origin = Readonly<{ hostname: string; port: number; tls: boolean; hostHeader: string }>;

export type NodeSocket = Pick<Socket, "write" | "pause" | "resume" | "terminate"> & {
  /** File descriptor; bun-types 1.4.5 does not declare it. */
  readonly fd: number;
};
/** Events of a socket. All calls come from the event loop, never from within `dial`. */
export interface SocketListener {
  /** The host was reached. Over TLS its identity is confirmed later, if at all. */
  reached(socket: NodeSocket): void;
  opened(socket: NodeSocket): void;
  received(bytes: Buffer): void;
  drained(): void;
  /** The other side properly sent its end. `closed` may or may not follow. */
  ended(): void;
  /** The connection is gone, or dialing failed. */
  closed(cause: string): void;
}
export type Dial = (origin: Origin, listener: SocketListener) => void;

/** Parses a node's base address. Throws TypeError on anything but http(s). */
export function originOf(url: URL): Origin {
  const tls = url.protocol === "https:";
  if (!tls && url.protocol !== "http:") throw new TypeError(`a node's address must be http or https: ${url.protocol}`);
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { hostname, port: Number(url.port || (tls ? 443 : 80)), tls, hostHeader: url.host };
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

export function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.name;
}
