// Who may read /metrics: they tell how busy the house is and what its models are used for.
//
//   (1) a token is configured              -> whoever brings it, from anywhere
//   (2) none, and asked from this machine  -> yes, unless a proxy asks for somebody else
//   (3) else                               -> no
import { timingSafeEqual } from "node:crypto";

/** Headers by which a proxy on this machine says that it asks for somebody else. */
const forwarded = ["x-forwarded-for", "forwarded", "x-real-ip", "via"];

/** `address` is the other end of the connection; null where it is not known. */
export function mayReadMetrics(headers: Headers, address: string | null, token: string | null): boolean {
  if (token !== null) return isToken(headers.get("authorization") ?? "", token); // (1)
  return address !== null && isLoopback(address) && !forwarded.some((name) => headers.has(name)); // (2), (3)
}

/** Compared as digests, so that how long it takes says nothing about how much of a guess was right. */
function isToken(authorization: string, token: string): boolean {
  const given = /^bearer +(.*)$/i.exec(authorization)?.[1];
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

const digest = (text: string): Uint8Array => new Bun.CryptoHasher("sha256").update(text).digest();

const isLoopback = (address: string): boolean => /^(?:::ffff:)?127\.|^::1$/.test(address);
