// The address of a request's sender. Behind relays, the main server listens on a unix socket, which has no addresses:
// there, a header from the relay that accepted the connection has it. From any other sender that header is not trusted.

export interface Connection {
  timeout(request: Request, seconds: number): void;
  requestIP(request: Request): { address: string } | null;
  readonly url: URL;
}

/** Relays overwrite a client's value. */
export const peerHeader = "x-tollgate-peer";

/** Null where unknown. */
export function peerAddress(request: Request, connection: Pick<Connection, "requestIP" | "url"> | null): string | null {
  if (connection?.url.protocol === "unix:") return request.headers.get(peerHeader);
  return connection?.requestIP(request)?.address ?? null;
}
