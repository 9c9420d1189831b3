// Decides which IP addresses are on the public internet, from their bytes. Text is never judged: 127.0.0.1 can be
// written in more ways than any list knows (127.1, 0x7f000001, ::ffff:7f00:1), but has only one form as four bytes.
import { networkInterfaces } from "node:os";
import { assert } from "../../core/assert.ts";

/** 4 bytes of IPv4 or 16 of IPv6. */
export type AddressBytes = Uint8Array;

/** Parses an address; null for everything else. IPv6 may end in dotted form; zones (`%eth0`) are not addresses. */
export function parseAddress(text: string): AddressBytes | null {
  return text.includes(":") ? parseIPv6(text) : parseIPv4(text);
}

/** The one text form that is dialed: made from the bytes that were judged, so that nothing is parsed twice. */
export function formatAddress(bytes: AddressBytes): string {
  if (bytes.length === 4) return bytes.join(".");
  const groups: string[] = [];
  for (let at = 0; at < 16; at += 2) groups.push(((bytes[at]! << 8) | bytes[at + 1]!).toString(16));
  return groups.join(":");
}

/** True for an address that anybody on the internet may be given, and false for all special, local and embedding ones. */
export function isPublicAddress(bytes: AddressBytes): boolean {
  if (bytes.length === 4) return !specialIPv4.some((range) => contains(range, bytes));
  return contains(globalUnicast, bytes) && !isIsatap(bytes) && !specialIPv6.some((range) => contains(range, bytes));
}

/** True for an address of this machine: a service behind its firewall would answer us, who are in front of none. */
export function isOwnAddress(bytes: AddressBytes): boolean {
  const text = formatAddress(bytes);
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { address } of addresses ?? []) {
      const own = parseAddress(address.replace(/%.*$/, ""));
      if (own !== null && formatAddress(own) === text) return true;
    }
  }
  return false;
}

// ---------------------------------------------------------------- ranges

type Range = Readonly<{ prefix: AddressBytes; bits: number }>;

/** IANA's registry of special-purpose addresses, with multicast, class E and what clouds keep for themselves. */
const specialIPv4 = ranges(
  "0.0.0.0/8", // this network
  "10.0.0.0/8",
  "100.64.0.0/10", // behind carriers' address translation
  "127.0.0.0/8",
  "168.63.129.16/32", // the control service of Azure's machines, on a public address
  "169.254.0.0/16", // link-local, and the metadata services of clouds
  "172.16.0.0/12",
  "192.0.0.0/24", // protocol assignments
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16",
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, and broadcast
);

/** All that IANA has given out as global unicast: loopback, mapped, translated, local and multicast lie outside. */
const [globalUnicast] = ranges("2000::/3") as [Range];

const specialIPv6 = ranges(
  "2001::/23", // protocol assignments, Teredo and ORCHID among them
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4: any IPv4 address inside
  "3fff::/20", // documentation
);

/** Interface ids `[02]00:5efe:a.b.c.d` reach the IPv4 address in them by an ISATAP tunnel, whatever the prefix is. */
function isIsatap(bytes: AddressBytes): boolean {
  return (bytes[8]! & ~0x03) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
}

function contains({ prefix, bits }: Range, bytes: AddressBytes): boolean {
  const whole = bits >> 3;
  for (let at = 0; at < whole; at++) if (prefix[at] !== bytes[at]) return false;
  const mask = (0xff00 >> (bits & 7)) & 0xff;
  return (((prefix[whole] ?? 0) ^ (bytes[whole] ?? 0)) & mask) === 0;
}

function ranges(...texts: string[]): readonly Range[] {
  return texts.map((text) => {
    const [address = "", bits] = text.split("/");
    const prefix = parseAddress(address);
    assert(prefix !== null, `not an address range: ${text}`);
    return { prefix, bits: Number(bits) };
  });
}

// ---------------------------------------------------------------- text

function parseIPv4(text: string): AddressBytes | null {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255)) {
    return null;
  }
  return Uint8Array.from(parts, Number);
}

function parseIPv6(text: string): AddressBytes | null {
  const dotted = /^(.*:)([0-9]+\.[0-9.]+)$/.exec(text);
  const tail = dotted === null ? null : parseIPv4(dotted[2]!);
  if (dotted !== null && tail === null) return null;
  const hex = (high: number, low: number) => (((tail?.[high] ?? 0) << 8) | (tail?.[low] ?? 0)).toString(16);
  const plain = dotted === null ? text : `${dotted[1]}${hex(0, 1)}:${hex(2, 3)}`;

  const sides = plain.split("::");
  if (sides.length > 2) return null;
  const [head = [], rest = []] = sides.map((side) => (side === "" ? [] : side.split(":")));
  const missing = 8 - head.length - rest.length;
  if (sides.length === 2 ? missing < 1 : missing !== 0) return null;
  const groups = [...head, ...new Array<string>(missing).fill("0"), ...rest];
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return null;
  return Uint8Array.from(
    groups.flatMap((group) => {
      const value = parseInt(group, 16);
      return [value >> 8, value & 0xff];
    }),
  );
}
