// The address of a request's sender. Behind relays, the main server listens on a unix socket, which has no addresses:
// there the relay that accepted the connection reports it in a header. From anyone else that header is not trusted.

/** What is used of a server. */
export interface Connection {
  timeout(request: Request, seconds: number): void;
  requestIP(request: Request): { address: string } | null;
  readonly url: URL;
}

/** Relays write it over whatever a client sent. */
export const peerHeader = "x-tollgate-peer";

/** Null where it is not known. */
export function peerAddress(request: Request, connection: Pick<Connection, "requestIP" | "url"> | null): string | null {
  if (connection?.url.protocol === "unix:") return request.headers.get(peerHeader);
  return connection?.requestIP(request)?.address ?? null;
}
