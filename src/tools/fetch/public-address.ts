// Decides which IP addresses are on the public internet, from their bytes.
import { networkInterfaces } from "node:os";
import {
  type AddressBytes,
  type AddressRange,
  formatAddress,
  isInRange,
  parseAddress,
  parseRange,
} from "../../core/address.ts";
import { assert } from "../../core/assert.ts";

/** True for an address that anyone on the internet may have; false for all special, local and embedding ones. */
export function isPublicAddress(bytes: AddressBytes): boolean {
  if (bytes.length === 4) return !specialIPv4.some((range) => isInRange(range, bytes));
  return isInRange(globalUnicast, bytes) && !isIsatap(bytes) && !specialIPv6.some((range) => isInRange(range, bytes));
}

/** True for an address of this machine: its services would answer us even where a firewall hides them from others. */
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

/** IANA's registry of special-purpose addresses, with multicast, class E and what clouds reserve. */
const specialIPv4 = ranges(
  "0.0.0.0/8", // this network
  "10.0.0.0/8",
  "100.64.0.0/10", // carrier-grade NAT
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

/** Everything that IANA assigns as global unicast: loopback, mapped, translated, local and multicast lie outside. */
const [globalUnicast] = ranges("2000::/3") as [AddressRange];

const specialIPv6 = ranges(
  "2001::/23", // protocol assignments, including Teredo and ORCHID
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4, which embeds any IPv4 address
  "3fff::/20", // documentation
);

/** Interface ids `[02]00:5efe:a.b.c.d` reach the embedded IPv4 address through an ISATAP tunnel, under any prefix. */
function isIsatap(bytes: AddressBytes): boolean {
  return (bytes[8]! & ~0x03) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
}

function ranges(...texts: string[]): readonly AddressRange[] {
  return texts.map((text) => {
    const range = parseRange(text);
    assert(range !== null, `not an address range: ${text}`);
    return range;
  });
}
