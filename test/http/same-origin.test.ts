// Which Origin headers count as this site's own.
import { expect, test } from "bun:test";
import { isSameOrigin } from "../../src/http/same-origin.ts";

const http = "http://gate.test:8400";
const https = "https://gate.test/prefix";

test.each<[boolean, string, string | null, string | null]>([
  [true, http, "http://gate.test:8400", "127.0.0.1:8400"], // {base_url}, whatever name the request went to
  [true, http, "http://127.0.0.1:8400", "127.0.0.1:8400"], // the name that the browser knows
  [true, http, "http://[::1]:8400", "[::1]:8400"],
  [true, http, "http://LAN.test", "lan.test"],
  [true, http, "http://lan.test", "LAN.test"],
  [true, http, "https://lan.test", "lan.test"], // a proxy in front has https
  [true, https, "https://gate.test", "127.0.0.1:8400"],
  [true, https, "https://gate.test", "gate.test"],
  [false, https, "http://gate.test", "gate.test"], // a page that anybody on the way could have written
  [false, http, null, "127.0.0.1:8400"],
  [false, http, "", "127.0.0.1:8400"],
  [false, http, "null", "null"],
  [false, http, "http://evil.test", "gate.test:8400"],
  [false, http, "http://gate.test:8401", "gate.test:8400"],
  [false, http, "http://gate.test", "gate.test:8400"],
  [false, http, "http://lan.test.evil.test", "lan.test"],
  [false, http, "http://evil.test/lan.test", "lan.test"],
  [false, http, "http://lan.test@evil.test", "lan.test"],
  [false, http, "file:///lan.test", ""],
  [false, http, "ftp://lan.test", "lan.test"],
  [false, http, "http://lan.test, http://evil.test", "lan.test"],
  [false, http, "http://lan.test", null],
  [false, http, "lan.test", "lan.test"],
])("%p: base %s, origin %p, host %p", (expected, base, origin, host) => {
  const headers = new Headers();
  if (origin !== null) headers.set("origin", origin);
  if (host !== null) headers.set("host", host);
  expect(isSameOrigin(headers, base)).toBe(expected);
});
