// Turns an address that a stranger chose into the one destination that may be dialed for it, or into nothing. One
// parser (WHATWG URL) decides, and its result is dialed, because parsing the same text twice is how such checks are
// bypassed.
import { Resolver } from "node:dns/promises";
import { type AddressBytes, formatAddress, parseAddress } from "../../core/address.ts";
import { isOwnAddress, isPublicAddress } from "./public-address.ts";

/** All addresses of a name, as text; empty if it has none. Rejects with an Error when `cancelSignal` aborts. */
export type Resolve = (name: string, cancelSignal: AbortSignal) => Promise<readonly string[]>;

export type Destination = Readonly<{
  /** Checked addresses in the form to dial, in the order in which to try them. */
  addresses: readonly string[];
  port: number;
  /** The name that the certificate must be for; null for plain http. */
  tlsName: string | null;
  host: string;
  target: string;
}>;

const ports: ReadonlySet<string> = new Set(["80", "443", "8080", "8443"]);
/** Signed addresses of object stores take 2 KB. */
const urlMaxLength = 8_192;
const addressesTried = 4;
/** Names that by their registration (RFC 6761, 6762, 8375, 9476) are never on the public internet, and names without a dot. */
const localName = /^[^.]*$|(?:^|\.)(?:localhost|local|internal|home\.arpa|onion|invalid|test|example|alt)$/;

/** Parses an http(s) address with an allowed port and without credentials; null for all others. */
export function parsePublicUrl(text: string, base?: string): URL | null {
  const url = text.length > urlMaxLength ? null : URL.parse(text, base);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return null;
  if (url.username !== "" || url.password !== "" || !ports.has(portOf(url))) return null;
  return url;
}

/** Judges all addresses of the name; null if one is not public: an attacker's name server mixes them. */
export async function destinationOf(
  url: URL,
  resolve: Resolve,
  cancelSignal: AbortSignal,
): Promise<Destination | null> {
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  const literal = parseAddress(hostname);
  if (literal === null && localName.test(hostname)) return null;
  const found = literal === null ? (await resolve(hostname, cancelSignal)).map(parseAddress) : [literal];
  if (!found.every(isReachable)) return null;
  // IPv4 first: a machine without IPv6 would wait in vain.
  const addresses = found.sort((one, other) => one.length - other.length).map(formatAddress);
  const secure = url.protocol === "https:";
  return {
    addresses: addresses.slice(0, addressesTried),
    port: Number(portOf(url)),
    tlsName: secure ? hostname : null,
    host: url.host,
    target: url.pathname + url.search,
  };
}

const isReachable = (bytes: AddressBytes | null): bytes is AddressBytes =>
  bytes !== null && isPublicAddress(bytes) && !isOwnAddress(bytes);

const portOf = ({ port, protocol }: URL): string => port || (protocol === "https:" ? "443" : "80");

const nameServerTimeoutMs = 3_000;

/** Asks name servers only: hosts files add private names, and the C library's lookup would hold one of few threads. */
export const resolvePublicName: Resolve = async (name, cancelSignal) => {
  const resolver = new Resolver({ timeout: nameServerTimeoutMs, tries: 2 });
  const cancel = () => resolver.cancel();
  cancelSignal.addEventListener("abort", cancel, { once: true });
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  } finally {
    cancelSignal.removeEventListener("abort", cancel);
  }
};
