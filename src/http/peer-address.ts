// The address of whoever sent a request. The complete server behind relays listens on a unix socket, which has no
// addresses: there the relay that took the connection says it. Elsewhere that header is a stranger's word.
import type { Connection } from "./inference.ts";

/** Relays write it over whatever a client sent. */
export const peerHeader = "x-tollgate-peer";

/** Null where it is not known. */
export function peerAddress(request: Request, connection: Pick<Connection, "requestIP" | "url"> | null): string | null {
  if (connection?.url.protocol === "unix:") return request.headers.get(peerHeader);
  return connection?.requestIP(request)?.address ?? null;
}
