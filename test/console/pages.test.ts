// How pages and files are served: compressed as the browser takes it, kept as long as it may, nothing from elsewhere.
import { describe, expect, test } from "bun:test";
import type { Asset } from "../../src/console/assets.ts";
import { ConsoleSite } from "./console-site.ts";

const text = (words: string) => new TextEncoder().encode(words);
const asset = (words: string, immutable: boolean): Asset => ({
  type: "text/plain",
  bytes: text(words),
  brotli: text(`br ${words}`),
  gzip: text(`gzip ${words}`),
  etag: `"${words}"`,
  immutable,
});
const site = new ConsoleSite({
  assets: () =>
    Promise.resolve(
      new Map([
        ["/index.html", asset("page", false)],
        ["/preloads.txt", asset("/usage /assets/usage-1.js", false)],
        ["/assets/main-1.js", asset("main", true)],
      ]),
    ),
});
const get = (path: string, headers: Record<string, string> = {}) => site.send(path, { headers });

test("every page is the same app, asked for anew each time", async () => {
  for (const path of ["/", "/sign-in", "/playground", "/usage", "/key", "/plan", "/account", "/operator/x/y"]) {
    const response = await get(path);
    expect([path, response.status, await response.text()]).toEqual([path, 200, "page"]);
    expect(response.headers.get("cache-control")).toBe("no-cache");
  }
});

test("a page says what it may load, and who may frame it: nobody", async () => {
  const { headers } = await get("/");
  const policy = headers.get("content-security-policy")!;
  expect(policy).toContain("default-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toContain("base-uri 'none'");
  expect(policy).not.toContain("unsafe");
  expect(policy).not.toContain("http");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
});

test("a file whose name holds its hash may be kept for a year, and is not sent again", async () => {
  const first = await get("/assets/main-1.js");
  expect(first.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  const again = await get("/assets/main-1.js", { "if-none-match": first.headers.get("etag")! });
  expect([again.status, await again.text()]).toEqual([304, ""]);
});

describe("a file is sent in the smallest form that the browser takes", () => {
  test.each([
    ["gzip, deflate, br, zstd", "br", "br main"],
    ["gzip, deflate", "gzip", "gzip main"],
    ["br;q=0, gzip", "gzip", "gzip main"],
    ["br;q=0.5", "br", "br main"],
    ["identity", null, "main"],
    ["", null, "main"],
    ["brotli, gzipped", null, "main"],
  ])("%p: %p", async (accepted, encoding, body) => {
    const response = await get("/assets/main-1.js", { "accept-encoding": accepted });
    expect([response.headers.get("content-encoding"), await response.text()]).toEqual([encoding, body]);
    expect(response.headers.get("vary")).toBe("accept-encoding");
  });
});

test.each(["/assets/other.js", "/assets/", "/assets/..%2fpackage.json", "/assets/../package.json", "/assets/%00"])(
  "%s is no file",
  async (path) => {
    expect((await get(path)).status).toBe(404);
  },
);

test("an app that cannot be made is told to the operator, not to the visitor", async () => {
  const broken = new ConsoleSite({ assets: () => Promise.reject(new Error("main.tsx:3 is wrong")) });
  const response = await broken.send("/");
  expect([response.status, await response.text()]).toEqual([500, "The console cannot be shown.\n"]);
  expect(broken.logged.join()).toContain("main.tsx:3 is wrong");
});
