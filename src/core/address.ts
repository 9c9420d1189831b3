// IP addresses as bytes, and ranges of them in CIDR notation. Text is never compared: 127.0.0.1 can be written in more
// ways than any list has (::ffff:7f00:1), but has only one form as four bytes.

/** 4 bytes of IPv4 or 16 of IPv6. */
export type AddressBytes = Uint8Array;

/** Parses an address; null for anything else. IPv6 may end in dotted form; zones (`%eth0`) are not addresses. */
export function parseAddress(text: string): AddressBytes | null {
  return text.includes(":") ? parseIPv6(text) : parseIPv4(text);
}

/** The one text form to dial: made from the bytes that were judged, so that nothing is parsed twice. */
export function formatAddress(bytes: AddressBytes): string {
  if (bytes.length === 4) return bytes.join(".");
  const groups: string[] = [];
  for (let at = 0; at < 16; at += 2) groups.push(((bytes[at]! << 8) | bytes[at + 1]!).toString(16));
  return groups.join(":");
}

/** `10.0.0.0/8`; a single address is a range of one. */
export type AddressRange = Readonly<{ prefix: AddressBytes; bits: number }>;

/** Null where it is no range. */
export function parseRange(text: string): AddressRange | null {
  const [, address = "", bits] = /^([0-9a-fA-F.:]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? [];
  const prefix = parseAddress(address);
  if (prefix === null) return null;
  const most = prefix.length * 8;
  const wanted = bits === undefined ? most : Number(bits);
  return wanted <= most ? { prefix, bits: wanted } : null;
}

/** `::ffff:10.0.0.1`, or `::ffff:a00:1`: an IPv4 address in IPv6 form. */
const mapped: AddressRange = { prefix: parseIPv6("::ffff:0:0")!, bits: 96 };

/** A client's address as sockets and headers give it: IPv4 may appear in IPv6 form. */
export function parseClientAddress(text: string): AddressBytes | null {
  const bytes = parseAddress(text);
  return bytes !== null && isInRange(mapped, bytes) ? bytes.slice(12) : bytes;
}

/** A range of clients: IPv4 may be written in IPv6 form here, too. */
function parseClientRange(text: string): AddressRange | null {
  const range = parseRange(text);
  if (range === null || range.bits < mapped.bits || !isInRange(mapped, range.prefix)) return range;
  return { prefix: range.prefix.slice(12), bits: range.bits - mapped.bits };
}

/** Whether an address lies in one of the ranges; an unknown or invalid one lies in none. */
export function isAmong(ranges: readonly string[], address: string | null): boolean {
  const bytes = address === null ? null : parseClientAddress(address);
  if (bytes === null) return false;
  return ranges.some((text) => {
    const range = parseClientRange(text);
    return range !== null && isInRange(range, bytes);
  });
}

/** Both are IPv4, or both IPv6. */
export function isInRange({ prefix, bits }: AddressRange, bytes: AddressBytes): boolean {
  if (prefix.length !== bytes.length) return false;
  const whole = bits >> 3;
  for (let at = 0; at < whole; at++) if (prefix[at] !== bytes[at]) return false;
  const mask = (0xff00 >> (bits & 7)) & 0xff;
  return (((prefix[whole] ?? 0) ^ (bytes[whole] ?? 0)) & mask) === 0;
}

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
