// The address of a request's sender. Behind relays on a unix socket, the relay's header has it; no other's is trusted.

export interface Connection {
  timeout(request: Request, seconds: number): void;
  requestIP(request: Request): { address: string } | null;
  readonly url: URL;
  /** Code of ours reads the replies, at its client's pace; the runtime does it by itself. */
  readonly readsReplies?: true;
  upgrade(request: Request, options: Readonly<{ data: SocketHandler }>): boolean;
}

/** What the runtime calls for one client's WebSocket. */
export interface SocketHandler {
  open(socket: Bun.ServerWebSocket<unknown>): void;
  message(socket: Bun.ServerWebSocket<unknown>, message: string | Buffer): void;
  drain(): void;
  close(): void;
}

/** Relays overwrite a client's value. */
export const peerHeader = "x-tollgate-peer";

/** Null where unknown. */
export function peerAddress(request: Request, connection: Pick<Connection, "requestIP" | "url"> | null): string | null {
  if (connection?.url.protocol === "unix:") return request.headers.get(peerHeader);
  return connection?.requestIP(request)?.address ?? null;
}
