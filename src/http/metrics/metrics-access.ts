// Who may read /metrics, which shows how busy the house is and what its models are used for.
//
//   (1) a token is configured                               -> anyone who sends it, from anywhere
//   (2) none, asked from this machine, and no proxy is here -> yes
//   (3) otherwise                                           -> no
//
// A proxy on this machine forwards the whole world's requests from 127.0.0.1 without necessarily saying so. The
// configuration may reveal it, a header of its own, or a Host other than this machine. The Host check also stops pages in a
// browser on this machine whose site's name was pointed here.
import { timingSafeEqual } from "node:crypto";
import { isLoopbackPeer, namesThisMachine } from "../../core/this-machine.ts";
import { forwardingHeaderIn } from "../forwarding.ts";

export type MetricsAccess = Readonly<{
  /** The other end of the connection; null where unknown. */
  address: string | null;
  token: string | null;
  /** Whether clients come through a proxy, by configuration. */
  behindProxy: boolean;
}>;

export function mayReadMetrics(headers: Headers, { address, token, behindProxy }: MetricsAccess): boolean {
  if (token !== null) return isToken(headers.get("authorization") ?? "", token); // (1)
  if (address === null || !isLoopbackPeer(address)) return false; // (3)
  return !behindProxy && forwardingHeaderIn(headers) === null && isForThisMachine(headers.get("host")); // (2), (3)
}

/** Compares digests, so that the time it takes reveals nothing about a guess. */
function isToken(authorization: string, token: string): boolean {
  const scheme = /^bearer +/i.exec(authorization)?.[0];
  return scheme !== undefined && timingSafeEqual(digest(authorization.slice(scheme.length)), digest(token));
}

const digest = (text: string): Uint8Array => new Bun.CryptoHasher("sha256").update(text).digest();

/** HTTP/1.0 has none. */
function isForThisMachine(host: string | null): boolean {
  const name = host === null ? "localhost" : URL.parse(`http://${host}`)?.hostname;
  return name !== undefined && namesThisMachine(name);
}
