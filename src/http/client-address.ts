// The address of a request's client: its connection's other end or, behind a proxy, what the proxy's header says.
import { forwardedAddress } from "./forwarded-address.ts";
import { peerAddress, type Connection } from "./peer-address.ts";

/** `header`: where a proxy names it. Null: unknown, or "unknown" there, since a proxy's own address is no client's. */
export function clientAddress(
  request: Request,
  connection: Pick<Connection, "requestIP" | "url"> | null,
  header: string | null,
): string | null {
  const named = header === null ? null : request.headers.get(header);
  return named === null ? peerAddress(request, connection) : forwardedAddress(named);
}
