// Who may read /metrics: they tell how busy the house is and what its models are used for.
//
//   (1) a token is configured                               -> whoever brings it, from anywhere
//   (2) none, asked from this machine, and no proxy is here -> yes
//   (3) else                                                -> no
//
// A proxy on this machine asks for the whole world from 127.0.0.1, and need not say so: the configuration may, a header
// of its own, or a Host that is not this machine. The last keeps out pages in a browser on this machine, too, whose
// site's name was pointed here.
import { timingSafeEqual } from "node:crypto";
import { isLoopbackPeer, namesThisMachine } from "../../core/this-machine.ts";
import { forwardingHeaderIn } from "../forwarding.ts";

export type MetricsAccess = Readonly<{
  /** The other end of the connection; null where it is not known. */
  address: string | null;
  token: string | null;
  /** Whether the configuration says that clients come through a proxy. */
  behindProxy: boolean;
}>;

export function mayReadMetrics(headers: Headers, { address, token, behindProxy }: MetricsAccess): boolean {
  if (token !== null) return isToken(headers.get("authorization") ?? "", token); // (1)
  if (address === null || !isLoopbackPeer(address)) return false; // (3)
  return !behindProxy && forwardingHeaderIn(headers) === null && isForThisMachine(headers.get("host")); // (2), (3)
}

/** Compared as digests, so that how long it takes says nothing about how much of a guess was right. */
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
