// Who may read /metrics: they tell how busy the house is and what its models are used for.
//
//   (1) a token is configured                               -> whoever brings it, from anywhere
//   (2) none, asked from this machine, and no proxy is here -> yes
//   (3) else                                                -> no
//
// A proxy on this machine asks for the whole world from 127.0.0.1, and need not say so.
import { timingSafeEqual } from "node:crypto";

/** Headers by which a proxy on this machine says that it asks for somebody else. */
const forwarded = ["x-forwarded-for", "forwarded", "x-real-ip", "via"];

export type MetricsAccess = Readonly<{
  /** The other end of the connection; null where it is not known. */
  address: string | null;
  token: string | null;
  /** Whether the configuration says that clients come through a proxy. */
  behindProxy: boolean;
}>;

export function mayReadMetrics(headers: Headers, { address, token, behindProxy }: MetricsAccess): boolean {
  if (token !== null) return isToken(headers.get("authorization") ?? "", token); // (1)
  if (address === null || !isLoopback(address)) return false; // (3)
  return !behindProxy && !forwarded.some((name) => headers.has(name)); // (2), (3)
}

/** Compared as digests, so that how long it takes says nothing about how much of a guess was right. */
function isToken(authorization: string, token: string): boolean {
  const given = /^bearer +(.*)$/i.exec(authorization)?.[1];
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

const digest = (text: string): Uint8Array => new Bun.CryptoHasher("sha256").update(text).digest();

const isLoopback = (address: string): boolean => /^(?:::ffff:)?127\.|^::1$/.test(address);
