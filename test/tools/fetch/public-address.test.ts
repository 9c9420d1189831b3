// Which addresses are public, in every form in which text can hide one; and that a text and its bytes are never judged
// differently.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatAddress, parseAddress } from "../../../src/core/address.ts";
import { isPublicAddress } from "../../../src/tools/fetch/public-address.ts";
import { parsePublicUrl } from "../../../src/tools/fetch/public-destination.ts";

const judged = (text: string): boolean => isPublicAddress(parseAddress(text)!);

/** First, last and middle address of each range, and its neighbors outside. */
const ranges: readonly (readonly [range: string, inside: readonly string[], outside: readonly string[]])[] = [
  ["0/8", ["0.0.0.0", "0.1.2.3", "0.255.255.255"], ["1.0.0.0"]],
  ["10/8", ["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0"]],
  ["100.64/10", ["100.64.0.0", "100.127.255.255", "100.100.100.200"], ["100.63.255.255", "100.128.0.0"]],
  ["127/8", ["127.0.0.0", "127.0.0.1", "127.255.255.255"], ["126.255.255.255", "128.0.0.0"]],
  ["169.254/16", ["169.254.0.0", "169.254.169.254", "169.254.255.255"], ["169.253.255.255", "169.255.0.0"]],
  ["172.16/12", ["172.16.0.0", "172.31.255.255"], ["172.15.255.255", "172.32.0.0"]],
  ["192.0.0/24", ["192.0.0.0", "192.0.0.192", "192.0.0.255"], ["191.255.255.255", "192.0.1.0"]],
  ["192.0.2/24", ["192.0.2.0", "192.0.2.255"], ["192.0.1.255", "192.0.3.0"]],
  ["192.88.99/24", ["192.88.99.0", "192.88.99.255"], ["192.88.98.255", "192.88.100.0"]],
  ["192.168/16", ["192.168.0.0", "192.168.255.255"], ["192.167.255.255", "192.169.0.0"]],
  ["198.18/15", ["198.18.0.0", "198.19.255.255"], ["198.17.255.255", "198.20.0.0"]],
  ["198.51.100/24", ["198.51.100.0", "198.51.100.255"], ["198.51.99.255", "198.51.101.0"]],
  ["203.0.113/24", ["203.0.113.0", "203.0.113.255"], ["203.0.112.255", "203.0.114.0"]],
  ["224/4 and 240/4", ["224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.255"], ["223.255.255.255"]],
  ["a cloud's control service", ["168.63.129.16"], ["168.63.129.15", "168.63.129.17"]],
  ["outside 2000::/3", ["::", "::1", "1fff::", "4000::", "ffff::"], ["2400::", "2a00::1"]],
  ["mapped, translated, compatible", ["::ffff:8.8.8.8", "::ffff:0:7f00:1", "::127.0.0.1", "::8.8.8.8"], []],
  ["NAT64", ["64:ff9b::808:808", "64:ff9b:1::7f00:1"], []],
  ["6to4", ["2002::", "2002:7f00:1::", "2002:808:808::1"], ["2001:4860:4860::8888", "2003::"]],
  ["protocol assignments and Teredo", ["2001::", "2001:0:7f00:1::", "2001:1ff:ffff::"], ["2001:200::"]],
  ["documentation", ["2001:db8::", "2001:db8:ffff::1", "3fff::", "3fff:fff::"], ["2001:db7::", "3fff:1000::"]],
  ["ISATAP", ["2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1"], ["2606:4700::6:5efe:a00:1"]],
  ["local and multicast", ["fc00::1", "fdff::", "fe80::1", "febf::", "fec0::1", "ff02::1", "100::1"], []],
];

describe("ranges", () => {
  test.each(ranges)("%s", (_, inside, outside) => {
    for (const text of inside) expect([text, judged(text)]).toEqual([text, false]);
    for (const text of outside) expect([text, judged(text)]).toEqual([text, true]);
  });
});

describe("text", () => {
  test.each([
    ["8.8.8.8", [8, 8, 8, 8]],
    ["2606:4700::6810:85e5", [0x26, 6, 0x47, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x68, 0x10, 0x85, 0xe5]],
    ["::ffff:1.2.3.4", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4]],
    ["1:2:3:4:5:6:7:8", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ["1::", [0, 1, ...new Array<number>(14).fill(0)]],
  ])("%s is read", (text, bytes) => expect(parseAddress(text)).toEqual(Uint8Array.from(bytes)));

  test.each([
    ["1.2.3"],
    ["1.2.3.4.5"],
    ["01.2.3.4"],
    ["1.2.3.256"],
    ["0x1.2.3.4"],
    ["1.2.3.4 "],
    ["::1%lo"],
    ["1::2::3"],
    ["1:2:3:4:5:6:7"],
    ["1:2:3:4:5:6:7::8"],
    ["12345::"],
    ["::1.2.3"],
    ["[::1]"],
    [""],
    ["example.com"],
  ])("%j is no address", (text) => expect(parseAddress(text)).toBeNull());

  test("what is dialed is what was judged, for any bytes", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 4, maxLength: 4 }),
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
    );
    fc.assert(fc.property(bytes, (address) => expect(parseAddress(formatAddress(address))).toEqual(address)));
  });
});

describe("addresses of the web", () => {
  test.each([
    ["http://127.1/", "127.0.0.1"],
    ["http://2130706433/", "127.0.0.1"],
    ["http://0x7f000001/", "127.0.0.1"],
    ["http://0177.0.0.1/", "127.0.0.1"],
    ["http://１２７.０.０.１/", "127.0.0.1"],
    ["http://①②⑦.0.0.1/", "127.0.0.1"],
    ["http://%31%32%37.0.0.1/", "127.0.0.1"],
    ["http:\\\\127.0.0.1\\a", "127.0.0.1"],
    ["ht\ttp://127.0\n.0.1/", "127.0.0.1"],
    ["http://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]"],
  ])("%j is read as %s, which is judged", (text, hostname) => {
    const url = parsePublicUrl(text)!;
    expect(url.hostname).toBe(hostname);
    expect(judged(hostname.replace(/^\[|\]$/g, ""))).toBe(false);
  });

  test.each([
    ["ftp://example.com/a"],
    ["file:///etc/passwd"],
    ["gopher://example.com/"],
    ["data:text/plain,a"],
    ["http://user@example.com/"],
    ["http://user:secret@example.com/"],
    ["http://8.8.8.8@127.0.0.1/"],
    ["http://example.com:22/"],
    ["http://example.com:0/"],
    ["https://example.com:8400/"],
    ["http://[::1%25lo]/"],
    ["http://exa mple.com/"],
    ["//example.com/"],
    ["/etc/passwd"],
    [""],
    [`http://example.com/${"a".repeat(9_000)}`],
  ])("%j is never fetched", (text) => expect(parsePublicUrl(text)).toBeNull());

  test.each([
    ["http://example.com/a?b=c#d"],
    ["https://example.com/"],
    ["http://example.com:443/"],
    ["http://example.com:8080/"],
    ["https://example.com:8443/"],
  ])("%j may be", (text) => expect(parsePublicUrl(text)).not.toBeNull());
});
