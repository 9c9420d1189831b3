// The address of a request's sender. Behind relays on a unix socket, the relay's header has it; no other's is trusted.

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
