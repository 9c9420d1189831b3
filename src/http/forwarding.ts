// Recognizes requests that a proxy forwards, by the parts of headers' names that only proxies use.
import { parseClientAddress } from "../core/address.ts";
import { isPublicAddress } from "../tools/fetch/public-address.ts";

const exact: ReadonlySet<string> = new Set(["forwarded", "via", "x-real-ip", "cdn-loop", "x-host", "x-url-scheme"]);
/** Such as x-forwarded-for, cf-connecting-ip, true-client-ip, fly-client-ip, x-envoy-external-address, cf-ray. */
const partsOfNames = [
  "forwarded",
  "client-ip",
  "connecting-ip",
  "clientip",
  "remote-addr",
  "remote-ip",
  "real-ip",
  "original-",
  "peer-ip",
];
const beginsOfNames = [
  "cf-",
  "fly-",
  "fastly-",
  "x-envoy-",
  "x-amzn-",
  "x-amz-cf-",
  "x-azure-",
  "x-appengine-",
  "x-vercel-",
  "x-nf-",
];

/** A header that shows a proxy; null where the request has none. Its absence proves nothing, because some proxies send none. */
export function forwardingHeaderIn(headers: Headers): string | null {
  for (const name of headers.keys()) {
    if (exact.has(name) || beginsOfNames.some((begin) => name.startsWith(begin))) return name;
    if (partsOfNames.some((part) => name.includes(part))) return name;
  }
  return null;
}

/** Whether an address is on this machine or in a private network, as a proxy's usually is. */
export function isNearAddress(address: string): boolean {
  const bytes = parseClientAddress(address);
  return bytes !== null && !isPublicAddress(bytes);
}
